//! Costs of servers other than rates: memory, and the expiry of fields. Speed is compared by the plans in `benches/scenarios`.

pub(crate) mod collections;
pub(crate) mod fields;
mod memory;
mod options;
pub(crate) mod stats;
mod subject;

use std::fs;

use anyhow::{Result, bail};

pub(crate) use options::Options;
pub(crate) use subject::memory_only;

/// Measures and prints.
///
/// # Errors
/// When a server cannot be started, or answers wrongly.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = xtask::workspace::target_dir().join("compare");
    fs::create_dir_all(&folder)?;
    if options.memory {
        return memory::run(options, &folder);
    }
    if options.collections {
        return collections::run(options, &folder);
    }
    if let Some(fields) = options.fields {
        return fields::run(options, fields, &folder);
    }
    bail!("expected what is to be measured: --memory, --collections or --fields")
}
