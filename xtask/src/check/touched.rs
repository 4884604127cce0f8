//! Which crates own the files that a change touches, and which depend on those.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use xtask::process::run_quietly;

/// Files of the workspace's root, and folders, that all crates are built by.
const SHARED: [&str; 6] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "clippy.toml", "rustfmt.toml", ".cargo/"];

/// Documents outside of the folder of the crate whose programs they call.
const DOCUMENTS: &[(&str, &str)] = &[
    ("echonet", "docs/echonet-lite/"),
    ("echonet-lite", "docs/echonet-lite/"),
    ("grpc-server", "docs/grpc/"),
    ("http-server", "docs/http/"),
    ("loadgen", "docs/loadgen/"),
    ("redis-server", "docs/redis/"),
];

/// The workspace's crates.
pub(super) struct Workspace {
    crates: BTreeMap<String, Crate>,
}

struct Crate {
    /// Relative to the workspace's root, with `/`.
    folder: String,
    /// Names of the workspace's crates that this one is built or tested with.
    depends_on: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// The folder of a crate that comes from no registry.
    path: Option<String>,
}

impl Workspace {
    /// Asks cargo for the packages of the workspace.
    ///
    /// # Errors
    /// A manifest that cargo cannot read.
    pub(super) fn read() -> Result<Self> {
        let mut metadata = xtask::workspace::cargo();
        metadata.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
        let metadata: Metadata = serde_json::from_str(&run_quietly(&mut metadata)?).context("cargo metadata")?;
        let crates = metadata.packages.into_iter().map(|package| {
            let folder = Path::new(&package.manifest_path).parent().context("a manifest without a folder")?;
            let folder = folder.strip_prefix(xtask::workspace::root())?.display().to_string();
            let local = package.dependencies.into_iter().filter(|dependency| dependency.path.is_some());
            let depends_on = local.map(|dependency| dependency.name).collect();
            Ok((package.name, Crate { folder, depends_on }))
        });
        Ok(Self { crates: crates.collect::<Result<_>>()? })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.crates.contains_key(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.crates.keys().map(String::as_str)
    }

    /// The folder of a crate of this workspace, relative to its root.
    pub(super) fn folder(&self, name: &str) -> &str {
        &self.crates[name].folder
    }

    /// The crates to which these files belong, documents included; all, if a file belongs to the build of all.
    pub(super) fn owners<'a>(&self, files: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
        let mut owners = BTreeSet::new();
        for file in files {
            if SHARED.iter().any(|shared| if shared.ends_with('/') { file.starts_with(shared) } else { file == shared })
            {
                return self.crates.keys().cloned().collect();
            }
            let is_in = |folder: &str| file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
            let owns =
                |name: &str, of: &Crate| is_in(&of.folder) || documents(name).any(|folder| file.starts_with(folder));
            owners.extend(self.crates.iter().filter(|(name, of)| owns(name, of)).map(|(name, _)| name.clone()));
        }
        owners
    }

    /// These crates and all that depend on one of them, directly or not.
    pub(super) fn with_dependents(&self, mut crates: BTreeSet<String>) -> BTreeSet<String> {
        loop {
            let depends = |of: &Crate| !of.depends_on.is_disjoint(&crates);
            let more: Vec<_> = self.crates.iter().filter(|(_, of)| depends(of)).map(|(name, _)| name.clone()).collect();
            let before = crates.len();
            crates.extend(more);
            if crates.len() == before {
                return crates;
            }
        }
    }
}

/// The folders of a crate's [`DOCUMENTS`].
pub(super) fn documents(name: &str) -> impl Iterator<Item = &'static str> {
    DOCUMENTS.iter().filter(move |(of, _)| *of == name).map(|(_, folder)| *folder)
}

/// Files that differ from the merge base of `revision` and HEAD, committed or not, new ones included.
///
/// # Errors
/// A revision that git does not know.
pub(super) fn files(revision: &str) -> Result<Vec<String>> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        run_quietly(git.args(arguments).current_dir(xtask::workspace::root()))
    };
    let base = git(&["merge-base", revision, "HEAD"])
        .with_context(|| format!("--against {revision}: expected a revision of this repository"))?;
    let changed = git(&["diff", "--name-only", "-z", base.trim()])?;
    let new = git(&["ls-files", "--others", "--exclude-standard", "-z"])?;
    let names = changed.split('\0').chain(new.split('\0')).filter(|name| !name.is_empty());
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(files: &[&str]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|&file| file.to_owned()).collect();
        Workspace::read().unwrap().owners(&files).into_iter().collect()
    }

    #[test]
    fn files_belong_to_the_crate_of_their_folder() {
        assert_eq!(owners(&[]), [""; 0]);
        assert_eq!(owners(&["README.md", "fuzz/Cargo.toml", "http2x/src/lib.rs"]), [""; 0]);
        assert_eq!(owners(&["http2/src/lib.rs", "http2/README.md", "loadgen/Cargo.toml"]), ["http2", "loadgen"]);
        assert_eq!(owners(&["docs/redis/cluster.md", "docs/internals/sizes.md"]), ["redis-server"]);
        let all = Workspace::read().unwrap().names().count();
        for shared in ["Cargo.lock", ".cargo/config.toml"] {
            assert_eq!(owners(&[shared]).len(), all, "{shared}");
        }
    }

    #[test]
    fn dependents_are_found_through_others() {
        let workspace = Workspace::read().unwrap();
        let dependents = |name: &str| workspace.with_dependents(BTreeSet::from([name.to_owned()]));
        assert!(
            dependents("http2")
                .is_superset(&["http2", "http-server", "grpc-server", "benches"].map(str::to_owned).into())
        );
        assert!(!dependents("http2").contains("redis-server"));
        // The tests of every crate depend on it but query-engine's, which run no other program.
        let without = workspace.names().filter(|&name| !dependents("test-peers").contains(name)).collect::<Vec<_>>();
        assert_eq!(without, ["query-engine"]);
    }

    #[test]
    fn a_revision_that_git_does_not_know_is_named() {
        let error = files("no-such-revision").unwrap_err().to_string();
        assert_eq!(error, "--against no-such-revision: expected a revision of this repository");
        files("HEAD").unwrap();
    }
}
