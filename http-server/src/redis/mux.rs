//! One connection for many: which answer is whose. Bytes and the time in, bytes and wake-ups out; no socket.
//!
//! ```text
//!           push                 written and answered            take
//! (caller) ──────▶ Waiting ────────────────────────▶ Done ──────────────▶ free
//!                     │ deadline, connection lost ──▶ Done, answer still due: it is passed over when it comes
//!                     └ caller gone ────────────────▶ Dropped until the answer has come ─▶ free
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::budget::{Budget, Share, UNCOUNTED};
use super::failure::Failure;
use super::wire::{Scan, Scanner, WireError};

/// Room kept for requests between bursts.
const KEPT: usize = 64 * 1024;

/// Room that a place keeps for its next answer, so that a small one costs no allocation.
const KEPT_ANSWER: usize = 512;

/// A caller's claim to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    slot: u32,
    generation: u32,
}

impl Ticket {
    /// As a number, for `Later`, whose ids are numbers.
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self { slot: bits as u32, generation: (bits >> 32) as u32 }
    }
}

/// The limits of everything that may grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_answer: usize,
    pub(crate) max_waiting: usize,
    pub(crate) max_unsent: usize,
    pub(crate) answer_timeout: Duration,
}

/// Requests that were asked and answers that are due, in one order.
#[derive(Debug)]
pub(crate) struct Mux {
    limits: Limits,
    budget: Arc<Budget>,
    /// Bytes to send; the first `written` of them are sent.
    out: Vec<u8>,
    written: usize,
    /// The place of `out`'s first byte in all that was ever asked.
    base: u64,
    queue: VecDeque<Due>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    scanner: Scanner,
    /// When something last came.
    heard: Instant,
}

/// An answer that is due.
#[derive(Debug)]
struct Due {
    slot: u32,
    /// Replies that still belong to the answer.
    replies: u32,
    deadline: Instant,
    /// Where the request begins in all that was ever asked.
    start: u64,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    /// Whether the answer is still to come, and so the place cannot be given to another.
    due: bool,
    state: State,
    /// The part of the answer that has come.
    answer: Vec<u8>,
    /// The part of it that is counted.
    share: Share,
}

/// An answer that has come, for its caller.
pub(crate) struct Come<'a> {
    answer: &'a mut Vec<u8>,
    share: &'a mut Share,
}

impl<'a> Come<'a> {
    /// A look at it, to be taken or not.
    #[inline]
    pub(crate) fn peek(&self) -> &[u8] {
        self.answer
    }

    /// A look at it.
    #[inline]
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.answer
    }

    /// The whole of it.
    #[inline]
    pub(crate) fn take(self) -> Bytes {
        self.share.keep(std::mem::take(self.answer))
    }
}

#[derive(Debug)]
enum State {
    /// The caller waits.
    Waiting(Option<Waker>),
    /// The caller has not taken it yet.
    Done(Result<(), Failure>),
    /// The caller has it, or is gone.
    Dropped,
}

impl Mux {
    pub(crate) fn new(limits: Limits, budget: &Arc<Budget>, now: Instant) -> Self {
        Self {
            limits,
            budget: Arc::clone(budget),
            out: Vec::new(),
            written: 0,
            base: 0,
            queue: VecDeque::new(),
            slots: Vec::new(),
            free: Vec::new(),
            scanner: Scanner::default(),
            heard: now,
        }
    }

