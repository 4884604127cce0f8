//! Transactions (<https://redis.io/docs/latest/commands/?group=transactions>).

use crate::command::{Categories, Family};

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "transactions", category: Categories::TRANSACTION, commands: &[
] };
