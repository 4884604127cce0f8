//! A part of an open file that is a response's body.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use tokio::task::{JoinHandle, spawn_blocking};

/// Among the extensions of a response: its body is this part of a file. Plain HTTP/1.1 sends it from the system's cache, without a copy. Code that
/// replaces the body removes it.
#[derive(Clone, Debug)]
pub struct FilePart {
    /// The file.
    pub file: Arc<File>,
    /// Offset of the next byte.
    pub at: u64,
    /// Bytes of the part from there on.
    pub left: u64,
}

impl FilePart {
    /// Takes bytes off its front.
    pub(crate) fn advance(&mut self, count: usize) {
        self.at += count as u64;
        self.left = self.left.saturating_sub(count as u64);
    }

    /// True if the system has the next `count` bytes in its cache, as far as the first and the last of them tell.
    pub(crate) fn is_cached(&self, count: u64) -> bool {
        let has = |at| read_cached(&self.file, &mut [0], at).is_ok_and(|read| read == 1);
        has(self.at) && (count < 2 || has(self.at + count - 1))
    }

    /// All bytes of a short part, if the system has them in its cache.
    pub fn cached(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.left).ok()?];
        let read = read_cached(&self.file, &mut bytes, self.at).ok()?;
        (read == bytes.len()).then_some(bytes)
    }

    /// Has a thread read the next `count` bytes, or fewer at the end of the file.
    pub(crate) fn read_from_disk(&self, count: usize) -> JoinHandle<io::Result<Vec<u8>>> {
        read_from_disk(&self.file, self.at, count)
    }
}

/// Has a thread read up to `count` bytes from an offset on.
pub fn read_from_disk(file: &Arc<File>, at: u64, count: usize) -> JoinHandle<io::Result<Vec<u8>>> {
    let file = Arc::clone(file);
    spawn_blocking(move || {
        let mut bytes = vec![0; count];
        let read = file.read_at(&mut bytes, at)?;
        bytes.truncate(read);
        Ok(bytes)
    })
}

/// Reads bytes that are in the system's cache (preadv2(2) `RWF_NOWAIT`). An error says nothing about the file.
#[cfg(target_os = "linux")]
pub fn read_cached(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    use rustix::io::{ReadWriteFlags, preadv2};
    Ok(preadv2(file, &mut [io::IoSliceMut::new(into)], at, ReadWriteFlags::NOWAIT)?)
}

#[cfg(not(target_os = "linux"))]
pub fn read_cached(_file: &File, _into: &mut [u8], _at: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
