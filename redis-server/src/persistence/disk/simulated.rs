//! A disk that fails and forgets, as it was told by a seed.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Disk, DiskFile, Open, folder_of};

/// Changes of names: the file that each name belongs to now, if any.
type Changes = Vec<(PathBuf, Option<usize>)>;

/// A disk in memory. Unsynced bytes may be lost in a crash, as a whole or in part; so may the names of files, in any combination.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedDisk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    random: u64,
    files: BTreeMap<usize, File>,
    names: BTreeMap<PathBuf, usize>,
    /// Names that outlive a crash, and what has been done to names since, which may.
    durable: BTreeMap<PathBuf, usize>,
    renames: Vec<(PathBuf, Changes)>,
    /// Calls until the crash, if there is to be one, and calls so far.
    crash_in: Option<usize>,
    calls: Vec<&'static str>,
    /// One call in so many fails.
    fails_one_in: Option<u64>,
    fault: Option<Fault>,
    /// Whether what a file could not be forced to disk with is dropped, as Linux does.
    forgets: bool,
}

/// A planned failure of disk operations.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The call behind so many others, once.
    At(usize, io::ErrorKind),
    /// Every call of this name.
    Named(&'static str, io::ErrorKind),
    /// Every call.
    All(io::ErrorKind),
}

#[derive(Clone, Debug, Default)]
struct File {
    bytes: Vec<u8>,
    durable: Vec<u8>,
    /// Dropped ranges: they read as written until the machine fails, but never reach the disk.
    dropped: Vec<Range<usize>>,
}

impl File {
    /// The bytes that reach the disk.
    fn reaching(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for dropped in &self.dropped {
            let end = dropped.end.min(bytes.len());
            bytes.get_mut(dropped.start..end).into_iter().for_each(|part| part.fill(0));
        }
        bytes
    }
}

#[derive(Debug)]
struct Handle {
    disk: SimulatedDisk,
    number: usize,
}

impl State {
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound.max(1)
    }

    /// Counts a call, which may be the last, or fail.
    fn call(&mut self, name: &'static str) -> io::Result<()> {
        self.calls.push(name);
        match &mut self.crash_in {
            Some(0) => return Err(io::Error::other("crashed")),
            Some(left) => *left -= 1,
            None => {}
        }
        match &mut self.fault {
            Some(Fault::At(0, kind)) => {
                let kind = *kind;
                self.fault = None;
                return Err(kind.into());
            }
            Some(Fault::At(left, _)) => *left -= 1,
            Some(Fault::Named(refused, kind)) if *refused == name => return Err((*kind).into()),
            Some(Fault::All(kind)) => return Err((*kind).into()),
            Some(Fault::Named(..)) | None => {}
        }
        if let Some(bound) = self.fails_one_in
            && self.below(bound) == 0
        {
            let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::Other, io::ErrorKind::PermissionDenied];
            let kind = kinds[self.below(3) as usize];
            return Err(kind.into());
        }
        Ok(())
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn name(&mut self, folder: PathBuf, changes: Vec<(PathBuf, Option<usize>)>) {
        apply(&mut self.names, &changes);
        self.renames.push((folder, changes));
    }
}

fn apply(names: &mut BTreeMap<PathBuf, usize>, changes: &[(PathBuf, Option<usize>)]) {
    for (path, number) in changes {
        match number {
            Some(number) => _ = names.insert(path.clone(), *number),
            None => _ = names.remove(path),
        }
    }
}

impl SimulatedDisk {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            files: BTreeMap::new(),
            names: BTreeMap::new(),
            durable: BTreeMap::new(),
            renames: Vec::new(),
            crash_in: None,
            calls: Vec::new(),
            fails_one_in: None,
            fault: None,
            forgets: false,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// A random number.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.state().below(bound)
    }

    /// Nothing works any more behind so many calls.
    pub(crate) fn crash_in(&self, calls: usize) {
        self.state().crash_in = Some(calls);
    }

    /// One call in so many fails from now on, if any.
    pub(crate) fn fail_one_in(&self, bound: Option<u64>) {
        self.state().fails_one_in = bound;
    }

    /// This fails from now on.
    pub(crate) fn fail(&self, fault: Option<Fault>) {
        self.state().fault = fault;
    }

    /// From now on the system drops what it could not force to disk.
    pub(crate) fn forget(&self) {
        self.state().forgets = true;
    }

    /// There is this file, whatever was there before.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) {
        let state = &mut *self.state();
        let number = state.files.len();
        state.files.insert(number, File { bytes: bytes.to_vec(), durable: bytes.to_vec(), dropped: Vec::new() });
        state.names.insert(path.to_owned(), number);
        state.durable.insert(path.to_owned(), number);
    }

    /// The content of a file.
    pub(crate) fn bytes(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        state.find(path).map(|number| state.files[&number].bytes.clone()).unwrap_or_default()
    }

    /// Whether the crash has come.
    pub(crate) fn has_crashed(&self) -> bool {
        self.state().crash_in == Some(0)
    }

    /// Whether calls may fail.
    pub(crate) fn is_unsound(&self) -> bool {
        self.has_crashed() || self.state().fails_one_in.is_some() || self.state().fault.is_some()
    }

    /// Names of the calls since the last time.
    pub(crate) fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.state().calls)
    }

    /// Restores the state after a power failure.
    pub(crate) fn recover(&self) {
        let state = &mut *self.state();
        state.crash_in = None;
        state.fails_one_in = None;
        state.fault = None;
        for (_, changes) in std::mem::take(&mut state.renames) {
            if state.below(2) == 0 {
                apply(&mut state.durable, &changes);
            }
        }
        state.names.clone_from(&state.durable);
        let mut files = std::mem::take(&mut state.files);
        for file in files.values_mut() {
            file.bytes = remains(state, file);
            file.durable.clone_from(&file.bytes);
            file.dropped.clear();
        }
        state.files = files;
    }
}

