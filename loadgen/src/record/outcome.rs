//! The result of a run, as it is kept in records and shown to people.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Failure, FailureCount, Iterations, Latencies, Openings, Operation, Sealed};

/// The result of a run. All times are seconds, all sizes bytes, unless a name says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The run in words: protocol, address, load, and every setting that is not the default.
    pub description: String,
    /// The settings by name, so that a run can be repeated (among them `seed`).
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// How it ended.
    pub ending: Ending,
    /// Measured time, from the end of the warm-up. It ends with the window. A run of a number of requests, or an open
    /// loop that the server cannot keep up with, ends with the last answer. In a closed loop whose answers take long
    /// compared with the window, it is the time that the counted answers stand for.
    pub seconds: f64,
    /// By operation, in the order of the mix.
    pub operations: Vec<Operation>,
    /// The figures that another program prints of its run, which has no `operations` then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
    /// The kinds of failures that occurred.
    pub failures: Vec<FailureCount>,
    /// How often each status was answered, in HTTP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<StatusCount>,
    /// How many requests per second were to be sent, in an open loop.
    pub offered_per_second: Option<f64>,
    /// Bytes read and written, with the warm-up's.
    pub bytes_received: u64,
    /// See `bytes_received`.
    pub bytes_sent: u64,
    /// Messages that subscribers received, in a run of pub/sub; its `operations` are the answers to publishers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<Box<Deliveries>>,
    /// Iterations, in a run of flows; its `operations` are their steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<Box<Iterations>>,
    /// How often servers sent requests on to others, where each request has its own server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects: Option<Redirects>,
    /// How long connections took to open, up to the first byte of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openings: Option<Box<Openings>>,
    /// How evenly the connections were served.
    pub fairness: Fairness,
    /// The generator's own use.
    pub generator: Generator,
    /// The server's use, if its process is known.
    pub server: Option<ServerUse>,
    /// The run in pieces of one second.
    pub timeline: Vec<Interval>,
    /// Notes for readers: "generator-bound", "server process not found", …
    pub notes: Vec<String>,
}

/// Answers of one status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCount {
    /// HTTP's status.
    pub status: u16,
    /// How many.
    pub count: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// As planned.
    Complete,
    /// By the user; what there was is here.
    Interrupted,
    /// The target could not be used; the reason.
    Failed(String),
}

/// The figures that another program prints of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// Right answers.
    pub answers: u64,
    /// The median latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// The latency that 99 of 100 do not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
}

impl Told {
    /// Nothing but a count.
    #[must_use]
    pub fn count(answers: u64) -> Self {
        Self { answers, p50: None, p99: None }
    }
}

/// Messages of pub/sub on their way from publishers to subscribers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Deliveries {
    /// From the time at which a message was due to be published until a subscriber had it; once for each of them.
    pub latencies: Latencies,
    /// How many there are by what the server said to publishers.
    pub promised: u64,
    /// How many there were, right or wrong.
    pub arrived: u64,
}

/// Redirections by a cluster's servers. A redirected request counts once as an answer, from its intended time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirects {
    /// MOVED: another server has the slot.
    pub moved: u64,
    /// ASK: another server has this key already, while the slot is being moved.
    pub asked: u64,
    /// How many slots were seen to change their server.
    pub slots: u64,
}

/// Answers, right and wrong, of the connection with the fewest and with the most, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fairness {
    /// The fewest.
    pub least: u64,
    /// The most.
    pub most: u64,
}

/// CPU time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// In the program.
    pub user: f64,
    /// In the kernel on its behalf.
    pub system: f64,
}

impl Cpu {
    /// Both.
    #[must_use]
    pub fn total(self) -> f64 {
        self.user + self.system
    }
}

/// The generator's use while it measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// CPU time of its threads that make load.
    pub cpu: Cpu,
    /// CPU time by wall time of its busiest thread, 0 to 1.
    pub busiest_thread: f64,
    /// Resident memory at the end, bytes.
    pub resident_bytes: u64,
    /// When its threads were not let run, though they had something to do.
    #[serde(default, skip_serializing_if = "Stalls::is_none")]
    pub stalls: Stalls,
}

/// Times in which the generator was stopped: by a signal, by the hypervisor, by a limit of its control group, or by other
/// programs on its processors. Latencies of such a time are the generator's, not the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// How many, in the thread that had the most.
    pub count: u64,
    /// How long they were together, in the thread that was stopped longest.
    pub seconds: f64,
    /// The longest one.
    pub longest: f64,
}

impl Stalls {
    /// Adds one.
    pub(crate) fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.seconds += seconds;
        self.longest = self.longest.max(seconds);
    }

    /// The worst of two threads.
    pub(crate) fn worst(self, other: Self) -> Self {
        Self {
            count: self.count.max(other.count),
            seconds: self.seconds.max(other.seconds),
            longest: self.longest.max(other.longest),
        }
    }

    /// Whether there was none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.count == 0
    }
}

