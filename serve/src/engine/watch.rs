//! Time-outs of connections without a timer for each: a table that is swept a few times in the shortest of them.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::task::Waker;
use std::time::Duration;

use super::app::Keepalive;
use crate::options::Timeouts;

/// Sweeps in the shortest time-out: a connection lives up to a quarter longer than it should.
const SWEEPS: u32 = 4;

/// How much more or less than its age a connection may have, as a part of it: connections that came together do not leave together.
const AGE_SPREAD: f64 = 0.1;

/// The longest pause between sweeps.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The shortest.
const PAUSE_MIN: Duration = Duration::from_millis(5);

/// The activity of a connection, which decides how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between requests.
    Idle,
    /// Between requests, on a connection of HTTP/2.
    Free,
    /// In the middle of a request's head.
    Head,
    /// Waiting for the client to send more of a body.
    Body,
    /// Waiting for a handler, which takes as long as it takes.
    Busy,
    /// Waiting for the client to take what it asked for.
    Writing,
    /// Waiting for the client to close.
    Lingering,
    /// Hearing nothing of the client, on a connection of HTTP/2.
    Silent,
    /// Waiting for a sign of life of the client.
    Asked,
    /// Until the connection is old.
    Young,
    /// Waiting for the requests of one that is.
    Old,
}

/// One connection's entry.
pub(super) struct Slot {
    phase: Cell<Phase>,
    since: Cell<u32>,
    expired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    now: Rc<Cell<u32>>,
}

