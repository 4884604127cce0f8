//! The thread that forces files to disk, and begins new ones.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, mem};

use super::group::Group;
use super::lock::lock;
use super::state::{Aof, Order};
use super::{base, now, policy};
use crate::config::settings;
use crate::exec::core::Instance;
use crate::exec::core::clock::now_ms;
use crate::exec::gate::Alone;
use crate::exec::snapshot::Purpose;
use crate::journal::User;
use crate::persistence::aof::Fsync;
use crate::threads::{self, OnPanic};

/// How often the keeper looks at work that grows with time: bytes to write that no client waits for, files to force to disk, files to
/// rewrite.
const LOOK: Duration = Duration::from_millis(100);
/// Rewrites that may fail one after the other before the next one waits, and for how many seconds at most.
const FAILURES: u64 = 3;
const DELAY_MAX: u64 = 3600;
/// How long after a failure a base is tried again without which nothing may be changed, in milliseconds.
const RETRY: u64 = 1000;

pub(super) struct Keeper {
    instance: Arc<Instance>,
    rewrite: Rewrite,
    /// How many rewrites have begun.
    rewrites: u64,
    /// When a rewrite may begin by itself again, in milliseconds of the steady clock.
    not_before: u64,
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
        number: u64,
        is_rdb: bool,
        is_cut: bool,
        is_written: bool,
    },
    /// The base in the making is not needed any more.
    Abandoned {
        /// Whether another one is wanted behind it.
        again: bool,
    },
}

impl Keeper {
    pub(super) fn spawn(instance: Arc<Instance>) -> io::Result<JoinHandle<()>> {
        instance.aof.pen().read(&instance);
        let mut keeper = Self { instance, rewrite: Rewrite::None, rewrites: 0, not_before: 0, group: Group::default() };
        // Without it nothing reaches the disk any more.
        threads::spawn("aof", OnPanic::EndProcess, move || {
            while keeper.turn() {
                threads::panic_point();
            }
        })
    }

    fn aof(&self) -> &Aof {
        &self.instance.aof
    }

    /// Does what is to be done, and waits for more. False: it is to end.
    fn turn(&mut self) -> bool {
        self.aof().bell.has_rung.store(false, Release);
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
        self.aof().review(&self.instance);
        let released = self.aof().release(&self.instance);
        // Where nothing was written that says nothing of how many come.
        if !is_idle {
            self.group = Group { waited: released.waited, took };
        }
        if released.left > 0 {
            // Some may have come while the pen was here.
            self.aof().catch_up(&self.instance);
        }
        if !self.aof().bell.has_rung.load(Acquire) {
            thread::park_timeout(LOOK);
        }
        if policy(&self.instance.config).fsync == Fsync::Always && self.aof().bell.has_rung.load(Acquire) {
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
            Order::Begin(log) => {
                if matches!(self.rewrite, Rewrite::Running { .. }) {
                    self.rewrite = Rewrite::Abandoned { again: true };
                }
                let instance = &self.instance;
                instance.aof.with_pen(instance, |pen| pen.begin(instance, log));
                // Clients that wait for offsets of another stream look again.
                instance.aof.waiters.release(u64::MAX, &instance.workers);
                self.begin_rewrite();
            }
            Order::Rewrite => self.begin_rewrite(),
            Order::Cut(cut) => {
                if let Rewrite::Running { number, is_cut, .. } = &mut self.rewrite
                    && *number == cut
                {
                    *is_cut = true;
                }
            }
            Order::Base(written) => self.base(written),
            Order::RemoveHistory(done) => {
                self.remove_history();
                drop(done);
            }
            Order::End(done) => {
                self.end();
                // Dropping the sender wakes the thread that waits for the end.
                drop(done);
            }
            Order::Leave => {}
        }
    }

