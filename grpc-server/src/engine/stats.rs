//! A worker's counts, by method and code. Its thread alone writes them; any thread that asks for the figures reads
//! them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serve::Count;
use server_runtime::metrics::{family, sample};
use tonic::Code;

/// Codes that gRPC has, 0 to 16.
const CODES: usize = 17;

/// Their names, as gRPC writes them.
const CODE_NAMES: [&str; CODES] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Upper ends of the durations' buckets: from the time of a handler without I/O to one beyond any client's patience.
const BOUNDS: [Duration; 13] = [
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(10),
];

/// The name of a code.
pub(super) fn name_of(code: Code) -> &'static str {
    CODE_NAMES[code as usize]
}

/// The bucket of a duration.
#[inline]
pub(super) fn bucket(duration: Duration) -> usize {
    BOUNDS.partition_point(|bound| *bound < duration)
}

/// The figures of one method on one worker.
#[derive(Default)]
pub(super) struct MethodStats {
    codes: [Count; CODES],
    buckets: [Count; BOUNDS.len() + 1],
    nanoseconds: Count,
}

impl MethodStats {
    #[inline]
    pub(super) fn ended(&self, code: Code) {
        self.codes[code as usize].add(1);
    }

    #[inline]
    pub(super) fn took(&self, duration: Duration, bucket: usize) {
        self.buckets[bucket].add(1);
        self.nanoseconds.add(duration.as_nanos() as u64);
    }
}

/// The figures of one worker.
#[derive(Default)]
pub(super) struct Stats {
    /// By path, in the order in which the methods were seen.
    methods: Mutex<Vec<(Box<str>, Arc<MethodStats>)>>,
    pub(super) figures: Figures,
}

/// Those that are not of a method.
#[derive(Default)]
pub(super) struct Figures {
    /// Calls that wait for something.
    pub(super) waiting: Count,
    /// Calls refused because too many waited.
    pub(super) shed: Count,
    pub(super) panics: Count,
    /// Calls given up by their clients.
    pub(super) given_up: Count,
    /// Calls of browsers, over HTTP/1.1 and HTTP/2.
    pub(super) web: Count,
    /// Calls by Connect.
    pub(super) connect: Count,
}

impl Stats {
    /// The figures of a method that is new on this worker.
    pub(super) fn method(&self, path: &str) -> Arc<MethodStats> {
        let stats = Arc::<MethodStats>::default();
        // A push is whole or absent, so a panic elsewhere does no harm here.
        let mut methods = self.methods.lock().unwrap_or_else(PoisonError::into_inner);
        methods.push((path.into(), Arc::clone(&stats)));
        stats
    }
}

/// Reads one figure.
type Figure = fn(&Figures) -> &Count;

const FIGURES: [(&str, &str, &str, Figure); 6] = [
    ("grpc_server_waiting_calls", "Calls that wait for something.", "gauge", |figures| &figures.waiting),
    ("grpc_server_shed_total", "Calls refused because too many waited.", "counter", |figures| &figures.shed),
    ("grpc_server_panics_total", "Handlers that panicked.", "counter", |figures| &figures.panics),
    ("grpc_server_given_up_total", "Calls cancelled by their clients.", "counter", |figures| &figures.given_up),
    ("grpc_server_connect_calls_total", "Calls by Connect.", "counter", |figures| &figures.connect),
    ("grpc_server_web_calls_total", "Calls by gRPC-Web.", "counter", |figures| &figures.web),
];

/// Reads one figure of the engine.
type OfEngine = fn(&serve::Stats) -> u64;

/// Appends the engine's figures.
pub(super) fn render_engine(workers: &[serve::Stats], out: &mut String) {
    let figures: [(&str, &str, OfEngine); 2] = [
        ("grpc_server_timeouts_total", "Connections whose client did not answer.", serve::Stats::timeouts),
        ("grpc_server_floods_total", "Connections closed for too many control frames.", serve::Stats::floods),
    ];
    for (name, help, figure) in figures {
        family(out, name, help, "counter");
        sample(out, name, &[], workers.iter().map(figure).sum::<u64>() as f64);
    }
}

/// Appends the sum over all workers.
pub(super) fn render(workers: &[Stats], out: &mut String) {
    let mut methods: BTreeMap<Box<str>, Vec<Arc<MethodStats>>> = BTreeMap::new();
    for worker in workers {
        for (path, stats) in &*worker.methods.lock().unwrap_or_else(PoisonError::into_inner) {
            methods.entry(path.clone()).or_default().push(Arc::clone(stats));
        }
    }
    let name = "grpc_server_handled_total";
    family(out, name, "Calls, by method and code.", "counter");
    for (path, stats) in &methods {
        let (service, method) = names(path);
        for (code, label) in CODE_NAMES.iter().enumerate() {
            let count: u64 = stats.iter().map(|stats| stats.codes[code].get()).sum();
            if count > 0 {
                let labels = [("grpc_service", service), ("grpc_method", method), ("grpc_code", label)];
                sample(out, name, &labels, count as f64);
            }
        }
    }
    let name = "grpc_server_handling_seconds";
    family(out, name, "Time from the arrival of a call to the end of its response.", "histogram");
    for (path, stats) in &methods {
        durations(out, name, names(path), stats);
    }
    for (name, help, kind, figure) in FIGURES {
        family(out, name, help, kind);
        let sum = workers.iter().map(|stats| figure(&stats.figures).get()).fold(0, u64::wrapping_add);
        sample(out, name, &[], sum as f64);
    }
}

fn durations(out: &mut String, name: &str, (service, method): (&str, &str), stats: &[Arc<MethodStats>]) {
    let labels = [("grpc_service", service), ("grpc_method", method)];
    let bounds = BOUNDS.iter().map(|bound| bound.as_secs_f64().to_string()).chain(["+Inf".to_owned()]);
    let mut total = 0;
    for (at, bound) in bounds.enumerate() {
        total += stats.iter().map(|stats| stats.buckets[at].get()).sum::<u64>();
        sample(out, &format!("{name}_bucket"), &[&labels[..], &[("le", &bound)]].concat(), total as f64);
    }
    let nanoseconds: u64 = stats.iter().map(|stats| stats.nanoseconds.get()).sum();
    sample(out, &format!("{name}_sum"), &labels, nanoseconds as f64 / 1e9);
    sample(out, &format!("{name}_count"), &labels, total as f64);
}

/// Service and method of a path.
fn names(path: &str) -> (&str, &str) {
    path.trim_start_matches('/').split_once('/').unwrap_or((path, ""))
}
