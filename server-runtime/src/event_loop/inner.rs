//! The tasks of a loop, and their turns.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Wake, Waker};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use slab::Slab;
use tracing::error;

use super::figures::{Figures, Work};
use super::sources::{Key, Sources};
use super::task::{Header, Remote};

/// Tasks that are polled between two looks at the sockets. A look costs less than half a microsecond, a task some: so many of them
/// keep others waiting.
pub(crate) const TASKS_PER_LOOK: u32 = 16;

/// No time at all.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

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

/// The state of a loop. Only the thread that runs the loop has it.
pub(super) struct Inner {
    /// Its number among all loops of the process.
    id: usize,
    epoll: OwnedFd,
    pub(super) sources: RefCell<Sources>,
    tasks: RefCell<Slab<Slot>>,
    /// Tasks that are to be polled, in their order.
    ready: RefCell<VecDeque<usize>>,
    /// Tasks that are ready again behind those that the sockets make so.
    pub(super) deferred: RefCell<Vec<Waker>>,
    /// The way for other threads.
    remote: Arc<Remote>,
    pub(super) sleeps: Cell<u64>,
    figures: Arc<Figures>,
}

impl Inner {
    /// A loop without tasks.
    ///
    /// # Errors
    /// The system has no descriptors left, or lacks the call by which the loop waits.
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let interrupt = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Each write is an edge, whether or not the counter is ever read.
        epoll::add(&epoll, &interrupt, EventData::new_u64(WAKE), EventFlags::IN | EventFlags::ET)?;
        // A build may use a newer call than the system has: the start fails then, not the first look.
        epoll::wait(&epoll, spare_capacity(&mut Vec::with_capacity(1)), Some(&AT_ONCE))?;
        Ok(Self {
            id: LOOPS.fetch_add(1, Relaxed),
            epoll,
            sources: RefCell::default(),
            tasks: RefCell::default(),
            ready: RefCell::default(),
            deferred: RefCell::default(),
            remote: Arc::new(Remote::new(interrupt)),
            sleeps: Cell::new(0),
            figures: Arc::new(Figures::here()),
        })
    }

    /// How busy it is, for other threads.
    pub(super) fn work(&self) -> Work {
        Work::Loop(Arc::clone(&self.figures))
    }

    /// The loop on this thread, if there is one.
    #[inline]
    pub(super) fn here<T>(then: impl FnOnce(&Self) -> T) -> Option<T> {
        // A thread that ends has none any more.
        HERE.try_with(|here| here.borrow().as_deref().map(then)).ok().flatten()
    }

    pub(super) fn spawn(&self, future: Boxed) {
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
    pub(super) fn run_ready(&self) {
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
    pub(super) fn look(&self) {
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
    pub(super) fn id(&self) -> usize {
        self.id
    }

    pub(super) fn epoll(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Wake for Header {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    #[inline]
    fn wake_by_ref(self: &Arc<Self>) {
        let is_here = Inner::here(|inner| {
            let is_own = Arc::ptr_eq(&inner.remote, &self.remote);
            if is_own && self.enters_queue() {
                inner.ready.borrow_mut().push_back(self.index);
            }
            is_own
        });
        if is_here != Some(true) {
            self.wake_elsewhere();
        }
    }
}

/// This thread has a loop until this is dropped, and the loop's tasks with it.
pub(super) struct Entered<'l>(&'l Rc<Inner>);

impl<'l> Entered<'l> {
    pub(super) fn new(inner: &'l Rc<Inner>) -> Self {
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
