//! The way to Redis from any request: one connection for each worker thread, shared by all that it serves.
//!
//! A request is appended to the connection's buffer and wakes the connection's task. That task runs after the requests
//! that are ready in the same turn of the event loop, so that one write carries them all: pipelining without a delay.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::time::Instant;

use super::budget::Budget;
use super::connect::{Connector, TlsError};
use super::failure::Failure;
use super::mux::{Come, Limits, Mux, Ticket};
use super::session;
use super::settings::Settings;
use super::wire::put_command;

thread_local! {
    /// This thread's connections, by the identity of their [`Redis`]. A program has one, a test a few.
    static LINKS: RefCell<Vec<Rc<Link>>> = const { RefCell::new(Vec::new()) };
}

/// A way to one Redis. Clones are cheap and lead the same way; every thread that asks gets a connection of its own.
#[derive(Clone, Debug)]
pub struct Redis {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: usize,
    connector: Connector,
    budget: Arc<Budget>,
}

impl Redis {
    /// A way to the Redis of `settings`. Nothing is connected before the first request.
    ///
    /// # Errors
    /// When the certificate authorities for TLS cannot be loaded.
    pub fn new(settings: Settings) -> Result<Self, TlsError> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let budget = Budget::new(settings.max_held);
        let connector = Connector::new(settings)?;
        Ok(Self { inner: Arc::new(Inner { id: NEXT.fetch_add(1, Relaxed), connector, budget }) })
    }

    /// Where it leads, and how.
    pub fn settings(&self) -> &Settings {
        self.connector().settings()
    }

    /// Whether it leads to the server in this process.
    pub(crate) fn is_embedded(&self) -> bool {
        self.settings().target.is_embedded()
    }

    pub(super) fn id(&self) -> usize {
        self.inner.id
    }

    /// The budget for the bytes that all callers together hold.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.inner.budget
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.inner.connector
    }

    /// Asks one command. To be called and awaited on one thread, inside its tokio runtime.
    pub fn command<A: AsRef<[u8]>>(&self, args: &[A]) -> Answer {
        self.ask(1, |out| put_command(out, args))
    }

    /// Asks for `replies` replies, at least one, to the commands that `write` appends. They reach Redis together, with
    /// nobody else's between them.
    pub(crate) fn ask(&self, replies: u32, write: impl FnOnce(&mut Vec<u8>)) -> Answer {
        Answer(match self.ticket(replies, write) {
            Ok(ticket) => Asked::Waiting(self.inner.id, ticket),
            Err(failure) => Asked::Failed(failure),
        })
    }

    /// The same for a caller who keeps the claim to the answer itself, and gives it up by [`Redis::take`] or
    /// [`Redis::forget`].
    ///
    /// # Errors
    /// When it cannot be asked now.
    #[inline]
    pub(crate) fn ticket(&self, replies: u32, write: impl FnOnce(&mut Vec<u8>)) -> Result<Ticket, Failure> {
        let link = self.link();
        if let Some(why) = &*link.down.borrow() {
            return Err(Failure::Away(Arc::clone(why)));
        }
        let ticket = link.mux.borrow_mut().push(replies, Instant::now(), write)?;
        link.ready();
        Ok(ticket)
    }

    /// Shows the answer to a ticket of this thread, once it is there.
    #[inline]
    pub(crate) fn take<T>(
        &self,
        ticket: Ticket,
        cx: &Context<'_>,
        look: impl FnOnce(Result<Come<'_>, Failure>) -> T,
    ) -> Poll<T> {
        match find(self.inner.id) {
            Some(link) => link.mux.borrow_mut().take(ticket, cx, look),
            None => Poll::Ready(look(Err(Failure::Away("this thread has no connection".into())))),
        }
    }

    /// The answer to this ticket is wanted no more.
    pub(crate) fn forget(&self, ticket: Ticket) {
        if let Some(link) = find(self.inner.id) {
            link.mux.borrow_mut().forget(ticket);
        }
    }

    /// This thread's connection, which is made if there is none.
    fn link(&self) -> Rc<Link> {
        if let Some(link) = find(self.inner.id) {
            return link;
        }
        let settings = self.settings();
        let limits = Limits {
            max_answer: settings.max_answer,
            max_waiting: settings.max_waiting,
            max_unsent: settings.max_unsent,
            answer_timeout: settings.answer_timeout,
        };
        let link = Rc::new(Link {
            id: self.inner.id,
            mux: RefCell::new(Mux::new(limits, self.budget(), Instant::now())),
            task: RefCell::new(None),
            dirty: Cell::new(false),
            down: RefCell::new(None),
            silent: Cell::new(false),
        });
        LINKS.with_borrow_mut(|links| links.push(Rc::clone(&link)));
        tokio::task::spawn_local(session::run(self.clone(), Ending(Rc::clone(&link))));
        link
    }
}

