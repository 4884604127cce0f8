//! From a query's tree to matching documents: iterators, scores, sorting.

mod build;
mod by_number;
mod expansion;
mod levenshtein;
mod matches;
mod patterns;
mod phrase;
mod profile;
mod record;
mod score;
mod search;
mod vectors;

pub(crate) use levenshtein::Table;
pub(crate) use patterns::{Pattern, expand};
pub use profile::{IteratorKind, IteratorProfile, Profiler, StepProfile};
pub use score::{Explanation, Level, Scorer};
pub(crate) use search::Match;
pub use search::{DistanceOrder, Hit, Hits, Keep, Limits, Load, MAX_WINDOW, SearchError, SearchOptions, SortBy};
