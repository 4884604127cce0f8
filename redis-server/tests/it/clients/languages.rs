//! Clients of other languages: small scripts of our own (`tests/peers`) on the genuine libraries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use super::{is_there, printed};
use crate::support::server::Server;
use crate::support::skip;

/// A language's clients.
pub(super) struct Language {
    /// Folder below `tests/peers`.
    name: &'static str,
    /// What must be installed.
    programs: &'static [&'static str],
    /// Fetches the libraries, in a copy of the folder; done again when a file of the folder has changed.
    install: &'static str,
}

const PYTHON: Language = Language {
    name: "python",
    programs: &["python3"],
    install: "python3 -m venv venv && venv/bin/pip install --quiet --requirement requirements.txt",
};
const GO: Language = Language { name: "go", programs: &["go"], install: "go build -o peer ." };
/// go-redis' own tests, of the version that `go.mod` names.
pub(super) const GO_SUITE: Language = Language { name: "go-suite", programs: &["go"], install: "sh install.sh" };
/// redis-py's own tests, of the version that `requirements.txt` names.
pub(super) const PYTHON_SUITE: Language =
    Language { name: "python-suite", programs: &["python3"], install: "sh install.sh" };
const JS: Language = Language {
    name: "js",
    programs: &["node", "npm"],
    install: "npm install --no-audit --no-fund --no-package-lock --loglevel=error",
};

/// Two tests want the same folder at a time.
static INSTALLING: Mutex<()> = Mutex::new(());

impl Language {
    /// The folder with script and libraries. Installing needs a package registry, once: the result stays in `target`.
    pub(super) fn installed(&self) -> Option<PathBuf> {
        let _one_at_a_time = INSTALLING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(missing) = self.programs.iter().find(|program| !is_there(program)) {
            skip(&format!("there is no {missing}"));
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers").join(self.name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(self.name);
        let files: Vec<_> = fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path()).collect();
        let unchanged = |file: &PathBuf| {
            fs::read(folder.join(file.file_name().unwrap())).is_ok_and(|copy| copy == fs::read(file).unwrap())
        };
        let stamp = folder.join("installed");
        if stamp.exists() && files.iter().all(unchanged) {
            return Some(folder);
        }
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for file in &files {
            fs::copy(file, folder.join(file.file_name().unwrap())).unwrap();
        }
        // Five minutes: Go compiles its client library, and registries may be slow.
        let script = format!("timeout 300 sh -c '{}' 2>&1", self.install);
        let output = Command::new("sh").args(["-c", &script]).current_dir(&folder).output().unwrap();
        if !output.status.success() {
            skip(&format!("{} cannot be installed: {}", self.name, String::from_utf8_lossy(&output.stdout)));
            return None;
        }
        fs::write(stamp, "").unwrap();
        Some(folder)
    }

    /// Runs a script in RESP2 and RESP3.
    fn check(&self, program: &str, script: &[&str]) {
        let Some(folder) = self.installed() else { return };
        for protocol in ["2", "3"] {
            let server = Server::start();
            // Installed programs stand in the folder, others in the path.
            let inside = folder.join(program);
            let mut command = if inside.exists() { Command::new(inside) } else { Command::new(program) };
            let port = server.addr.port().to_string();
            let said = printed(command.args(script).args([&port, protocol]).current_dir(&folder));
            assert_eq!(said.lines().last(), Some("ok"), "{said}");
        }
    }
}

#[test]
fn redis_py() {
    PYTHON.check("venv/bin/python", &["peer.py"]);
}

#[test]
fn go_redis() {
    GO.check("peer", &[]);
}

#[test]
fn ioredis() {
    JS.check("node", &["ioredis.js"]);
}

#[test]
fn queues_locks_limiters_sessions() {
    // They live on scripts: a server without EVAL cannot be asked.
    if redis_server::registry::lookup(b"eval").is_none() {
        println!("skipped: there is no EVAL");
        return;
    }
    JS.check("node", &["--no-warnings", "applications.js"]);
}

#[test]
fn node_redis() {
    JS.check("node", &["node-redis.js"]);
}
