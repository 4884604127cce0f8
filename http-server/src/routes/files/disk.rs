//! Files for `ServeDir`. Files that the kernel has in its caches are looked up and read where the request is served;
//! for the rest a thread waits for the disk (openat2(2) `RESOLVE_CACHED`, preadv2(2) `RWF_NOWAIT`).

use std::cell::RefCell;
use std::fs;
use std::future;
use std::io::{self, SeekFrom};
use std::mem;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::SystemTime;

use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::task_local;
use tower_http::services::fs::{Backend, File, Metadata};

use serve::file_part::{read_cached, read_from_disk};

task_local! {
    /// The lookups of the request at hand.
    static LOOKUPS: RefCell<Lookups>;
}

#[derive(Default)]
struct Lookups {
    /// The path of a regular file on a local file system that was looked up last, and is not opened yet.
    checked: Option<PathBuf>,
    /// The file that was opened last.
    opened: Option<Arc<fs::File>>,
}

/// The result of a call to `ServeDir`, and the file that it has opened last.
pub(super) async fn noting_file<T>(call: impl Future<Output = T>) -> (T, Option<Arc<fs::File>>) {
    let noting = async {
        let result = call.await;
        (result, LOOKUPS.with(|lookups| lookups.borrow_mut().opened.take()))
    };
    LOOKUPS.scope(RefCell::default(), noting).await
}

/// Notes a lookup, if the request at hand wants that.
fn note(lookup: impl FnOnce(&mut Lookups)) {
    // Tests look up without a request.
    let _ = LOOKUPS.try_with(|lookups| lookup(&mut lookups.borrow_mut()));
}

/// The metadata of a file or directory that `ServeDir` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    kind: Kind,
    length: u64,
    modified: Option<SystemTime>,
    device: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    Other,
}

impl From<&fs::Metadata> for Found {
    fn from(metadata: &fs::Metadata) -> Self {
        let kind = match metadata.file_type() {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_dir() => Kind::Directory,
            _ => Kind::Other,
        };
        Self { kind, length: metadata.len(), modified: metadata.modified().ok(), device: metadata.dev() }
    }
}

impl Metadata for Found {
    fn is_dir(&self) -> bool {
        self.kind == Kind::Directory
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.modified.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    fn len(&self) -> u64 {
        self.length
    }
}

/// Directories and regular files. Nothing else is found: to open a pipe or a device is to do something with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    /// Device numbers, and whether their file systems are the kernel's alone. Others ask another machine or another program before
    /// they open what is in the caches.
    devices: Arc<RwLock<Vec<(u64, bool)>>>,
}

impl Backend for Disk {
    type File = Opened;
    type Metadata = Found;
    type OpenFuture = LookUp<Opened>;
    type MetadataFuture = LookUp<Found>;

    fn open(&self, path: PathBuf) -> LookUp<Opened> {
        let noted = |opened: &Opened, _: &Path| note(|lookups| lookups.opened = Some(Arc::clone(&opened.file)));
        self.look_up(path, Self::open, noted)
    }

    fn metadata(&self, path: PathBuf) -> LookUp<Found> {
        let noted = |found: &Found, path: &Path| {
            if found.kind == Kind::File {
                note(|lookups| lookups.checked = Some(path.to_owned()));
            }
        };
        self.look_up(path, Self::metadata, noted)
    }
}

type LookUp<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// How far a look at a path may go.
#[derive(Clone, Copy)]
enum Reach {
    Caches,
    Disk,
}

impl Disk {
    /// The one that a directory is on is known then.
    ///
    /// # Errors
    /// When there is no such directory.
    pub(super) fn of(root: &Path) -> io::Result<Self> {
        let disk = Self::default();
        if disk.metadata(root, Reach::Disk)?.is_dir() { Ok(disk) } else { Err(io::ErrorKind::NotADirectory.into()) }
    }

