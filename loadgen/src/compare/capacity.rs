//! Open loops at a share of a capacity that the same comparison has measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::stats;

/// `rate-of`: the load's rate is this share of the median of another scenario, the same rate for all subjects.
///
/// A rate is known only when the other scenario has made all its rounds: scenarios with `rate-of` come behind all others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateOf {
    /// The closed loop that shows what a subject can do.
    pub scenario: String,
    /// The share of it, above 0 and at most 1.
    pub share: f64,
    /// The subject whose median counts; without it the slowest subject that takes part, so that all can follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

impl RateOf {
    /// In the words of a report.
    #[must_use]
    pub fn in_words(&self) -> String {
        let whose = self.subject.as_ref().map_or("the slowest subject", String::as_str);
        let percent = (self.share * 1000.0).round() / 10.0;
        format!("open loop at {percent} % of what {whose} reached in \u{201c}{}\u{201d}", self.scenario)
    }
}

/// The rate of an open loop that is a share of a capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferedRate {
    /// The open loop.
    pub scenario: String,
    /// The rate that every subject was asked for.
    pub per_second: f64,
    /// The subject whose capacity determines the rate.
    pub subject: String,
    /// That capacity: the median of the other scenario.
    pub capacity: f64,
}

/// The rates that subjects have reached, by scenario and subject.
#[derive(Debug, Default)]
pub(crate) struct Capacities(BTreeMap<(String, String), Vec<f64>>);

impl Capacities {
    /// Adds the rate of a recorded round.
    pub(crate) fn add(&mut self, scenario: &str, subject: &str, per_second: f64) {
        self.0.entry((scenario.to_owned(), subject.to_owned())).or_default().push(per_second);
    }

    /// The rate of a scenario that is for some subjects; nothing if no subject has reached a rate.
    pub(crate) fn rate(&self, name: &str, of: &RateOf, is_for: impl Fn(&str) -> bool) -> Option<OfferedRate> {
        let medians = self.0.iter().filter(|((scenario, _), _)| *scenario == of.scenario);
        let medians = medians.map(|((_, subject), rates)| (subject, stats::median(rates)));
        let wanted = medians.filter(|(subject, median)| {
            let meant = of.subject.as_ref().map_or_else(|| is_for(subject), |named| named == *subject);
            meant && *median > 0.0
        });
        let (subject, capacity) = wanted.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let (scenario, subject) = (name.to_owned(), subject.clone());
        // Whole requests: what stands in the report is what was asked for.
        let per_second = (capacity * of.share).round().max(1.0);
        Some(OfferedRate { scenario, per_second, subject, capacity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_share_of_a_median() {
        let mut known = Capacities::default();
        for (subject, rates) in [("fast", [400.0, 300.0, 500.0]), ("slow", [110.0, 100.0, 90.0]), ("dead", [0.0; 3])] {
            rates.into_iter().for_each(|rate| known.add("closed", subject, rate));
        }
        let of = |subject: Option<&str>, scenario: &str| RateOf {
            scenario: scenario.to_owned(),
            share: 0.705,
            subject: subject.map(str::to_owned),
        };
        #[track_caller]
        fn check(found: Option<OfferedRate>, expected: Option<(&str, f64)>) {
            assert_eq!(found.as_ref().map(|rate| (rate.subject.as_str(), rate.per_second)), expected);
        }
        check(known.rate("open", &of(None, "closed"), |_| true), Some(("slow", 71.0)));
        check(known.rate("open", &of(None, "closed"), |subject| subject == "fast"), Some(("fast", 282.0)));
        check(known.rate("open", &of(Some("fast"), "closed"), |subject| subject == "slow"), Some(("fast", 282.0)));
        check(known.rate("open", &of(Some("dead"), "closed"), |_| true), None);
        check(known.rate("open", &of(None, "another"), |_| true), None);
        let words = of(None, "closed").in_words();
        assert_eq!(words, "open loop at 70.5 % of what the slowest subject reached in \u{201c}closed\u{201d}");
    }
}
