//! The loop of a worker that has no runtime: its tasks and its sockets, all on one thread.
//!
//! A runtime must expect wake-ups from other threads at every place. A request that comes alone passes tokio's readiness of the
//! socket, its list of waiters and the task's state, each with locked instructions, on the way in and on the way back. Here, a socket
//! knows its task, and both belong to the thread that polls them. Only wake-ups from elsewhere take a lock ([`Remote`]).
//!
//! The order is tokio's: tasks run first come, first served. Behind [`TASKS_PER_LOOK`] of them, or when none is left, the loop
//! looks at the sockets.

mod figures;
mod polled;
mod sources;
mod task;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use slab::Slab;
use tracing::error;

use figures::Figures;
pub(crate) use figures::Work;
pub(crate) use polled::Accepts;
pub use polled::Polled;
use sources::{Key, Sources};
use task::{Header, Remote};

/// Tasks that are polled between two looks at the sockets. A look costs less than half a microsecond, a task some: so many of them
/// keep others waiting.
pub(crate) const TASKS_PER_LOOK: u32 = 16;

/// No time at all.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Sockets that one look tells of.
const EVENTS: usize = 256;

/// The event of the descriptor by which other threads interrupt the sleep. Sockets have smaller ones.
const WAKE: u64 = u64::MAX;

/// Loops that the process has had.
static LOOPS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The loop that runs on this thread.
    static HERE: RefCell<Option<Rc<Inner>>> = const { RefCell::new(None) };
}

type Boxed = Pin<Box<dyn Future<Output = ()>>>;

/// A task between two polls.
struct Resting {
    future: Boxed,
    waker: Waker,
}

/// A place for a task.
struct Slot {
    header: Arc<Header>,
    /// `None` while it is polled.
    resting: Option<Resting>,
}

struct Inner {
    /// Its number among all loops of the process.
    id: usize,
    epoll: OwnedFd,
    sources: RefCell<Sources>,
    tasks: RefCell<Slab<Slot>>,
    /// Tasks that are to be polled, in their order.
    ready: RefCell<VecDeque<usize>>,
    /// Tasks that are ready again behind those that the sockets make so.
    deferred: RefCell<Vec<Waker>>,
    /// The way for other threads.
    remote: Arc<Remote>,
    sleeps: Cell<u64>,
    figures: Arc<Figures>,
}

/// A loop that is to run on this thread.
pub(crate) struct EventLoop(Rc<Inner>);

impl EventLoop {
    /// A loop without tasks.
    ///
    /// # Errors
    /// The system has no descriptors left, or lacks the call by which the loop waits.
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let interrupt = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Each write is an edge, whether or not the counter is ever read.
        epoll::add(&epoll, &interrupt, EventData::new_u64(WAKE), EventFlags::IN | EventFlags::ET)?;
        // A build may use a newer call than the system has: the start fails then, not the first look.
        epoll::wait(&epoll, spare_capacity(&mut Vec::with_capacity(1)), Some(&AT_ONCE))?;
        Ok(Self(Rc::new(Inner {
            id: LOOPS.fetch_add(1, Relaxed),
            epoll,
            sources: RefCell::default(),
            tasks: RefCell::default(),
            ready: RefCell::default(),
            deferred: RefCell::default(),
            remote: Arc::new(Remote::new(interrupt)),
            sleeps: Cell::new(0),
            figures: Arc::new(Figures::here()),
        })))
    }

    /// How busy it is, for other threads.
    pub(crate) fn work(&self) -> Work {
        Work::Loop(Arc::clone(&self.0.figures))
    }

    /// Runs `main` to its end, and beside it all tasks that are [spawned](spawn_local); those that are left then are dropped.
    ///
    /// # Panics
    /// When `main` does.
    pub(crate) fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        let inner = self.0;
        let _entered = Entered::new(&inner);
        let result = Rc::new(Cell::new(None));
        let told = Rc::clone(&result);
        inner.spawn(Box::pin(async move { told.set(Some(caught(main).await)) }));
        loop {
            inner.run_ready();
            if let Some(result) = result.take() {
                return result.unwrap_or_else(|panic| resume_unwind(panic));
            }
            inner.look();
        }
    }
}

/// This thread has a loop until this is dropped, and the loop's tasks with it.
struct Entered<'l>(&'l Rc<Inner>);

impl<'l> Entered<'l> {
    fn new(inner: &'l Rc<Inner>) -> Self {
        HERE.set(Some(Rc::clone(inner)));
        Self(inner)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // A task that is dropped may wake others, or begin some.
        loop {
            let mut tasks = self.0.tasks.borrow_mut();
            let Some(first) = tasks.iter().next().map(|(index, _)| index) else { break };
            let slot = tasks.remove(first);
            drop(tasks);
            drop_guarded(slot);
        }
        HERE.set(None);
    }
}

