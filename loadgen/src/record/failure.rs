//! Requests that got no right answer, counted by kind, with examples.

use serde::{Deserialize, Serialize};

use super::Latencies;
use crate::clock::Nanos;

/// Why a request, or a connection's opening, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// No server listens there, or the network cannot reach it.
    Refused,
    /// This process, or the machine, has no file descriptor, port or memory left for another connection.
    Resources,
    /// The TLS handshake failed: a certificate, a name, a version.
    Tls,
    /// The peer reset the connection.
    Reset,
    /// The peer closed the connection before the answer was complete.
    Closed,
    /// No answer in time.
    TimedOut,
    /// The answer is not of the protocol.
    Protocol,
    /// The server answered with an error: an error reply, a status of 400 or more, a gRPC status other than OK, `_SNA`.
    Rejected,
    /// The answer is not the one that was expected.
    Wrong,
    /// An open loop's request that was still waiting for room when the run ended.
    Unsent,
    /// A message that the server said it delivers, and that did not arrive.
    Undelivered,
}

impl Failure {
    /// All kinds, in the order of their display.
    pub const ALL: [Self; 11] = [
        Self::Refused,
        Self::Resources,
        Self::Tls,
        Self::Reset,
        Self::Closed,
        Self::TimedOut,
        Self::Protocol,
        Self::Rejected,
        Self::Wrong,
        Self::Unsent,
        Self::Undelivered,
    ];

    /// The kind in words, as in "12 timed out".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Refused => "connections refused",
            Self::Resources => "connections without resources here",
            Self::Tls => "TLS handshakes failed",
            Self::Reset => "reset by the server",
            Self::Closed => "closed before the answer was complete",
            Self::TimedOut => "timed out",
            Self::Protocol => "answered with garbage",
            Self::Rejected => "answered with an error",
            Self::Wrong => "answered wrongly",
            Self::Unsent => "never sent",
            Self::Undelivered => "never delivered",
        }
    }
}

/// How many examples of each kind are kept.
pub const EXAMPLES: usize = 3;

/// Failures by kind.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    counts: [FailureSlot; Failure::ALL.len()],
}

#[derive(Clone, Debug, Default)]
struct FailureSlot {
    count: u64,
    /// How long the requests took until they failed; a histogram is large, and most kinds never occur.
    latencies: Option<Box<Latencies>>,
    examples: Vec<String>,
}

impl Failures {
    /// Counts a request that failed after so long; `example` is asked for as long as examples of its kind are few.
    pub fn add_request(&mut self, failure: Failure, nanos: Nanos, example: impl FnOnce() -> String) {
        self.counts[failure as usize].latencies.get_or_insert_default().record(nanos);
        self.add(failure, example);
    }

    /// Counts one that is no request: a connection, a delivery. An empty example is left out.
    pub fn add(&mut self, failure: Failure, example: impl FnOnce() -> String) {
        self.counts[failure as usize].count += 1;
        self.explain(failure, example);
    }

    /// Counts so many, of which there are no examples.
    pub fn add_many(&mut self, failure: Failure, count: u64) {
        self.counts[failure as usize].count += count;
    }

    /// Gives an example without counting it.
    pub fn explain(&mut self, failure: Failure, example: impl FnOnce() -> String) {
        let slot = &mut self.counts[failure as usize];
        if slot.examples.len() < EXAMPLES {
            let example = example();
            if !example.is_empty() && !slot.examples.contains(&example) {
                slot.examples.push(example);
            }
        }
    }

    /// Adds another thread's.
    pub fn merge(&mut self, other: &Self) {
        for (slot, theirs) in self.counts.iter_mut().zip(&other.counts) {
            slot.count += theirs.count;
            if let Some(latencies) = &theirs.latencies {
                slot.latencies.get_or_insert_default().merge(latencies);
            }
            for example in &theirs.examples {
                if slot.examples.len() < EXAMPLES && !slot.examples.contains(example) {
                    slot.examples.push(example.clone());
                }
            }
        }
    }

    /// How many of one kind.
    #[must_use]
    pub fn count(&self, failure: Failure) -> u64 {
        self.counts[failure as usize].count
    }

    /// How many of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|slot| slot.count).sum()
    }

    /// The kinds that occurred.
    #[must_use]
    pub fn list(&self) -> Vec<FailureCount> {
        let occurred = Failure::ALL.iter().zip(&self.counts).filter(|(_, slot)| slot.count > 0);
        occurred
            .map(|(kind, slot)| FailureCount {
                kind: *kind,
                count: slot.count,
                examples: slot.examples.clone(),
                latencies: slot.latencies.as_deref().cloned(),
            })
            .collect()
    }
}

/// The failures of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureCount {
    /// The kind.
    pub kind: Failure,
    /// How many.
    pub count: u64,
    /// The first few different ones, for people.
    pub examples: Vec<String>,
    /// How long the requests among them took until they failed: time-outs at least the time-out. Absent where none was a
    /// request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latencies: Option<Latencies>,
}
