//! Records of single calls: the logs of slow and large ones, latency events, and the clients of MONITOR.
//!
//! All together cost a quick command one comparison, its duration with [`Observers::threshold`], and a window two, its bytes
//! with [`Observers::large`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::hotkeys::HotKeys;
use crate::clients::client::{ClientShared, flag};
use crate::clients::output_limit::post;
use crate::cluster::slot_of;
use crate::command::{Args, Flags, Footprint, Role, Row};
use crate::config::{Config, Flags as SettingFlags, Id, Number, settings};

/// Arguments of a call that a log keeps.
const MAX_ARGS: usize = 32;
/// Bytes of an argument that a log keeps.
const MAX_ARG: usize = 128;
/// Samples that a latency event keeps.
const MAX_SAMPLES: usize = 160;
/// Below this threshold, commands of a window are timed one by one.
const SINGLE_BELOW_NANOS: u64 = 1_000_000;
/// The replacement for a secret.
const REDACTED: &[u8] = b"(redacted)";

/// One call in a log.
#[derive(Clone, Debug)]
pub struct LoggedCall {
    /// Number in its log, counted since the start.
    pub id: u64,
    /// When it ended, in seconds of Unix time.
    pub time: u64,
    /// The logged measure: microseconds in the slow log, bytes in the others.
    pub amount: u64,
    /// The call, shortened.
    pub args: Vec<Bytes>,
    /// Address of the client.
    pub addr: String,
    /// Name of the client.
    pub name: String,
}

/// The logs of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Slow calls.
    Slow,
    /// Calls with a large request.
    LargeRequest,
    /// Calls with a large reply.
    LargeReply,
}

impl Log {
    /// In the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Slow, Self::LargeRequest, Self::LargeReply];

    /// The settings that say from which amount on a call is in it, and how many are kept.
    const fn settings(self) -> (Number, Number) {
        match self {
            Self::Slow => (settings::SLOWLOG_LOG_SLOWER_THAN, settings::SLOWLOG_MAX_LEN),
            Self::LargeRequest => {
                (settings::COMMANDLOG_REQUEST_LARGER_THAN, settings::COMMANDLOG_LARGE_REQUEST_MAX_LEN)
            }
            Self::LargeReply => (settings::COMMANDLOG_REPLY_LARGER_THAN, settings::COMMANDLOG_LARGE_REPLY_MAX_LEN),
        }
    }

    /// From which amount on a call is in it; none is if that is negative.
    fn limit(self, config: &Config) -> u64 {
        u64::try_from(config.int(self.settings().0)).unwrap_or(u64::MAX)
    }
}

/// The samples of one latency event.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Seconds of Unix time and milliseconds, the oldest first; at most one sample per second.
    pub samples: VecDeque<(u64, u64)>,
    /// The longest ever.
    pub max: u64,
    /// Of all events ever, in milliseconds.
    pub sum: u64,
    /// How many there were.
    pub count: u64,
}

#[derive(Debug, Default)]
struct Calls {
    calls: VecDeque<LoggedCall>,
    next: u64,
}

/// Everything that is recorded of single calls.
#[derive(Debug)]
pub struct Observers {
    threshold: AtomicU64,
    /// Bytes from which a request and a reply are large.
    large: [AtomicU64; 2],
    logs: [Mutex<Calls>; 3],
    events: Mutex<BTreeMap<&'static str, Series>>,
    monitors: Mutex<Vec<Arc<ClientShared>>>,
    /// Which keys cost most. A caller that starts or stops the session must then call [`Observers::refresh`].
    pub hot_keys: HotKeys,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observers {
    /// Nothing recorded yet.
    pub fn new(config: &Config) -> Self {
        let new = Self {
            threshold: AtomicU64::new(u64::MAX),
            large: [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)],
            logs: Default::default(),
            events: Mutex::default(),
            monitors: Mutex::default(),
            hot_keys: HotKeys::default(),
        };
        new.refresh(config);
        new
    }

    /// Follows a change of the settings, or of the clients that monitor.
    pub fn refresh(&self, config: &Config) {
        let slow = Log::Slow.limit(config).saturating_mul(1000);
        let latency = Some(config.uint(settings::LATENCY_MONITOR_THRESHOLD)).filter(|&ms| ms > 0);
        let latency = latency.map_or(u64::MAX, |ms| ms.saturating_mul(1_000_000));
        let all = self.hot_keys.is_active();
        let threshold = if lock(&self.monitors).is_empty() && !all { slow.min(latency) } else { 0 };
        self.threshold.store(threshold, Relaxed);
        for (large, log) in self.large.iter().zip([Log::LargeRequest, Log::LargeReply]) {
            large.store(if all { 0 } else { log.limit(config) }, Relaxed);
        }
        for log in Log::ALL {
            lock(&self.logs[log as usize]).calls.truncate(config.size(log.settings().1));
        }
    }

