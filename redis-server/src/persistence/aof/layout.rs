//! Where the files are, and what they are called.

use std::path::{Path, PathBuf};

use super::manifest::Part;

/// Where an append-only file is.
#[derive(Clone, Debug)]
pub struct Layout {
    folder: PathBuf,
    /// The prefix of all names, and the path of the single file of older versions.
    name: String,
    old: PathBuf,
}

impl Layout {
    /// That of files called `name` in the folder `folder` of `dir`: `appendfilename`, `appenddirname` and `dir`.
    pub fn new(dir: &Path, folder: &str, name: &str) -> Self {
        Self { folder: dir.join(folder), name: name.to_owned(), old: dir.join(name) }
    }

    /// Where the files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The prefix of all names: the name of the single file of older versions.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The single file of older versions.
    pub(super) fn old(&self) -> &Path {
        &self.old
    }

    /// The path of a file.
    pub fn path(&self, part: &Part) -> PathBuf {
        self.folder.join(&part.name)
    }

    pub(super) fn manifest(&self) -> PathBuf {
        self.folder.join(format!("{}.manifest", self.name))
    }

    pub(super) fn new_manifest(&self) -> PathBuf {
        self.folder.join(format!("temp-{}.manifest", self.name))
    }

    pub(super) fn base(&self, seq: u64, is_rdb: bool) -> Part {
        let kind = if is_rdb { "rdb" } else { "aof" };
        Part { name: format!("{}.{seq}.base.{kind}", self.name), seq }
    }

    pub(super) fn incr(&self, seq: u64) -> Part {
        Part { name: format!("{}.{seq}.incr.aof", self.name), seq }
    }

    /// The temporary file of a new base. The name is always the same, so a server overwrites the leftover of a killed one.
    pub fn new_base(&self) -> PathBuf {
        self.folder.join(format!("temp-{}.base", self.name))
    }

    /// The temporary name of the first file behind the base, while there is no base.
    pub(super) fn first_incr(&self) -> PathBuf {
        self.folder.join(format!("temp-{}.incr", self.name))
    }
}