/// The content of a file after a crash: all synced bytes, and a part of the others, maybe with zeros in the place of another part.
fn remains(state: &mut State, file: &File) -> Vec<u8> {
    let file = &File { bytes: file.reaching(), ..file.clone() };
    if !file.bytes.starts_with(&file.durable) {
        // It was cut off.
        return if state.below(2) == 0 { file.durable.clone() } else { file.bytes.clone() };
    }
    let more = file.bytes.len() - file.durable.len();
    let kept = file.durable.len() + state.below(more as u64 + 1) as usize;
    let mut bytes = file.bytes[..kept].to_vec();
    if state.below(4) == 0 {
        bytes.resize(kept + state.below((file.bytes.len() - kept) as u64 + 1) as usize, 0);
    }
    bytes
}

impl Disk for SimulatedDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let state = &mut *self.state();
        state.call("open")?;
        let number = match state.find(path) {
            Ok(number) => number,
            Err(_) => {
                let number = state.files.len();
                state.files.insert(number, File::default());
                state.name(folder_of(path), vec![(path.to_owned(), Some(number))]);
                number
            }
        };
        if how == Open::Create {
            state.files.get_mut(&number).unwrap().bytes.clear();
        }
        Ok(Box::new(Handle { disk: self.clone(), number }))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn Read>> {
        let state = self.state();
        let number = state.find(path)?;
        Ok(Box::new(io::Cursor::new(state.files[&number].bytes.clone())))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let state = self.state();
        let number = state.find(path)?;
        Ok(state.files[&number].bytes.len() as u64)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let state = &mut *self.state();
        state.call("rename")?;
        let number = state.find(from)?;
        if from != to {
            state.name(folder_of(to), vec![(from.to_owned(), None), (to.to_owned(), Some(number))]);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let state = &mut *self.state();
        state.call("remove")?;
        state.find(path)?;
        state.name(folder_of(path), vec![(path.to_owned(), None)]);
        Ok(())
    }

    fn make_folder(&self, _path: &Path) -> io::Result<()> {
        self.state().call("make_folder")
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let state = &mut *self.state();
        state.call("sync_folder")?;
        let (done, left) = std::mem::take(&mut state.renames).into_iter().partition(|(folder, _)| folder == path);
        state.renames = left;
        let done: Vec<(PathBuf, _)> = done;
        done.iter().for_each(|(_, changes)| apply(&mut state.durable, changes));
        Ok(())
    }
}

impl DiskFile for Handle {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let state = &mut *self.disk.state();
        let failed = state.call("write");
        // One that fails may have written some, which the next attempt says.
        let count = match &failed {
            Err(_) if state.crash_in.is_none() && state.below(2) == 0 => state.below(bytes.len() as u64) as usize,
            Err(_) => 0,
            Ok(()) if state.below(4) == 0 => 1 + state.below(bytes.len() as u64) as usize,
            Ok(()) => bytes.len(),
        };
        let count = count.min(bytes.len());
        state.files.get_mut(&self.number).unwrap().bytes.extend_from_slice(&bytes[..count]);
        if count > 0 { Ok(count) } else { failed.map(|()| count) }
    }

    fn sync(&self) -> io::Result<()> {
        let state = &mut *self.disk.state();
        let synced = state.call("sync");
        let forgets = state.forgets;
        let file = state.files.get_mut(&self.number).unwrap();
        match &synced {
            Ok(()) => file.durable = file.reaching(),
            Err(_) if forgets && file.bytes.len() > file.durable.len() => {
                file.dropped.push(file.durable.len()..file.bytes.len());
            }
            Err(_) => {}
        }
        synced
    }

    fn begin_sync(&self, _: Range<u64>) {
        // A crash may find anything of what was written anyway.
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let state = &mut *self.disk.state();
        state.call("truncate")?;
        state.files.get_mut(&self.number).unwrap().bytes.truncate(len as usize);
        Ok(())
    }
}