    /// Nanoseconds from which a call must be looked at.
    #[inline]
    pub fn threshold(&self) -> u64 {
        self.threshold.load(Relaxed)
    }

    /// Whether the calls of a window must be timed one by one.
    #[inline]
    pub fn one_by_one(&self) -> bool {
        self.threshold() < SINGLE_BELOW_NANOS
    }

    /// Bytes from which a request, and a reply, are recorded.
    #[inline]
    pub fn large(&self) -> [u64; 2] {
        [self.large[0].load(Relaxed), self.large[1].load(Relaxed)]
    }

    /// Records a call whose request or reply is large.
    #[cold]
    pub fn record_size(&self, config: &Config, client: &ClientShared, call: Measured<'_>, now: u64) {
        let Measured { row, args, request, reply, by_script } = call;
        if self.hot_keys.is_active() && !runs_others(row) {
            self.hot_keys.moved(&keys(row, args), args.request_len() as u64 + reply, now);
        }
        if row.command.flags.has(Flags::SKIP_SLOWLOG) {
            return;
        }
        let [large_request, large_reply] = [Log::LargeRequest, Log::LargeReply].map(|log| log.limit(config));
        if request >= large_request && request > 0 {
            self.push(config, Log::LargeRequest, (client, by_script), (row, args), request, now);
        }
        if reply >= large_reply {
            self.push(config, Log::LargeReply, (client, by_script), (row, args), reply, now);
        }
    }

    /// Records a call that passed the threshold; `now` in milliseconds of Unix time.
    #[cold]
    pub fn record(&self, config: &Config, client: &ClientShared, call: Observed<'_>, now: u64) {
        let Observed { row, args, nanos, by_script } = call;
        if self.hot_keys.is_active() && !runs_others(row) {
            self.hot_keys.took(&keys(row, args), nanos, now);
        }
        let micros = nanos / 1000;
        let is_slow = micros >= Log::Slow.limit(config);
        if is_slow && !row.command.flags.has(Flags::SKIP_SLOWLOG) {
            self.push(config, Log::Slow, (client, by_script), (row, args), micros, now);
        }
        let event = if row.command.flags.has(Flags::FAST) { "fast-command" } else { "command" };
        self.latency(config, event, micros / 1000, now);
    }

    fn push(
        &self,
        config: &Config,
        log: Log,
        (client, by_script): (&ClientShared, bool),
        (row, args): (&Row, Args<'_>),
        amount: u64,
        now: u64,
    ) {
        let addr = if by_script && !config.level().is_valkey() { "?:0" } else { &client.addr };
        let (addr, name) = (addr.to_owned(), client.labels().name.clone());
        let mut calls = lock(&self.logs[log as usize]);
        let id = calls.next;
        calls.next += 1;
        calls.calls.push_front(LoggedCall { id, time: now / 1000, amount, args: shortened(row, args), addr, name });
        calls.calls.truncate(config.size(log.settings().1));
    }

    /// The calls in a log, the latest first.
    pub fn calls(&self, log: Log, most: usize) -> Vec<LoggedCall> {
        lock(&self.logs[log as usize]).calls.iter().take(most).cloned().collect()
    }

    /// Length of a log.
    pub fn len(&self, log: Log) -> usize {
        lock(&self.logs[log as usize]).calls.len()
    }

    /// Empties a log.
    pub fn reset(&self, log: Log) {
        lock(&self.logs[log as usize]).calls.clear();
    }

    /// Records a latency event of `ms` milliseconds if that reaches the threshold.
    pub fn latency(&self, config: &Config, event: &'static str, ms: u64, now: u64) {
        let threshold = config.uint(settings::LATENCY_MONITOR_THRESHOLD);
        if threshold == 0 || ms < threshold {
            return;
        }
        let mut events = lock(&self.events);
        let series = events.entry(event).or_default();
        series.max = series.max.max(ms);
        series.sum += ms;
        series.count += 1;
        let second = now / 1000;
        if let Some((time, last)) = series.samples.back_mut()
            && *time == second
        {
            *last = ms.max(*last);
            return;
        }
        if series.samples.len() == MAX_SAMPLES {
            series.samples.pop_front();
        }
        series.samples.push_back((second, ms));
    }

    /// The latency events by name.
    pub fn events(&self) -> BTreeMap<&'static str, Series> {
        lock(&self.events).clone()
    }

    /// Forgets the events that `wanted` names; returns how many there were.
    pub fn reset_events(&self, wanted: impl Fn(&str) -> bool) -> usize {
        let mut events = lock(&self.events);
        let before = events.len();
        events.retain(|event, _| !wanted(event));
        before - events.len()
    }

    /// From now on the client is shown every command.
    pub fn add_monitor(&self, config: &Config, client: &Arc<ClientShared>) {
        lock(&self.monitors).push(Arc::clone(client));
        self.refresh(config);
    }

