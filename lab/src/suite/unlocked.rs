//! Files that the suite keeps for servers which it starts itself, and which can be run against any server all the same.
//!
//! Their tests are tagged `external:skip`, mostly because they change many settings; a copy without the tag, next to the
//! original, is run against a server of its own. The genuine server runs the same copy, so that only what passes there
//! counts.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The tag.
const TAG: &str = "external:skip";
/// Lines with this word keep it: they concern jemalloc.
const LOCKED: &str = "defrag";

/// The files, and their tests that need a replica, or a server on which no other test has run: the genuine one fails those
/// too.
const FILES: &[(&str, &[&str])] = &[
    (
        "unit/maxmemory",
        &[
            "slave buffer are counted correctly",
            "replica buffer don't induce eviction",
            "propagation with eviction",
            "propagation with eviction in MULTI",
            "client tracking don't cause eviction feedback loop",
        ],
    ),
    (
        "unit/client-eviction",
        &[
            "client total memory grows during client no-evict",
            "client total memory grows during maxmemory-clients disabled",
        ],
    ),
    ("unit/memefficiency", &[]),
    ("unit/info", &[]),
    ("unit/limits", &[]),
    (
        "unit/pubsubshard",
        &["setup replication for following tests", "publish message to master and receive on replica"],
    ),
    ("unit/obuf-limits", &[]),
];

/// The name by which the suite runs a file, whose copy is made if it needs one, and the tests to be left out.
///
/// # Errors
/// When the copy cannot be made.
pub(super) fn prepare<'a>(tree: &Path, unit: &'a str) -> Result<(Cow<'a, str>, &'static [&'static str])> {
    let Some((_, unfit)) = FILES.iter().find(|(name, _)| *name == unit) else { return Ok((unit.into(), &[])) };
    let tests = tree.join("tests");
    let copy = format!("{unit}-unlocked");
    let text = fs::read_to_string(tests.join(format!("{unit}.tcl"))).with_context(|| format!("cannot read {unit}"))?;
    let unlock = |line: &str| if line.contains(LOCKED) { line.to_owned() } else { line.replace(TAG, "") };
    fs::write(tests.join(format!("{copy}.tcl")), text.split_inclusive('\n').map(unlock).collect::<String>())?;
    Ok((copy.into(), unfit))
}
