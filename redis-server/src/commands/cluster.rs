//! What clients of a cluster tell a node about their connection: this server is none.

use crate::command::{Args, Categories, Flags, Result};
use crate::commands::definition::{Family, cmd};
use crate::exec::Ctx;
use crate::protocol::error::Error;

/// ASKING, READONLY, READWRITE
fn refuse(_: &mut Ctx<'_>, _: Args<'_>) -> Result {
    Err(Error::Static("ERR This instance has cluster support disabled"))
}

const FAST: Flags = Flags::FAST;
const ANY_TIME: Flags = FAST.and(Flags::LOADING).and(Flags::STALE);

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "cluster", category: Categories::CONNECTION, commands: &[
    cmd("asking",    1, refuse, FAST,     &[]),
    cmd("readonly",  1, refuse, ANY_TIME, &[]),
    cmd("readwrite", 1, refuse, ANY_TIME, &[]),
] };
