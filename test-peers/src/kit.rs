//! Programs from package registries.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::{is_there, run_within, skip};

/// Longest time of an installation, in seconds: some build for minutes, and registries may be slow.
const PATIENCE: u32 = 900;

/// Registries do fail for a moment.
const ATTEMPTS: u32 = 3;

/// One at a time: several tests want the same kit, and two that build at once only take longer each.
static INSTALLING: Mutex<()> = Mutex::new(());

/// A [`Kit`] of the crate whose tests name it.
#[macro_export]
macro_rules! kit {
    ($($field:ident: $value:expr),* $(,)?) => {
        $crate::Kit { home: env!("CARGO_MANIFEST_DIR"), target: env!("CARGO_TARGET_TMPDIR"), $($field: $value),* }
    };
}

/// Peers that are fetched and built together, once: the result stays in the target folder. Made by [`kit!`](crate::kit!).
#[derive(Clone, Copy, Debug)]
pub struct Kit {
    /// A name that is unique in the workspace.
    pub name: &'static str,
    /// Programs that the machine must have.
    pub programs: &'static [&'static str],
    /// The folder of the crate whose tests want it.
    pub home: &'static str,
    /// Files, and folders with their contents, below `home`: the installation starts from copies of them.
    pub sources: &'static [&'static str],
    /// The folder for what tests leave behind.
    pub target: &'static str,
    /// Shell script that fetches and builds, in the folder with the copies.
    pub install: &'static str,
}

impl Kit {
    /// The folder with everything in it; `None` where a program or a registry is missing, see [`skip`].
    ///
    /// # Panics
    /// If something is missing and peers are required, or files cannot be copied.
    #[must_use]
    #[track_caller]
    pub fn installed(&self) -> Option<PathBuf> {
        let _one_at_a_time = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.programs.iter().all(|program| is_there(program)) {
            return None;
        }
        let folder = Path::new(self.target).join("peers").join(self.name);
        let sources = self.files().unwrap_or_else(|error| panic!("{}: {error}", self.name));
        // An installation by another script, or from other files, is stale.
        let stamp = folder.join("installed");
        let is_copied =
            |(name, bytes): &(PathBuf, Vec<u8>)| fs::read(folder.join(name)).is_ok_and(|copy| copy == *bytes);
        if fs::read_to_string(&stamp).is_ok_and(|by| by == self.install) && sources.iter().all(is_copied) {
            return Some(folder);
        }
        for attempt in 1.. {
            match self.install(&folder, &sources) {
                Ok(()) => break,
                Err(reason) if attempt == ATTEMPTS => {
                    skip(&format!("{} cannot be installed: {reason}", self.name));
                    return None;
                }
                Err(reason) => println!("{}, attempt {attempt}: {reason}", self.name),
            }
        }
        fs::write(stamp, self.install).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        Some(folder)
    }

    /// Installs into an empty folder. On failure, returns the output of the script.
    fn install(&self, folder: &Path, sources: &[(PathBuf, Vec<u8>)]) -> Result<(), String> {
        let _ = fs::remove_dir_all(folder);
        let copy = || -> io::Result<()> {
            fs::create_dir_all(folder)?;
            for (name, bytes) in sources {
                let copy = folder.join(name);
                copy.parent().map_or(Ok(()), fs::create_dir_all)?;
                fs::write(copy, bytes)?;
            }
            Ok(())
        };
        copy().map_err(|error| error.to_string())?;
        let mut script = Command::new("sh");
        script.args(["-c", &format!("exec 2>&1; {}", self.install)]).current_dir(folder);
        let output = run_within(PATIENCE, &script).map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stdout)))
    }

    /// Contents of all sources, by their names in the kit's folder.
    fn files(&self) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
        let mut files = Vec::new();
        for source in self.sources.iter().map(|source| Path::new(self.home).join(source)) {
            if source.is_dir() {
                read_below(&source, Path::new(""), &mut files)?;
            } else if let Some(name) = source.file_name() {
                files.push((name.into(), fs::read(&source)?));
            }
        }
        Ok(files)
    }
}

/// Adds all files below `inner` of a folder.
fn read_below(folder: &Path, inner: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(inner))? {
        let entry = entry?;
        let name = inner.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            read_below(folder, &name, files)?;
        } else {
            files.push((name, fs::read(entry.path())?));
        }
    }
    Ok(())
}
