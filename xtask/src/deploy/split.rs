//! Programs as they are installed: what they are when they run, and what only debuggers want of them, in files of their own.
//!
//! Nothing that is loaded changes, so what is shipped is what is measured. Names of functions stay: backtraces and profilers have
//! them without the second file, and with it lines of the sources.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::process::run_quietly;

/// Sizes of a program, in bytes.
pub(super) struct Sizes {
    pub(super) whole: u64,
    pub(super) program: u64,
    pub(super) debug: u64,
}

/// Splits a program into `folder/NAME` and `folder/NAME.debug`, which debuggers find by the link that the program has.
///
/// # Errors
/// When binutils' objcopy fails, or has taken too much: the program must run, and have its functions' names.
pub(super) fn split(program: &Path, folder: &Path) -> Result<Sizes> {
    let name = program.file_name().context("a program has a name")?.display().to_string();
    let (stripped, debug) = (folder.join(&name), folder.join(format!("{name}.debug")));
    run_quietly(Command::new("objcopy").arg("--only-keep-debug").arg(program).arg(&debug))?;
    // The link names the file without its folder: objcopy looks for it where it runs.
    let mut strip = Command::new("objcopy");
    strip.current_dir(folder).arg("--strip-debug").arg(format!("--add-gnu-debuglink={name}.debug"));
    run_quietly(strip.arg(program).arg(&stripped))?;
    run_quietly(Command::new(&stripped).arg("--version")).with_context(|| stripped.display().to_string())?;
    let sections = run_quietly(Command::new("objdump").arg("--section-headers").arg(&stripped))?;
    let symbols = run_quietly(Command::new("nm").arg(&stripped))?;
    for (holds, rule) in [
        (sections.contains(".gnu_debuglink"), "has no link to its debug information"),
        (!sections.contains(".debug_info"), "still has debug information"),
        (symbols.lines().any(|line| line.ends_with(" main")), "has lost the names of its functions"),
    ] {
        if !holds {
            bail!("{}: {rule}", stripped.display());
        }
    }
    let length = |path: &Path| fs::metadata(path).map(|metadata| metadata.len());
    Ok(Sizes { whole: length(program)?, program: length(&stripped)?, debug: length(&debug)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_stripped_programs_are_refused() {
        if !super::super::tool::is_there("objcopy") {
            println!("skipped: no objcopy");
            return;
        }
        let folder = xtask::workspace::target_dir().join("tmp/split");
        fs::create_dir_all(&folder).unwrap();
        let said = |program: &str| split(Path::new(program), &folder).map(drop).unwrap_err().to_string();
        assert!(said("/nowhere/nothing").contains("--only-keep-debug"));
        // Debian's programs have lost all names.
        assert!(said("/bin/true").ends_with("has lost the names of its functions"));
    }
}
