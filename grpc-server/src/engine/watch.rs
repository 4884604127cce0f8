//! Whether a connection's client is still there, and whether its connection has lived long enough.

use std::pin::Pin;
use std::task::{Context, Poll};

use h2::{Ping, PingPong};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::options::Timeouts;

/// What the watch wants of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// It ends when its calls are over.
    Leave,
    /// It ends: the client does not answer.
    Cut,
}

/// One timer for all that a connection is watched for.
pub(super) struct Watch {
    ping_pong: Option<PingPong>,
    timer: Pin<Box<Sleep>>,
    timeouts: Timeouts,
    began: Instant,
    /// When the last call came.
    pub(super) active: Instant,
    /// When a ping was sent whose answer is not there yet.
    pinged: Option<Instant>,
    /// When the last ping was answered.
    heard: Instant,
    has_left: bool,
}

impl Watch {
    pub(super) fn new(ping_pong: Option<PingPong>, timeouts: Timeouts) -> Self {
        let now = Instant::now();
        let timer = Box::pin(sleep_until(now));
        Self { ping_pong, timer, timeouts, began: now, active: now, pinged: None, heard: now, has_left: false }
    }

    /// `is_busy` tells whether calls are under way; it is asked only when it matters.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, is_busy: impl Fn() -> bool) -> Poll<Wish> {
        if self.pinged.is_some() && self.poll_pong(cx) {
            self.pinged = None;
            self.heard = Instant::now();
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if self.pinged.is_some_and(|at| at + self.timeouts.keepalive_answer <= now) {
                return Poll::Ready(Wish::Cut);
            }
            if self.pinged.is_none() && self.heard + self.timeouts.keepalive <= now {
                self.ping(now, cx);
            }
            if is_busy() {
                self.active = now;
            }
            let is_old = self.timeouts.age.is_some_and(|age| self.began + age <= now);
            let is_idle = self.timeouts.idle.is_some_and(|idle| self.active + idle <= now);
            let next = self.next(now);
            self.timer.as_mut().reset(next);
            if (is_old || is_idle) && !self.has_left {
                self.has_left = true;
                // The timer is polled again after the connection was told.
                cx.waker().wake_by_ref();
                return Poll::Ready(Wish::Leave);
            }
        }
        Poll::Pending
    }

    fn poll_pong(&mut self, cx: &mut Context<'_>) -> bool {
        self.ping_pong.as_mut().is_some_and(|ping_pong| ping_pong.poll_pong(cx).is_ready())
    }

    fn ping(&mut self, now: Instant, cx: &mut Context<'_>) {
        let sent = self.ping_pong.as_mut().is_some_and(|ping_pong| ping_pong.send_ping(Ping::opaque()).is_ok());
        if sent {
            self.pinged = Some(now);
            // The connection has to send it, and this has to wait for the answer.
            let _ = self.poll_pong(cx);
            cx.waker().wake_by_ref();
        } else {
            // The connection is about to end.
            self.heard = now;
        }
    }

    /// When there is something to see next.
    fn next(&self, now: Instant) -> Instant {
        let ping = match self.pinged {
            Some(at) => at + self.timeouts.keepalive_answer,
            None => self.heard + self.timeouts.keepalive,
        };
        let age = self.timeouts.age.filter(|_| !self.has_left).map(|age| self.began + age);
        let idle = self.timeouts.idle.filter(|_| !self.has_left).map(|idle| self.active + idle);
        // What is past already has been dealt with; a moment later is soon enough for what could not be.
        let soonest = [age, idle].into_iter().flatten().filter(|at| *at > now).fold(ping, Instant::min);
        soonest.max(now + std::time::Duration::from_millis(1))
    }
}
