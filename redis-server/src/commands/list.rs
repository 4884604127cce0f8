//! Lists (<https://redis.io/docs/latest/commands/?group=list>).

use crate::command::{Categories, Family};

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "list", category: Categories::LIST, commands: &[
] };
