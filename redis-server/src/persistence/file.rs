//! Files that are replaced as a whole.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, DiskFile, Open, folder_of};

/// Bytes after which what was written is on its way to the disk, so that the end need not wait for all of it.
const SYNC_EACH: u64 = 4 * 1024 * 1024;

/// A file in the making, under a name of its own: a reader, or a crash, meets the old file or the new one.
#[derive(Debug)]
pub struct SnapshotFile {
    disk: Arc<dyn Disk>,
    file: Box<dyn DiskFile>,
    temporary: PathBuf,
    path: PathBuf,
    /// Whether it is forced to disk as it grows.
    incremental: bool,
    len: u64,
    /// Bytes of it that the system was asked to force to disk.
    synced: u64,
    is_whole: bool,
}

impl SnapshotFile {
    /// Begins what will be the file `path`, as `temporary`, which is to be in the same folder.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(disk: &Arc<dyn Disk>, temporary: &Path, path: &Path, incremental: bool) -> io::Result<Self> {
        let file = disk.open(temporary, Open::Create)?;
        let (disk, temporary, path) = (Arc::clone(disk), temporary.to_owned(), path.to_owned());
        Ok(Self { disk, file, temporary, path, incremental, len: 0, synced: 0, is_whole: false })
    }

    /// Puts the file in its place. When this returns, it is there after a crash too.
    ///
    /// # Errors
    /// The disk's; the old file is as it was then, unless only the directory could not be forced to disk.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.sync()?;
        self.disk.rename(&self.temporary, &self.path)?;
        self.is_whole = true;
        self.disk.sync_folder(&folder_of(&self.path))
    }
}

impl Write for SnapshotFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.len += written as u64;
        if self.incremental && self.len - self.synced >= SYNC_EACH {
            // Copy-before-write makes commands wait for the writer of a snapshot, so it must not block in one long sync.
            self.file.begin_sync(self.synced..self.len);
            self.synced = self.len;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for SnapshotFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // The unfinished file is of no use. An error of its removal matters less than the first one.
            let _ = self.disk.remove(&self.temporary);
        }
    }
}
