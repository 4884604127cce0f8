//! `client-output-buffer-limit`: how many bytes may wait for a client before it is cut off.
//!
//! Two places ask. The client's connection asks when its socket takes no more ([`OutputGuard::cuts_off`]) and before it keeps a large reply
//! ([`cuts_off_at`]). A thread that leaves a message for another client checks at that moment ([`post`]), because that client's connection
//! may be busy.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use crate::clients::client::{ClientShared, flag};
use crate::config::{Config, OutputLimit, settings};

/// Waiting bytes below which a message is left without a look at the limit.
const LOOK_AT_LIMIT: u64 = 256 * 1024;

/// The limit that holds for a client. As in Redis, a client that monitors is a normal one, and a replica may be behind by as much
/// as the backlog holds anyway.
fn limit_of(config: &Config, client: &ClientShared) -> OutputLimit {
    let [normal, replica, pubsub] = config.output_limits();
    if client.has_flag(flag::REPLICA) {
        let backlog = config.uint(settings::REPL_BACKLOG_SIZE);
        let hard = if replica.hard == 0 { 0 } else { replica.hard.max(backlog) };
        return OutputLimit { hard, ..replica };
    }
    if client.has_flag(flag::PUBSUB) { pubsub } else { normal }
}

/// Leaves a message for a client, and cuts the client off if more waits for it than the hard limit allows. The soft limit is
/// its connection's to judge. A client whose connection ends when its output is sent gets no more messages.
pub fn post(config: &Config, to: &ClientShared, message: Bytes) {
    if to.has_flag(flag::CLOSING) {
        return;
    }
    let waiting = to.post(message) as u64 + to.output.load(Relaxed);
    if waiting >= LOOK_AT_LIMIT && cuts_off_at(config, to, waiting) {
        to.kill();
    }
}

/// Whether the hard limit cuts off a client for which `waiting` bytes wait. If so, the log says it.
pub fn cuts_off_at(config: &Config, client: &ClientShared, waiting: u64) -> bool {
    let limit = limit_of(config, client);
    let is_over = limit.hard != 0 && waiting > limit.hard;
    if is_over {
        note_end(client, waiting);
    }
    is_over
}

/// The state of a connection's output that the soft limit needs.
#[derive(Debug, Default)]
pub struct OutputGuard {
    /// Since when the output is above the soft limit, in milliseconds of Unix time.
    above_soft_since: Option<u64>,
}

impl OutputGuard {
    /// Whether either limit cuts off a client for which `waiting` bytes wait at `now`, in milliseconds of Unix time. If so, the
    /// log says it.
    pub fn cuts_off(&mut self, config: &Config, client: &ClientShared, waiting: u64, now: u64) -> bool {
        let limit = limit_of(config, client);
        let is_over = self.is_too_long_above(waiting, &limit, now) || limit.hard != 0 && waiting > limit.hard;
        if is_over {
            note_end(client, waiting);
        }
        is_over
    }

    /// Notes that `waiting` bytes wait at `now`. Returns true if that is more than the soft limit for as long as it may be.
    fn is_too_long_above(&mut self, waiting: u64, limit: &OutputLimit, now: u64) -> bool {
        if limit.soft == 0 || waiting <= limit.soft {
            self.above_soft_since = None;
            return false;
        }
        // The clock may step back: the time begins anew then.
        let since = now.min(self.above_soft_since.unwrap_or(now));
        self.above_soft_since = Some(since);
        now - since >= limit.soft_seconds.saturating_mul(1000)
    }
}

/// Says in the log that the client is cut off, and has INFO count it.
fn note_end(client: &ClientShared, waiting: u64) {
    client.set_flag(flag::OVER_OUTPUT_LIMIT, true);
    tracing::warn!(
        id = client.id,
        addr = client.addr,
        waiting,
        "closing client: its output passed client-output-buffer-limit"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backward_clock_steps_restart_the_soft_limit_timer() {
        let limit = OutputLimit { hard: 0, soft: 100, soft_seconds: 10 };
        let mut guard = OutputGuard::default();
        let cases = [
            (50_000, 101, false),
            (59_999, 101, false),
            (60_000, 101, true),
            (60_000, 100, false),
            (60_000, 101, false),
            (30_000, 101, false),
            (39_999, 101, false),
            (40_000, 101, true),
        ];
        for (now, len, expected) in cases {
            assert_eq!(guard.is_too_long_above(len, &limit, now), expected, "{len} bytes at {now}");
        }
        let no_time = OutputLimit { soft_seconds: u64::MAX, ..limit };
        assert!(!OutputGuard::default().is_too_long_above(101, &no_time, 1));
    }
}
