//! The published figures, and the questions to our own measurements: `benches/scenarios/findings.toml`.

use std::fs;

use anyhow::{Context, Result, ensure};
use loadgen::compare::{Metric, Plan};
use serde::{Deserialize, Deserializer};

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Findings {
    #[serde(rename = "finding")]
    pub(super) findings: Vec<Finding>,
    #[serde(default, rename = "reason")]
    pub(super) reasons: Vec<Reason>,
}

/// A reason why published figures called Rust slow.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reason {
    pub(super) name: String,
    /// Without measured figures: those follow from `shown`.
    pub(super) text: String,
    /// The finding whose answers show it.
    pub(super) finding: String,
    /// Questions of that finding, each with the one metric that is shown.
    #[serde(default)]
    pub(super) shown: Vec<Question>,
}

/// A published claim, its figures, and how it is answered.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Finding {
    /// `F1` and so on.
    pub(super) id: String,
    /// The name of its plan and of its record, where that is not the id: a plan that a README shows answers a finding, too.
    plan: Option<String>,
    pub(super) title: String,
    pub(super) claim: String,
    pub(super) source: String,
    pub(super) workload: String,
    /// The answer in a sentence or two, without measured figures.
    pub(super) answer: String,
    /// Later changes, which the record does not show: stands behind "before".
    pub(super) before: Option<String>,
    /// Faults of the record that a reader must know.
    pub(super) caveat: Option<String>,
    pub(super) published: Published,
    /// Contradictions between the published figures.
    #[serde(default)]
    pub(super) contradictions: Vec<String>,
    /// Our own programs: a package and what is built of it, by default the program that is named like it.
    pub(super) build: Vec<String>,
    /// If not empty, all runs in a network namespace that these lines of `ip` set up.
    #[serde(default)]
    pub(super) network: Vec<String>,
    pub(super) quick: Quick,
    /// The first one stands for the finding on the first page.
    #[serde(rename = "question")]
    pub(super) questions: Vec<Question>,
}

/// The published table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The runs of `--quick`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Quick {
    pub(super) scenarios: Vec<String>,
    pub(super) subjects: Vec<String>,
}

/// The published figures of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Expected {
    Better,
    Worse,
}

/// The compared subjects and the metric.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    pub(super) scenario: String,
    #[serde(default = "ours")]
    pub(super) subject: String,
    pub(super) rival: String,
    #[serde(default = "rate_and_cpu", deserialize_with = "metrics")]
    pub(super) metrics: Vec<Metric>,
    /// The published claim about these two.
    pub(super) claimed: Option<Expected>,
}

/// Our subject's name in all plans; variants of it begin with it.
pub(super) const OURS: &str = "ours";

fn ours() -> String {
    OURS.to_owned()
}

fn rate_and_cpu() -> Vec<Metric> {
    vec![Metric::Throughput, Metric::Cpu]
}

fn metrics<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Metric>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    names.iter().map(|name| name.parse().map_err(serde::de::Error::custom)).collect()
}

impl Findings {
    /// Reads the workspace's file.
    pub(super) fn read() -> Result<Self> {
        let path = xtask::workspace::root().join("benches/scenarios/findings.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let found: Self = toml::from_str(&text).with_context(|| path.display().to_string())?;
        for finding in &found.findings {
            finding.check()?;
        }
        for reason in &found.reasons {
            reason.check(&found.findings)?;
        }
        Ok(found)
    }
}

impl Reason {
    pub(super) fn check(&self, findings: &[Finding]) -> Result<()> {
        let finding = findings.iter().find(|finding| finding.id == self.finding);
        let finding = finding.with_context(|| format!("reason {}: no finding {}", self.name, self.finding))?;
        for shown in &self.shown {
            let asked = finding.asked(shown).zip(shown.metrics.first());
            ensure!(
                asked.is_some_and(|(question, metric)| question.metrics.contains(metric)),
                "reason {}: {} does not ask for {shown:?}",
                self.name,
                self.finding
            );
        }
        Ok(())
    }
}

impl Finding {
    /// The question for the same two subjects in the same scenario.
    pub(super) fn asked(&self, like: &Question) -> Option<&Question> {
        self.questions.iter().find(|question| {
            question.scenario == like.scenario && question.subject == like.subject && question.rival == like.rival
        })
    }

    /// The words of its title before the colon.
    pub(super) fn topic(&self) -> &str {
        self.title.split(':').next().unwrap_or_default()
    }

    /// Its own document, from the root of the workspace.
    pub(super) fn file(&self) -> String {
        format!("docs/performance/{}.md", self.id.to_lowercase())
    }

    /// The name of its plan and of its record.
    pub(super) fn record(&self) -> &str {
        self.plan.as_ref().unwrap_or(&self.id)
    }

    /// Its plan.
    pub(super) fn plan(&self) -> Result<Plan> {
        let path = xtask::workspace::root().join(format!("benches/scenarios/{}.toml", self.record()));
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Plan::parse(&text).map_err(anyhow::Error::msg).with_context(|| path.display().to_string())
    }

    fn check(&self) -> Result<()> {
        ensure!(!self.questions.is_empty(), "{} asks nothing", self.id);
        let claimed = self.questions.iter().any(|question| question.claimed.is_some());
        ensure!(claimed, "{}: no question says what was claimed", self.id);
        for question in &self.questions {
            ensure!(!question.metrics.is_empty(), "{}: a question without a metric", self.id);
        }
        let width = self.published.columns.len();
        ensure!(self.published.rows.iter().all(|row| row.len() == width), "{}: rows of another width", self.id);
        Ok(())
    }

    /// Each named item is part of the plan.
    #[cfg(test)]
    fn check_against(&self, plan: &Plan) -> Result<()> {
        let scenario = |name: &str| plan.scenarios.iter().find(|scenario| scenario.name == name);
        for name in &self.quick.scenarios {
            ensure!(scenario(name).is_some(), "{}: quick: no scenario {name}", self.id);
        }
        let subjects: Vec<&str> = plan.subjects.iter().map(|subject| subject.name.as_str()).collect();
        for name in &self.quick.subjects {
            ensure!(subjects.contains(&name.as_str()), "{}: quick: no subject {name}", self.id);
        }
        for question in &self.questions {
            let name = &question.scenario;
            let scenario = scenario(name).with_context(|| format!("{}: no scenario {name}", self.id))?;
            for subject in [&question.subject, &question.rival] {
                ensure!(subjects.contains(&subject.as_str()), "{}: no subject {subject}", self.id);
                ensure!(scenario.is_for(subject), "{}: {name} is not for {subject}", self.id);
            }
        }
        let (first, quick) = (&self.questions[0], &self.quick);
        ensure!(
            quick.scenarios.contains(&first.scenario)
                && [&first.subject, &first.rival].iter().all(|name| quick.subjects.contains(name)),
            "{}: its verdict needs what --quick leaves out",
            self.id
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_name_what_the_plans_have() {
        let found = Findings::read().unwrap();
        for (finding, number) in found.findings.iter().zip(1..) {
            assert_eq!(finding.id, format!("F{number}"));
            let mut plan = finding.plan().unwrap();
            finding.check_against(&plan).unwrap();
            // The runs of --quick do not need the items that it leaves out.
            plan.restrict(&finding.quick.subjects, &finding.quick.scenarios).unwrap();
        }
    }
}
