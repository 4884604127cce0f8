//! What came of it.

use core::fmt;
use core::net::IpAddr;
use std::borrow::ToOwned;
use std::format;
use std::string::String;
use std::vec::Vec;

use crate::wire::Eoj;

/// One requirement, and whether the node meets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name: the same for the same requirement of every object, `get.order` or `B0.get.value`.
    pub id: String,
    /// The object that it is about.
    pub eoj: Eoj,
    /// What is required.
    pub requirement: String,
    /// Where that is written.
    pub source: &'static str,
    /// What came of it.
    pub outcome: Outcome,
}

/// Whether a node meets a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    Passed,
    /// It does not: what it did instead.
    Failed(String),
    /// It was not examined, and why.
    Skipped(&'static str),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, eoj, requirement, source, outcome } = self;
        match outcome {
            Outcome::Passed => write!(f, "passed   {eoj} {id}: {requirement} ({source})"),
            Outcome::Failed(why) => write!(f, "FAILED   {eoj} {id}: {requirement} ({source}): {why}"),
            Outcome::Skipped(why) => write!(f, "skipped  {eoj} {id}: {requirement} ({source}): {why}"),
        }
    }
}

/// All items of a node.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where the node is.
    pub node: IpAddr,
    /// Object by object.
    pub items: Vec<Item>,
}

impl Report {
    pub(super) fn new(node: IpAddr) -> Self {
        Self { node, items: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        eoj: Eoj,
        id: impl Into<String>,
        requirement: impl Into<String>,
        source: &'static str,
        outcome: Outcome,
    ) {
        self.items.push(Item { id: id.into(), eoj, requirement: requirement.into(), source, outcome });
    }

    /// The items that the node does not meet.
    pub fn failed(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| matches!(item.outcome, Outcome::Failed(_)))
    }

    /// How many passed, failed, were skipped.
    pub fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for item in &self.items {
            counts[match item.outcome {
                Outcome::Passed => 0,
                Outcome::Failed(_) => 1,
                Outcome::Skipped(_) => 2,
            }] += 1;
        }
        counts
    }

    /// The report as JUnit's XML, which continuous integration shows: one suite for each object.
    pub fn junit(&self) -> String {
        let [_, failed, skipped] = self.counts();
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ECHONET Lite {}\" tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\">\n",
            self.node,
            self.items.len(),
        );
        for suite in self.items.chunk_by(|a, b| a.eoj == b.eoj) {
            let count = |of: fn(&Outcome) -> bool| suite.iter().filter(|item| of(&item.outcome)).count();
            let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
            let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
            let (eoj, tests) = (suite[0].eoj, suite.len());
            xml += &format!(
                "  <testsuite name=\"{eoj}\" tests=\"{tests}\" failures=\"{failed}\" skipped=\"{skipped}\">\n"
            );
            for item in suite {
                let name = escaped(&format!("{}: {}", item.id, item.requirement));
                xml += &format!("    <testcase classname=\"{eoj}\" name=\"{name}\"");
                xml += &match &item.outcome {
                    Outcome::Passed => "/>\n".to_owned(),
                    Outcome::Failed(why) => format!("><failure message=\"{}\"/></testcase>\n", escaped(why)),
                    Outcome::Skipped(why) => format!("><skipped message=\"{}\"/></testcase>\n", escaped(why)),
                };
            }
            xml += "  </testsuite>\n";
        }
        xml + "</testsuites>\n"
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
