//! How many connections there are, and where.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use tokio::sync::Notify;
use tracing::{debug, warn};

use crate::metrics;

/// The counts of one server. Relaxed throughout: they are figures and limits, nothing is published through them.
pub(crate) struct Counters {
    open: AtomicUsize,
    pub(crate) limit: AtomicUsize,
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) accept_errors: AtomicU64,
    handshake_errors: AtomicU64,
    /// When the log last told of one, in seconds since `started`, plus one.
    handshake_logged: AtomicU64,
    started: Instant,
    pub(crate) moved: AtomicU64,
    /// Whether connections can move to another worker; if not, they are dealt out evenly.
    moves: bool,
    /// The worker for new connections while they move.
    home: AtomicUsize,
    workers: Vec<WorkerCount>,
}

#[derive(Default)]
struct WorkerCount {
    open: AtomicUsize,
    /// Of those the ones that stay.
    settled: AtomicUsize,
    /// Told whenever no connection is left, on any worker.
    all_gone: Notify,
    /// The last [`Order`] to its connections, see [`Counters::order`].
    order: AtomicU64,
    /// Told when it is to show that it comes to the end of its turns.
    asked: Notify,
    /// Whether it has been asked, and has not answered.
    owes_answer: AtomicBool,
    /// Whether it has owed the answer for long: it gets no new connections.
    is_held_up: AtomicBool,
}

/// A wish that connections of one worker go to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// How many of those that have something to do, from 0 to 1.
    pub(crate) share: f64,
}

impl Counters {
    pub(crate) fn new(workers: usize, limit: usize, moves: bool) -> Self {
        Self {
            open: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            accept_errors: AtomicU64::new(0),
            handshake_errors: AtomicU64::new(0),
            handshake_logged: AtomicU64::new(0),
            started: Instant::now(),
            moved: AtomicU64::new(0),
            moves,
            home: AtomicUsize::new(0),
            workers: std::iter::repeat_with(WorkerCount::default).take(workers).collect(),
        }
    }

    /// Counts a TLS handshake that has failed. The log tells of one a second at most, and not of clients that just leave, as
    /// health checks do.
    pub(crate) fn handshake_failed(&self, error: &io::Error, peer: &impl fmt::Display) {
        self.handshake_errors.fetch_add(1, Relaxed);
        let has_left = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset].contains(&error.kind());
        let second = self.started.elapsed().as_secs() + 1;
        if has_left || self.handshake_logged.swap(second, Relaxed) == second {
            debug!("TLS handshake with {peer}: {error}");
        } else {
            warn!("TLS handshake with {peer}: {error}");
        }
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    pub(crate) fn open_on(&self, worker: usize) -> usize {
        self.workers[worker].open.load(Relaxed)
    }

    /// Takes a place, unless all are taken: at the worker for new connections if this one `can_move` later, else where
    /// those that stay are dealt out to, which is `first` among equals.
    pub(crate) fn take(self: &Arc<Self>, first: usize, can_move: bool) -> Option<Place> {
        if !self.one_more() {
            return None;
        }
        if !(can_move && self.moves) {
            return Some(self.settled_place(self.emptiest(first, 0)));
        }
        let home = self.home.load(Relaxed);
        Some(self.place(if self.is_held_up(home) { self.emptiest(first, 0) } else { home }, None))
    }

    /// Takes a place of a connection that stays on this worker, unless all are taken.
    pub(crate) fn take_on(self: &Arc<Self>, worker: usize) -> Option<Place> {
        self.one_more().then(|| self.settled_place(worker))
    }

    /// Counts a connection that is accepted, or one that is refused at the limit.
    fn one_more(&self) -> bool {
        if self.open.fetch_add(1, Relaxed) >= self.limit.load(Relaxed) {
            self.one_less();
            self.refused.fetch_add(1, Relaxed);
            return false;
        }
        self.accepted.fetch_add(1, Relaxed);
        true
    }

    fn settled_place(self: &Arc<Self>, worker: usize) -> Place {
        self.settle(worker);
        self.place(worker, Some(worker))
    }

    fn place(self: &Arc<Self>, worker: usize, settled: Option<usize>) -> Place {
        self.workers[worker].open.fetch_add(1, Relaxed);
        let seen = self.workers[worker].order.load(Relaxed);
        Place { counters: Arc::clone(self), worker, settled, seen }
    }

    /// A connection stays there. Until the next look of `balance.rs`, new ones that can move go elsewhere, if there is a worker where nobody stays.
    fn settle(&self, worker: usize) {
        self.workers[worker].settled.fetch_add(1, Relaxed);
        let is_free = |other: &WorkerCount| other.settled.load(Relaxed) == 0;
        if self.home.load(Relaxed) == worker
            && let Some(free) = self.workers.iter().position(is_free)
        {
            self.set_home(free);
        }
    }

    /// Whether there are connections that stay, by worker.
    pub(crate) fn settled(&self) -> Vec<bool> {
        self.workers.iter().map(|worker| worker.settled.load(Relaxed) > 0).collect()
    }

    /// Where new connections go from now on.
    pub(crate) fn set_home(&self, worker: usize) {
        self.home.store(worker, Relaxed);
    }

    /// Asks connections to move. Each of them finds the order the next time it has done something, so that only those
    /// move that have something to do.
    pub(crate) fn order(&self, Order { from, to, share }: Order) {
        let order = &self.workers[from].order;
        let number = (order.load(Relaxed) >> 32) + 1;
        let share = (share * f64::from(u16::MAX)) as u64;
        order.store(number << 32 | (to as u64) << 16 | share, Relaxed);
    }

