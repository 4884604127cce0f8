//! Files for `ServeDir`. What the kernel has in its caches is looked up and read where the request is served; for the rest a
//! thread waits for the disk (openat2(2) `RESOLVE_CACHED`, preadv2(2) `RWF_NOWAIT`).

use std::fs::{self, Metadata};
use std::future;
use std::io::{self, SeekFrom};
use std::mem;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tower_http::services::fs::{Backend, File};

/// Directories and regular files. Nothing else is found: to open a pipe or a device is to do something with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disk;

impl Backend for Disk {
    type File = Opened;
    type Metadata = Metadata;
    type OpenFuture = LookUp<Opened>;
    type MetadataFuture = LookUp<Metadata>;

    fn open(&self, path: PathBuf) -> LookUp<Opened> {
        look_up(path, open)
    }

    fn metadata(&self, path: PathBuf) -> LookUp<Metadata> {
        look_up(path, metadata)
    }
}

type LookUp<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// How far a look at a path may go.
#[derive(Clone, Copy)]
enum Reach {
    Caches,
    Disk,
}

fn look_up<T: Send + 'static>(path: PathBuf, look: fn(&Path, Reach) -> io::Result<T>) -> LookUp<T> {
    Box::pin(async move {
        match look(&path, Reach::Caches) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                spawn_blocking(move || look(&path, Reach::Disk)).await.unwrap_or_else(ended)
            }
            known => known,
        }
    })
}

fn metadata(path: &Path, reach: Reach) -> io::Result<Metadata> {
    let found = match reach {
        Reach::Caches => cached::metadata(path)?,
        Reach::Disk => fs::metadata(path)?,
    };
    if found.is_file() || found.is_dir() { Ok(found) } else { Err(io::ErrorKind::NotFound.into()) }
}

fn open(path: &Path, reach: Reach) -> io::Result<Opened> {
    if !metadata(path, reach)?.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = match reach {
        Reach::Caches => cached::open(path)?,
        Reach::Disk => fs::File::open(path)?,
    };
    Opened::new(file)
}

fn ended<T>(error: JoinError) -> io::Result<T> {
    Err(io::Error::other(error))
}

/// A file that is read up to where it ended when it was opened.
#[derive(Debug)]
pub(super) struct Opened {
    file: Arc<fs::File>,
    found: Metadata,
    at: u64,
    /// A thread that waits for the disk.
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
    /// Whether the last piece came without waiting.
    was_cached: bool,
}

impl Opened {
    fn new(file: fs::File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self { file: Arc::new(file), found, at: 0, reading: None, was_cached: false })
    }

    /// Has a thread read so many bytes.
    fn read_from_disk(&self, most: usize) -> JoinHandle<io::Result<Vec<u8>>> {
        let (file, at) = (Arc::clone(&self.file), self.at);
        spawn_blocking(move || {
            let mut bytes = vec![0; most];
            let count = file.read_at(&mut bytes, at)?;
            bytes.truncate(count);
            Ok(bytes)
        })
    }
}

impl AsyncRead for Opened {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let left = usize::try_from(self.found.len().saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = left.min(buf.remaining());
        if most == 0 {
            return Poll::Ready(Ok(()));
        }
        if mem::take(&mut self.was_cached) {
            // Others have their turn between two pieces, as if the disk had been waited for.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut reading = match self.reading.take() {
            Some(reading) => reading,
            None => match cached::read(&self.file, buf.initialize_unfilled_to(most), self.at) {
                Ok(count) => {
                    buf.advance(count);
                    self.at += count as u64;
                    self.was_cached = true;
                    return Poll::Ready(Ok(()));
                }
                Err(_) => self.read_from_disk(most),
            },
        };
        let Poll::Ready(read) = Pin::new(&mut reading).poll(cx) else {
            self.reading = Some(reading);
            return Poll::Pending;
        };
        let bytes = read.unwrap_or_else(ended)?;
        // What this buffer has no room for is read again.
        let count = bytes.len().min(most);
        buf.put_slice(&bytes[..count]);
        self.at += count as u64;
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for Opened {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        let at = match position {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.found.len().checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        self.reading = None;
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.at))
    }
}

impl File for Opened {
    type Metadata = Metadata;
    type MetadataFuture<'a> = future::Ready<io::Result<Metadata>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        future::ready(Ok(self.found.clone()))
    }
}

/// What is had without waiting. Errors other than [`NotFound`](io::ErrorKind::NotFound) say nothing about a file: the kernel may be too
/// old, or not allowed to, or would have to wait.
#[cfg(target_os = "linux")]
mod cached {
    use std::fs::{File, Metadata};
    use std::io::{self, IoSliceMut};
    use std::path::Path;

    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::{ReadWriteFlags, preadv2};

