//! The disk: the few operations that this server needs, so that tests can replace it with one that fails and loses data.

mod real;
#[cfg(test)]
pub(crate) mod simulated;

pub use real::RealDisk;

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How a file is opened to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Empty, whatever was there.
    Create,
    /// Opens the file and creates it if it is missing; writes append.
    Append,
}

/// A disk.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Opens a file to be written.
    ///
    /// # Errors
    /// The system's, here as in all of the others.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file to be read.
    ///
    /// # Errors
    /// The system's.
    fn read(&self, path: &Path) -> io::Result<Box<dyn Read>>;
    /// Bytes of a file.
    ///
    /// # Errors
    /// The system's.
    fn len(&self, path: &Path) -> io::Result<u64>;
    /// Gives a file another name, in the place of what has it.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// The system's.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder, unless it is there.
    ///
    /// # Errors
    /// The system's.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Has the names in a folder outlive a crash.
    ///
    /// # Errors
    /// The system's.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file that is written at its end. One thread may force it to disk while another writes.
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Writes some of the bytes; returns how many.
    ///
    /// # Errors
    /// The system's, here as in all of the others.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;
    /// Has what was written outlive a crash.
    ///
    /// # Errors
    /// The system's.
    fn sync(&self) -> io::Result<()>;
    /// Has the system begin to force these bytes to the disk, which nobody waits for: [`DiskFile::sync`] has less to do then, and
    /// says whether it has worked.
    fn begin_sync(&self, bytes: Range<u64>);
    /// Cuts the file off.
    ///
    /// # Errors
    /// The system's.
    fn truncate(&self, len: u64) -> io::Result<()>;
}

/// The folder in which a file is.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or_else(|| Path::new(".")).to_owned()
}
