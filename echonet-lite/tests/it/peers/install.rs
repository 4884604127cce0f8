//! Fetches the peers by the package clients of their languages, once: the result stays in `target`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::skip;

/// A language's peers.
pub(super) struct Language {
    /// Folder below `tests/peers`.
    name: &'static str,
    /// What must be installed.
    programs: &'static [&'static str],
    /// Fetches the libraries, in a copy of the folder; done again when a file of the folder has changed.
    install: &'static str,
}

pub(super) const GO: Language = Language { name: "go", programs: &["go"], install: "go build -o peer ." };
pub(super) const PYTHON: Language = Language {
    name: "python",
    programs: &["python3"],
    install: "python3 -m venv venv && venv/bin/pip install --quiet --requirement requirements.txt",
};
pub(super) const JS: Language = Language {
    name: "js",
    programs: &["node", "npm"],
    // The scripts of packages build serial ports, which nobody here has.
    install: "npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error",
};
pub(super) const RUST: Language =
    Language { name: "rust", programs: &["cargo"], install: "cargo build --quiet --target-dir target" };

/// Several tests want the same folder at a time.
static INSTALLING: Mutex<()> = Mutex::new(());

impl Language {
    /// The folder with script and libraries.
    pub(super) fn installed(&self) -> Option<PathBuf> {
        let _one_at_a_time = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(missing) = self.programs.iter().find(|program| !is_there(program)) {
            skip(&format!("there is no {missing}"));
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers").join(self.name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(self.name);
        let files = files_below(&source);
        let unchanged =
            |name: &PathBuf| fs::read(folder.join(name)).is_ok_and(|copy| copy == fs::read(source.join(name)).unwrap());
        let stamp = folder.join("installed");
        if stamp.exists() && files.iter().all(unchanged) {
            return Some(folder);
        }
        let _ = fs::remove_file(&stamp);
        for name in &files {
            let copy = folder.join(name);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(source.join(name), copy).unwrap();
        }
        // The `echonet` crate takes minutes to compile.
        let script = format!("timeout 600 sh -c '{}' 2>&1", self.install);
        let output = Command::new("sh").args(["-c", &script]).current_dir(&folder).output().unwrap();
        if !output.status.success() {
            skip(&format!("{} cannot be installed: {}", self.name, String::from_utf8_lossy(&output.stdout)));
            return None;
        }
        fs::write(stamp, "").unwrap();
        Some(folder)
    }
}

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

/// Names of all files below a folder, relative to it.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner)).unwrap().map(Result::unwrap) {
            let name = inner.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() { folders.push(name) } else { files.push(name) }
        }
    }
    files
}