    /// Writes what the journal says, and forces it to disk if that is due. Returns whether that was nothing.
    fn write(&self) -> bool {
        let (instance, aof) = (&self.instance, &self.instance.aof);
        if aof.has_writer.load(Relaxed) && aof.written.load(Relaxed) < instance.journal.offset() {
            thread::sleep(Duration::from_micros(aof.delay.load(Relaxed)));
        }
        let mut policy = policy(&instance.config);
        if aof.forces_nothing(instance) {
            policy.fsync = Fsync::No;
        }
        let began = now();
        let (is_idle, sync) = aof.with_pen(instance, |pen| {
            let is_idle = !pen.fill(aof);
            let Some(writer) = &mut pen.writer else { return (true, None) };
            writer.belongs_to(instance.replication.name_of_stream(instance));
            if policy.fsync == Fsync::Always {
                if let Err(failed) = writer.advance_and_sync(began, policy) {
                    tracing::error!(
                        "Can't recover from AOF write error when the AOF fsync policy is 'always': {}. Exiting...",
                        failed.0
                    );
                    std::process::exit(1);
                }
                return (is_idle, None);
            }
            writer.advance(began, policy.timestamps);
            (is_idle, writer.begin_sync(began, policy.fsync))
        });
        if let Some(sync) = sync {
            // Clients that wait for write(2) only go on during the sync, and so do writes.
            aof.review(instance);
            aof.release(instance);
            let synced = sync.run();
            if synced.is_ok() {
                aof.durable_at.store(began.steady, Relaxed);
            }
            aof.with_pen(instance, |pen| {
                if let Some(writer) = &mut pen.writer {
                    writer.end_sync(&sync, synced, now());
                }
            });
        }
        is_idle
    }

    /// Ends a rewrite that can end, and begins one where the files have grown.
    fn look(&mut self) {
        if self.aof().figures.is_scheduled.load(Relaxed) && self.instance.background.running().is_none() {
            self.begin_rewrite();
        }
        if let Rewrite::Running { began, is_rdb, is_cut: true, is_written: true, .. } = self.rewrite {
            return self.adopt(began, is_rdb);
        }
        let mut pen = self.aof().pen();
        let Some(writer) = &mut pen.writer else { return };
        let needs_base = writer.needs_base();
        let (size, base_size) = writer.log().sizes();
        drop(pen);
        if needs_base {
            return self.replace_torn();
        }
        let config = &self.instance.config;
        let percent = config.uint(settings::AUTO_AOF_REWRITE_PERCENTAGE);
        let least = config.uint(settings::AUTO_AOF_REWRITE_MIN_SIZE);
        let growth = (u128::from(size) * 100 / u128::from(base_size.max(1))).saturating_sub(100);
        if matches!(self.rewrite, Rewrite::None)
            && percent > 0
            && size > least
            && growth >= u128::from(percent)
            && now().steady >= self.not_before
        {
            tracing::info!("Starting automatic rewriting of AOF on {growth}% growth");
            self.begin_rewrite();
        }
    }

    /// The base is whole, and its cut is made: it takes its place once what is behind it goes to the next file.
    fn adopt(&mut self, began: u64, is_rdb: bool) {
        let instance = &self.instance;
        let goes_on = instance.aof.is_on();
        let adopted = instance.aof.with_pen(instance, |pen| {
            let Some(writer) = &mut pen.writer else { return Ok(false) };
            Ok(writer.switched()? && writer.adopt(is_rdb, goes_on, now()).map(|()| true)?)
        });
        match adopted {
            Ok(false) => {}
            Ok(true) => self.succeed(began),
            Err(error) => self.fail(&error),
        }
    }

    /// A file could not be forced to disk, so nothing in it can be relied on: a new base takes its place. Nothing is changed meanwhile.
    fn replace_torn(&mut self) {
        if matches!(self.rewrite, Rewrite::None) && now().steady >= self.not_before {
            tracing::warn!(
                "The append-only file could not be forced to disk: a new base is written, and writes are refused until it is there"
            );
            // Should it fail at once.
            self.not_before = now().steady + RETRY;
            self.begin_rewrite();
        }
    }

