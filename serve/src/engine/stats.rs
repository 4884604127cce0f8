//! A worker's counts. Its thread alone writes them; any thread that asks for the figures reads them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::StatusCode;
use server_runtime::metrics::{family, sample};

/// The figures of one worker.
#[derive(Debug, Default)]
pub struct Stats {
    /// Responses by the first digit of their status.
    responses: [Count; 6],
    /// Of those, answered without the router.
    pub(super) instant: Count,
    /// Requests whose head was refused.
    pub(super) refused: Count,
    /// Connections ended by a time-out.
    pub(super) timeouts: Count,
    /// Connections of HTTP/2 and HTTP/3 ended for frames that carry nothing.
    pub(super) floods: Count,
    /// Handlers that panicked.
    pub(super) panics: Count,
    /// Handlers that took longer than they may.
    pub(super) slow_handlers: Count,
    pub(super) received: Count,
    pub(super) sent: Count,
    pub(super) h2_requests: Count,
    pub(super) h3_requests: Count,
    /// Connections that went over to another protocol.
    pub(super) upgrades: Count,
}

/// A counter with one writer.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds; wraps around.
    #[inline]
    pub fn add(&self, count: u64) {
        // One writer needs no atomic addition, which would cost a locked instruction.
        self.0.store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Reads one figure.
type Figure = fn(&Stats) -> &Count;

const FIGURES: [(&str, &str, Figure); 11] = [
    ("http_instant_responses_total", "Responses made without the router.", |stats| &stats.instant),
    ("http_refused_total", "Requests whose head or body was refused.", |stats| &stats.refused),
    ("http_timeouts_total", "Connections ended because the client was too slow.", |stats| &stats.timeouts),
    ("http_floods_total", "Connections closed for too many control frames.", |stats| &stats.floods),
    ("http_panics_total", "Handlers that panicked.", |stats| &stats.panics),
    ("http_handler_timeouts_total", "Handlers that exceeded the handler time-out.", |stats| &stats.slow_handlers),
    ("http_received_bytes_total", "Bytes received over HTTP/1.", |stats| &stats.received),
    ("http_sent_bytes_total", "Bytes sent over HTTP/1.", |stats| &stats.sent),
    ("http_h2_requests_total", "Requests over HTTP/2.", |stats| &stats.h2_requests),
    ("http_h3_requests_total", "Requests over HTTP/3.", |stats| &stats.h3_requests),
    ("http_upgrades_total", "Connections upgraded to another protocol.", |stats| &stats.upgrades),
];

impl Stats {
    /// Connections ended by a time-out.
    pub fn timeouts(&self) -> u64 {
        self.timeouts.get()
    }

    /// Connections ended for frames that carry nothing.
    pub fn floods(&self) -> u64 {
        self.floods.get()
    }

    #[inline]
    pub(super) fn response(&self, status: StatusCode) {
        self.responses[usize::from(status.as_u16() / 100).min(5)].add(1);
    }
}

/// Appends the sum over all workers.
pub(super) fn render(workers: &[Stats], out: &mut String) {
    let sum = |figure: &dyn Fn(&Stats) -> u64| workers.iter().map(figure).sum::<u64>() as f64;
    let name = "http_responses_total";
    family(out, name, "Responses, by the first digit of their status.", "counter");
    for class in 1..=5 {
        let label = format!("{class}xx");
        sample(out, name, &[("status", &label)], sum(&|stats| stats.responses[class].get()));
    }
    for (name, help, figure) in FIGURES {
        family(out, name, help, "counter");
        sample(out, name, &[], sum(&|stats| figure(stats).get()));
    }
}
