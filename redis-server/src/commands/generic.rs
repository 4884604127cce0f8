//! Keys of any type (<https://redis.io/docs/latest/commands/?group=generic>).

use crate::command::{Categories, Family};

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "generic", category: Categories::KEYSPACE, commands: &[
] };
