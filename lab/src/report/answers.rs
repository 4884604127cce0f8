//! The findings' questions, answered from their records as one family of verdicts.

use std::fmt;

use loadgen::compare::stats::Estimate;
use loadgen::compare::{Comparison, Judged, Metric, Verdict, Void};

use super::findings::{Expected, Finding, Findings, Question};
use super::measured::Measured;

/// One metric of a question.
pub(super) struct Answer<'a> {
    pub(super) question: &'a Question,
    pub(super) judged: Judged,
}

/// The metrics of the front table.
pub(super) const FRONT: [Metric; 2] = [Metric::Cpu, Metric::P99];

/// The chance of any wrong verdict is 5 %: one half for REPORT.md, one half for the other tables of the findings' pages. So a
/// further question on a page cannot make an answer of REPORT.md undecided.
const PARTS: usize = 2;

/// Whether REPORT.md shows it: in the front table, as what was claimed, or as a reason.
fn is_in_report(all: &Findings, finding: &Finding, question: &Question, metric: Metric) -> bool {
    let is_reason = || {
        let own = all.reasons.iter().filter(|reason| reason.finding == finding.id);
        own.flat_map(|reason| &reason.shown).any(|shown| {
            finding.asked(shown).is_some_and(|asked| std::ptr::eq(asked, question)) && shown.metrics.contains(&metric)
        })
    };
    let is_front = std::ptr::eq(question, &raw const finding.questions[0]) && FRONT.contains(&metric);
    is_front || question.claimed.is_some() || is_reason()
}

/// Answers all questions of the report, finding by finding, metric by metric.
pub(super) fn answers<'a>(all: &'a Findings, measured: &[Measured]) -> Vec<Vec<Answer<'a>>> {
    let of_finding = |(finding, own): (&'a Finding, &Measured)| -> Vec<(bool, &'a Question, Comparison)> {
        let metrics = |question: &'a Question| question.metrics.iter().map(move |metric| (question, *metric));
        let asked = finding.questions.iter().flat_map(metrics);
        let compared = |(question, metric)| {
            (is_in_report(all, finding, question, metric), question, own.comparison(question, metric))
        };
        asked.map(compared).collect()
    };
    let compared: Vec<Vec<_>> = all.findings.iter().zip(measured).map(of_finding).collect();
    let size = |of_report: bool| {
        let part =
            compared.iter().flatten().filter(|(is_in_report, _, one)| *is_in_report == of_report && one.is_valid());
        PARTS * part.count()
    };
    let (report, pages) = (size(true), size(false));
    let answer = |(is_in_report, question, comparison): (bool, &'a Question, Comparison)| Answer {
        question,
        judged: comparison.among(if is_in_report { report } else { pages }),
    };
    compared.into_iter().map(|own| own.into_iter().map(answer).collect()).collect()
}

/// The answer for a metric of a question.
pub(super) fn of<'a, 'b>(all: &'b [Answer<'a>], question: &Question, metric: Metric) -> Option<&'b Answer<'a>> {
    all.iter().find(|one| std::ptr::eq(one.question, question) && one.metric() == metric)
}

/// `▲ 2.03 [1.96, 2.10]`; what is void has its reason's letter in place of the interval.
pub(super) fn text(judged: &Judged) -> String {
    let sign = match (judged.verdict, judged.estimate) {
        (Verdict::Void(reason), Some(found)) => return format!("{} ({})", short(found.value), reason.letter()),
        (Verdict::Void(reason), None) => return format!("– ({})", reason.letter()),
        (Verdict::Better, _) => "▲",
        (Verdict::Worse, _) => "▼",
        (Verdict::Equivalent, _) => "≈",
        (Verdict::Inconclusive, _) => "?",
    };
    let Some(Estimate { value, low, high }) = judged.estimate else {
        return format!("– ({})", Void::Missing.letter());
    };
    let mark = if judged.comparison.both_saturated { " (s)" } else { "" };
    format!("{sign} {} [{}, {}]{mark}", short(value), short(low), short(high))
}

impl Answer<'_> {
    pub(super) fn metric(&self) -> Metric {
        self.judged.comparison.metric
    }

    pub(super) fn verdict(&self) -> Verdict {
        self.judged.verdict
    }

    /// The ratio, if there is one.
    pub(super) fn value(&self) -> Option<f64> {
        self.judged.estimate.map(|found| found.value)
    }

    /// Its cell in tables.
    pub(super) fn text(&self) -> String {
        text(&self.judged)
    }

    /// The same where there is no room.
    pub(super) fn without_interval(&self) -> String {
        let text = self.text();
        text.split(" [").next().unwrap_or_default().to_owned()
    }

    /// Why it is void, if it is.
    pub(super) fn void(&self) -> Option<Void> {
        match self.judged.verdict {
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
/// not refutes it unless another is. An equivalent metric is not as claimed. An inconclusive one leaves a part of the claim open; a
/// void one does not, if another metric tells.
pub(super) fn reproduced(measured: &Measured, answers: &[Answer<'_>]) -> Reproduced {
    if measured.record.is_none() {
        return Reproduced::Unmeasured;
    }
    let (mut as_claimed, mut not_so, mut untold) = (false, false, false);
    for metrics in answers.chunk_by(|one, next| std::ptr::eq(one.question, next.question)) {
        let Some(expected) = metrics[0].question.claimed else { continue };
        let told = metrics.iter().filter_map(|metric| match (metric.verdict(), expected) {
            (Verdict::Better, Expected::Better) | (Verdict::Worse, Expected::Worse) => Some(true),
            (Verdict::Better | Verdict::Worse | Verdict::Equivalent, _) => Some(false),
            (Verdict::Inconclusive | Verdict::Void(_), _) => None,
        });
        let told: Vec<bool> = told.collect();
        as_claimed |= told.contains(&true);
        not_so |= told.contains(&false);
        let is_open = |metric: &Answer<'_>| metric.verdict() == Verdict::Inconclusive;
        untold |= told.is_empty() || metrics.iter().any(is_open);
    }
    match (as_claimed, not_so, untold) {
        (true, false, false) => Reproduced::Yes,
        (true, _, _) => Reproduced::InPart,
        (false, true, _) => Reproduced::No,
        (false, false, _) => Reproduced::Inconclusive,
    }
}
