//! Sets (<https://redis.io/docs/latest/commands/?group=set>).

use crate::command::{Categories, Family};

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "set", category: Categories::SET, commands: &[
] };