/// Drops what may panic in doing so.
fn drop_guarded<T>(what: T) {
    if catch_unwind(AssertUnwindSafe(|| drop(what))).is_err() {
        error!("a task panicked when it was dropped");
    }
}

impl Inner {
    /// The loop on this thread, if there is one.
    #[inline]
    fn here<T>(then: impl FnOnce(&Self) -> T) -> Option<T> {
        // A thread that ends has none any more.
        HERE.try_with(|here| here.borrow().as_deref().map(then)).ok().flatten()
    }

    fn spawn(&self, future: Boxed) {
        let mut tasks = self.tasks.borrow_mut();
        let entry = tasks.vacant_entry();
        let index = entry.key();
        let header = Arc::new(Header::new(index, Arc::clone(&self.remote)));
        let waker = Waker::from(Arc::clone(&header));
        header.enters_queue();
        entry.insert(Slot { header, resting: Some(Resting { future, waker }) });
        self.ready.borrow_mut().push_back(index);
    }

    /// Polls those that are ready, up to [`TASKS_PER_LOOK`].
    fn run_ready(&self) {
        for _ in 0..TASKS_PER_LOOK {
            let next = self.ready.borrow_mut().pop_front();
            let Some(index) = next else { return };
            self.poll(index);
        }
    }

    /// Polls a task. One that panics is over, and nothing else.
    fn poll(&self, index: usize) {
        let taken = self.tasks.borrow_mut().get_mut(index).and_then(|slot| {
            slot.header.leaves_queue();
            slot.resting.take()
        });
        // A waker may outlive its task.
        let Some(Resting { mut future, waker }) = taken else { return };
        let mut cx = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx)));
        if let Ok(Poll::Pending) = polled {
            if let Some(slot) = self.tasks.borrow_mut().get_mut(index) {
                slot.resting = Some(Resting { future, waker });
            }
            return;
        }
        if polled.is_err() {
            error!("a task of this worker panicked");
        }
        // Its place is free only when it is dropped: what it wakes in doing so finds nobody.
        drop_guarded(future);
        drop(self.tasks.borrow_mut().try_remove(index));
    }

    /// Looks at the sockets, and waits for them if nothing else is to be done.
    fn look(&self) {
        let has_more = !self.ready.borrow().is_empty() || !self.deferred.borrow().is_empty();
        let mut events = self.sources.borrow_mut().take_events();
        events.clear();
        let looked = if has_more {
            epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&AT_ONCE))
        } else {
            self.sleeps.set(self.sleeps.get() + 1);
            self.figures.sleeping(|| epoll::wait(&self.epoll, spare_capacity(&mut events), None))
        };
        match looked {
            // A signal interrupts a wait, and has nothing to do with it.
            Ok(_) | Err(Errno::INTR) => {}
            // A loop that goes on would neither serve nor sleep.
            Err(error) => panic!("a worker cannot wait for its sockets: {error}"),
        }
        for event in &events {
            match event.data.u64() {
                WAKE => {}
                data => self.sources.borrow_mut().happened(Key::of(data), event.flags),
            }
        }
        self.sources.borrow_mut().give_back(events);
        // Others may wake whenever they like; what they have woken comes behind the sockets.
        self.remote.take(|index| self.ready.borrow_mut().push_back(index));
        for waker in self.deferred.take() {
            waker.wake();
        }
    }

    #[inline]
    fn id(&self) -> usize {
        self.id
    }

    fn epoll(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// The outcome of a future, or its panic.
pub async fn caught<T>(future: impl Future<Output = T>) -> thread::Result<T> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// True if this thread has a loop of its own instead of a runtime.
pub(crate) fn is_here() -> bool {
    Inner::here(|_| ()).is_some()
}

/// How often this worker has slept: what it does between two sleeps is one round. `None` on threads that are no workers with a
/// [loop of their own](crate::Service::OWN_LOOP).
#[inline]
pub fn rounds() -> Option<u64> {
    Inner::here(|inner| inner.sleeps.get())
}

/// Runs a task on this thread, beside others, until it ends or its worker does. A task that panics is over.
///
/// # Panics
/// On a thread that has neither a [loop of its own](crate::Service::OWN_LOOP) nor a tokio runtime for such tasks.
pub fn spawn_local(future: impl Future<Output = ()> + 'static) {
    let mut future = Some(future);
    Inner::here(|inner| inner.spawn(Box::pin(future.take().expect("this runs once"))));
    if let Some(future) = future {
        tokio::task::spawn_local(future);
    }
}

/// Has the task that is polled polled again, behind others, and behind those that the sockets make ready by then.
pub fn defer(cx: &mut Context<'_>) {
    let is_deferred = Inner::here(|inner| inner.deferred.borrow_mut().push(cx.waker().clone()));
    if is_deferred.is_none() {
        // tokio wakes a task that yields in this order.
        let _ = pin!(tokio::task::yield_now()).poll(cx);
    }
}

/// Waits until others have been polled, and those that the sockets make ready by then.
pub async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        defer(cx);
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests;
