//! The file of a node's state: one server's at a time, and whole whenever a crash comes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::persistence::disk::{Disk, RealDisk, folder_of};

/// The file, which no other server may use meanwhile.
#[derive(Debug)]
pub(super) struct NodesFile {
    path: PathBuf,
    /// Holds the lock. A replacement is locked before it has the file's name, so no process finds one that is free.
    file: File,
}

impl NodesFile {
    /// Locks the file, made empty if it is not there, and reads it.
    ///
    /// # Errors
    /// Another server uses it, or the system's.
    pub(super) fn open(path: &Path) -> Result<(Self, String), String> {
        let at = |error: io::Error| format!("cluster-config-file {}: {error}", path.display());
        loop {
            let options = OpenOptions::new().read(true).append(true).create(true).open(path);
            let mut file = options.map_err(at)?;
            file.try_lock().map_err(|error| match error {
                TryLockError::WouldBlock => format!(
                    "Sorry, the cluster configuration file {} is already used by a different Redis Cluster node. Please make \
                     sure that different nodes use different cluster configuration files.",
                    path.display()
                ),
                TryLockError::Error(error) => at(error),
            })?;
            let mut text = String::new();
            file.read_to_string(&mut text).map_err(at)?;
            // It may have been replaced, and its lock given up, in between.
            if same(&file, path).map_err(at)? {
                return Ok((Self { path: path.to_owned(), file }, text));
            }
        }
    }

    /// Replaces what is in it; `sync` if the new one must be there after a crash when this returns. Otherwise it is one of both.
    ///
    /// # Errors
    /// The system's; the old one is in place then.
    pub(super) fn replace(&mut self, text: &str, sync: bool) -> io::Result<()> {
        let mut temporary = self.path.clone().into_os_string();
        temporary.push(format!(".tmp-{}", std::process::id()));
        let temporary = PathBuf::from(temporary);
        let mut file = File::create(&temporary)?;
        file.try_lock()?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&temporary, &self.path)?;
        self.file = file;
        if sync { RealDisk.sync_folder(&folder_of(&self.path)) } else { Ok(()) }
    }
}

fn same(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (ours, there) = (file.metadata()?, fs::metadata(path)?);
    Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_file_stays_locked_across_rewrites() {
        let folder = std::env::temp_dir().join(format!("nodes-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("nodes.conf");
        let (mut file, text) = NodesFile::open(&path).unwrap();
        assert_eq!(text, "");
        for text in ["one\n", "and more\n", ""] {
            assert!(NodesFile::open(&path).unwrap_err().contains("already used"), "in front of {text:?}");
            file.replace(text, true).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        file.replace("last\n", false).unwrap();
        drop(file);
        assert_eq!(NodesFile::open(&path).unwrap().1, "last\n");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left behind");
        fs::remove_dir_all(&folder).unwrap();
    }
}
