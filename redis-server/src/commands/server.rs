//! The server (<https://redis.io/docs/latest/commands/?group=server>).

use crate::command::{Categories, Family};

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "server", category: Categories(0), commands: &[
] };
