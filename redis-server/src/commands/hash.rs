//! Hashes (<https://redis.io/docs/latest/commands/?group=hash>).

use crate::command::{Categories, Family};

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "hash", category: Categories::HASH, commands: &[
] };