    /// The worker with the fewest connections that stay; among equals the one with the fewest others, which those that stay may
    /// hold up, then the first from `next` on. Of the latter's connections `own` are not counted. Workers that are held up come last.
    fn emptiest(&self, next: usize, own: usize) -> usize {
        let count = self.workers.len();
        let cost = |step: &usize| {
            let worker = (next + step) % count;
            let open = self.open_on(worker).saturating_sub(if *step == 0 { own } else { 0 });
            (self.is_held_up(worker), self.workers[worker].settled.load(Relaxed), open)
        };
        (next + (0..count).min_by_key(cost).unwrap_or(0)) % count
    }

    fn is_held_up(&self, worker: usize) -> bool {
        self.workers[worker].is_held_up.load(Relaxed)
    }

    /// Asks a worker for an answer, unless it owes one already: then true.
    pub(crate) fn ask(&self, worker: usize) -> bool {
        let WorkerCount { asked, owes_answer, .. } = &self.workers[worker];
        let owed = owes_answer.swap(true, Relaxed);
        if !owed {
            asked.notify_one();
        }
        owed
    }

    /// Answers when the worker is asked. Cancel safe.
    pub(crate) async fn answer(&self, worker: usize) {
        let WorkerCount { asked, owes_answer, .. } = &self.workers[worker];
        asked.notified().await;
        owes_answer.store(false, Relaxed);
    }

    pub(crate) fn set_held_up(&self, worker: usize, is_held_up: bool) {
        self.workers[worker].is_held_up.store(is_held_up, Relaxed);
    }

    fn one_less(&self) {
        if self.open.fetch_sub(1, Relaxed) == 1 {
            self.workers.iter().for_each(|worker| worker.all_gone.notify_one());
        }
    }

    /// Ready when no connection is left, for this worker to end: as long as there is one anywhere, it may still move here.
    pub(crate) async fn drained(&self, worker: usize) {
        while self.open() > 0 {
            self.workers[worker].all_gone.notified().await;
        }
    }

    /// The runtime's own figures, as Prometheus reads them.
    pub(crate) fn render(&self, out: &mut String) {
        let load = |value: &AtomicU64| value.load(Relaxed) as f64;
        metrics::family(out, "server_connections_open", "Connections open now.", "gauge");
        metrics::sample(out, "server_connections_open", &[], self.open() as f64);
        metrics::family(out, "server_connections_limit", "Connections that may be open at one time.", "gauge");
        metrics::sample(out, "server_connections_limit", &[], self.limit.load(Relaxed) as f64);
        for (name, help, value) in [
            ("server_connections_accepted_total", "Connections accepted.", &self.accepted),
            ("server_connections_refused_total", "Connections refused at the limit.", &self.refused),
            ("server_accept_errors_total", "Failures to accept a connection.", &self.accept_errors),
            ("server_tls_handshake_errors_total", "TLS handshakes that failed.", &self.handshake_errors),
            ("server_connections_moved_total", "Connections that went to another worker.", &self.moved),
        ] {
            metrics::family(out, name, help, "counter");
            metrics::sample(out, name, &[], load(value));
        }
        metrics::family(out, "server_worker_connections_open", "Connections open now, by worker.", "gauge");
        for worker in 0..self.workers() {
            let index = worker.to_string();
            metrics::sample(out, "server_worker_connections_open", &[("worker", &index)], self.open_on(worker) as f64);
        }
    }
}

/// A place among the open connections, free again when dropped.
pub struct Place {
    counters: Arc<Counters>,
    worker: usize,
    /// The worker where it stays, once that is known.
    settled: Option<usize>,
    /// The last order that was followed or declined.
    seen: u64,
}

impl Place {
    /// The index of the worker that has the connection.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Whether the connection is known to stay.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.settled.is_some()
    }

    /// Says that the connection, which could move so far, will stay, because of what it is used for: those are dealt out evenly, the
    /// first of them away from where others gather. It may have to go to another worker for that, whose index comes back, and stays there.
    pub fn settle(&mut self) -> Option<usize> {
        if self.is_settled() {
            return None;
        }
        let target = self.counters.emptiest(self.worker, 1);
        self.counters.settle(target);
        self.settled = Some(target);
        (target != self.worker).then_some(target)
    }

    /// The worker that the connection is asked to go to, if it is; it is asked once. `random` decides whether it is among
    /// those that follow. Cheap enough to be called after every request.
    #[inline]
    pub fn is_asked_to(&mut self, random: impl FnOnce() -> u16) -> Option<usize> {
        let order = self.counters.workers[self.worker].order.load(Relaxed);
        if order == self.seen {
            return None;
        }
        self.seen = order;
        (random() <= order as u16).then_some((order >> 16) as u16 as usize)
    }

    /// The same connection on another worker.
    pub(crate) fn move_to(mut self, worker: usize) -> Self {
        // The old place is given up only when the new one is taken, so that the connection is counted throughout.
        self.counters.open.fetch_add(1, Relaxed);
        self.counters.moved.fetch_add(1, Relaxed);
        let settled = self.settled.take();
        self.counters.place(worker, settled)
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(worker) = self.settled {
            self.counters.workers[worker].settled.fetch_sub(1, Relaxed);
        }
        self.counters.workers[self.worker].open.fetch_sub(1, Relaxed);
        // Last, so that a thread that sees the end finds all counters final.
        self.counters.one_less();
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("worker", &self.worker).finish()
    }
}
