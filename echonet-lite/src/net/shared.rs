//! The state that the endpoints of a node and its driver share, behind a lock that its holder cannot take again.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::task::Waker;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use tokio::sync::broadcast;

use super::engine::{Device, Engine};
use super::interface::Interface;
use super::pending::Pending;
use crate::controller::Event;

/// The parts that endpoints and the driver share.
pub(super) struct Shared<D> {
    state: Mutex<State<D>>,
    /// The thread that holds `state`; 0 if none does.
    holder: AtomicUsize,
    closed: AtomicBool,
    /// Places of requests that were given up where `state` was held.
    abandoned: Mutex<Vec<usize>>,
    pub(super) events: broadcast::Sender<Event>,
}

pub(super) struct State<D> {
    pub(super) engine: Engine<D>,
    pub(super) interfaces: Vec<Interface>,
    pub(super) listens_tcp: bool,
    pub(super) pending: Pending,
    /// Set while the driver sleeps.
    pub(super) driver: Option<Waker>,
}

/// The state is held by this very thread: an object called the endpoint that serves it.
#[derive(Debug)]
pub(super) struct Reentered;

/// The state, held.
pub(super) struct Held<'a, D> {
    state: MutexGuard<'a, State<D>>,
    holder: &'a AtomicUsize,
}

impl<D> core::ops::Deref for Held<'_, D> {
    type Target = State<D>;

    fn deref(&self) -> &State<D> {
        &self.state
    }
}

impl<D> core::ops::DerefMut for Held<'_, D> {
    fn deref_mut(&mut self) -> &mut State<D> {
        &mut self.state
    }
}

impl<D> Drop for Held<'_, D> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}

/// A number that no other thread has while this one lives: an address of its own.
fn this_thread() -> usize {
    std::thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| core::ptr::from_ref(here).addr())
}

impl<D> core::fmt::Debug for Shared<D> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl<D> Shared<D> {
    pub(super) fn new(state: State<D>, events: broadcast::Sender<Event>) -> Self {
        Self {
            state: Mutex::new(state),
            holder: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            abandoned: Mutex::default(),
            events,
        }
    }

    /// Waits for the state, unless this thread holds it already and would wait for ever.
    fn try_lock(&self) -> Result<Held<'_, D>, Reentered> {
        // Only this thread ever writes its own number here, so that no order of memory matters.
        if self.holder.load(Ordering::Relaxed) == this_thread() {
            return Err(Reentered);
        }
        // A function that panicked may leave its own work half done; the node goes on.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.holder.store(this_thread(), Ordering::Relaxed);
        Ok(Held { state, holder: &self.holder })
    }

    /// # Panics
    /// From within an object, which is called while the state is held.
    pub(super) fn lock(&self) -> Held<'_, D> {
        self.try_lock()
            .expect("an endpoint cannot be called from within an object that it serves, nor from `with_node`")
    }

    pub(super) fn with<R>(&self, work: impl FnOnce(&mut State<D>) -> R) -> R {
        work(&mut self.lock())
    }

    pub(super) fn try_with<R>(&self, work: impl FnOnce(&mut State<D>) -> R) -> Result<R, Reentered> {
        Ok(work(&mut *self.try_lock()?))
    }

    /// As [`with`](Self::with), and has the driver look at what there is to send.
    pub(super) fn with_waking<R>(&self, work: impl FnOnce(&mut State<D>) -> R) -> R {
        Self::work_and_wake(self.lock(), work)
    }

    pub(super) fn try_with_waking<R>(&self, work: impl FnOnce(&mut State<D>) -> R) -> Result<R, Reentered> {
        Ok(Self::work_and_wake(self.try_lock()?, work))
    }

    fn work_and_wake<R>(mut state: Held<'_, D>, work: impl FnOnce(&mut State<D>) -> R) -> R {
        let result = work(&mut state);
        let driver = state.driver.take();
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
        result
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Has the driver end. The last endpoint may go inside of an object; the driver then sees it when it has done with that.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let _ = self.try_with_waking(|_| ());
    }
}

impl<D: Device> Shared<D> {
    /// Ends all requests, as nothing moves any more.
    pub(super) fn end(&self) {
        self.closed.store(true, Ordering::Release);
        let wakers = self.try_with(|state| state.pending.close()).unwrap_or_default();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Gives the request at a place up.
    pub(super) fn give_up(&self, place: usize) {
        if self.try_with(|state| state.give_up(place)).is_err() {
            self.abandoned.lock().unwrap_or_else(PoisonError::into_inner).push(place);
        }
    }

    /// Gives up what could not be given up where it was dropped.
    pub(super) fn sweep(&self, state: &mut State<D>) {
        let abandoned = core::mem::take(&mut *self.abandoned.lock().unwrap_or_else(PoisonError::into_inner));
        abandoned.into_iter().for_each(|place| state.give_up(place));
    }
}

impl<D: Device> State<D> {
    fn give_up(&mut self, place: usize) {
        if let Some(id) = self.pending.give_up(place) {
            let now = self.engine.now();
            self.engine.controller.cancel(now, id);
        }
    }

    /// Gives the controller's news to those who wait for it.
    pub(super) fn dispatch(&mut self, events: &broadcast::Sender<Event>, wakers: &mut Vec<Waker>) {
        while let Some(event) = self.engine.controller.poll_event() {
            let waker = match event {
                Event::Done { id, result } => self.pending.done(id, result),
                Event::Gathered { id, answer } => {
                    self.pending.gathered(id, answer);
                    None
                }
                Event::GatheringEnded { id, .. } => self.pending.gathering_ended(id),
                event => {
                    // Without a receiver, the event is dropped.
                    let _ = events.send(event);
                    None
                }
            };
            wakers.extend(waker);
        }
    }
}
