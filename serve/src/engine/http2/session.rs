//! A connection as the tasks of its streams know it.

use std::cell::{Cell, RefCell};
use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use http2::shared::Shared;
use server_runtime::Progress;

use crate::engine::watch::Slot;
use crate::engine::worker::Worker;

/// State that a connection and its streams share.
pub struct Session {
    pub(super) worker: Rc<Worker>,
    pub(super) shared: Rc<Shared>,
    /// The connection's, by which its task is woken.
    slot: Rc<Slot>,
    report: Cell<Report>,
    /// Streams that wait for the next report.
    waiting: RefCell<Vec<Waker>>,
}

/// The client's progress on the whole connection, which alone has the socket, for a stream whose time is over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    number: u32,
    pub(super) progress: Progress,
}

impl Session {
    pub(super) fn new(worker: &Rc<Worker>, shared: &Rc<Shared>, slot: &Rc<Slot>) -> Rc<Self> {
        Rc::new(Self {
            worker: Rc::clone(worker),
            shared: Rc::clone(shared),
            slot: Rc::clone(slot),
            report: Cell::default(),
            waiting: RefCell::default(),
        })
    }

    /// The engine of the connection, as its requests' tasks share it.
    pub fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// The last report, which may be old.
    pub(super) fn last_report(&self) -> Report {
        self.report.get()
    }

    /// Ready with a report that is younger than this one.
    pub(super) fn poll_report(&self, after: Report, cx: &Context<'_>) -> Poll<Report> {
        let report = self.report.get();
        if report.number != after.number {
            return Poll::Ready(report);
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        drop(waiting);
        self.slot.wake();
        Poll::Pending
    }

    /// Whether a stream waits for a report.
    pub(super) fn is_asked(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Reports to the streams that wait.
    pub(super) fn report(&self, progress: Progress) {
        self.report.set(Report { number: self.report.get().number.wrapping_add(1), progress });
        mem::take(&mut *self.waiting.borrow_mut()).into_iter().for_each(Waker::wake);
    }
}