    /// The client is gone, or wants no more commands.
    pub fn remove_monitor(&self, config: &Config, id: u64) {
        lock(&self.monitors).retain(|client| client.id != id);
        self.refresh(config);
    }

    /// Whether anybody monitors.
    pub fn has_monitors(&self) -> bool {
        !lock(&self.monitors).is_empty()
    }

    /// Shows a call to the clients that monitor, at `micros` of Unix time: MONITOR's lines have microseconds.
    pub fn show(&self, config: &Config, client: &ClientShared, call: Shown<'_>, micros: u64) {
        let Shown { row, args, db, by_script } = call;
        let monitors = lock(&self.monitors);
        if monitors.is_empty() {
            return;
        }
        let mut line = format!("+{}.{:06} [{db} ", micros / 1_000_000, micros % 1_000_000).into_bytes();
        if by_script {
            line.extend_from_slice(b"lua");
        } else if client.has_flag(flag::UNIX) {
            line.extend_from_slice(b"unix:");
            line.extend_from_slice(&config.text(settings::UNIXSOCKET));
        } else {
            line.extend_from_slice(client.addr.as_bytes());
        }
        line.push(b']');
        for (at, arg) in args.iter().enumerate() {
            line.push(b' ');
            quote(&mut line, if is_secret(row, args, at) { REDACTED } else { arg });
        }
        line.extend_from_slice(b"\r\n");
        let line = Bytes::from(line);
        monitors.iter().for_each(|monitor| post(config, monitor, line.clone()));
    }
}

/// A call that MONITOR shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The command.
    pub row: &'static Row,
    /// With what.
    pub args: Args<'a>,
    /// Number of the client's database.
    pub db: usize,
    /// Whether a script has called it.
    pub by_script: bool,
}

/// A call that has run.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The command.
    pub row: &'static Row,
    /// With what.
    pub args: Args<'a>,
    /// How long it took.
    pub nanos: u64,
    /// Whether a script has called it.
    pub by_script: bool,
}

/// A call that has run, and how large it was, in bytes as they are sent.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// The command.
    pub row: &'static Row,
    /// With what.
    pub args: Args<'a>,
    /// Its request; 0 if it has come with another one.
    pub request: u64,
    /// Its reply.
    pub reply: u64,
    /// Whether a script has called it.
    pub by_script: bool,
}

/// Whether a call is made of others, scripts' and transactions': they are accounted for one by one.
fn runs_others(row: &Row) -> bool {
    row.command.role == Role::Exec || matches!(row.command.footprint, Footprint::Alone)
}

/// The keys of a call, with their slots.
fn keys<'a>(row: &Row, args: Args<'a>) -> Vec<(&'a [u8], u16)> {
    row.command.key_positions(args).iter().map(|(at, _)| (args.at(*at), slot_of(args.at(*at)))).collect()
}

/// The arguments as the logs keep them.
fn shortened(row: &Row, args: Args<'_>) -> Vec<Bytes> {
    let kept = if args.len() > MAX_ARGS { MAX_ARGS - 1 } else { args.len() };
    let mut short: Vec<Bytes> = (0..kept)
        .map(|at| match args.at(at) {
            _ if is_secret(row, args, at) => Bytes::from_static(REDACTED),
            arg if arg.len() > MAX_ARG => {
                let note = format!("... ({} more bytes)", arg.len() - MAX_ARG);
                [&arg[..MAX_ARG], note.as_bytes()].concat().into()
            }
            arg => Bytes::copy_from_slice(arg),
        })
        .collect();
    if kept < args.len() {
        short.push(format!("... ({} more arguments)", args.len() - kept).into());
    }
    short
}

/// Whether an argument must not be shown to others.
fn is_secret(row: &Row, args: Args<'_>, at: usize) -> bool {
    match row.command.role {
        Role::Auth => at > 0,
        Role::Migrate => {
            const OPTIONS: usize = 6;
            (OPTIONS..at)
                .any(|word| args.is(word, "AUTH") && at - word == 1 || args.is(word, "AUTH2") && at - word <= 2)
        }
        Role::Hello => (1..at).any(|word| args.is(word, "AUTH") && at - word <= 2),
        Role::ConfigSet => {
            let is_sensitive = |id: Id| id.setting().flags.has(SettingFlags::SENSITIVE);
            at > 2 && at % 2 == 1 && Id::find(args.at(at - 1)).is_some_and(is_sensitive)
        }
        Role::Users => at > 1,
        _ => false,
    }
}

/// Appends bytes in double quotes, with escapes for what is not printable.
fn quote(line: &mut Vec<u8>, bytes: &[u8]) {
    line.push(b'"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            7 => line.extend_from_slice(b"\\a"),
            8 => line.extend_from_slice(b"\\b"),
            b' '..=b'~' => line.push(byte),
            _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    line.push(b'"');
}
