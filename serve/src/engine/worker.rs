//! The state of one worker, and the state that all share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use http::{HeaderValue, StatusCode};
use http2::shared::Buffers;

use super::app::Rules;
use super::clock::Clock;
use super::http2::Heads;
use super::stats::Stats;
use super::watch::Watch;
use crate::compress::{self, Encoding};
use crate::instant::Found;
use crate::later;
use crate::options::Options;
use crate::tuning::READ_BUFFER;

/// State that all workers share.
pub(super) struct Settings {
    pub(super) options: Options,
    pub(super) rules: Rules,
    pub(super) stats: Box<[Stats]>,
    /// The `alt-svc` value that tells clients that come by TLS where HTTP/3 is, if it is somewhere.
    pub(super) alt_svc: Option<HeaderValue>,
}

/// How far a shutdown has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drain {
    /// There is none.
    No,
    /// Every answer ends its connection; idle ones may still bring a request that is on its way.
    LameDuck,
    /// Idle connections end.
    Closing,
}

/// One worker: what its connections share.
pub struct Worker {
    pub(super) index: usize,
    pub(super) settings: Arc<Settings>,
    pub(super) clock: RefCell<Clock>,
    pub(super) watch: Watch,
    pub(super) drain: Cell<Drain>,
    pub(super) scratch: RefCell<Scratch>,
    pub(super) h2: H2,
    /// Requests of the router, for sampling and as a part of their ids.
    pub(super) count: Cell<u64>,
    /// Sets the ids of this worker in this process apart from others'.
    pub(super) seed: u64,
    random: Cell<u64>,
    is_watched: Cell<bool>,
}

/// Buffers that the connection which is working uses. They are empty in between.
pub(super) struct Scratch {
    pub(super) input: BytesMut,
    pub(super) out: Vec<u8>,
    pub(super) body: Vec<u8>,
}

/// Buffers that connections of HTTP/2 use in their turns.
pub(super) struct H2 {
    pub(super) buffers: Buffers,
    /// The body of an answer that is made on the spot, and the heads of such.
    pub(super) body: RefCell<Vec<u8>>,
    pub(super) heads: RefCell<Heads>,
}

impl Worker {
    pub(super) fn new(index: usize, settings: &Arc<Settings>) -> Self {
        use std::hash::{BuildHasher, Hasher, RandomState};
        let seed = || RandomState::new().build_hasher().finish();
        Self {
            index,
            settings: Arc::clone(settings),
            clock: RefCell::new(Clock::new()),
            watch: Watch::new(settings.options.timeouts, settings.rules.keepalive),
            drain: Cell::new(Drain::No),
            scratch: RefCell::new(Scratch {
                input: BytesMut::with_capacity(READ_BUFFER),
                out: Vec::new(),
                body: Vec::new(),
            }),
            h2: H2 { buffers: Buffers::new(READ_BUFFER), body: RefCell::default(), heads: RefCell::default() },
            count: Cell::new(0),
            seed: seed(),
            random: Cell::new(seed() | 1),
            is_watched: Cell::new(false),
        }
    }

    /// Its number, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// By xorshift: any number is as good as another.
    pub(super) fn random(&self) -> u16 {
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        random as u16
    }

    pub(super) fn stats(&self) -> &Stats {
        &self.settings.stats[self.index]
    }

    /// Starts, with the first connection, the tasks that run beside the connections.
    pub(super) fn start(self: &Rc<Self>, shutdown: &server_runtime::Shutdown) {
        if self.is_watched.replace(true) {
            return;
        }
        // The first request may be answered before the task below has its first turn.
        self.clock.borrow_mut().look();
        let worker = Rc::clone(self);
        tokio::task::spawn_local(async move { worker.watch.run(|| worker.clock.borrow_mut().look()).await });
        let (worker, shutdown) = (Rc::clone(self), shutdown.clone());
        tokio::task::spawn_local(async move {
            shutdown.triggered().await;
            worker.drain.set(Drain::LameDuck);
            worker.watch.wake_all();
            tokio::time::sleep(worker.settings.options.timeouts.lame_duck).await;
            worker.drain.set(Drain::Closing);
            worker.watch.wake_all();
        });
    }

    /// Whether the next answer is to tell where HTTP/3 is, on a connection that has told nobody yet: clients remember it. Such an
    /// answer takes the way of those that have fields of their own.
    #[inline]
    pub(super) fn tells_of_http3(&self, is_secure: bool, has_told: bool) -> bool {
        self.settings.alt_svc.is_some() && is_secure && !has_told
    }

    /// How a plain `GET` is answered on the spot, if it is one of those that are, and needs neither an id nor a line in
    /// the log.
    #[inline]
    pub(super) fn instant<'i>(&self, target: &'i str, has_id: impl FnOnce() -> bool) -> Option<Found<'i>> {
        let found = self.settings.options.instants.find(target)?;
        if has_id() || self.is_sampled() {
            return None;
        }
        Some(found)
    }

    /// The number of a plain `GET` that is answered later without the router, if it is one of those that are, and
    /// neither its fields nor the log need the router; and the coding for its answer. It is under way then. `fields`
    /// gives names and values, the host's among them.
    #[inline]
    pub(super) fn later<'h, I>(&self, target: &str, fields: impl Fn() -> I) -> Option<(u64, Option<Encoding>)>
    where
        I: Iterator<Item = (&'h [u8], &'h [u8])>,
    {
        let options = &self.settings.options;
        let later = options.later.as_ref()?;
        let query = later::query(target, later.path())?;
        let is_plain = |(name, value): (&[u8], &[u8])| match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => later.serves(value),
            _ => later::is_plain(name),
        };
        if !fields().all(is_plain) || self.is_sampled() {
            return None;
        }
        let id = later.ask(query)?;
        let codings = || fields().filter(|(name, _)| name.eq_ignore_ascii_case(b"accept-encoding"));
        let lines = || codings().filter_map(|(_, value)| std::str::from_utf8(value).ok());
        let may_compress = options.compress && codings().next().is_some();
        Some((id, if may_compress { compress::best(lines) } else { None }))
    }

    /// Whether the next request is one that the access log shows.
    #[inline]
    fn is_sampled(&self) -> bool {
        let every = self.settings.options.access_log;
        if every == 0 {
            return false;
        }
        let number = self.count.get() + 1;
        let is_sampled = number.is_multiple_of(every);
        if !is_sampled {
            self.count.set(number);
        }
        is_sampled
    }

    /// Counts what was answered without the router.
    #[inline]
    pub(super) fn count_instant(&self, status: StatusCode) {
        let stats = self.stats();
        stats.instant.add(1);
        stats.response(status);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.drain.get() != Drain::No
    }
}