fn find(id: usize) -> Option<Rc<Link>> {
    LINKS.try_with(|links| links.borrow().iter().find(|link| link.id == id).cloned()).ok().flatten()
}

/// One thread's connection.
#[derive(Debug)]
pub(crate) struct Link {
    id: usize,
    pub(crate) mux: RefCell<Mux>,
    /// Wakes the connection's task.
    task: RefCell<Option<Waker>>,
    /// Whether the task has been woken since it last wrote.
    dirty: Cell<bool>,
    /// Why there is no connection, once an attempt has failed: requests do not wait for the next one.
    pub(crate) down: RefCell<Option<Arc<str>>>,
    /// Whether the connection must be taken for dead.
    silent: Cell<bool>,
}

impl Link {
    /// Remembers whom to wake; called whenever the task looks for what to write.
    pub(crate) fn polled_by(&self, cx: &Context<'_>) {
        self.dirty.set(false);
        let mut task = self.task.borrow_mut();
        if !task.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *task = Some(cx.waker().clone());
        }
    }

    /// Has the task end the connection.
    pub(crate) fn give_up(&self) {
        self.silent.set(true);
        self.ready();
    }

    /// Whether the task is to end the connection; asked once.
    pub(crate) fn takes_up_again(&self) -> bool {
        self.silent.replace(false)
    }

    /// Has the task write what was asked, after whatever else is ready now.
    fn ready(&self) {
        if !self.dirty.replace(true)
            && let Some(waker) = &*self.task.borrow()
        {
            waker.wake_by_ref();
        }
    }
}

/// A connection's task's hold on it: when the task ends with its runtime, all waiting requests fail.
#[derive(Debug)]
pub(crate) struct Ending(pub(crate) Rc<Link>);

impl Drop for Ending {
    fn drop(&mut self) {
        let why: Arc<str> = "this server is shutting down".into();
        self.0.mux.borrow_mut().away(&why);
        // At the thread's end the list may be gone already.
        let _ = LINKS.try_with(|links| links.borrow_mut().retain(|link| !Rc::ptr_eq(link, &self.0)));
    }
}

/// The replies to what was asked, one after another, as their bytes.
///
/// It can be sent between threads, as some callers' types demand, but is answered only on the thread that asked.
#[derive(Debug)]
pub struct Answer(Asked);

#[derive(Debug)]
enum Asked {
    Waiting(usize, Ticket),
    Failed(Failure),
    Over,
}

impl Future for Answer {
    type Output = Result<Bytes, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = match std::mem::replace(&mut self.0, Asked::Over) {
            Asked::Failed(failure) => Err(failure),
            Asked::Waiting(id, ticket) => match find(id) {
                Some(link) => match link.mux.borrow_mut().poll(ticket, cx) {
                    Poll::Ready(answer) => answer,
                    Poll::Pending => {
                        self.0 = Asked::Waiting(id, ticket);
                        return Poll::Pending;
                    }
                },
                None => Err(Failure::Away("this thread has no connection".into())),
            },
            Asked::Over => Err(Failure::Away("the answer was taken before".into())),
        };
        Poll::Ready(answer)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Asked::Waiting(id, ticket) = self.0
            && let Some(link) = find(id)
        {
            link.mux.borrow_mut().forget(ticket);
        }
    }
}
