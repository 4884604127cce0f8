//! Waiting for sockets, by the `polling` crate: epoll, kqueue, or the counterpart of Windows.

#![expect(unsafe_code, reason = "a socket has to leave the poller before it is closed, which `Watched` sees to")]

use core::cell::{Cell, RefCell};
use core::num::NonZeroUsize;
use core::ops::Deref;
use core::time::Duration;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use std::vec::Vec;

use polling::{Event, Events, PollMode, Poller};

use crate::net::token::{self, Interest};

/// Events taken at a time.
const EVENTS: NonZeroUsize = NonZeroUsize::new(16).expect("it is not 0");
/// How often the interfaces are looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Waits for several sockets at once.
pub(in crate::net) struct Watch {
    poller: Arc<Poller>,
    events: RefCell<Events>,
    /// When the interfaces were looked at last.
    looked: Cell<Instant>,
}

/// The tokens of what has happened.
pub(in crate::net) struct Happened(Vec<u64>);

impl Happened {
    pub(in crate::net) fn tokens(&self) -> &[u64] {
        &self.0
    }
}

impl Watch {
    pub(in crate::net) fn new() -> io::Result<Self> {
        let (poller, events) = (Arc::new(Poller::new()?), RefCell::new(Events::with_capacity(EVENTS)));
        Ok(Self { poller, events, looked: Cell::new(Instant::now()) })
    }

    /// Says from now on what becomes of `source`, under this token and no longer under the one before.
    pub(in crate::net) fn follow<S: Source>(
        &self,
        source: &mut Watched<S>,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let key = token as usize;
        let event = match interest {
            Interest::Nothing => Event::none(key),
            Interest::Reading => Event::readable(key),
            Interest::Writing => Event::writable(key),
            Interest::Both => Event::all(key),
        };
        if source.poller.is_some() {
            return self.poller.modify_with_mode(&source.source, event, PollMode::Level);
        }
        // SAFETY: `Watched` gives its socket to no other code and takes it out of the poller before it closes it.
        unsafe { self.poller.add_with_mode(&source.source, event, PollMode::Level) }?;
        source.poller = Some(Arc::clone(&self.poller));
        Ok(())
    }

    /// A handle that ends a wait from another thread.
    #[expect(clippy::unnecessary_wraps, reason = "on Linux it needs a descriptor")]
    pub(in crate::net) fn waker(&self) -> io::Result<Waker> {
        Ok(Waker(Arc::clone(&self.poller)))
    }

    /// Forgets that another thread woke this one, which the end of the wait has done.
    #[expect(clippy::unused_self, reason = "on Linux there is something to forget")]
    pub(in crate::net) fn rest(&self) {}

    /// Waits until something happens, at most `time`. Being interrupted by a signal is nothing having happened.
    pub(in crate::net) fn wait(&self, time: Option<Duration>) -> io::Result<Happened> {
        let look = LOOK.saturating_sub(self.looked.get().elapsed());
        let mut events = self.events.borrow_mut();
        events.clear();
        match self.poller.wait(&mut events, Some(time.unwrap_or(look).min(look))) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let mut tokens: Vec<_> = events.iter().map(|event| event.key as u64).collect();
        if self.looked.get().elapsed() >= LOOK {
            self.looked.set(Instant::now());
            // Last: sockets may be others after it.
            tokens.push(token::CHANGES);
        }
        Ok(Happened(tokens))
    }
}

/// Ends the wait of an endpoint from another thread.
pub(in crate::net) struct Waker(Arc<Poller>);

impl Waker {
    pub(in crate::net) fn wake(&self) {
        // Failing means that there is nothing to wake.
        let _ = self.0.notify();
    }
}

impl std::task::Wake for Waker {
    fn wake(self: Arc<Self>) {
        Self::wake(&self);
    }
}

/// A socket that can be waited for.
#[cfg(unix)]
pub(in crate::net) trait Source: std::os::fd::AsFd + std::os::fd::AsRawFd {}
#[cfg(unix)]
impl<S: std::os::fd::AsFd + std::os::fd::AsRawFd> Source for S {}

/// A socket that can be waited for.
#[cfg(windows)]
pub(in crate::net) trait Source:
    std::os::windows::io::AsSocket + std::os::windows::io::AsRawSocket
{
}
#[cfg(windows)]
impl<S: std::os::windows::io::AsSocket + std::os::windows::io::AsRawSocket> Source for S {}

/// A socket that can be followed, which leaves the poller before it is closed.
pub(in crate::net) struct Watched<S: Source> {
    source: S,
    poller: Option<Arc<Poller>>,
}

impl<S: Source> Watched<S> {
    pub(in crate::net) fn new(source: S) -> Self {
        Self { source, poller: None }
    }
}

impl<S: Source> Drop for Watched<S> {
    fn drop(&mut self) {
        if let Some(poller) = &self.poller {
            // One that is not known any more has left.
            let _ = poller.delete(&self.source);
        }
    }
}

impl<S: Source> Deref for Watched<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.source
    }
}
