//! Files that are replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Bytes after which what was written is forced to disk, so that the end need not wait for all of it.
const SYNC_EACH: usize = 4 * 1024 * 1024;

/// A snapshot in the making, under a name of its own: a reader, or a crash, meets the old file or the new one.
#[derive(Debug)]
pub struct SnapshotFile {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    /// Whether it is forced to disk as it grows.
    incremental: bool,
    unsynced: usize,
    is_whole: bool,
}

impl SnapshotFile {
    /// Begins what will be the file `name` in `folder`, as `temp-<number>.rdb` there.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(folder: &Path, name: &str, number: u32, incremental: bool) -> io::Result<Self> {
        let temporary = folder.join(format!("temp-{number}.rdb"));
        let file = File::create(&temporary)?;
        Ok(Self { file, temporary, path: folder.join(name), incremental, unsynced: 0, is_whole: false })
    }

    /// Puts the file in its place. When this returns, it is there after a crash too.
    ///
    /// # Errors
    /// The disk's; the old file is as it was then, unless only the directory could not be forced to disk.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        self.is_whole = true;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
    }
}

impl Write for SnapshotFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced += written;
        if self.incremental && self.unsynced >= SYNC_EACH {
            self.file.sync_data()?;
            self.unsynced = 0;
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
            // What is left of it helps nobody; a failure to remove it is not the one worth telling.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