/// The use of the server's process while it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    /// Its process; 0 where a cgroup stands for it.
    pub pid: u32,
    /// How many further processes are counted in: one for each further server.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub others: u32,
    /// CPU time of all its threads.
    pub cpu: Cpu,
    /// Resident memory at the end, bytes.
    pub resident_bytes: u64,
    /// The most resident memory seen, bytes.
    pub peak_resident_bytes: u64,
    /// Context switches because it waited.
    pub voluntary_switches: u64,
    /// Context switches because its time was up.
    pub involuntary_switches: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One second of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began, from the beginning of the measurement.
    pub start: f64,
    /// How long it was.
    pub seconds: f64,
    /// Right answers.
    pub latencies: Sealed,
    /// Failures of any kind.
    pub failures: u64,
    /// The server in this time.
    pub server: Option<ServerInterval>,
}

/// A server in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerInterval {
    /// CPU time by wall time: 2 is two processors.
    pub processors: f64,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
}

impl Outcome {
    /// All operations together.
    #[must_use]
    pub fn latencies(&self) -> Latencies {
        let mut all = Latencies::new();
        for operation in &self.operations {
            all.merge(&operation.latencies);
        }
        all
    }

    /// The latencies that a run is about: of deliveries where there are some, else of all operations.
    #[must_use]
    pub fn main_latencies(&self) -> Latencies {
        self.deliveries.as_ref().map_or_else(|| self.latencies(), |deliveries| deliveries.latencies.clone())
    }

    /// How long the requests took that failed, until they did.
    #[must_use]
    pub fn failed_latencies(&self) -> Latencies {
        let mut all = Latencies::new();
        for latencies in self.failures.iter().filter_map(|failure| failure.latencies.as_ref()) {
            all.merge(latencies);
        }
        all
    }

    /// The latency that `percent` of all requests do not exceed, where a request that failed is slower than every answer;
    /// nothing where that one failed, or there was none.
    #[must_use]
    pub fn percentile_of_all(&self, percent: f64) -> Option<Duration> {
        let latencies = self.main_latencies();
        let answers = latencies.count();
        let all = answers + self.failed_latencies().count() + self.failures_of(Failure::Undelivered);
        let rank = ((percent / 100.0 * all as f64).ceil() as u64).clamp(1, all.max(1));
        (rank <= answers).then(|| latencies.percentile(100.0 * (rank as f64 - 0.5) / answers as f64))
    }

    /// Right answers.
    #[must_use]
    pub fn answers(&self) -> u64 {
        let own = self.operations.iter().map(|operation| operation.latencies.count());
        self.told.map_or(0, |told| told.answers) + own.sum::<u64>()
    }

    /// Right answers per second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.answers() as f64 / self.seconds } else { 0.0 }
    }

    /// The rate that is compared with the offered one of an open loop: iterations in a run of flows, else right answers.
    #[must_use]
    pub fn achieved_per_second(&self) -> f64 {
        match &self.iterations {
            Some(iterations) if self.seconds > 0.0 => iterations.complete() as f64 / self.seconds,
            _ => self.per_second(),
        }
    }

    /// The part of a run of flows that is one step, or all iterations of one flow, as a run of its own; nothing if there is
    /// none of that name.
    #[must_use]
    pub(crate) fn part(&self, name: &str) -> Option<Self> {
        let iterations = self.iterations.as_ref()?;
        let flow = iterations.flows.iter().find(|flow| flow.name == name);
        let step = self.operations.iter().zip(&iterations.failed_steps).find(|(step, _)| step.name == name);
        let (latencies, failed) = match (flow, step) {
            (Some(flow), _) => (&flow.latencies, &flow.failed),
            (None, Some((step, failed))) => (&step.latencies, &failed.latencies),
            (None, None) => return None,
        };
        let (count, examples) = (failed.count(), Vec::new());
        // The kinds of failures are known for the whole run only.
        let failures = vec![FailureCount { kind: Failure::Wrong, count, examples, latencies: Some(failed.clone()) }];
        let operations = vec![Operation { name: name.to_owned(), latencies: latencies.clone() }];
        Some(Self { operations, failures, iterations: None, timeline: Vec::new(), ..self.clone() })
    }

    /// Whether the generator was stopped for so long that the run's latencies are not the server's: a tenth of a second at
    /// once, or a hundredth of the measurement.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        let Stalls { seconds, longest, .. } = self.generator.stalls;
        longest >= 0.1 || (seconds > 0.0 && seconds >= 0.01 * self.seconds)
    }

    /// Failures of all kinds.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failures.iter().map(|failure| failure.count).sum()
    }

    /// Failures of one kind.
    #[must_use]
    pub fn failures_of(&self, kind: Failure) -> u64 {
        self.failures.iter().find(|failure| failure.kind == kind).map_or(0, |failure| failure.count)
    }

    /// The server's CPU time per right answer, in microseconds.
    #[must_use]
    pub fn server_cpu_micros(&self) -> Option<f64> {
        let answers = self.answers();
        self.server.filter(|_| answers > 0).map(|server| server.cpu.total() * 1e6 / answers as f64)
    }

    /// The generator's CPU time per right answer, in microseconds.
    #[must_use]
    pub fn generator_cpu_micros(&self) -> Option<f64> {
        let answers = self.answers();
        (answers > 0).then(|| self.generator.cpu.total() * 1e6 / answers as f64)
    }
}
