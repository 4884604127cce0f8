//! The thread that writes.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, mem};

use super::group::Group;
use super::{Aof, base, lock, policy};
use crate::config::settings;
use crate::exec::clock::now_ms;
use crate::exec::instance::Instance;
use crate::exec::snapshot::Purpose;
use crate::journal::{Reader, User};
use crate::persistence::aof::{Fsync, Log, Writer};

/// How long it gathers what is not waited for, before it writes again.
const GATHER: Duration = Duration::from_millis(1);
/// How often it looks at what grows with time: what is to be forced to disk, whether files are to be rewritten.
const LOOK: Duration = Duration::from_millis(100);
/// Rewrites that may fail one after the other before the next one waits, and for how many seconds at most.
const FAILURES: u64 = 3;
const DELAY_MAX: u64 = 3600;

/// What the keeper is asked to do.
#[derive(Debug)]
pub(super) enum Order {
    /// To write to these files what the journal says from this offset on.
    Keep(Box<Log>, u64),
    /// To make a base, and to write to these files what the journal says from its cut on, if anything is kept.
    Begin(Box<Log>),
    /// To rewrite the files.
    Rewrite,
    /// The base in the making has its cut at this offset, in this database, if what comes there does not say it.
    Cut(u64, Option<usize>),
    /// The base in the making is whole, or will never be.
    Base(io::Result<()>),
    /// To remove what belongs to no state any more.
    RemoveHistory(Sender<()>),
    /// To write no more.
    End(Sender<()>),
    /// To end.
    Leave,
}

pub(super) struct Keeper {
    instance: Arc<Instance>,
    writer: Option<Writer>,
    /// Files that wait for the cut of their first base.
    begun: Option<Box<Log>>,
    rewrite: Rewrite,
    /// When a rewrite may begin by itself again, in milliseconds.
    not_before: u64,
    /// What was taken of the journal and not been passed on, and where it stands there.
    bytes: Vec<u8>,
    at: u64,
    /// What among that is for replicas only.
    apart: Vec<Range<u64>>,
    journal: Reader,
    group: Group,
}

/// How far a rewrite is.
///
/// ```text
/// None ──BGREWRITEAOF, growth, CONFIG SET appendonly yes──▶ Running ──base is whole, file is switched──▶ None
///   ▲                                                          │ ▲
///   │                         CONFIG SET appendonly no, failure│ │ the abandoned base has ended
///   └──────────────────────── Abandoned ◀──────────────────────┘ └── and another one is wanted
/// ```
#[derive(Debug)]
enum Rewrite {
    None,
    Running {
        /// When it began, in milliseconds.
        began: u64,
        is_rdb: bool,
        is_cut: bool,
        is_written: bool,
    },
    /// A base is written that nobody wants any more.
    Abandoned {
        /// Whether another one is wanted behind it.
        again: bool,
    },
}

/// Reads the journal from now on.
fn reader(instance: &Instance) -> Reader {
    let bell = Arc::clone(&instance.aof.bell);
    instance.journal.reader(move || bell.ring())
}

impl Keeper {
    pub(super) fn spawn(instance: Arc<Instance>) -> io::Result<JoinHandle<()>> {
        let journal = reader(&instance);
        let mut keeper = Self {
            instance,
            writer: None,
            begun: None,
            rewrite: Rewrite::None,
            not_before: 0,
            bytes: Vec::new(),
            at: 0,
            apart: Vec::new(),
            journal,
            group: Group::default(),
        };
        thread::Builder::new().name("aof".to_owned()).spawn(move || while keeper.turn() {})
    }

    fn aof(&self) -> &Aof {
        &self.instance.aof
    }

    /// Does what is to be done, and waits for more. False: it is to end.
    fn turn(&mut self) -> bool {
        let bell = &self.instance.aof.bell;
        bell.has_rung.store(false, Release);
        let now = now_ms();
        // Before the orders: of a cut that is among what is taken one is told by then.
        self.apart.clear();
        self.at = self.journal.take(&mut self.bytes, &mut self.apart);
        let orders = mem::take(&mut *lock(&self.aof().orders));
        for order in orders {
            if matches!(order, Order::Leave) {
                return false;
            }
            self.obey(order);
        }
        let began = Instant::now();
        let is_idle = self.write();
        let took = began.elapsed();
        self.look();
        let waited = self.publish(now);
        // Where nothing was written that says nothing of how many come.
        if !is_idle {
            self.group = Group { waited, took };
        }
        let wakes_at_once = policy(&self.instance.config).fsync == Fsync::Always;
        if !is_idle && !wakes_at_once {
            thread::sleep(GATHER);
        } else if !self.aof().bell.has_rung.load(Acquire) {
            thread::park_timeout(LOOK);
        }
        if wakes_at_once && self.aof().bell.has_rung.load(Acquire) {
            self.gather();
        }
        true
    }

