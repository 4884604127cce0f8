//! The system's disk.

use std::fs::{self, File};
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use super::{Disk, DiskFile, Open};

/// The system's disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let file = match how {
            Open::Create => File::create(path),
            Open::Append => File::options().append(true).create(true).open(path),
        };
        file.map(|file| Box::new(file) as Box<dyn DiskFile>)
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        File::open(path).map(|file| Box::new(file) as Box<dyn Read>)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        fs::metadata(path).map(|metadata| metadata.len())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made,
        }
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

impl DiskFile for File {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        io::Write::write(&mut &*self, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn begin_sync(&self, bytes: Range<u64>) {
        // `DONTNEED` makes the system start writing the pages, and does not block. A refusal is no harm.
        let _ = fadvise(self, bytes.start, NonZeroU64::new(bytes.end - bytes.start), Advice::DontNeed);
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
}
