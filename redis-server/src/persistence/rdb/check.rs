//! Whether a file is sound, and what it holds: `redis-server --check`.

use std::fmt;
use std::path::Path;

use super::{File, Item, Limits, ReadError};
use crate::persistence::disk::Disk;
use crate::protocol::error::shown;

/// The contents of a file, up to its end or to the damage.
#[derive(Debug, Default)]
pub struct Contents {
    /// Of the format.
    pub version: u16,
    /// The program that wrote it, in its own words.
    pub writer: Option<String>,
    /// Keys.
    pub keys: u64,
    /// Keys that expire.
    pub expiring: u64,
    /// Collections without elements, which are left out.
    pub empty: u64,
    /// Databases that hold any.
    pub databases: u64,
    /// Libraries of functions.
    pub functions: u64,
    /// Auxiliary data of modules, which is left out.
    pub modules: u64,
    /// The file's end; bytes behind it are not part of the file.
    pub end: u64,
}

impl Contents {
    fn add(&mut self, item: Item<'_>) {
        match item {
            Item::Header(version) => self.version = version,
            Item::Note { name, text } if matches!(&*name, b"redis-ver" | b"valkey-ver") => {
                let server = if &*name == b"redis-ver" { "Redis" } else { "Valkey" };
                self.writer = Some(format!("{server} {}", shown(&text)));
            }
            Item::Module => self.modules += 1,
            Item::Function(_) => self.functions += 1,
            Item::Database(_) => self.databases += 1,
            Item::Record(record) if record.value.is_none() => self.empty += 1,
            Item::Record(record) => {
                self.keys += 1;
                self.expiring += u64::from(record.expire_at.is_some());
            }
            Item::Note { .. } | Item::Sizes { .. } | Item::End => {}
        }
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, keys, expiring, databases, functions, .. } = self;
        write!(f, "version {version}")?;
        if let Some(writer) = &self.writer {
            write!(f, " by {writer}")?;
        }
        write!(
            f,
            ", keys {keys}, of which {expiring} expire, in databases {databases}, function libraries {functions}"
        )?;
        for (count, what) in [(self.empty, "empty collections"), (self.modules, "data of modules")] {
            if count > 0 {
                write!(f, "; left out: {what} {count}")?;
            }
        }
        Ok(())
    }
}

/// Reads a whole file, its checksum too. Second is what ended that before its end, if anything did.
pub fn check(disk: &dyn Disk, path: &Path) -> (Contents, Option<ReadError>) {
    let mut contents = Contents::default();
    let mut read = || {
        let mut file = File::open(disk, path, Limits::default(), true)?;
        while file.next(|item| contents.add(item))?.is_some() {}
        contents.end = file.offset();
        Ok(())
    };
    let error = read().err();
    (contents, error)
}
