//! Records of what was measured that are no comparison's: a line of JSON for each row, in `benches/record`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A file of the folder of records.
pub(crate) fn path(name: &str) -> PathBuf {
    xtask::workspace::root().join("benches/record").join(name)
}

/// A record's rows; none where it is not there.
///
/// # Errors
/// A line is no row.
pub(crate) fn read<R: DeserializeOwned>(name: &str) -> Result<Vec<R>> {
    let Ok(text) = fs::read_to_string(path(name)) else { return Ok(Vec::new()) };
    text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("benches/record/{name}"))).collect()
}

/// Writes a record anew.
///
/// # Errors
/// The file's.
pub(crate) fn write<R: Serialize>(name: &str, rows: &[R]) -> Result<()> {
    let lines = rows.iter().map(|row| Ok(serde_json::to_string(row)? + "\n")).collect::<Result<String>>()?;
    Ok(fs::write(path(name), lines)?)
}
