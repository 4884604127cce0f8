//! Publish and subscribe (<https://redis.io/docs/latest/commands/?group=pubsub>).

use crate::command::{Categories, Family};

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "pubsub", category: Categories::PUBSUB, commands: &[
] };