    fn begin_rewrite(&mut self) {
        match &mut self.rewrite {
            Rewrite::Running { .. } => return,
            Rewrite::Abandoned { again } => return *again = true,
            Rewrite::None => {}
        }
        let number = self.rewrites + 1;
        let Some((disk, layout, is_first)) = self.instance.aof.pen().await_cut(number) else {
            self.aof().figures.is_scheduled.store(false, Relaxed);
            return self.set_rewriting(false);
        };
        let instance = Arc::clone(&self.instance);
        let is_rdb = instance.config.is_on(settings::AOF_USE_RDB_PREAMBLE);
        let turns_on = is_first && instance.aof.is_on();
        let cut = move |instance: &Instance, alone: &Alone| {
            if turns_on {
                instance.journal.turn_on(User::Aof, alone);
            }
            instance.aof.cut(instance, number, alone);
        };
        let ended = |instance: &Instance, written| instance.aof.order(Order::Base(written));
        if base::begin(&instance, &disk, &layout, is_rdb, cut, ended).is_err() {
            // A snapshot is in the making.
            if !self.aof().figures.is_scheduled.swap(true, Relaxed) {
                tracing::warn!("A snapshot is in the making. An AOF background was scheduled to start when possible.");
            }
            return self.set_rewriting(false);
        }
        self.rewrites = number;
        self.aof().figures.is_scheduled.store(false, Relaxed);
        self.rewrite = Rewrite::Running { began: now_ms(), number, is_rdb, is_cut: false, is_written: false };
        self.set_rewriting(true);
        tracing::info!("Background append only file rewriting started");
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
                    self.instance.journal.turn_off(User::Aof);
                }
            }
            (Rewrite::None, _) => {}
        }
    }

    fn succeed(&mut self, began: u64) {
        tracing::info!("Background AOF rewrite finished successfully");
        if !self.instance.config.is_on(settings::AOF_DISABLE_AUTO_GC) {
            self.remove_history();
        }
        self.finished(began);
        self.aof().figures.failures.store(0, Relaxed);
        self.not_before = 0;
    }

    fn remove_history(&self) {
        let removed = self.aof().pen().writer.as_mut().map(|writer| writer.log().remove_history());
        // Their blocks are freed here, where no thread waits for the pen.
        drop(removed);
    }

    fn fail(&mut self, error: &io::Error) {
        tracing::warn!("Background AOF rewrite terminated with error: {error}");
        let Rewrite::Running { began, .. } = self.rewrite else { return };
        self.finished(began);
        let (is_listed, needs_base) = match &mut self.aof().pen().writer {
            Some(writer) => (writer.log().is_listed(), writer.needs_base()),
            None => (false, false),
        };
        let failures = self.aof().figures.failures.fetch_add(1, Relaxed) + 1;
        if needs_base {
            // Clients wait for this base: it is tried again soon.
            self.not_before = now().steady + RETRY;
        } else if failures >= FAILURES {
            let delay = (60 << (failures - FAILURES).min(10)).min(DELAY_MAX);
            tracing::warn!(
                "AOF rewrites have failed {failures} times, which triggered the limit: none begins by itself for {delay} seconds"
            );
            self.not_before = now().steady + delay * 1000;
        }
        // Without a base nothing counts that is written: it is tried again.
        if self.aof().is_on() && !is_listed && now().steady >= self.not_before {
            self.begin_rewrite();
        }
    }

    fn finished(&mut self, began: u64) {
        let figures = &self.instance.aof.figures;
        figures.rewrites.fetch_add(1, Relaxed);
        figures.last_seconds.store((now_ms().saturating_sub(began) / 1000) as i64 + 1, Relaxed);
        self.rewrite = Rewrite::None;
        self.set_rewriting(false);
        let instance = &self.instance;
        if !instance.aof.is_on()
            && let Some(mut writer) = instance.aof.with_pen(instance, |pen| pen.writer.take())
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
        instance.journal.turn_off(User::Aof);
        if matches!(self.rewrite, Rewrite::Running { .. }) {
            tracing::info!("Killing running AOF rewrite child");
            self.instance.background.abort(Purpose::AofBase);
            self.rewrite = Rewrite::Abandoned { again: false };
            self.set_rewriting(false);
        }
        instance.aof.with_pen(&instance, |pen| {
            if let Some(mut writer) = pen.end(&instance.aof) {
                writer.belongs_to(instance.replication.name_of_stream(&instance));
                if let Err(error) = writer.finish(now(), policy(&instance.config).timestamps) {
                    tracing::warn!("Fail to fsync the AOF file: {error}");
                }
                writer.log().abandon();
            }
        });
        instance.aof.is_on.store(false, Relaxed);
        instance.aof.figures.is_scheduled.store(false, Relaxed);
        instance.aof.is_failing.store(false, Relaxed);
        instance.aof.durable.store(instance.journal.offset(), Release);
        instance.aof.review(&instance);
        instance.aof.waiters.release(u64::MAX, &instance.workers);
    }
}
