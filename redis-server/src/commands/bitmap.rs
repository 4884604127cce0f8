//! Bitmaps (<https://redis.io/docs/latest/commands/?group=bitmap>).

use crate::command::{Categories, Family};

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "bitmap", category: Categories::BITMAP, commands: &[
] };
