//! The results of an examination.

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
    /// The requirement.
    pub requirement: String,
    /// Where that is written.
    pub source: &'static str,
    /// The result.
    pub outcome: Outcome,
    /// The exchanges that the result rests on. Empty if it rests on values that were read before.
    pub exchanges: Vec<Exchange>,
}

/// A datagram that was sent to the node, and all that came until the next one was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The datagram that was sent.
    pub sent: Vec<u8>,
    /// The datagrams that came from the node, in order.
    pub received: Vec<Vec<u8>>,
}

/// Whether a node meets a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    Passed,
    /// It does not; the text says how the node behaves instead.
    Failed(String),
    /// That could not be decided, and why.
    Undecided(String),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, eoj, requirement, source, outcome, .. } = self;
        match outcome {
            Outcome::Passed => write!(f, "passed     {eoj} {id}: {requirement} ({source})"),
            Outcome::Failed(why) => write!(f, "FAILED     {eoj} {id}: {requirement} ({source}): {why}"),
            Outcome::Undecided(why) => write!(f, "undecided  {eoj} {id}: {requirement} ({source}): {why}"),
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
    /// Whether anything at all has come from the address. If not, nothing was examined.
    pub is_there: bool,
    /// How often a request was sent again because no answer had come.
    pub repeated: u64,
    /// Whether another program of this machine has the address and port that the examination speaks from: answers can go
    /// there instead.
    pub is_shared: bool,
}

impl Report {
    pub(super) fn new(node: IpAddr) -> Self {
        Self { node, items: Vec::new(), is_there: true, repeated: 0, is_shared: false }
    }

    /// Adds an item about values that were read before.
    pub(super) fn add(
        &mut self,
        eoj: Eoj,
        id: impl Into<String>,
        requirement: impl Into<String>,
        source: &'static str,
        outcome: Outcome,
    ) {
        let (id, requirement, exchanges) = (id.into(), requirement.into(), Vec::new());
        self.items.push(Item { id, eoj, requirement, source, outcome, exchanges });
    }

    /// The items that the node does not meet.
    pub fn failed(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| matches!(item.outcome, Outcome::Failed(_)))
    }

    /// How many passed, failed, could not be decided.
    pub fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for item in &self.items {
            counts[match item.outcome {
                Outcome::Passed => 0,
                Outcome::Failed(_) => 1,
                Outcome::Undecided(_) => 2,
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
            let skipped = count(|outcome| matches!(outcome, Outcome::Undecided(_)));
            let (eoj, tests) = (suite[0].eoj, suite.len());
            xml += &format!(
                "  <testsuite name=\"{eoj}\" tests=\"{tests}\" failures=\"{failed}\" skipped=\"{skipped}\">\n"
            );
            for item in suite {
                let name = escaped(&format!("{}: {}", item.id, item.requirement));
                xml += &format!("    <testcase classname=\"{eoj}\" name=\"{name}\"");
                xml += &match &item.outcome {
                    Outcome::Passed => "/>\n".to_owned(),
                    Outcome::Failed(why) => {
                        let said = escaped(&said(&item.exchanges));
                        format!("><failure message=\"{}\">{said}</failure></testcase>\n", escaped(why))
                    }
                    Outcome::Undecided(why) => format!("><skipped message=\"{}\"/></testcase>\n", escaped(why)),
                };
            }
            xml += "  </testsuite>\n";
        }
        xml + "</testsuites>\n"
    }
}

/// The exchanges, a line for each datagram: `>` to the node, `<` from it.
fn said(exchanges: &[Exchange]) -> String {
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    let lines = exchanges.iter().flat_map(|exchange| {
        let received = exchange.received.iter().map(|bytes| format!("< {}\n", digits(bytes)));
        core::iter::once(format!("> {}\n", digits(&exchange.sent))).chain(received)
    });
    lines.collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