    fn open_as(path: &Path, flags: OFlags) -> io::Result<File> {
        Ok(openat2(CWD, path, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::CACHED)?.into())
    }

    pub(super) fn metadata(path: &Path) -> io::Result<Metadata> {
        open_as(path, OFlags::PATH)?.metadata()
    }

    pub(super) fn open(path: &Path) -> io::Result<File> {
        open_as(path, OFlags::RDONLY)
    }

    pub(super) fn read(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
        Ok(preadv2(file, &mut [IoSliceMut::new(into)], at, ReadWriteFlags::NOWAIT)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod cached {
    use std::fs::{File, Metadata};
    use std::io;
    use std::path::Path;

    pub(super) fn metadata(_path: &Path) -> io::Result<Metadata> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn open(_path: &Path) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn read(_file: &File, _into: &mut [u8], _at: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read from here on, in pieces of at most so many bytes, and how often others had their turn.
    async fn rest(opened: &mut Opened, piece: usize) -> (Vec<u8>, usize) {
        let (mut all, mut turns) = (Vec::new(), 0);
        loop {
            let mut bytes = vec![0; piece];
            let mut buf = ReadBuf::new(&mut bytes);
            future::poll_fn(|cx| {
                let polled = Pin::new(&mut *opened).poll_read(cx, &mut buf);
                turns += usize::from(polled.is_pending());
                polled
            })
            .await
            .unwrap();
            if buf.filled().is_empty() {
                return (all, turns);
            }
            all.extend_from_slice(buf.filled());
        }
    }

    fn file(name: &str) -> (PathBuf, Vec<u8>) {
        let path = std::env::temp_dir().join(format!("http-server-disk-{}-{name}", std::process::id()));
        let content: Vec<u8> = (0..300_000_u32).map(|at| (at / 7) as u8).collect();
        fs::write(&path, &content).unwrap();
        (path, content)
    }

    #[tokio::test]
    async fn a_file_is_the_same_from_the_caches_and_from_the_disk() {
        let (path, content) = file("same");
        for begin in [0, 1, 299_999, 300_000, 300_001] {
            let mut cached = Disk.open(path.clone()).await.unwrap();
            Pin::new(&mut cached).start_seek(SeekFrom::Start(begin)).unwrap();
            let mut opened = open(&path, Reach::Disk).unwrap();
            Pin::new(&mut opened).start_seek(SeekFrom::Start(begin)).unwrap();
            // A buffer that is smaller than what the thread has read takes what it has room for.
            opened.reading = (begin < 300_000).then(|| opened.read_from_disk(70_000));
            let expected = content.get(begin as usize..).unwrap_or_default();
            assert!(rest(&mut cached, 64 * 1024).await.0 == expected, "cached, from {begin}");
            assert!(rest(&mut opened, 1000).await.0 == expected, "from {begin}");
        }
        fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn what_grows_or_shrinks_is_read_up_to_where_it_ended() {
        let (path, content) = file("grows");
        let mut opened = Disk.open(path.clone()).await.unwrap();
        fs::write(&path, [&content[..], b"more"].concat()).unwrap();
        assert!(rest(&mut opened, 100_000).await.0 == content);
        let mut opened = Disk.open(path.clone()).await.unwrap();
        fs::write(&path, "short").unwrap();
        assert_eq!(rest(&mut opened, 100_000).await.0, b"short");
        fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn others_have_their_turn_between_pieces() {
        let (path, _) = file("turns");
        let mut opened = Disk.open(path.clone()).await.unwrap();
        let (_, turns) = rest(&mut opened, 100_000).await;
        assert!(turns >= 2, "{turns} turns of others between three pieces");
        fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn only_files_and_directories_are_found() {
        let folder = std::env::temp_dir();
        assert!(Disk.metadata(folder.clone()).await.unwrap().is_dir());
        for (path, kind) in [
            (folder.clone(), io::ErrorKind::NotFound),
            (PathBuf::from("/dev/null"), io::ErrorKind::NotFound),
            (folder.join("there is no such file"), io::ErrorKind::NotFound),
            (folder.join("n".repeat(300)), io::ErrorKind::InvalidFilename),
        ] {
            assert_eq!(Disk.open(path.clone()).await.map(|_| ()).unwrap_err().kind(), kind, "{path:?}");
        }
        assert_eq!(Disk.metadata("/dev/null".into()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
