//! A finding's questions, answered from its records as one family of verdicts.

use std::fmt;

use loadgen::compare::{Comparison, Metric, Verdict, Void, verdicts};

use super::findings::{Expected, Finding, Question};
use super::measured::Measured;

/// One metric of a question.
pub(super) struct Answer<'a> {
    pub(super) question: &'a Question,
    pub(super) comparison: Comparison,
    pub(super) verdict: Verdict,
}

/// Answers all questions of a finding, metric by metric.
pub(super) fn answers<'a>(finding: &'a Finding, measured: &Measured) -> Vec<Answer<'a>> {
    let asked =
        finding.questions.iter().flat_map(|question| question.metrics.iter().map(move |metric| (question, *metric)));
    let (questions, family): (Vec<&Question>, Vec<Comparison>) =
        asked.map(|(question, metric)| (question, measured.comparison(question, metric))).unzip();
    let judged = verdicts(&family).into_iter().zip(family).zip(questions);
    judged.map(|((verdict, comparison), question)| Answer { question, comparison, verdict }).collect()
}

/// The answer for a metric of a question.
pub(super) fn of<'a, 'b>(all: &'b [Answer<'a>], question: &Question, metric: Metric) -> Option<&'b Answer<'a>> {
    all.iter().find(|one| std::ptr::eq(one.question, question) && one.comparison.metric == metric)
}

/// `▲ 2.03 [1.96, 2.10]`; what is void has its reason's letter in place of the interval.
pub(super) fn text(comparison: &Comparison, verdict: Verdict) -> String {
    let value = comparison.ratio.map(|ratio| ratio.estimate);
    let (sign, found) = match (verdict, value) {
        (Verdict::Void(reason), Some(found)) => return format!("{} ({})", short(found.value), reason.letter()),
        (Verdict::Void(reason), None) => return format!("– ({})", reason.letter()),
        (_, None) => return format!("– ({})", Void::Missing.letter()),
        (Verdict::Better, Some(found)) => ("▲", found),
        (Verdict::Worse, Some(found)) => ("▼", found),
        (Verdict::Equivalent, Some(found)) => ("≈", found),
        (Verdict::Inconclusive, Some(found)) => ("?", found),
    };
    format!("{sign} {} [{}, {}]", short(found.value), short(found.low), short(found.high))
}

impl Answer<'_> {
    /// Its cell in tables.
    pub(super) fn text(&self) -> String {
        text(&self.comparison, self.verdict)
    }

    /// The same where there is no room.
    pub(super) fn without_interval(&self) -> String {
        let text = self.text();
        text.split(" [").next().unwrap_or_default().to_owned()
    }

    /// Why it is void, if it is.
    pub(super) fn void(&self) -> Option<Void> {
        match self.verdict {
            Verdict::Void(reason) => Some(reason),
            Verdict::Better | Verdict::Worse | Verdict::Equivalent | Verdict::Inconclusive => None,
        }
    }
}

/// A ratio with the digits that its interval needs at most.
fn short(ratio: f64) -> String {
    match ratio {
        ..0.1 => format!("{ratio:.3}"),
        ..10.0 => format!("{ratio:.2}"),
        ..100.0 => format!("{ratio:.1}"),
        _ => format!("{ratio:.0}"),
    }
}

/// Whether the published claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reproduced {
    Yes,
    No,
    /// Some verdicts say so, others the contrary or nothing.
    InPart,
    Inconclusive,
    /// There is no record.
    Unmeasured,
}

impl fmt::Display for Reproduced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::InPart => "in part",
            Self::Inconclusive => "inconclusive",
            Self::Unmeasured => "not measured",
        })
    }
}

/// From the questions that the claim answers, each of which counts as its metrics that tell: all have to be as claimed, and one that is
/// not refutes it unless another is. An equivalent metric is not as claimed; a void or inconclusive one tells nothing.
pub(super) fn reproduced(measured: &Measured, answers: &[Answer<'_>]) -> Reproduced {
    if measured.record.is_none() {
        return Reproduced::Unmeasured;
    }
    let (mut as_claimed, mut not_so, mut untold) = (false, false, false);
    for metrics in answers.chunk_by(|one, next| std::ptr::eq(one.question, next.question)) {
        let Some(expected) = metrics[0].question.claimed else { continue };
        let told = metrics.iter().filter_map(|metric| match (metric.verdict, expected) {
            (Verdict::Better, Expected::Better) | (Verdict::Worse, Expected::Worse) => Some(true),
            (Verdict::Better | Verdict::Worse | Verdict::Equivalent, _) => Some(false),
            (Verdict::Inconclusive | Verdict::Void(_), _) => None,
        });
        let told: Vec<bool> = told.collect();
        as_claimed |= told.contains(&true);
        not_so |= told.contains(&false);
        untold |= told.is_empty();
    }
    match (as_claimed, not_so, untold) {
        (true, false, false) => Reproduced::Yes,
        (true, _, _) => Reproduced::InPart,
        (false, true, _) => Reproduced::No,
        (false, false, _) => Reproduced::Inconclusive,
    }
}
