//! Rare events behind one descriptor: changes of addresses, TCP, and wake-ups from another thread.

use core::mem::MaybeUninit;
use core::ops::Deref;
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use crate::net::token;
use crate::net::token::Interest;

/// Events taken at a time.
const EVENTS: usize = 16;

/// Waits for several descriptors at once; can itself be waited for.
pub(in crate::net) struct Watch {
    epoll: OwnedFd,
    waker: OwnedFd,
}

/// The tokens of what has happened.
pub(in crate::net) struct Happened {
    tokens: [u64; EVENTS],
    count: usize,
}

impl Happened {
    pub(in crate::net) fn tokens(&self) -> &[u64] {
        &self.tokens[..self.count]
    }
}

impl Watch {
    pub(in crate::net) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let watch = Self { epoll, waker };
        watch.add(watch.waker.as_fd(), token::WAKER, EventFlags::IN)?;
        Ok(watch)
    }

    pub(super) fn add(&self, descriptor: BorrowedFd<'_>, token: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, descriptor, EventData::new_u64(token), flags)?)
    }

    /// Says from now on what becomes of `source`, under this token and no longer under the one before.
    pub(in crate::net) fn follow<S: AsFd>(
        &self,
        source: &mut Watched<S>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let (descriptor, flags) = (source.source.as_fd(), flags(interest));
        if source.is_followed {
            return Ok(epoll::modify(&self.epoll, descriptor, EventData::new_u64(token), flags)?);
        }
        self.add(descriptor, token, flags)?;
        source.is_followed = true;
        Ok(())
    }

    /// A handle that ends a wait from another thread.
    pub(in crate::net) fn waker(&self) -> io::Result<Waker> {
        self.waker.try_clone().map(Waker)
    }

    /// Forgets that another thread woke this one.
    pub(in crate::net) fn rest(&self) {
        // Failing means that there was nothing to forget.
        let _ = rustix::io::read(&self.waker, &mut [0; 8]);
    }

    /// Waits until something happens, at most `time`. Being interrupted by a signal is nothing having happened.
    pub(in crate::net) fn wait(&self, time: Option<Duration>) -> io::Result<Happened> {
        let mut events = [MaybeUninit::<Event>::uninit(); EVENTS];
        let time = time
            .map(|time| Timespec { tv_sec: time.as_secs().min(3600) as i64, tv_nsec: i64::from(time.subsec_nanos()) });
        let mut happened = Happened { tokens: [0; EVENTS], count: 0 };
        match epoll::wait(&self.epoll, &mut events[..], time.as_ref()) {
            Ok((events, _)) => {
                for (token, event) in happened.tokens.iter_mut().zip(&*events) {
                    *token = event.data.u64();
                    happened.count += 1;
                }
                Ok(happened)
            }
            Err(rustix::io::Errno::INTR) => Ok(happened),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Ends the wait of an endpoint from another thread.
pub(in crate::net) struct Waker(OwnedFd);

impl Waker {
    pub(in crate::net) fn wake(&self) {
        // Failing means that it has been woken so often already that the counter is full.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// A socket that can be followed; the kernel forgets one that is closed.
pub(in crate::net) struct Watched<S> {
    source: S,
    is_followed: bool,
}

impl<S> Watched<S> {
    pub(in crate::net) fn new(source: S) -> Self {
        Self { source, is_followed: false }
    }
}

impl<S> Deref for Watched<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.source
    }
}

fn flags(interest: Interest) -> EventFlags {
    match interest {
        Interest::Nothing => EventFlags::empty(),
        Interest::Reading => EventFlags::IN,
        Interest::Writing => EventFlags::OUT,
        Interest::Both => EventFlags::IN | EventFlags::OUT,
    }
}
