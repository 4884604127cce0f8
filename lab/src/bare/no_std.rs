//! Proof that echonet-lite without features has neither `std` nor `alloc`, nor any other crate.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use xtask::process::run_quietly;

use super::size::crate_of;

/// Builds the library for this machine and looks at what it would link.
///
/// # Errors
/// When it depends on anything but `core`.
pub(super) fn check() -> Result<()> {
    let cargo = |arguments: &[&str]| {
        let mut command = xtask::workspace::cargo();
        command.args(arguments).args(["--package", "echonet-lite", "--no-default-features"]);
        command.env("CARGO_TARGET_DIR", super::build::target_dir());
        run_quietly(&mut command)
    };
    let tree = cargo(&["tree", "--quiet", "--edges", "normal,build"])?;
    ensure!(tree.lines().count() == 1, "echonet-lite without features has dependencies:\n{tree}");
    cargo(&["build", "--quiet"])?;
    let library = super::build::target_dir().join("debug/libechonet_lite.rlib");
    let foreign = undefined(&library)?.into_iter().find(|name| is_foreign(name));
    ensure!(foreign.is_none(), "echonet-lite without features uses {}", foreign.unwrap_or_default());
    println!("echonet-lite without features: `core` alone");
    Ok(())
}

/// A function of `std` or `alloc`, or the allocator's entry.
fn is_foreign(name: &str) -> bool {
    matches!(crate_of(name), "std" | "alloc") || name.contains("__rust_alloc")
}

/// The symbols that the objects of a library expect from elsewhere.
fn undefined(library: &Path) -> Result<Vec<String>> {
    let bytes = fs::read(library).with_context(|| format!("cannot read {}", library.display()))?;
    let mut names = Vec::new();
    for member in ArchiveFile::parse(&*bytes)?.members() {
        let member = member?;
        if !member.name().ends_with(b".o") {
            continue;
        }
        let object = object::File::parse(member.data(&*bytes)?)?;
        for symbol in object.symbols().filter(ObjectSymbol::is_undefined) {
            names.push(format!("{:#}", rustc_demangle::demangle(symbol.name()?)));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_std_and_alloc_are_foreign() {
        let check = |name: &str, expected: bool| assert_eq!(is_foreign(name), expected, "{name}");
        check("alloc::vec::Vec<u8>::push", true);
        check("<std::io::Error as core::fmt::Debug>::fmt", true);
        check("__rust_alloc", true);
        check("core::alloc::layout::Layout::new", false);
    }
}
