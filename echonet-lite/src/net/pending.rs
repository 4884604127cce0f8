//! The requests that callers wait for.

use core::task::{Context, Poll, Waker};
use std::vec::Vec;

use crate::controller::{Answer, Failure, NodeAddr, RequestId};

/// The requests that a task waits for. A place outlives the controller's name for the request, which is used again as
/// soon as the request has ended.
#[derive(Default)]
pub(super) struct Pending {
    waiting: Vec<Option<Waiting>>,
    free: Vec<usize>,
    /// The place of a request that has not ended, by its index.
    places: Vec<Option<usize>>,
}

struct Waiting {
    id: RequestId,
    outcome: Outcome,
    waker: Option<Waker>,
}

/// The outcome of a request.
enum Outcome {
    /// Nothing, or the first answers of several.
    Open(Vec<Answer>),
    /// The answer of one.
    Done(Result<Answer, Failure>),
    /// The answers of all who gave one.
    Gathered(Vec<Answer>),
    /// None will come any more.
    Closed,
    /// It was taken.
    Taken,
}

impl Pending {
    /// Makes a place for a request; says where.
    pub(super) fn begin(&mut self, id: RequestId) -> usize {
        let waiting = Some(Waiting { id, outcome: Outcome::Open(Vec::new()), waker: None });
        let place = self.free.pop().unwrap_or(self.waiting.len());
        if place == self.waiting.len() {
            self.waiting.push(waiting);
        } else {
            self.waiting[place] = waiting;
        }
        if self.places.len() <= id.index() {
            self.places.resize(id.index() + 1, None);
        }
        self.places[id.index()] = Some(place);
        place
    }

    /// A request to one object has ended. Returns whom to wake.
    pub(super) fn done(&mut self, id: RequestId, result: Result<Answer, Failure>) -> Option<Waker> {
        let waiting = self.find(id)?;
        waiting.outcome = Outcome::Done(result);
        let waker = waiting.waker.take();
        self.places[id.index()] = None;
        waker
    }

    /// One of many has answered.
    pub(super) fn gathered(&mut self, id: RequestId, answer: Answer) {
        if let Some(Waiting { outcome: Outcome::Open(answers), .. }) = self.find(id) {
            answers.push(answer);
        }
    }

    /// A request to many has ended. Returns whom to wake.
    pub(super) fn gathering_ended(&mut self, id: RequestId) -> Option<Waker> {
        let waiting = self.find(id)?;
        if let Outcome::Open(answers) = &mut waiting.outcome {
            waiting.outcome = Outcome::Gathered(core::mem::take(answers));
        }
        let waker = waiting.waker.take();
        self.places[id.index()] = None;
        waker
    }

    fn find(&mut self, id: RequestId) -> Option<&mut Waiting> {
        let place = (*self.places.get(id.index())?)?;
        self.waiting[place].as_mut().filter(|waiting| waiting.id == id)
    }

    /// Ends all that is waited for without an answer. Returns whom to wake.
    pub(super) fn close(&mut self) -> Vec<Waker> {
        let open = self.waiting.iter_mut().flatten().filter(|waiting| matches!(waiting.outcome, Outcome::Open(_)));
        let close = |waiting: &mut Waiting| {
            waiting.outcome = Outcome::Closed;
            waiting.waker.take()
        };
        self.places.clear();
        open.filter_map(close).collect()
    }

    /// The answer of one, when it has come; `None` if none will come any more.
    pub(super) fn poll_answer(&mut self, place: usize, cx: &Context<'_>) -> Poll<Option<Result<Answer, Failure>>> {
        self.poll(place, cx, |outcome| match outcome {
            Outcome::Done(result) => Ok(Some(result)),
            Outcome::Closed => Ok(None),
            other => Err(other),
        })
    }

    /// The answers of all, when no more are waited for; `None` if none will come any more.
    pub(super) fn poll_answers(&mut self, place: usize, cx: &Context<'_>) -> Poll<Option<Vec<Answer>>> {
        self.poll(place, cx, |outcome| match outcome {
            Outcome::Gathered(answers) => Ok(Some(answers)),
            Outcome::Closed => Ok(None),
            other => Err(other),
        })
    }

    fn poll<R>(&mut self, place: usize, cx: &Context<'_>, take: impl FnOnce(Outcome) -> Result<R, Outcome>) -> Poll<R> {
        let waiting = self.waiting[place].as_mut().expect("a place is kept until it is given up");
        match take(core::mem::replace(&mut waiting.outcome, Outcome::Taken)) {
            Ok(result) => Poll::Ready(result),
            Err(outcome) => {
                waiting.outcome = outcome;
                match &mut waiting.waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    none => *none = Some(cx.waker().clone()),
                }
                Poll::Pending
            }
        }
    }

    /// Whether a node is among those that have answered so far.
    pub(super) fn has_answered(&self, place: usize, node: NodeAddr) -> bool {
        match self.waiting[place].as_ref().map(|waiting| &waiting.outcome) {
            Some(Outcome::Open(answers) | Outcome::Gathered(answers)) => {
                answers.iter().any(|answer| answer.node == node)
            }
            Some(Outcome::Done(_) | Outcome::Closed | Outcome::Taken) | None => false,
        }
    }

    /// Gives a place up. Returns the request if it has not ended.
    pub(super) fn give_up(&mut self, place: usize) -> Option<RequestId> {
        let waiting = self.waiting[place].take()?;
        self.free.push(place);
        if !matches!(waiting.outcome, Outcome::Open(_)) {
            return None;
        }
        self.places[waiting.id.index()] = None;
        Some(waiting.id)
    }
}
