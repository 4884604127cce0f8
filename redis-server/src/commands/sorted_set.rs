//! Sorted sets (<https://redis.io/docs/latest/commands/?group=sorted-set>).

use crate::command::{Categories, Family};

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "sorted_set", category: Categories::SORTEDSET, commands: &[
] };
