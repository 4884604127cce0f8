//! The files: which there are, what is appended to the last, and how a new base takes the place of the others.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use super::layout::Layout;
use super::manifest::{Manifest, ManifestError, Part};
use crate::persistence::SnapshotFile;
use crate::persistence::disk::{Disk, DiskFile, Open, folder_of};

/// Longest manifest that is read: rewrites that fail leave a line each.
const MANIFEST_MAX: u64 = 16 * 1024 * 1024;

/// Why it is not known which files there are.
#[derive(Debug)]
pub enum FindError {
    /// The manifest is none.
    Manifest(ManifestError),
    /// Something cannot be read or written.
    Io(String, io::Error),
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest(error) => write!(f, "*** FATAL AOF MANIFEST FILE ERROR ***\n{error}"),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for FindError {}

/// Bytes that could not all be written.
#[derive(Debug)]
pub struct Partial {
    /// So many of the first are in the file. The others are to be tried again.
    pub kept: usize,
    /// Why.
    pub error: io::Error,
}

/// The files of an append-only file that is written.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    layout: Layout,
    manifest: Manifest,
    /// The last file.
    file: Arc<dyn DiskFile>,
    /// Its bytes; those of all files; those of all files when the base was made.
    len: u64,
    size: u64,
    base_size: u64,
    has_unsynced: bool,
    /// Whether the manifest on disk may be another one than [`Log::manifest`].
    is_stale: bool,
    /// Whether the manifest names the last file: not before there is a base.
    is_listed: bool,
}

/// Reads which files there are. A single file of an older version becomes the base.
///
/// # Errors
/// [`FindError`].
pub(crate) fn find(disk: &dyn Disk, layout: &Layout) -> Result<Manifest, FindError> {
    let failed = |what: &str, path: &Path, error| FindError::Io(format!("{what} {}", path.display()), error);
    let path = layout.manifest();
    let mut manifest = match read_whole(disk, &path) {
        Ok(text) => Manifest::parse(&text).map_err(FindError::Manifest)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Manifest::default(),
        Err(error) => {
            return Err(failed("Fatal error: can't open the AOF manifest file", &path, error));
        }
    };
    if !exists(disk, layout.old()) {
        return Ok(manifest);
    }
    // Begun and not ended, if the manifest names the file and it is not there.
    let named = manifest.base.as_ref().filter(|base| manifest.incrs.is_empty() && base.name == layout.name());
    let begun = named.is_some_and(|base| !exists(disk, &layout.path(base)));
    if manifest.is_empty() || begun {
        manifest.base = Some(Part { name: layout.name().to_owned(), seq: 1 });
        upgrade(disk, layout, &manifest).map_err(|error| {
            failed("Error trying to move the old AOF file into the AOF directory:", layout.old(), error)
        })?;
        tracing::info!(
            "Successfully migrated an old-style AOF file ({}) into the AOF directory ({}).",
            layout.name(),
            layout.folder().display()
        );
    }
    Ok(manifest)
}

fn upgrade(disk: &dyn Disk, layout: &Layout, manifest: &Manifest) -> io::Result<()> {
    disk.make_folder(layout.folder())?;
    disk.sync_folder(&folder_of(layout.folder()))?;
    write_manifest(disk, layout, manifest, &mut false)?;
    disk.rename(layout.old(), &layout.folder().join(layout.name()))?;
    disk.sync_folder(layout.folder())?;
    disk.sync_folder(&folder_of(layout.old()))
}

fn exists(disk: &dyn Disk, path: &Path) -> bool {
    disk.len(path).is_ok()
}