    /// Looks in the caches, and on the disk if they do not say; `noted` learns what was found.
    fn look_up<T: Send + 'static>(
        &self,
        path: PathBuf,
        look: fn(&Self, &Path, Reach) -> io::Result<T>,
        noted: fn(&T, &Path),
    ) -> LookUp<T> {
        let disk = self.clone();
        Box::pin(async move {
            let found = match look(&disk, &path, Reach::Caches) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let path = path.clone();
                    spawn_blocking(move || look(&disk, &path, Reach::Disk)).await.unwrap_or_else(ended)
                }
                known => known,
            };
            found.inspect(|found| noted(found, &path))
        })
    }

    fn metadata(&self, path: &Path, reach: Reach) -> io::Result<Found> {
        let found = match reach {
            Reach::Caches => cached::metadata(path, |device| self.is_local(device) == Some(true))?,
            Reach::Disk => {
                let found = Found::from(&fs::metadata(path)?);
                self.learn(found.device, path);
                found
            }
        };
        if found.kind == Kind::Other { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
    }

    fn open(&self, path: &Path, reach: Reach) -> io::Result<Opened> {
        let mut is_checked = false;
        note(|lookups| is_checked = lookups.checked.take_if(|checked| checked.as_path() == path).is_some());
        if !is_checked && self.metadata(path, reach)?.kind != Kind::File {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = match reach {
            Reach::Caches => cached::open(path)?,
            Reach::Disk => fs::File::open(path)?,
        };
        let opened = Opened::new(file)?;
        // Another file may have come into its place.
        if opened.found.kind == Kind::File { Ok(opened) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Remembers what kind of device a path is on.
    fn learn(&self, device: u64, path: &Path) {
        if self.is_local(device).is_some() {
            return;
        }
        let is_local = cached::is_local(path).unwrap_or(false);
        let mut devices = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have looked meanwhile.
        if devices.iter().all(|(known, _)| *known != device) {
            devices.push((device, is_local));
        }
    }

    /// `None` if the device was not looked up yet.
    fn is_local(&self, device: u64) -> Option<bool> {
        let devices = self.devices.read().unwrap_or_else(PoisonError::into_inner);
        devices.iter().find(|(known, _)| *known == device).map(|(_, is_local)| *is_local)
    }
}

fn ended<T>(error: JoinError) -> io::Result<T> {
    Err(io::Error::other(error))
}

/// A file that is read up to where it ended when it was opened.
#[derive(Debug)]
pub(super) struct Opened {
    file: Arc<fs::File>,
    found: Found,
    at: u64,
    /// A thread that waits for the disk.
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
    /// Whether the last piece came without waiting.
    was_cached: bool,
}

impl Opened {
    fn new(file: fs::File) -> io::Result<Self> {
        let found = Found::from(&file.metadata()?);
        Ok(Self { file: Arc::new(file), found, at: 0, reading: None, was_cached: false })
    }

    /// Has a thread read so many bytes.
    fn read_from_disk(&self, most: usize) -> JoinHandle<io::Result<Vec<u8>>> {
        read_from_disk(&self.file, self.at, most)
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
            None => match read_cached(&self.file, buf.initialize_unfilled_to(most), self.at) {
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
        // Bytes that this buffer has no room for are read again.
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
    type Metadata = Found;
    type MetadataFuture<'a> = future::Ready<io::Result<Found>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        future::ready(Ok(self.found))
    }
}

/// Lookups that do not wait. Errors other than [`NotFound`](io::ErrorKind::NotFound) say nothing about a
/// file: the kernel may be too old, or not allowed to, or would have to wait.
#[cfg(target_os = "linux")]
mod cached {
    use std::fs::File;
    use std::io;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, makedev, openat2, statfs, statx};

    use super::{Found, Kind};

    /// File systems that ask another machine or another program, by the numbers that statfs(2) tells.
    const REMOTE: [u32; 15] = [
        0x0102_1997, // 9P
        0x5346_414f, // AFS
        0x6b41_4653, // AFS in the kernel
        0x00c3_6400, // Ceph
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB 2
        0x517b,      // SMB
        0x7375_7245, // Coda
        0x6573_5546, // FUSE
        0x0116_1970, // GFS2
        0x0bd0_0bd0, // Lustre
        0x6969,      // NFS
        0x7461_636f, // OCFS2
        0x2003_0528, // OrangeFS
        0x786f_4256, // VirtualBox' folders
    ];

    /// Whether a path is on a file system that is this kernel's alone. May wait.
    pub(super) fn is_local(path: &Path) -> io::Result<bool> {
        Ok(!REMOTE.contains(&(statfs(path)?.f_type as u32)))
    }

    fn open_as(path: &Path, flags: OFlags) -> io::Result<File> {
        Ok(openat2(CWD, path, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::CACHED)?.into())
    }

    /// The metadata of a path, if it is on a device that may be asked.
    pub(super) fn metadata(path: &Path, may_ask: impl Fn(u64) -> bool) -> io::Result<Found> {
        let place = open_as(path, OFlags::PATH)?;
        // Nothing is asked of a file system that is not this kernel's: of such a one the device alone is certain.
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let found = statx(&place, c"", flags, StatxFlags::BASIC_STATS)?;
        let device = makedev(found.stx_dev_major, found.stx_dev_minor);
        if !may_ask(device) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let kind = match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            _ => Kind::Other,
        };
        let modified = Duration::new(found.stx_mtime.tv_sec.try_into().unwrap_or(0), found.stx_mtime.tv_nsec);
        Ok(Found { kind, length: found.stx_size, modified: SystemTime::UNIX_EPOCH.checked_add(modified), device })
    }

    /// Opens a file. A pipe that has come into its place meanwhile is opened without waiting for a writer.
    pub(super) fn open(path: &Path) -> io::Result<File> {
        open_as(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }
}

#[cfg(not(target_os = "linux"))]
mod cached {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use super::Found;

    pub(super) fn is_local(_path: &Path) -> io::Result<bool> {
        Ok(false)
    }

    pub(super) fn metadata(_path: &Path, _may_ask: impl Fn(u64) -> bool) -> io::Result<Found> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn open(_path: &Path) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the rest, in pieces of at most so many bytes; returns it, and how often others had their turn.
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
        let disk = Disk::default();
        for begin in [0, 1, 299_999, 300_000, 300_001] {
            let mut cached = Backend::open(&disk, path.clone()).await.unwrap();
            Pin::new(&mut cached).start_seek(SeekFrom::Start(begin)).unwrap();
            let mut opened = disk.open(&path, Reach::Disk).unwrap();
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
    async fn resized_files_are_read_to_the_shorter_length() {
        let (path, content) = file("grows");
        let disk = Disk::default();
        let mut opened = Backend::open(&disk, path.clone()).await.unwrap();
        fs::write(&path, [&content[..], b"more"].concat()).unwrap();
        assert!(rest(&mut opened, 100_000).await.0 == content);
        let mut opened = Backend::open(&disk, path.clone()).await.unwrap();
        fs::write(&path, "short").unwrap();
        assert_eq!(rest(&mut opened, 100_000).await.0, b"short");
        fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn others_have_their_turn_between_pieces() {
        let (path, _) = file("turns");
        let mut opened = Backend::open(&Disk::default(), path.clone()).await.unwrap();
        let (_, turns) = rest(&mut opened, 100_000).await;
        assert!(turns >= 2, "{turns} turns of others between three pieces");
        fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn only_files_and_directories_are_found() {
        let (disk, folder) = (Disk::default(), std::env::temp_dir());
        assert!(Backend::metadata(&disk, folder.clone()).await.unwrap().is_dir());
        for (path, kind) in [
            (folder.clone(), io::ErrorKind::NotFound),
            (PathBuf::from("/dev/null"), io::ErrorKind::NotFound),
            (folder.join("there is no such file"), io::ErrorKind::NotFound),
            (folder.join("n".repeat(300)), io::ErrorKind::InvalidFilename),
        ] {
            assert_eq!(Backend::open(&disk, path.clone()).await.map(|_| ()).unwrap_err().kind(), kind, "{path:?}");
        }
        let found = Backend::metadata(&disk, "/dev/null".into()).await;
        assert_eq!(found.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn only_devices_that_are_known_to_be_local_are_asked_without_waiting() {
        let (disk, (path, _)) = (Disk::default(), file("local"));
        let kind = || disk.metadata(&path, Reach::Caches).map(|_| ()).map_err(|error| error.kind());
        assert_eq!(kind(), Err(io::ErrorKind::WouldBlock));
        let device = disk.metadata(&path, Reach::Disk).unwrap().device;
        let is_local = cached::is_local(&path).unwrap();
        assert_eq!(*disk.devices.read().unwrap(), [(device, is_local)]);
        assert_eq!(kind(), if is_local { Ok(()) } else { Err(io::ErrorKind::WouldBlock) });
        disk.devices.write().unwrap()[0].1 = false;
        assert_eq!(kind(), Err(io::ErrorKind::WouldBlock));
        assert!(disk.open(&path, Reach::Caches).is_err() && disk.open(&path, Reach::Disk).is_ok());
        fs::remove_file(path).unwrap();
    }
}
