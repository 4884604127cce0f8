//! Comparisons of servers: subjects are started by recipes, their runs interleaved, their results recorded; reports and
//! verdicts are made from records alone.

pub mod analysis;
mod capacity;
mod child;
mod cores;
mod gate;
mod machine;
mod margin;
pub mod markdown;
mod metric;
mod order;
mod page;
mod plan;
mod printed;
mod program;
mod ready;
mod record;
mod report;
mod run;
mod server;
pub mod stats;
mod steady;
mod surroundings;
mod usage;
mod validity;
mod verdict;
mod words;

pub use capacity::{OfferedRate, RateOf};
pub use child::output;
pub use cores::Cores;
pub use gate::{Finding, Gate, Judgement, Rules, judge};
pub use machine::{Machine, commit, now};
pub use margin::MARGIN;
pub use markdown::{markdown, single_markdown};
pub use metric::Metric;
pub use order::Order;
pub use page::page;
pub use plan::{Load, Plan, Servers, Subject, Time};
pub use ready::Ready;
pub use record::{End, FORMAT, FailedRun, Header, Line, Record, Run, ScenarioHeader, Stored, SubjectHeader, Writer};
pub use report::{PROCESSORS_USED, TEXTS, Table, factor, legend, offered, ratio_text, used};
pub use run::run;
pub use surroundings::Surroundings;
pub use validity::{is_disturbed, is_generator_saturated, is_saturated, processors_used};
pub use verdict::{Comparison, Judged, Side, Verdict, Void, verdicts};
pub use words::Words;
