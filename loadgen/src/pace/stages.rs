//! Users or arrivals that change over a run, in stages.

use std::time::Duration;

use crate::clock::{Nanos, nanos};
use crate::number;

/// The longest time between two requests of a thread: an hour, in nanoseconds.
pub(super) const LONGEST_GAP: f64 = 3.6e12;

/// A level over time: it begins at 0, and changes linearly to the end of each stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Stages {
    kind: Staged,
    /// When each stage ends, and the level there.
    ends: Vec<(Nanos, f64)>,
}

/// The subject of stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staged {
    /// How many users there are, in a closed loop.
    Users,
    /// Arrivals per second, in an open loop.
    Rate,
}

impl Stages {
    /// Stages by their lengths and their levels at the end. A stage of no length is a jump.
    #[must_use]
    pub fn new(kind: Staged, stages: &[(Duration, f64)]) -> Self {
        let mut end: Nanos = 0;
        let ends = stages.iter().map(|(length, level)| {
            end = end.saturating_add(nanos(*length));
            (end, *level)
        });
        Self { kind, ends: ends.collect() }
    }

    /// The subject.
    #[must_use]
    pub fn kind(&self) -> Staged {
        self.kind
    }

    /// How long all stages take.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.ends.last().map_or(0, |(end, _)| *end))
    }

    /// The highest level.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.ends.iter().map(|(_, level)| *level).fold(0.0, f64::max)
    }

    /// The stages in words: `users 0 → 10 in 5s → 10 in 1m`.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = match self.kind {
            Staged::Users => "closed loop, users 0",
            Staged::Rate => "open loop, iterations/s 0",
        }
        .to_owned();
        let mut before = 0;
        for (end, level) in &self.ends {
            let length = number::duration_text(Duration::from_nanos(end - before));
            text.push_str(&format!(" → {level} in {length}"));
            before = *end;
        }
        text
    }

    /// The level at a time since the load began.
    #[must_use]
    pub fn at(&self, elapsed: Nanos) -> f64 {
        let mut before = (0, 0.0);
        for (end, level) in &self.ends {
            if elapsed < *end {
                let share = (elapsed - before.0) as f64 / (end - before.0) as f64;
                return before.1 + (level - before.1) * share;
            }
            before = (*end, *level);
        }
        before.1
    }

    /// How many nanoseconds after `elapsed` another `requests` are due: the time over which the level's integral is that.
    pub(super) fn gap(&self, elapsed: f64, requests: f64) -> f64 {
        if requests <= 0.0 {
            return 0.0;
        }
        let (mut from, mut level, mut missing) = (0.0_f64, 0.0_f64, requests);
        for (end, at_end) in &self.ends {
            let (end, at_end) = (*end as f64, at_end / 1e9);
            // A jump takes no time.
            if end > elapsed && end > from {
                let slope = (at_end - level) / (end - from);
                let begin = from.max(elapsed);
                let now = level + slope * (begin - from);
                let within = (now + at_end) / 2.0 * (end - begin);
                if within > missing {
                    // now * t + slope * t^2 / 2 = missing, in the form that also holds for a slope of 0.
                    let root = (now * now + 2.0 * slope * missing).max(0.0).sqrt();
                    return begin - elapsed + 2.0 * missing / (now + root);
                }
                missing -= within;
            }
            (from, level) = (end, at_end);
        }
        LONGEST_GAP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn stages(stages: &[(u64, f64)]) -> Stages {
        let stages: Vec<_> = stages.iter().map(|(seconds, level)| (Duration::from_secs(*seconds), *level)).collect();
        Stages::new(Staged::Rate, &stages)
    }

    #[test]
    fn levels_change_linearly() {
        let stages = stages(&[(10, 100.0), (10, 100.0), (0, 50.0), (5, 0.0)]);
        let found = [0, 5, 10, 15, 20, 22, 25, 30].map(|second| stages.at(second * SECOND));
        assert_eq!(found, [0.0, 50.0, 100.0, 100.0, 50.0, 30.0, 0.0, 0.0]);
        assert_eq!((stages.length(), stages.most()), (Duration::from_secs(25), 100.0));
    }

    #[test]
    fn requests_come_as_the_levels_say() {
        let stages = stages(&[(10, 100.0), (10, 100.0), (0, 50.0), (5, 0.0)]);
        // The integral is 500 + 1000 + 125.
        let (mut elapsed, mut count, mut by_stage) = (0.0, 0, [0_u32; 3]);
        loop {
            elapsed += stages.gap(elapsed, 1.0);
            if elapsed > 25e9 {
                break;
            }
            count += 1;
            by_stage[((elapsed / 1e10) as usize).min(2)] += 1;
        }
        assert!((1623..=1625).contains(&count) && by_stage[0].abs_diff(500) < 2, "{count} {by_stage:?}");
        assert_eq!(stages.gap(0.0, 5000.0), LONGEST_GAP);
    }
}