pub(super) fn read_whole(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    disk.read(path)?.take(MANIFEST_MAX).read_to_end(&mut text)?;
    if text.len() as u64 == MANIFEST_MAX { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

fn write_all(file: &dyn DiskFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes a manifest; `is_stale` says afterwards whether the disk may have this one or the one before.
fn write_manifest(disk: &dyn Disk, layout: &Layout, manifest: &Manifest, is_stale: &mut bool) -> io::Result<()> {
    let text = manifest.to_text();
    if text.is_empty() {
        // An empty one is none.
        if let Err(error) = disk.remove(&layout.manifest())
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
    } else {
        let temporary = layout.new_manifest();
        let file = disk.open(&temporary, Open::Create)?;
        write_all(&*file, text.as_bytes())?;
        file.sync()?;
        drop(file);
        disk.rename(&temporary, &layout.manifest())?;
    }
    *is_stale = true;
    disk.sync_folder(layout.folder())?;
    *is_stale = false;
    Ok(())
}

impl Log {
    /// Goes on with the files of this manifest, which were read as a whole. Without a base one is written first, by `write_base`, as RDB
    /// or not.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(
        disk: Arc<dyn Disk>,
        layout: Layout,
        mut manifest: Manifest,
        is_rdb: bool,
        write_base: impl FnOnce(&mut SnapshotFile) -> io::Result<()>,
    ) -> io::Result<Self> {
        disk.make_folder(layout.folder())?;
        disk.sync_folder(&folder_of(layout.folder()))?;
        if manifest.is_empty() {
            let base = layout.base(manifest.next_base(), is_rdb);
            tracing::info!("Creating AOF base file {} on server start", base.name);
            let mut file = SnapshotFile::create(&disk, &layout.new_base(), &layout.path(&base), false)?;
            write_base(&mut file)?;
            file.flush()?;
            file.commit()?;
            manifest.base = Some(base);
        }
        let file = if let Some(last) = manifest.incrs.last() {
            tracing::info!("Opening AOF incr file {} on server start", last.name);
            Arc::from(disk.open(&layout.path(last), Open::Append)?)
        } else {
            let incr = layout.incr(manifest.next_incr());
            tracing::info!("Creating AOF incr file {} on server start", incr.name);
            let file = new_file(&*disk, &layout.path(&incr))?;
            manifest.incrs.push(incr);
            disk.sync_folder(layout.folder())?;
            write_manifest(&*disk, &layout, &manifest, &mut false)?;
            file
        };
        let mut size = 0;
        for part in manifest.parts() {
            size += disk.len(&layout.path(part))?;
        }
        let len = manifest.incrs.last().map_or(Ok(0), |last| disk.len(&layout.path(last)))?;
        Ok(Self {
            disk,
            layout,
            manifest,
            file,
            len,
            size,
            base_size: size,
            // A tail that was cut off is not on disk yet, nor is what was there before a crash for sure.
            has_unsynced: true,
            is_stale: false,
            is_listed: true,
        })
    }

    /// Begins anew, with a file that will count when there is a base: [`Log::adopt`].
    ///
    /// # Errors
    /// The disk's, or a manifest that was there and cannot be read.
    pub fn begin(disk: Arc<dyn Disk>, layout: Layout) -> io::Result<Self> {
        disk.make_folder(layout.folder())?;
        disk.sync_folder(&folder_of(layout.folder()))?;
        let manifest = match read_whole(&*disk, &layout.manifest()) {
            Ok(text) => Manifest::parse(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Manifest::default(),
            Err(error) => return Err(error),
        };
        let file = new_file(&*disk, &layout.first_incr())?;
        Ok(Self {
            disk,
            layout,
            manifest,
            file,
            len: 0,
            size: 0,
            base_size: 0,
            has_unsynced: false,
            is_stale: false,
            is_listed: false,
        })
    }

    /// Where the files are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The disk that they are on.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Bytes of all files, and what they were when the base was made.
    pub fn sizes(&self) -> (u64, u64) {
        (self.size, self.base_size)
    }

    /// Whether something was written that may not outlive a crash.
    pub fn has_unsynced(&self) -> bool {
        self.has_unsynced
    }

    /// Whether all that counts is there: a base, too.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Appends bytes to the last file.
    ///
    /// # Errors
    /// [`Partial`].
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Partial> {
        self.settle().map_err(|error| Partial { kept: 0, error })?;
        let mut written = 0;
        while written < bytes.len() {
            let error = match self.file.write(&bytes[written..]) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(count) => {
                    written += count;
                    self.has_unsynced = true;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            // A part of a unit is cut off again; where that fails it stays, and is gone on with.
            let kept = if written > 0 && self.file.truncate(self.len).is_ok() { 0 } else { written };
            self.grown(kept);
            return Err(Partial { kept, error });
        }
        self.grown(written);
        Ok(())
    }

    fn grown(&mut self, bytes: usize) {
        self.len += bytes as u64;
        self.size += bytes as u64;
    }

    /// Forces everything so far to disk.
    ///
    /// # Errors
    /// The disk's. Bytes written since the last successful sync may then be lost, even if a later attempt succeeds.
    fn sync(&mut self) -> io::Result<()> {
        if self.has_unsynced {
            self.file.sync()?;
            self.has_unsynced = false;
        }
        Ok(())
    }

    /// The last file, for a thread to force to disk what it has by now. It counts as forced from here on; if that fails, the caller
    /// must not rely on the file any more.
    pub(super) fn begin_sync(&mut self) -> Arc<dyn DiskFile> {
        self.has_unsynced = false;
        Arc::clone(&self.file)
    }

    /// Appends go to the next file. The last one is forced to disk first, because only the last may end early. One that `is_torn` cannot be, so it
    /// stays the last that counts, and the next will count when there is a base: [`Log::adopt`].
    ///
    /// # Errors
    /// The disk's; appends go to the same file.
    pub fn switch(&mut self, is_torn: bool) -> io::Result<()> {
        self.settle()?;
        if is_torn || !self.is_listed {
            // Where it does not count, what there is of it belongs to a base that was given up.
            self.file = new_file(&*self.disk, &self.layout.first_incr())?;
            if !self.is_listed {
                self.size -= self.len;
            }
            (self.len, self.has_unsynced, self.is_listed) = (0, false, false);
            return Ok(());
        }
        self.sync()?;
        let incr = self.layout.incr(self.manifest.next_incr());
        let file = new_file(&*self.disk, &self.layout.path(&incr))?;
        self.disk.sync_folder(self.layout.folder())?;
        tracing::info!("Creating AOF incr file {} on background rewrite", incr.name);
        let mut manifest = self.manifest.clone();
        manifest.incrs.push(incr);
        self.replace_manifest(manifest)?;
        (self.file, self.len, self.has_unsynced) = (file, 0, false);
        Ok(())
    }

    /// Makes the base of what stands at [`Layout::new_base`], is on disk, and holds everything in front of the last file. The others
    /// are history then, which [`Log::remove_history`] removes. If nothing `goes_on` behind the base, so is the last file.
    ///
    /// # Errors
    /// The disk's; the files are as they were.
    pub fn adopt(&mut self, is_rdb: bool, goes_on: bool) -> io::Result<()> {
        self.settle()?;
        let mut manifest = self.manifest.clone();
        let seq = manifest.next_base();
        let base = self.layout.base(seq, is_rdb);
        let path = self.layout.path(&base);
        self.disk.rename(&self.layout.new_base(), &path)?;
        if !self.is_listed && goes_on {
            self.sync()?;
            let incr = self.layout.incr(manifest.next_incr());
            if exists(&*self.disk, &self.layout.first_incr()) {
                self.disk.rename(&self.layout.first_incr(), &self.layout.path(&incr))?;
            }
            manifest.incrs.push(incr);
        }
        self.disk.sync_folder(self.layout.folder())?;
        manifest.rebase(base, usize::from(goes_on));
        let adopted = self.replace_manifest(manifest);
        if adopted.is_err() && !self.is_listed && goes_on && self.settle().is_ok() {
            // Where that fails too, it keeps the name under which it may be looked for.
            let incr = self.layout.incr(self.manifest.next_incr());
            let _ = self.disk.rename(&self.layout.path(&incr), &self.layout.first_incr());
        }
        adopted?;
        if !goes_on {
            self.abandon();
        }
        // A server that ended before its manifest named a base of this number may have left one of the other kind.
        let _ = self.disk.remove(&self.layout.path(&self.layout.base(seq, !is_rdb)));
        self.is_listed = true;
        self.size = self.len + self.disk.len(&path)?;
        self.base_size = self.size;
        Ok(())
    }

    /// Removes files that are no longer needed. The next call tries again to remove files that this one cannot remove. Their blocks are
    /// freed when what is returned is dropped, which takes long where a file is large.
    pub fn remove_history(&mut self) -> Vec<Box<dyn io::Read>> {
        if self.manifest.history.is_empty() || self.settle().is_err() {
            return Vec::new();
        }
        let mut manifest = self.manifest.clone();
        let mut open = Vec::new();
        manifest.history.retain(|part| {
            tracing::info!("Removing the history file {} in the background", part.name);
            let path = self.layout.path(part);
            open.extend(self.disk.read(&path));
            let removed = self.disk.remove(&path);
            removed.is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        });
        if let Err(error) = self.replace_manifest(manifest) {
            tracing::warn!("the AOF manifest cannot be written: {error}");
        }
        open
    }

    /// Gives up a file that does not count yet, because there is no base.
    pub fn abandon(&mut self) {
        if !self.is_listed {
            tracing::info!("Removing the temp incr aof file {} in the background", self.layout.first_incr().display());
            // A leftover is never read.
            let _ = self.disk.remove(&self.layout.first_incr());
        }
    }

    fn replace_manifest(&mut self, manifest: Manifest) -> io::Result<()> {
        write_manifest(&*self.disk, &self.layout, &manifest, &mut self.is_stale)?;
        self.manifest = manifest;
        Ok(())
    }

    /// Writes the manifest again, if it is not known what the disk has.
    fn settle(&mut self) -> io::Result<()> {
        if self.is_stale {
            write_manifest(&*self.disk, &self.layout, &self.manifest, &mut self.is_stale)?;
        }
        Ok(())
    }
}

/// Opens an empty file for appending. Content of an earlier attempt does not come back after a crash, as the truncation is synced.
fn new_file(disk: &dyn Disk, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
    let file = disk.open(path, Open::Append)?;
    file.truncate(0)?;
    file.sync()?;
    Ok(Arc::from(file))
}