    /// Asks for `replies` replies, at least one, to what `write` appends. Nothing else comes in between.
    ///
    /// # Errors
    /// When too much waits already.
    pub(crate) fn push(
        &mut self,
        replies: u32,
        now: Instant,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Ticket, Failure> {
        if self.queue.len() >= self.limits.max_waiting || self.out.len() - self.written > self.limits.max_unsent {
            return Err(Failure::Busy);
        }
        if self.budget.is_full() {
            return Err(Failure::Full);
        }
        let start = self.base + self.out.len() as u64;
        write(&mut self.out);
        let slot = self.free.pop().unwrap_or_else(|| {
            let share = self.budget.share();
            self.slots.push(Slot { generation: 0, due: false, state: State::Dropped, answer: Vec::new(), share });
            (self.slots.len() - 1) as u32
        });
        let entry = &mut self.slots[slot as usize];
        entry.due = true;
        entry.state = State::Waiting(None);
        let generation = entry.generation;
        self.queue.push_back(Due { slot, replies, deadline: now + self.limits.answer_timeout, start });
        Ok(Ticket { slot, generation })
    }

    /// The answer, once it is there: the replies that were asked for, one after another. It is taken once.
    pub(crate) fn poll(&mut self, ticket: Ticket, cx: &Context<'_>) -> Poll<Result<Bytes, Failure>> {
        self.take(ticket, cx, |answer| answer.map(Come::take))
    }

    /// The same for a caller who is content with a look at it.
    pub(crate) fn take<T>(
        &mut self,
        ticket: Ticket,
        cx: &Context<'_>,
        look: impl FnOnce(Result<Come<'_>, Failure>) -> T,
    ) -> Poll<T> {
        let slot = &mut self.slots[ticket.slot as usize];
        debug_assert_eq!(slot.generation, ticket.generation, "an answer is taken once");
        if let State::Waiting(waker) = &mut slot.state {
            if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
            return Poll::Pending;
        }
        let State::Done(answer) = std::mem::replace(&mut slot.state, State::Dropped) else {
            unreachable!("a ticket is not used after its answer");
        };
        let looked = look(answer.map(|()| Come { answer: &mut slot.answer, share: &mut slot.share }));
        self.release(ticket.slot);
        Poll::Ready(looked)
    }

    /// The caller wants the answer no more. The request is not taken back.
    pub(crate) fn forget(&mut self, ticket: Ticket) {
        let slot = &mut self.slots[ticket.slot as usize];
        slot.state = State::Dropped;
        slot.answer = Vec::new();
        slot.share.clear();
        self.release(ticket.slot);
    }

    /// Frees a place that neither caller nor answer needs.
    fn release(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if !slot.due && matches!(slot.state, State::Dropped) {
            slot.generation = slot.generation.wrapping_add(1);
            slot.answer.clear();
            slot.answer.shrink_to(KEPT_ANSWER);
            slot.share.clear();
            self.free.push(index);
        }
    }

    /// Bytes to write.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// So many bytes of it are written.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.written += bytes;
        // With callers that ask faster than Redis reads, sent bytes would stay here for ever. They go once they are the
        // larger part: so a byte moves once at most, on average.
        let rest = self.out.len() - self.written;
        if rest == 0 || self.written >= rest.max(KEPT) {
            self.out.drain(..self.written);
            self.base += self.written as u64;
            self.written = 0;
            self.out.shrink_to(KEPT.max(2 * rest));
        }
    }

    /// Takes what Redis sent; returns how many bytes of it. The rest is to be shown again, with more behind it.
    ///
    /// # Errors
    /// When it is not a reply that was asked for. The connection is of no more use.
    pub(crate) fn received(&mut self, input: &[u8], now: Instant) -> Result<usize, Unfit> {
        self.heard = now;
        let mut at = 0;
        while at < input.len() {
            match self.scanner.scan(&input[at..]).map_err(Unfit::Wire)? {
                Scan::Whole(len) => {
                    self.part(&input[at..at + len])?;
                    at += len;
                    self.reply_ended();
                }
                Scan::Part(len) => {
                    self.part(&input[at..at + len])?;
                    return Ok(at + len);
                }
            }
        }
        Ok(at)
    }

    /// A part of a reply to the oldest request.
    fn part(&mut self, bytes: &[u8]) -> Result<(), Unfit> {
        let Some(due) = self.queue.front() else { return Err(Unfit::NotAsked) };
        // A reply to a request that has not been sent would be another request's.
        if due.start >= self.base + self.written as u64 {
            return Err(Unfit::NotAsked);
        }
        let (index, limit) = (due.slot, self.limits.max_answer);
        let slot = &mut self.slots[index as usize];
        if matches!(slot.state, State::Waiting(_)) {
            if slot.answer.len() + bytes.len() > limit {
                self.finish(index, Err(Failure::TooLarge(limit)));
            } else {
                slot.answer.extend_from_slice(bytes);
                // The room that it takes, which may be twice its length.
                let room = slot.answer.capacity();
                if room > UNCOUNTED
                    && let Err(full) = slot.share.grow(room)
                {
                    self.finish(index, Err(full));
                }
            }
        }
        Ok(())
    }

    fn reply_ended(&mut self) {
        let Some(due) = self.queue.front_mut() else { return };
        due.replies -= 1;
        if due.replies > 0 {
            return;
        }
        let slot = due.slot;
        self.queue.pop_front();
        let entry = &mut self.slots[slot as usize];
        entry.due = false;
        if matches!(entry.state, State::Waiting(_)) {
            self.finish(slot, Ok(()));
        }
        self.release(slot);
    }

    /// Gives a caller that waits its answer.
    fn finish(&mut self, slot: u32, answer: Result<(), Failure>) {
        let slot = &mut self.slots[slot as usize];
        if let State::Waiting(waker) = &mut slot.state {
            let waker = waker.take();
            if answer.is_err() {
                slot.answer = Vec::new();
                slot.share.clear();
            }
            slot.state = State::Done(answer);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// When the next request's time is over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.queue.iter().find(|due| self.waits(due)).map(|due| due.deadline)
    }

    fn waits(&self, due: &Due) -> bool {
        matches!(self.slots[due.slot as usize].state, State::Waiting(..))
    }

    /// How long an answer may take.
    pub(crate) fn answer_timeout(&self) -> Duration {
        self.limits.answer_timeout
    }

    /// Tells those whose time is over so. Their answers may still come, and are passed over then.
    ///
    /// # Errors
    /// When nothing has come for so long that the connection must be taken for dead.
    pub(crate) fn expire(&mut self, now: Instant) -> Result<(), Unfit> {
        let timeout = self.limits.answer_timeout;
        let overdue: Vec<u32> = self
            .queue
            .iter()
            .take_while(|due| due.deadline <= now)
            .filter(|due| self.waits(due))
            .map(|due| due.slot)
            .collect();
        for slot in overdue {
            self.finish(slot, Err(Failure::Slow(timeout)));
        }
        let silent = now.duration_since(self.heard) >= timeout * 2;
        match self.queue.front() {
            Some(due) if silent && due.deadline + timeout <= now => Err(Unfit::Silent),
            _ => Ok(()),
        }
    }

    /// The connection is gone: requests that were sent, even in part, have no answer any more. The others can go over
    /// the next one.
    pub(crate) fn lost(&mut self, why: &Arc<str>) {
        let sent = self.base + self.written as u64;
        while let Some(due) = self.queue.front().filter(|due| due.start < sent) {
            let slot = due.slot;
            self.queue.pop_front();
            self.answer_never_comes(slot, Failure::Lost(Arc::clone(why)));
        }
        // A request that was sent in part is not sent at all any more.
        let keep = self.queue.front().map_or(self.out.len(), |due| (due.start - self.base) as usize);
        self.out.drain(..keep);
        self.base += keep as u64;
        self.written = 0;
        self.scanner = Scanner::default();
    }

    /// There is no connection: all requests fail.
    pub(crate) fn away(&mut self, why: &Arc<str>) {
        self.lost(why);
        while let Some(due) = self.queue.pop_front() {
            self.answer_never_comes(due.slot, Failure::Away(Arc::clone(why)));
        }
        self.base += self.out.len() as u64;
        self.out = Vec::new();
    }

    fn answer_never_comes(&mut self, slot: u32, failure: Failure) {
        self.finish(slot, Err(failure));
        self.slots[slot as usize].due = false;
        self.release(slot);
    }

    /// There is a new connection.
    pub(crate) fn connected(&mut self, now: Instant) {
        self.heard = now;
    }
}

/// Why a connection is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// The bytes received are no reply.
    Wire(WireError),
    /// The reply belongs to no request.
    NotAsked,
    /// Nothing comes.
    Silent,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wire(error) => write!(f, "what it sent is not its protocol: {error}"),
            Self::NotAsked => f.write_str("it sent a reply that nobody asked for"),
            Self::Silent => f.write_str("it has been silent for too long"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(1);

    fn mux(now: Instant) -> Mux {
        let limits = Limits { max_answer: 1000, max_waiting: 4, max_unsent: 1000, answer_timeout: TIMEOUT };
        Mux::new(limits, &Budget::new(1000), now)
    }

    fn ask(mux: &mut Mux, now: Instant, request: &str, replies: u32) -> Ticket {
        mux.push(replies, now, |out| out.extend_from_slice(request.as_bytes())).unwrap()
    }

    /// The answer if there is one, as text, or the failure's.
    fn answer(mux: &mut Mux, ticket: Ticket) -> Option<String> {
        match mux.poll(ticket, &Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(bytes)) => Some(String::from_utf8(bytes.to_vec()).unwrap()),
            Poll::Ready(Err(failure)) => Some(failure.to_string()),
            Poll::Pending => None,
        }
    }

    fn send(mux: &mut Mux) -> String {
        let text = String::from_utf8(mux.unsent().to_vec()).unwrap();
        mux.sent(text.len());
        text
    }

    #[test]
    fn in_order_and_in_pieces() {
        let now = Instant::now();
        let mut mux = mux(now);
        let (a, b) = (ask(&mut mux, now, "a", 1), ask(&mut mux, now, "bb", 2));
        assert_eq!(send(&mut mux), "abb");
        assert_eq!(mux.received(b"+1\r\n$3\r\n", now), Ok(8));
        assert_eq!(answer(&mut mux, b), None);
        assert_eq!(answer(&mut mux, a).unwrap(), "+1\r\n");
        assert_eq!(mux.received(b"abc\r\n+", now), Ok(5), "a line without its end is shown again");
        assert_eq!(mux.received(b"+3\r\n", now), Ok(4));
        assert_eq!(answer(&mut mux, b).unwrap(), "$3\r\nabc\r\n+3\r\n");
        assert_eq!(mux.received(b"+4\r\n", now), Err(Unfit::NotAsked));
    }

    #[test]
    fn a_caller_that_leaves_does_not_shift_answers() {
        let now = Instant::now();
        let mut mux = mux(now);
        let (a, b) = (ask(&mut mux, now, "a", 1), ask(&mut mux, now, "b", 1));
        mux.forget(a);
        let c = ask(&mut mux, now, "c", 1);
        assert_ne!(a.slot, c.slot, "a place is not given away before its answer has come");
        send(&mut mux);
        assert_eq!(mux.received(b"+a\r\n+b\r\n+c\r\n", now), Ok(12));
        assert_eq!(answer(&mut mux, c).unwrap(), "+c\r\n");
        assert_eq!(answer(&mut mux, b).unwrap(), "+b\r\n");
        assert_eq!(mux.slots.len(), 3);
        assert_eq!(mux.free.len(), 3);
    }

    #[test]
    fn an_answer_that_is_late_is_passed_over() {
        let start = Instant::now();
        let mut mux = mux(start);
        let a = ask(&mut mux, start, "a", 1);
        send(&mut mux);
        assert_eq!(mux.deadline(), Some(start + TIMEOUT));
        let later = start + TIMEOUT;
        let b = ask(&mut mux, later, "b", 1);
        assert_eq!(mux.expire(later), Ok(()));
        assert!(answer(&mut mux, a).unwrap().starts_with("Redis did not answer within 1s"));
        assert_eq!(mux.deadline(), Some(later + TIMEOUT));
        send(&mut mux);
        assert_eq!(mux.received(b"+a\r\n+b\r\n", later), Ok(8));
        assert_eq!(answer(&mut mux, b).unwrap(), "+b\r\n");
    }

    #[test]
    fn a_silent_connection_is_given_up() {
        let start = Instant::now();
        let mut mux = mux(start);
        let a = ask(&mut mux, start, "a", 1);
        send(&mut mux);
        assert_eq!(mux.expire(start + TIMEOUT), Ok(()));
        assert_eq!(mux.expire(start + TIMEOUT * 2), Err(Unfit::Silent));
        assert!(answer(&mut mux, a).is_some());
    }

    #[test]
    fn unsent_requests_go_over_the_next_connection() {
        let now = Instant::now();
        let mut mux = mux(now);
        let tickets: Vec<_> = ["aa", "bb", "cc"].iter().map(|request| ask(&mut mux, now, request, 1)).collect();
        mux.sent(3);
        assert_eq!(mux.received(b"+a\r\n+", now), Ok(4));
        mux.lost(&"gone".into());
        assert_eq!(answer(&mut mux, tickets[0]).unwrap(), "+a\r\n");
        assert!(answer(&mut mux, tickets[1]).unwrap().contains("ended before its answer came: gone"));
        assert_eq!(answer(&mut mux, tickets[2]), None);
        assert_eq!(send(&mut mux), "cc", "no half of a request is sent");
        assert_eq!(mux.received(b"+c\r\n", now), Ok(4));
        assert_eq!(answer(&mut mux, tickets[2]).unwrap(), "+c\r\n");
        let d = ask(&mut mux, now, "dd", 1);
        mux.away(&"refused".into());
        assert!(answer(&mut mux, d).unwrap().contains("away: refused; the request was not sent"));
        assert_eq!(send(&mut mux), "");
        assert_eq!(mux.free.len(), mux.slots.len());
    }

    #[test]
    fn an_unsolicited_answer_reaches_no_request() {
        let now = Instant::now();
        let mut mux = mux(now);
        let a = ask(&mut mux, now, "a", 1);
        assert_eq!(mux.received(b"+x\r\n", now), Err(Unfit::NotAsked));
        assert_eq!(answer(&mut mux, a), None);
    }

    #[test]
    fn limits() {
        let now = Instant::now();
        let mut mux = mux(now);
        let (a, b) = (ask(&mut mux, now, "a", 1), ask(&mut mux, now, "b", 1));
        send(&mut mux);
        let long = [b"$2000\r\n".as_slice(), &[b'x'; 2000], b"\r\n+b\r\n"].concat();
        for piece in long.chunks(700) {
            assert_eq!(mux.received(piece, now), Ok(piece.len()));
        }
        assert_eq!(answer(&mut mux, a).unwrap(), "the answer is longer than the limit of 1000 bytes");
        assert_eq!(answer(&mut mux, b).unwrap(), "+b\r\n", "what follows a long answer is whole");
        for _ in 0..4 {
            ask(&mut mux, now, "x", 1);
        }
        assert_eq!(mux.push(1, now, |_| ()), Err(Failure::Busy));
    }

    #[test]
    fn sent_bytes_are_removed_from_the_buffer() {
        let now = Instant::now();
        let limits = Limits { max_answer: 1000, max_waiting: 10_000, max_unsent: 1_000_000, answer_timeout: TIMEOUT };
        let mut mux = Mux::new(limits, &Budget::new(1000), now);
        let request = "x".repeat(100_000);
        // Redis never takes all that is there.
        ask(&mut mux, now, &request, 1);
        for _ in 0..1000 {
            ask(&mut mux, now, &request, 1);
            mux.sent(100_000);
            assert!(mux.out.capacity() < 500_000, "{} bytes for 100,000", mux.out.capacity());
            assert_eq!(mux.received(b"+1\r\n", now), Ok(4));
        }
        assert_eq!(mux.unsent().len(), 100_000);
        mux.lost(&"gone".into());
        assert_eq!(mux.unsent().len(), 100_000, "what was not sent goes over the next connection");
    }

    #[test]
    fn answers_are_bounded_together() {
        let now = Instant::now();
        let limits = Limits { max_answer: 100_000, max_waiting: 100, max_unsent: 1000, answer_timeout: TIMEOUT };
        let budget = Budget::new(200_000);
        let mut mux = Mux::new(limits, &budget, now);
        let tickets: Vec<_> = (0..10).map(|_| ask(&mut mux, now, "a", 1)).collect();
        send(&mut mux);
        let reply = [b"$50000\r\n".as_slice(), &[b'x'; 50_000], b"\r\n"].concat();
        for piece in reply.repeat(10).chunks(10_000) {
            let mut at = 0;
            while at < piece.len() {
                at += mux.received(&piece[at..], now).unwrap();
            }
        }
        let held: usize = mux.slots.iter().map(|slot| slot.answer.capacity()).sum();
        assert!(held <= 200_000, "{held} bytes");
        let taken: Vec<_> = tickets
            .into_iter()
            .map(|ticket| match mux.poll(ticket, &Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => answer,
                Poll::Pending => panic!("all answers have come"),
            })
            .collect();
        let whole = taken.iter().flatten().filter(|answer| answer.len() == reply.len()).count();
        assert!((2..=4).contains(&whole), "{whole} answers");
        assert!(taken.iter().filter(|answer| answer.is_err()).all(|answer| *answer == Err(Failure::Full)));
        drop(taken);
        let ticket = ask(&mut mux, now, "a", 1);
        send(&mut mux);
        assert_eq!(mux.received(b"+1\r\n", now), Ok(4));
        assert_eq!(answer(&mut mux, ticket).unwrap(), "+1\r\n");
        assert!(!budget.is_full(), "what was taken and dropped is free again");
    }
}