    /// Waits until as many clients wait as did when the last write was done, or no more come.
    fn gather(&self) {
        let waiters = &self.instance.aof.waiters;
        let Some(awaited) = self.group.awaited() else { return };
        if waiters.await_all(awaited) {
            return;
        }
        let mut gathering = self.group.gather(Instant::now());
        while waiters.is_awaiting()
            && let Some(left) = gathering.left(Instant::now(), waiters.count())
        {
            thread::park_timeout(left);
        }
        waiters.give_up();
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Keep(log, offset) => self.keep(*log, offset),
            Order::Begin(log) => {
                if matches!(self.rewrite, Rewrite::Running { .. }) {
                    self.rewrite = Rewrite::Abandoned { again: true };
                }
                // The stream may have become another one since; who waits for offsets of the old one looks again.
                self.journal = reader(&self.instance);
                self.instance.aof.waiters.release(u64::MAX, &self.instance.workers);
                self.bytes.clear();
                (self.begun, self.writer) = (Some(log), None);
                self.begin_rewrite();
            }
            Order::Rewrite => self.begin_rewrite(),
            Order::Cut(offset, db) => self.cut(offset, db),
            Order::Base(written) => self.base(written),
            Order::RemoveHistory(done) => {
                if let Some(writer) = &mut self.writer {
                    writer.log().remove_history();
                }
                drop(done);
            }
            Order::End(done) => {
                self.end();
                // Whoever waits for it is told by its end.
                drop(done);
            }
            Order::Leave => {}
        }
    }

    /// Writes what the journal says. Returns whether that was nothing.
    fn write(&mut self) -> bool {
        let Some(writer) = &mut self.writer else { return true };
        let is_idle = self.bytes.is_empty();
        writer.belongs_to(self.instance.replication.name_of_stream(&self.instance));
        if !is_idle {
            thread::sleep(Duration::from_micros(self.instance.aof.delay.load(Relaxed)));
            pass_on((&mut self.bytes, &mut self.apart), self.at, writer);
        }
        let mut policy = policy(&self.instance.config);
        let is_rewriting = matches!(self.rewrite, Rewrite::Running { .. });
        if is_rewriting && self.instance.config.is_on(settings::NO_APPENDFSYNC_ON_REWRITE) {
            policy.fsync = Fsync::No;
        }
        let now = now_ms();
        if let Err(failed) = writer.advance(now, policy) {
            tracing::error!(
                "Can't recover from AOF write error when the AOF fsync policy is 'always': {}. Exiting...",
                failed.0
            );
            std::process::exit(1);
        }
        is_idle
    }

    /// Says what has become of what was taken at `now`. Returns how many clients waited for it, or wait still.
    fn publish(&mut self, now: u64) -> usize {
        let aof = &self.instance.aof;
        let Some(writer) = &mut self.writer else { return 0 };
        let policy = policy(&self.instance.config);
        let is_held_back = policy.fsync == Fsync::No
            || self.instance.config.is_on(settings::NO_APPENDFSYNC_ON_REWRITE)
                && matches!(self.rewrite, Rewrite::Running { .. });
        // Who has switched that off waits for the file alone.
        let durable = if is_held_back { writer.written() } else { writer.durable() };
        let failure = writer.failure().map(str::to_owned);
        if durable > aof.durable.load(Relaxed) {
            aof.durable.store(durable, Release);
            self.instance.replication.serve_waits(&self.instance);
        }
        if durable == writer.end() {
            aof.durable_at.store(now, Relaxed);
        }
        let (size, base_size) = writer.log().sizes();
        aof.figures.size.store(size, Relaxed);
        aof.figures.base_size.store(base_size, Relaxed);
        aof.figures.buffer.store(writer.pending() as u64, Relaxed);
        if failure.is_some() != aof.is_failing() {
            *lock(&aof.failure) = failure.clone().unwrap_or_default();
            aof.is_failing.store(failure.is_some(), Relaxed);
        }
        // Otherwise replies may leave that show more.
        let may_leave = if policy.fsync == Fsync::Always && failure.is_none() { durable } else { u64::MAX };
        aof.waiters.release(may_leave, &self.instance.workers)
    }

    /// Ends a rewrite that can end, and begins one where the files have grown.
    fn look(&mut self) {
        if self.aof().figures.is_scheduled.load(Relaxed) && self.instance.background.running().is_none() {
            self.begin_rewrite();
        }
        let Some(writer) = &mut self.writer else { return };
        if let Rewrite::Running { began, is_rdb, is_cut: true, is_written: true } = self.rewrite {
            let goes_on = self.instance.aof.is_on();
            match writer.switched() {
                Ok(false) => return,
                Ok(true) => match writer.log().adopt(is_rdb, goes_on) {
                    Ok(()) => self.succeed(began),
                    Err(error) => self.fail(&error),
                },
                Err(error) => self.fail(&error),
            }
            return;
        }
        let config = &self.instance.config;
        let (size, base_size) = writer.log().sizes();
        let percent = config.uint(settings::AUTO_AOF_REWRITE_PERCENTAGE);
        let least = config.uint(settings::AUTO_AOF_REWRITE_MIN_SIZE);
        let growth = (u128::from(size) * 100 / u128::from(base_size.max(1))).saturating_sub(100);
        if matches!(self.rewrite, Rewrite::None)
            && percent > 0
            && size > least
            && growth >= u128::from(percent)
            && now_ms() >= self.not_before
        {
            tracing::info!("Starting automatic rewriting of AOF on {growth}% growth");
            self.begin_rewrite();
        }
    }

    fn begin_rewrite(&mut self) {
        match &mut self.rewrite {
            Rewrite::Running { .. } => return,
            Rewrite::Abandoned { again } => return *again = true,
            Rewrite::None => {}
        }
        let (log, is_first) = match (&mut self.writer, &self.begun) {
            (_, Some(log)) => (&**log, true),
            (Some(writer), None) => (&*writer.log(), false),
            (None, None) => {
                self.aof().figures.is_scheduled.store(false, Relaxed);
                return self.set_rewriting(false);
            }
        };
        let (disk, layout) = (Arc::clone(log.disk()), log.layout().clone());
        let instance = Arc::clone(&self.instance);
        let is_rdb = instance.config.is_on(settings::AOF_USE_RDB_PREAMBLE);
        let turns_on = is_first && instance.aof.is_on();
        let cut = move |instance: &Instance| {
            if turns_on {
                instance.journal.set_on(User::Aof, true);
            }
            let (offset, db) = instance.journal.reset_db();
            instance.aof.order(Order::Cut(offset, db));
        };
        let ended = |instance: &Instance, written| instance.aof.order(Order::Base(written));
        if base::begin(&instance, &disk, &layout, is_rdb, cut, ended).is_err() {
            // A snapshot is in the making.
            if !self.aof().figures.is_scheduled.swap(true, Relaxed) {
                tracing::warn!("A snapshot is in the making. An AOF background was scheduled to start when possible.");
            }
            return self.set_rewriting(false);
        }
        self.aof().figures.is_scheduled.store(false, Relaxed);
        self.rewrite = Rewrite::Running { began: now_ms(), is_rdb, is_cut: false, is_written: false };
        self.set_rewriting(true);
        tracing::info!("Background append only file rewriting started");
    }

    /// Writes to these files what the journal says from this offset on.
    fn keep(&mut self, log: Log, offset: u64) {
        self.aof().durable.store(offset, Release);
        self.aof().durable_at.store(now_ms(), Relaxed);
        self.writer = Some(Writer::new(log, offset));
    }

    fn cut(&mut self, offset: u64, db: Option<usize>) {
        let Rewrite::Running { is_cut, .. } = &mut self.rewrite else { return };
        *is_cut = true;
        if let Some(log) = self.begun.take() {
            self.keep(*log, offset);
            if let Some(writer) = &mut self.writer {
                writer.begin_in(db);
            }
        } else if let Some(writer) = &mut self.writer {
            writer.switch_at(offset, db);
        }
    }

    fn base(&mut self, written: io::Result<()>) {
        match (&mut self.rewrite, written) {
            (Rewrite::Running { is_written, .. }, Ok(())) => *is_written = true,
            (Rewrite::Running { .. }, Err(error)) => self.fail(&error),
            (Rewrite::Abandoned { again }, _) => {
                let again = *again;
                self.rewrite = Rewrite::None;
                if again {
                    self.begin_rewrite();
                } else if !self.aof().is_on() {
                    // Its cut may have come later.
                    self.instance.journal.set_on(User::Aof, false);
                }
            }
            (Rewrite::None, _) => {}
        }
    }

    fn succeed(&mut self, began: u64) {
        tracing::info!("Background AOF rewrite finished successfully");
        if !self.instance.config.is_on(settings::AOF_DISABLE_AUTO_GC)
            && let Some(writer) = &mut self.writer
        {
            writer.log().remove_history();
        }
        self.finished(began);
        self.aof().figures.failures.store(0, Relaxed);
        self.not_before = 0;
    }

    fn fail(&mut self, error: &io::Error) {
        tracing::warn!("Background AOF rewrite terminated with error: {error}");
        let Rewrite::Running { began, .. } = self.rewrite else { return };
        self.finished(began);
        let figures = &self.instance.aof.figures;
        let failures = figures.failures.fetch_add(1, Relaxed) + 1;
        if failures >= FAILURES {
            let delay = (60 << (failures - FAILURES).min(10)).min(DELAY_MAX);
            tracing::warn!(
                "AOF rewrites have failed {failures} times, which triggered the limit: none begins by itself for {delay} seconds"
            );
            self.not_before = now_ms() + delay * 1000;
        }
        // Without a base nothing counts that is written: it is tried again.
        let is_listed = self.writer.as_mut().is_some_and(|writer| writer.log().is_listed());
        if self.aof().is_on() && !is_listed && now_ms() >= self.not_before {
            self.begin_rewrite();
        }
    }

    fn finished(&mut self, began: u64) {
        let figures = &self.instance.aof.figures;
        figures.rewrites.fetch_add(1, Relaxed);
        figures.last_seconds.store((now_ms().saturating_sub(began) / 1000) as i64 + 1, Relaxed);
        self.rewrite = Rewrite::None;
        self.set_rewriting(false);
        if !self.aof().is_on()
            && let Some(mut writer) = self.writer.take()
        {
            // A base was wanted, and nothing behind it.
            writer.log().abandon();
        }
    }

    fn set_rewriting(&self, on: bool) {
        let figures = &self.aof().figures;
        figures.is_rewriting.store(on, Relaxed);
        figures.began.store(now_ms() / 1000, Relaxed);
    }

    /// Writes what there is, and no more.
    fn end(&mut self) {
        let instance = Arc::clone(&self.instance);
        instance.journal.set_on(User::Aof, false);
        if matches!(self.rewrite, Rewrite::Running { .. }) {
            tracing::info!("Killing running AOF rewrite child");
            self.instance.background.abort(Purpose::AofBase);
            self.rewrite = Rewrite::Abandoned { again: false };
            self.set_rewriting(false);
        }
        if let Some(log) = &mut self.begun.take() {
            log.abandon();
        }
        if let Some(mut writer) = self.writer.take() {
            writer.belongs_to(instance.replication.name_of_stream(&instance));
            pass_on((&mut self.bytes, &mut self.apart), self.at, &mut writer);
            self.at = self.journal.take(&mut self.bytes, &mut self.apart);
            pass_on((&mut self.bytes, &mut self.apart), self.at, &mut writer);
            if let Err(error) = writer.finish(now_ms(), policy(&instance.config)) {
                tracing::warn!("Fail to fsync the AOF file: {error}");
            }
            writer.log().abandon();
        }
        instance.aof.is_on.store(false, Relaxed);
        instance.aof.figures.is_scheduled.store(false, Relaxed);
        instance.aof.is_failing.store(false, Relaxed);
        instance.aof.durable.store(instance.journal.offset(), Release);
        instance.aof.waiters.release(u64::MAX, &instance.workers);
    }
}

/// Gives what stands at `at` in the journal to who writes it: without what was said before it began to, which is in the base.
fn pass_on((bytes, apart): (&mut Vec<u8>, &mut Vec<Range<u64>>), at: u64, writer: &mut Writer) {
    let before = (writer.end().saturating_sub(at) as usize).min(bytes.len());
    bytes.drain(..before);
    writer.take(bytes, apart);
}
