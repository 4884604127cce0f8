//! A connection's requests that are answered later, without the router.

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

use axum::response::Response;

use super::worker::{Scratch, Worker};
use crate::compress::Encoding;
use crate::later::{self, Reply};
use crate::tuning::{COMPRESS_MIN, MAX_LATER};

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Its number with [`Later`](crate::Later).
    pub(super) id: u64,
    /// How its answer is to be compressed, if that is worth it.
    pub(super) encoding: Option<Encoding>,
    /// Whether its answer ends the connection.
    pub(super) ends: bool,
}

/// Requests in their order, which is their answers'.
pub(super) struct Queue {
    worker: Rc<Worker>,
    entries: VecDeque<Entry>,
}

/// The fate of the first request.
pub(super) enum Turn {
    /// It waits, and the task that polls is woken.
    Waits,
    /// Its answer is written.
    Written,
    /// Its answer is this one.
    Response(Box<Response>),
    /// Its answer is this one, to be compressed.
    Packed(Box<Response>, Encoding),
}

impl Queue {
    pub(super) fn new(worker: &Rc<Worker>) -> Self {
        Self { worker: Rc::clone(worker), entries: VecDeque::new() }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether no other request is taken behind these.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= MAX_LATER || self.entries.back().is_some_and(|last| last.ends)
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
    }

    /// Writes the answer to the first request, if it is there, and says whether it ends the connection.
    pub(super) fn turn(&mut self, cx: &Context<'_>, scratch: &mut Scratch) -> (Turn, bool) {
        let Self { worker, entries } = self;
        let (Some(source), Some(first)) = (&worker.settings.options.later, entries.front()) else {
            return (Turn::Waits, false);
        };
        // A shutdown is told by the last answer: those behind it are under way.
        let ends = first.ends || (worker.is_draining() && entries.len() == 1);
        let mut turn = Turn::Waits;
        let mut take = |reply: Reply<'_>| match (reply, first.encoding) {
            (reply, Some(encoding)) if reply.len() >= COMPRESS_MIN => {
                let response = reply.into_response();
                worker.count_instant(response.status());
                turn = Turn::Packed(Box::new(response), encoding);
            }
            (Reply::Body { status, fields, body }, _) => {
                later::write(status, fields, body, worker.clock.borrow().date(), ends, &mut scratch.out);
                worker.count_instant(status);
                turn = Turn::Written;
            }
            (Reply::Response(response), _) => {
                worker.count_instant(response.status());
                turn = Turn::Response(Box::new(response));
            }
        };
        if let Poll::Ready(()) = source.answer(first.id, cx, &mut take) {
            entries.pop_front();
        }
        (turn, ends)
    }
}

impl Drop for Queue {
    /// The client has gone: its answers are nobody's.
    fn drop(&mut self) {
        if let Some(source) = &self.worker.settings.options.later {
            self.entries.iter().for_each(|entry| source.forget(entry.id));
        }
    }
}
