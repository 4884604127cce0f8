//! A crate outside of the workspace, made of a README alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run_within;

/// A cold build of all libraries on a busy machine.
const BUILD: u32 = 900;

/// Makes a crate of those code blocks of the documents whose first line is a comment with a path, in `folder`, and builds it;
/// the folder of its programs. The first document is the README of a crate of the workspace. `PATH/` stands for the workspace,
/// whose lock file it takes, so that nothing is fetched. `replaced` are texts and what stands for them, such as ports. `cargo`
/// is the cargo that runs the tests.
///
/// # Panics
/// If it does not build, with what cargo said.
#[must_use]
pub fn outside(cargo: &str, documents: &[&Path], folder: &Path, replaced: &[(&str, &str)]) -> PathBuf {
    let workspace = documents[0].ancestors().nth(2).expect("a README stands in a crate of the workspace");
    let read = |path: &&Path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let text = documents.iter().map(read).collect::<Vec<_>>().join("\n");
    let mut text = text.replace("PATH/", &format!("{}/", workspace.display()));
    for (known, other) in replaced {
        assert!(text.contains(known), "{documents:?}: no {known}");
        text = text.replace(known, other);
    }
    for (path, content) in blocks(&text) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("it is below the folder")).expect("a folder can be made");
        fs::write(&path, content).expect("a file can be written");
    }
    fs::copy(workspace.join("Cargo.lock"), folder.join("Cargo.lock")).expect("the workspace has a lock file");
    // Crates beside each other build the libraries that they share once.
    let target = folder.with_file_name("outside-target");
    let mut build = Command::new(cargo);
    build.args(["build", "--offline", "--target-dir"]).arg(&target).current_dir(folder);
    build.env("CARGO_PROFILE_DEV_DEBUG", "0");
    let output = run_within(BUILD, &build).expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug")
}

/// The blocks that name their file, and its content.
fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("\n```").skip(1).step_by(2).filter_map(|block| {
        let (_, block) = block.split_once('\n')?;
        let (first, rest) = block.split_once('\n')?;
        let path = first.strip_prefix("// ").or_else(|| first.strip_prefix("# "))?;
        let is_path = path.contains('.') && !path.contains(' ');
        is_path.then_some((path, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::blocks;

    #[test]
    fn blocks_that_name_a_file() {
        let text =
            "A\n```rust\n// src/a.rs\nfn a() {}\n```\nB\n```sh\nls\n```\n```toml\n# Cargo.toml\n[package]\n```\n";
        assert_eq!(blocks(text).collect::<Vec<_>>(), [("src/a.rs", "fn a() {}"), ("Cargo.toml", "[package]")]);
    }
}
