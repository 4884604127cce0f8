//! The parts of a program, in CycloneDX: every crate that goes into it or builds it, with version, licence and checksum.
//!
//! From `cargo tree` of the program's package, whose features are those that it is built with, and `Cargo.lock`. The same tree
//! makes the same text: it has neither a date nor a serial number.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use xtask::process::run_quietly;

/// The platform of the programs.
const TARGET: &str = "x86_64-unknown-linux-gnu";

#[derive(Deserialize)]
pub(super) struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    /// Of what comes from a registry.
    checksum: Option<String>,
}

/// A crate, as `cargo tree` prints it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
    license: String,
}

impl Crate {
    /// Its package URL.
    fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// The parts of a program: its package, and all crates, each with those that it needs.
struct Tree {
    root: Crate,
    edges: BTreeMap<Crate, BTreeSet<Crate>>,
}

/// Reads the workspace's lock.
///
/// # Errors
/// When it cannot be read.
pub(super) fn lock() -> Result<Lock> {
    let text = std::fs::read_to_string(xtask::workspace::root().join("Cargo.lock"))?;
    toml::from_str(&text).context("Cargo.lock")
}

/// The bill of a program, and how many crates stand in it.
///
/// # Errors
/// When cargo cannot say, or says something else than expected.
pub(super) fn of(program: &str, package: &str, features: &str, lock: &Lock) -> Result<(String, usize)> {
    let mut tree = xtask::workspace::cargo();
    // A crate of tests alone is no part of a program.
    tree.args(["tree", "--offline", "--quiet", "--edges", "normal,build", "--prefix", "depth", "--format", "|{p}|{l}"]);
    tree.args(["--target", TARGET, "--package", package, "--features", features]);
    let tree = parse(&run_quietly(&mut tree)?)?;
    let bill = serde_json::to_string_pretty(&bill(program, &tree, lock))?;
    Ok((bill + "\n", tree.edges.len() - 1))
}

fn parse(text: &str) -> Result<Tree> {
    let mut above: Vec<Crate> = Vec::new();
    let mut edges: BTreeMap<Crate, BTreeSet<Crate>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (depth, found) = parse_line(line).with_context(|| format!("cargo tree: `{line}`"))?;
        above.truncate(depth);
        if let Some(parent) = above.last() {
            edges.entry(parent.clone()).or_default().insert(found.clone());
        }
        edges.entry(found.clone()).or_default();
        above.push(found);
    }
    let root = above.into_iter().next().context("cargo tree: no crate")?;
    Ok(Tree { root, edges })
}

/// `1|tokio v1.0.0 (proc-macro)|MIT (*)`.
fn parse_line(line: &str) -> Option<(usize, Crate)> {
    let mut parts = line.split('|');
    let depth = parts.next()?.parse().ok()?;
    let mut words = parts.next()?.split(' ');
    let name = words.next()?.to_owned();
    let version = words.next()?.strip_prefix('v')?.to_owned();
    // Older crates have a stroke where SPDX says OR.
    let license = parts.next()?.trim_end_matches(" (*)").replace('/', " OR ");
    Some((depth, Crate { name, version, license }))
}

fn bill(program: &str, tree: &Tree, lock: &Lock) -> Value {
    let parts =
        tree.edges.keys().filter(|part| **part != tree.root).map(|part| component("library", &part.name, part, lock));
    let dependencies = tree.edges.iter().map(|(part, needed)| {
        let needed: Vec<_> = needed.iter().map(Crate::url).collect();
        json!({ "ref": part.url(), "dependsOn": needed })
    });
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": component("application", program, &tree.root, lock) },
        "components": parts.collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    })
}

fn component(kind: &str, name: &str, part: &Crate, lock: &Lock) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": part.url(),
        "name": name,
        "version": part.version,
        "purl": part.url(),
        "licenses": [{ "expression": part.license }],
    });
    let locked = lock.package.iter().find(|locked| locked.name == part.name && locked.version == part.version);
    if let Some(checksum) = locked.and_then(|locked| locked.checksum.as_ref()) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0|server v0.1.0 (/there/server)|MIT OR Apache-2.0\n\
                        1|b v1.2.3|MIT/Apache-2.0\n\
                        2|a v2.0.0+1.2 (proc-macro)|Zlib\n\
                        1|a v2.0.0+1.2 (proc-macro)|Zlib (*)\n";

    fn lock() -> Lock {
        toml::from_str("[[package]]\nname = \"b\"\nversion = \"1.2.3\"\nchecksum = \"00ff\"\n").unwrap()
    }

    #[test]
    fn sbom_lists_each_crate_once_with_its_dependencies() {
        let bill = bill("program", &parse(TREE).unwrap(), &lock());
        let names: Vec<_> = bill["components"].as_array().unwrap().iter().map(|part| part["purl"].as_str()).collect();
        assert_eq!(names, [Some("pkg:cargo/a@2.0.0+1.2"), Some("pkg:cargo/b@1.2.3")]);
        assert_eq!(bill["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["components"][1]["hashes"][0]["content"], "00ff");
        assert_eq!(bill["components"][0].get("hashes"), None);
        assert_eq!(bill["metadata"]["component"]["name"], "program");
        let needs =
            |at: usize| (bill["dependencies"][at]["ref"].clone(), bill["dependencies"][at]["dependsOn"].clone());
        assert_eq!(needs(0), (json!("pkg:cargo/a@2.0.0+1.2"), json!([])));
        assert_eq!(needs(1), (json!("pkg:cargo/b@1.2.3"), json!(["pkg:cargo/a@2.0.0+1.2"])));
        assert_eq!(needs(2), (json!("pkg:cargo/server@0.1.0"), json!(["pkg:cargo/a@2.0.0+1.2", "pkg:cargo/b@1.2.3"])));
    }

    #[test]
    fn invalid_cargo_tree_output_is_an_error() {
        for (text, expected) in [("", "cargo tree: no crate"), ("0|a|MIT", "cargo tree: `0|a|MIT`")] {
            assert_eq!(parse(text).map(drop).unwrap_err().to_string(), expected);
        }
    }
}
