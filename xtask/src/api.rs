//! The public items of the crates that others embed: one a line, as recorded in `xtask/api`. The diff of a commit shows each change of
//! them, so that none is made unawares.
//!
//! The items are rustdoc's, in the form that it has for programs. That is not stable, and every compiler has a version of it: so
//! it is written by the workspace's own compiler, which `rust-toolchain.toml` names, and read by the release of `public-api` that fits.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use public_api::Builder;
use xtask::process::run_quietly;

/// The recorded part of a crate.
enum Part {
    Whole,
    /// The items of this module.
    Inside(&'static str),
    /// All but what stands in the modules of this one, and what is said of a module `spec`, where types of those say what they hold.
    WithoutModulesOf(&'static str),
}

const CRATES: [(&str, Part); 7] = [
    // A device class is a module that is made of its lines in classes.tsv, where a change of it is seen.
    ("echonet-lite", Part::WithoutModulesOf("echonet_lite::class")),
    ("grpc-server", Part::Whole),
    ("http-server", Part::Whole),
    ("http2", Part::Whole),
    // Its other modules are there for http-server, the fuzz targets and the benches.
    ("redis-server", Part::Inside("redis_server::runtime::test")),
    ("serve", Part::Whole),
    ("server-runtime", Part::Whole),
];

/// rustdoc as it stands, but for the form of its output, which a stable compiler gives only with this variable. Not said for all of
/// cargo's call: build scripts look at the variable, and would build half of the libraries anew.
const RUSTDOC: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";

/// Options of `cargo xtask api`.
#[derive(Args)]
pub(crate) struct Options {
    /// Writes what the crates offer now, instead of comparing it.
    #[arg(long)]
    renew: bool,
}

/// Compares what the crates offer with what is written down.
///
/// # Errors
/// With the lines that differ, and when rustdoc fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = document()?;
    let lists = xtask::workspace::root().join("xtask/api");
    fs::create_dir_all(&lists)?;
    let mut differences = Vec::new();
    for (package, part) in CRATES {
        let items = items(&folder.join(format!("{}.json", package.replace('-', "_"))), &part)?;
        let file = lists.join(format!("{package}.txt"));
        if options.renew {
            fs::write(&file, &items).with_context(|| file.display().to_string())?;
            continue;
        }
        let written = fs::read_to_string(&file).with_context(|| format!("{}: {RENEW}", file.display()))?;
        let lines = difference(&written, &items);
        if !lines.is_empty() {
            differences.push(format!("{package}:\n{}", lines.join("\n")));
        }
    }
    if !differences.is_empty() {
        bail!("public items are not those of xtask/api:\n{}\n{RENEW}", differences.join("\n"));
    }
    Ok(())
}

/// The hint behind a difference.
const RENEW: &str = "if that is meant, `cargo xtask api --renew`, and a line in CHANGELOG.md for who uses them";

/// Has rustdoc write down all libraries for programs; the folder where that is. With the features that the gate's documents have, so
/// that both need the same of the libraries.
fn document() -> Result<PathBuf> {
    let target = xtask::workspace::target_dir();
    let rustdoc = target.join("tmp/rustdoc-for-programs");
    fs::create_dir_all(target.join("tmp"))?;
    fs::write(&rustdoc, RUSTDOC)?;
    fs::set_permissions(&rustdoc, fs::Permissions::from_mode(0o755))?;
    let mut doc = xtask::workspace::cargo();
    doc.args(["doc", "--workspace", "--all-features", "--no-deps", "--lib"]);
    doc.env("RUSTDOC", rustdoc).env("RUSTDOCFLAGS", "-Zunstable-options --output-format=json");
    run_quietly(&mut doc)?;
    Ok(target.join("doc"))
}

/// The public items of a part of a library, one a line.
fn items(file: &Path, part: &Part) -> Result<String> {
    let api = Builder::from_rustdoc_json(file).omit_blanket_impls(true).omit_auto_trait_impls(true).build();
    let api = api.with_context(|| {
        format!(
            "{}: not the form that this release of public-api reads: another goes with another compiler",
            file.display()
        )
    })?;
    // Items that two types share are listed with both.
    let mut seen = BTreeSet::new();
    let lines = api.items().map(ToString::to_string).filter(|line| part.has(line) && seen.insert(line.clone()));
    Ok(lines.flat_map(|line| [line, "\n".to_owned()]).collect())
}

impl Part {
    /// Whether an item belongs to it, by its line.
    fn has(&self, line: &str) -> bool {
        match *self {
            Self::Whole => true,
            Self::Inside(module) => behind(line, module).any(|rest| rest.is_empty() || rest.starts_with("::")),
            Self::WithoutModulesOf(module) => {
                let is_module = |name: &str| name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
                let is_inside = |rest: &str| match rest.split_once("::") {
                    Some((name, _)) => is_module(name),
                    None => line.starts_with("pub mod "),
                };
                let is_inside = behind(line, module).filter_map(|rest| rest.strip_prefix("::")).any(is_inside);
                !is_inside && !line.contains("<spec::")
            }
        }
    }
}

/// The rest of the line behind each place where a path is named.
fn behind<'l>(line: &'l str, path: &str) -> impl Iterator<Item = &'l str> {
    line.match_indices(path).map(|(at, path)| &line[at + path.len()..])
}

/// Lines that are no longer there, and new ones.
fn difference(written: &str, items: &str) -> Vec<String> {
    let (before, now): (BTreeSet<_>, BTreeSet<_>) = (written.lines().collect(), items.lines().collect());
    let gone = before.difference(&now).map(|line| format!("-{line}"));
    gone.chain(now.difference(&before).map(|line| format!("+{line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_has_gone_and_what_has_come() {
        assert_eq!(difference("pub fn a()\npub fn b()\n", "pub fn b()\npub fn c()\n"), ["-pub fn a()", "+pub fn c()"]);
        assert!(difference("pub fn a()\n", "pub fn a()\n").is_empty());
    }

    #[test]
    fn a_part_has_what_it_names() {
        let check = |part: Part, line, expected| assert_eq!(part.has(line), expected, "{line}");
        let inside = || Part::Inside("redis_server::runtime::test");
        check(inside(), "pub mod redis_server::runtime::test", true);
        check(inside(), "pub fn redis_server::runtime::test::Server::start() -> Self", true);
        check(inside(), "impl core::ops::drop::Drop for redis_server::runtime::test::Server", true);
        check(inside(), "pub mod redis_server::runtime::tests", false);
        check(inside(), "pub mod redis_server::runtime", false);
        let without = || Part::WithoutModulesOf("echonet_lite::class");
        check(without(), "pub mod echonet_lite::class", true);
        check(without(), "pub struct echonet_lite::class::Property", true);
        check(without(), "pub fn echonet_lite::class::Property::name(self) -> &'static str", true);
        check(without(), "pub fn echonet_lite::class::find(u8) -> echonet_lite::class::Class", true);
        check(without(), "pub mod echonet_lite::class::air_cleaner", false);
        check(without(), "pub const echonet_lite::class::air_cleaner::CODE: u16", false);
        check(without(), "pub const echonet_lite::class::Quantity<spec::Humidity>::UNMEASURABLE: Self", false);
        check(without(), "impl core::clone::Clone for echonet_lite::class::air_cleaner::Mode", false);
    }
}
