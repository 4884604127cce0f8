//! What happens rarely, behind one descriptor: changes of addresses, TCP, and being woken from another thread.

use core::mem::MaybeUninit;
use core::time::Duration;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

/// What an event is about.
pub(super) mod token {
    /// Changes of interfaces and addresses.
    pub(in crate::net) const CHANGES: u64 = 0;
    /// Another thread wants something.
    pub(in crate::net) const WAKER: u64 = 1;
    /// A TCP listener, by its place.
    pub(in crate::net) const LISTENERS: u64 = 1 << 8;
    /// A UDP socket, by its place.
    pub(in crate::net) const SOCKETS: u64 = 1 << 16;
    /// A TCP connection, by its place.
    pub(in crate::net) const CONNECTIONS: u64 = 1 << 32;
}

/// Events taken at a time.
const EVENTS: usize = 16;

/// Waits for several descriptors at once; can itself be waited for.
pub(super) struct Watch {
    epoll: OwnedFd,
    waker: OwnedFd,
}

/// The tokens of what has happened.
pub(super) struct Happened {
    tokens: [u64; EVENTS],
    count: usize,
}

impl Happened {
    pub(super) fn tokens(&self) -> &[u64] {
        &self.tokens[..self.count]
    }
}

impl Watch {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let watch = Self { epoll, waker };
        watch.add(watch.waker.as_fd(), token::WAKER, EventFlags::IN)?;
        Ok(watch)
    }

    pub(super) fn add(&self, descriptor: BorrowedFd<'_>, token: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, descriptor, EventData::new_u64(token), flags)?)
    }

    pub(super) fn modify(&self, descriptor: BorrowedFd<'_>, token: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, descriptor, EventData::new_u64(token), flags)?)
    }

    /// What another thread writes to in order to end a wait.
    pub(super) fn waker(&self) -> io::Result<OwnedFd> {
        self.waker.try_clone()
    }

    /// Forgets that another thread woke this one.
    pub(super) fn rest(&self) {
        // Failing means that there was nothing to forget.
        let _ = rustix::io::read(&self.waker, &mut [0; 8]);
    }

    /// Waits until something happens, at most `time`. Being interrupted by a signal is nothing having happened.
    pub(super) fn wait(&self, time: Option<Duration>) -> io::Result<Happened> {
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
pub(super) fn wake(waker: BorrowedFd<'_>) {
    // Failing means that it has been woken so often already that the counter is full.
    let _ = rustix::io::write(waker, &1_u64.to_ne_bytes());
}
