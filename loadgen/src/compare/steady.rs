//! Whether the first recorded round was still a part of the warm-up: a virtual machine that compiles, caches that fill.

use super::metric::Metric;
use super::record::{Line, Run};
use crate::record::Outcome;

/// A round whose answers cost more than this share above those of the next round is cold. Rounds of a server that is warm
/// differ by a few per cent in CPU time per answer; a virtual machine that compiles, by tens.
const COLD: f64 = 0.10;

/// How many rounds are thrown away because they were cold, at most.
pub(super) const MOST_COLD: usize = 8;

/// Says which subject was cold in a round, if one was, by the results of the next.
pub(super) fn cold(round: &[Line], next: &[Line]) -> Option<String> {
    runs(round).find_map(|run| {
        let warmer = runs(next).find(|next| next.scenario == run.scenario && next.subject == run.subject)?;
        let excess = cost(&run.outcome)? / cost(&warmer.outcome)? - 1.0;
        let text =
            || format!("{}: {} was cold: {:.0} % above the next round", run.scenario, run.subject, excess * 100.0);
        (excess > COLD).then(text)
    })
}

fn runs(lines: &[Line]) -> impl Iterator<Item = &Run> {
    lines.iter().filter_map(|line| match line {
        Line::Run(run) => Some(run),
        Line::Comparison(_) | Line::Failed(_) | Line::Rate(_) | Line::End(_) => None,
    })
}

/// The server's CPU time per answer, which the machine's drift changes least; without it, the time per answer.
fn cost(outcome: &Outcome) -> Option<f64> {
    let cost = Metric::Cpu.of(outcome).or_else(|| Metric::Throughput.of(outcome).map(|rate| 1.0 / rate))?;
    (cost > 0.0 && cost.is_finite()).then_some(cost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::made_up;

    #[test]
    fn a_round_is_cold_by_what_its_answers_cost() {
        let line = |subject: &str, answers: u64| {
            Line::Run(Run {
                scenario: "s".to_owned(),
                subject: subject.to_owned(),
                round: 0,
                outcome: made_up::run_of(answers, 1000),
            })
        };
        #[track_caller]
        fn check(found: Option<String>, expected: Option<&str>) {
            assert_eq!(found.as_deref(), expected);
        }
        let warm = [line("go", 1500), line("java", 1500)];
        check(cold(&warm, &[line("go", 1440), line("java", 1560)]), None);
        // The record of grpc-java had a first round of 46,650/s, and later ones of 145,000 to 166,000.
        check(
            cold(&[line("go", 1500), line("java", 467)], &warm),
            Some("s: java was cold: 221 % above the next round"),
        );
        // A slower round behind a warm one is not the warm one's fault.
        check(cold(&warm, &[line("go", 1500), line("java", 467)]), None);
        check(cold(&[line("java", 467)], &[line("go", 1500)]), None);
        check(cold(&[], &warm), None);
    }
}