impl Slot {
    /// Enters a phase; its time starts now, also if it is the same again.
    #[inline]
    pub(super) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(self.now.get());
    }

    /// Is in a phase; its time started when it was entered.
    #[inline]
    pub(super) fn stay(&self, phase: Phase) {
        if self.phase.get() != phase {
            self.enter(phase);
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Whether the phase has taken too long.
    #[inline]
    pub(super) fn is_expired(&self) -> bool {
        self.expired.get()
    }

    /// For a connection that gets more time, to say why it ends.
    pub(super) fn renew(&self, phase: Phase) {
        self.expired.set(false);
        self.enter(phase);
    }

    /// Sets the waker for the end of the time, or of the server.
    #[inline]
    pub(super) fn wake_by(&self, waker: &Waker) {
        let mut slot = self.waker.borrow_mut();
        if !slot.as_ref().is_some_and(|old| old.will_wake(waker)) {
            *slot = Some(waker.clone());
        }
    }

    pub(super) fn wake(&self) {
        // Woken outside of the borrow: the woken task may look here.
        let waker = self.waker.borrow().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The entries of one worker.
pub(super) struct Watch {
    slots: RefCell<Vec<Weak<Slot>>>,
    /// Sweeps so far: the unit of time here.
    now: Rc<Cell<u32>>,
    pause: Duration,
    timeouts: Timeouts,
    pub(super) keepalive: Option<Keepalive>,
}

impl Watch {
    pub(super) fn new(timeouts: Timeouts, keepalive: Option<Keepalive>) -> Self {
        let more = keepalive.into_iter().flat_map(|keepalive| {
            let Keepalive { silence, answer, idle, age, grace } = keepalive;
            [Some(silence), Some(answer), idle, age, grace].into_iter().flatten()
        });
        let shortest = timeouts.all().into_iter().chain(more).min().unwrap_or(PAUSE_MAX);
        let pause = (shortest / SWEEPS).clamp(PAUSE_MIN, PAUSE_MAX);
        Self { slots: RefCell::default(), now: Rc::default(), pause, timeouts, keepalive }
    }

    /// An entry for a connection; it is gone when dropped.
    pub(super) fn slot(&self) -> Rc<Slot> {
        let slot = Rc::new(Slot {
            phase: Cell::new(Phase::Idle),
            since: Cell::new(self.now.get()),
            expired: Cell::new(false),
            waker: RefCell::default(),
            now: Rc::clone(&self.now),
        });
        self.slots.borrow_mut().push(Rc::downgrade(&slot));
        slot
    }

    /// An entry for the age of a connection, if it has an end; `chance`, from 0 to 1, is its place between a tenth less and a tenth more.
    pub(super) fn age(&self, chance: f64) -> Option<Rc<Slot>> {
        let age = self.keepalive?.age?;
        let slot = self.slot();
        slot.enter(Phase::Young);
        let earlier = self.sweeps(age.mul_f64(2.0 * AGE_SPREAD * (1.0 - chance)));
        slot.since.set(slot.since.get().wrapping_sub(earlier));
        Some(slot)
    }

    /// Sweeps for ever, and does what else is due several times a second.
    pub(super) async fn run(&self, also: impl Fn()) {
        let mut ticks = tokio::time::interval(self.pause);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.now.set(self.now.get().wrapping_add(1));
            self.sweep();
            also();
        }
    }

    /// Wakes every connection: something has changed for all.
    pub(super) fn wake_all(&self) {
        self.slots.borrow().iter().filter_map(Weak::upgrade).for_each(|slot| slot.wake());
    }

    fn sweep(&self) {
        let now = self.now.get();
        self.slots.borrow_mut().retain(|slot| {
            let Some(slot) = slot.upgrade() else { return false };
            let Some(limit) = self.limit(slot.phase.get()) else { return true };
            if now.wrapping_sub(slot.since.get()) > limit && !slot.expired.replace(true) {
                slot.wake();
            }
            true
        });
    }

    /// In sweeps.
    fn limit(&self, phase: Phase) -> Option<u32> {
        self.time(phase).map(|time| self.sweeps(time))
    }

    fn sweeps(&self, time: Duration) -> u32 {
        u32::try_from(time.as_nanos() / self.pause.as_nanos()).unwrap_or(u32::MAX)
    }

    fn time(&self, phase: Phase) -> Option<Duration> {
        Some(match phase {
            Phase::Idle => self.timeouts.idle,
            Phase::Free => self.keepalive.map_or(Some(self.timeouts.idle), |keepalive| keepalive.idle)?,
            Phase::Silent => self.keepalive.map_or(self.timeouts.idle, |keepalive| keepalive.silence),
            Phase::Asked => self.keepalive.map_or(self.timeouts.write, |keepalive| keepalive.answer),
            Phase::Young => self.keepalive?.age?.mul_f64(1.0 + AGE_SPREAD),
            Phase::Old => self.keepalive?.grace?,
            Phase::Head => self.timeouts.head,
            Phase::Body => self.timeouts.body,
            Phase::Writing => self.timeouts.write,
            Phase::Lingering => self.timeouts.linger,
            Phase::Busy => return None,
        })
    }

    /// Bytes that a client has to take within the time of a phase if it is still taking something.
    pub(super) fn least(&self, phase: Phase) -> u64 {
        self.time(phase).map_or(0, Timeouts::least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_phase_that_takes_too_long_expires() {
        let timeouts = Timeouts { idle: Duration::from_secs(8), head: Duration::from_secs(4), ..Timeouts::default() };
        let watch = Watch::new(timeouts, None);
        let (idle, head, busy) = (watch.slot(), watch.slot(), watch.slot());
        head.enter(Phase::Head);
        busy.enter(Phase::Busy);
        let expired = || (idle.is_expired(), head.is_expired(), busy.is_expired());
        let sweep_for = |seconds| tokio::time::timeout(Duration::from_secs(seconds), watch.run(|| ()));
        let _ = sweep_for(3).await;
        assert_eq!(expired(), (false, false, false));
        head.stay(Phase::Head);
        let _ = sweep_for(3).await;
        assert_eq!(expired(), (false, true, false));
        let _ = sweep_for(5).await;
        assert_eq!(expired(), (true, true, false));
        drop((idle, head));
        let _ = sweep_for(2).await;
        assert_eq!(watch.slots.borrow().len(), 1);
    }

    /// Connections that came together do not leave together: their ages differ by up to a fifth.
    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn an_old_connection_has_its_grace() {
        let seconds = Duration::from_secs;
        let (silence, age) = (seconds(3600), Some(seconds(100)));
        let keepalive = Keepalive { silence, answer: silence, idle: None, age, grace: Some(seconds(7)) };
        for (chance, age) in [(0.0, 90), (0.5, 100), (1.0, 110)] {
            let watch = Watch::new(Timeouts::default(), Some(keepalive));
            let slot = watch.age(chance).unwrap();
            for (phase, time) in [(Phase::Young, age), (Phase::Old, 7)] {
                if phase == Phase::Old {
                    slot.renew(phase);
                }
                let _ = tokio::time::timeout(seconds(time - 1), watch.run(|| ())).await;
                assert!(!slot.is_expired(), "{phase:?} {chance}");
                let _ = tokio::time::timeout(seconds(2), watch.run(|| ())).await;
                assert!(slot.is_expired(), "{phase:?} {chance}");
            }
        }
    }
}
