//! Whether a connection's client is still there, and whether its connection has lived long enough.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use server_runtime::{Pace, Progress};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::options::Timeouts;
use crate::tuning::least;

/// How much more or less than the age that is asked for a connection may have, as a part of it.
const AGE_SPREAD: f64 = 0.1;

/// The watch's wish to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// The client is asked for an answer.
    Ping,
    /// It ends when its calls are over.
    Leave,
    /// It ends: the client does not answer, or has not begun.
    Cut,
}

/// One timer for all that a connection is watched for.
pub(super) struct Watch {
    timer: Pin<Box<Sleep>>,
    timeouts: Timeouts,
    began: Instant,
    /// When the last call came.
    pub(super) active: Instant,
    /// When a ping was sent whose answer is not there yet.
    pinged: Option<Instant>,
    pace: Pace,
    /// When the last ping was answered.
    heard: Instant,
    has_left: bool,
    /// Since when a head has not come whole.
    head: Option<Instant>,
    /// When it has to be over, even with calls under way.
    end: Option<Instant>,
}

impl Watch {
    /// `chance` is a number from 0 to 1.
    pub(super) fn new(mut timeouts: Timeouts, chance: f64) -> Self {
        let now = Instant::now();
        let timer = Box::pin(sleep_until(now));
        timeouts.age = timeouts.age.map(|age| age.mul_f64(1.0 - AGE_SPREAD + 2.0 * AGE_SPREAD * chance));
        Self {
            timer,
            timeouts,
            began: now,
            active: now,
            pinged: None,
            pace: Pace::default(),
            heard: now,
            has_left: false,
            head: None,
            end: None,
        }
    }

    /// The client has answered.
    pub(super) fn heard(&mut self, now: Instant) {
        self.pinged = None;
        self.heard = now;
    }

    /// A head has begun that has not come whole, or none has. Its time is that of a client that does not begin.
    pub(super) fn note_head(&mut self, is_within: bool) {
        if self.head.is_some() == is_within {
            return;
        }
        self.head = is_within.then(Instant::now);
        if let Some(end) = self.end_of_head()
            && end < self.timer.deadline()
        {
            self.timer.as_mut().reset(end);
        }
    }

    /// A head has come whole; another one may have begun.
    pub(super) fn took_head(&mut self) {
        self.head = None;
    }

    fn end_of_head(&self) -> Option<Instant> {
        self.head.map(|head| head + self.timeouts.handshake)
    }

    /// `is_busy` tells whether calls are under way; it is asked only when it matters. `is_open`, whether the client has begun. `moved`, the bytes
    /// that it has received, and those that it has sent beside them.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        is_busy: impl Fn() -> bool,
        is_open: bool,
        moved: impl Fn() -> Progress,
    ) -> Poll<Wish> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let is_deaf = self.is_deaf(now, &moved);
            let is_over = self.end.is_some_and(|end| end <= now);
            let is_stuck = self.end_of_head().is_some_and(|end| end <= now);
            if is_deaf || is_over || is_stuck || !is_open && self.began + self.timeouts.handshake <= now {
                return Poll::Ready(Wish::Cut);
            }
            if is_busy() {
                self.active = now;
            }
            let is_silent = is_open && self.pinged.is_none() && self.heard + self.timeouts.keepalive <= now;
            let is_old = self.timeouts.age.is_some_and(|age| self.began + age <= now);
            let is_idle = self.timeouts.idle.is_some_and(|idle| self.active + idle <= now);
            let leaves = (is_old || is_idle) && !self.has_left;
            self.has_left |= leaves;
            if leaves && is_old {
                self.end = self.timeouts.age_grace.map(|grace| now + grace);
            }
            if is_silent && !leaves {
                self.pinged = Some(now);
                self.pace.begin(moved(), least(self.timeouts.keepalive_answer));
            }
            let next = self.next(now, is_open);
            self.timer.as_mut().reset(next);
            if leaves {
                return Poll::Ready(Wish::Leave);
            }
            if is_silent {
                return Poll::Ready(Wish::Ping);
            }
        }
        Poll::Pending
    }

    /// Whether the answer to a ping is late. The ping is behind all bytes on their way to the client, and the answer behind all bytes on their way
    /// from it. While enough of them move, the client has more time.
    fn is_deaf(&mut self, now: Instant, moved: impl Fn() -> Progress) -> bool {
        let time = self.timeouts.keepalive_answer;
        if self.pinged.is_none_or(|at| at + time > now) {
            return false;
        }
        self.pinged = Some(now);
        !self.pace.has_moved(moved().received, least(time))
    }

    /// When there is something to see next.
    fn next(&self, now: Instant, is_open: bool) -> Instant {
        let ping = match self.pinged {
            Some(at) => at + self.timeouts.keepalive_answer,
            None => self.heard + self.timeouts.keepalive,
        };
        let handshake = Some(self.began + self.timeouts.handshake).filter(|_| !is_open);
        let age = self.timeouts.age.filter(|_| !self.has_left).map(|age| self.began + age);
        let idle = self.timeouts.idle.filter(|_| !self.has_left).map(|idle| self.active + idle);
        // A time in the past has been dealt with already; if it could not be, a millisecond later is soon enough.
        let soonest = [handshake, age, idle, self.end, self.end_of_head()]
            .into_iter()
            .flatten()
            .filter(|at| *at > now)
            .fold(ping, Instant::min);
        soonest.max(now + Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn an_old_connection_leaves_and_is_cut_after_its_grace() {
        let seconds = Duration::from_secs;
        let timeouts = Timeouts {
            age: Some(seconds(100)),
            age_grace: Some(seconds(7)),
            keepalive: seconds(3600),
            ..Timeouts::default()
        };
        for (chance, age) in [(0.0, 90), (0.5, 100), (1.0, 110)] {
            let (mut watch, began) = (Watch::new(timeouts, chance), Instant::now());
            for (wish, after) in [(Wish::Leave, age), (Wish::Cut, age + 7)] {
                assert_eq!(poll_fn(|cx| watch.poll(cx, || true, true, Progress::default)).await, wish);
                let (took, after) = (began.elapsed(), seconds(after));
                assert!(took >= after && took < after + seconds(1), "{wish:?} after {took:?}");
            }
        }
    }
}
