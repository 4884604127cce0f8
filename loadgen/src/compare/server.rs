//! A subject as a running server.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::child::{self, Child, LOOK, Scratch, Start};
use super::cores::Cores;
use super::plan::Subject;
use super::words::{Places, Words};

/// A running server; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Server<'a> {
    subject: &'a Subject,
    here: &'a Path,
    port: u16,
    // Dropped in this order: the process, then its folder.
    child: Child,
    scratch: Scratch,
}

/// How long a version, check, ready or stop command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// How long an installation may take.
const INSTALL_LIMIT: Duration = Duration::from_secs(3600);

impl<'a> Server<'a> {
    /// Starts a subject and waits until it serves.
    ///
    /// # Errors
    /// When it cannot be started, ends, does not serve in time, or `stop` says to give up.
    pub(crate) fn start(
        subject: &'a Subject,
        here: &'a Path,
        pin: Option<&Cores>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let scratch = Scratch::new()?;
        let port = subject.port.map_or_else(free_port, Ok)?;
        let places = Places { port, here, scratch: scratch.path() };
        let words = places.command(subject.start.as_ref().context("it is no server")?);
        let environment = subject.environment.iter().map(|(name, value)| (name.clone(), places.fill(value))).collect();
        let start = Start {
            words: &words,
            folder: &folder(subject, &places),
            environment: &environment,
            cores: subject.pin.as_ref().or(pin),
            log: &scratch.path().join("loadgen.log"),
            patience: subject.stop_within.0,
        };
        let child = Child::start(&start)?;
        let mut server = Self { subject, here, port, child, scratch };
        server.wait_until_ready(stop)?;
        Ok(server)
    }

    /// The words of a program that asks it, and the folder that it may use.
    pub(crate) fn asking(&self, words: &Words) -> (Vec<String>, &Path) {
        (Places { port: self.port, here: self.here, scratch: self.scratch.path() }.command(words), self.scratch.path())
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Whether it still runs; the text says how it ended, and its last words.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.child.end()? {
            None => Ok(()),
            Some(status) => bail!("the server has ended ({status}): {}", self.child.last_words()),
        }
    }

    fn wait_until_ready(&mut self, stop: &dyn Fn() -> bool) -> Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let deadline = Instant::now() + self.subject.ready_within.0;
        while !self.subject.ready.holds(address, |words| self.command(words, stop).is_ok()) {
            self.check()?;
            if stop() {
                bail!("interrupted");
            }
            if Instant::now() >= deadline {
                let seconds = self.subject.ready_within.0.as_secs_f64();
                bail!("does not serve within {seconds} s: {}", self.child.last_words());
            }
            thread::sleep(LOOK);
        }
        // Another process may have answered in its place.
        self.check()
    }

    fn command(&self, words: &Words, stop: &dyn Fn() -> bool) -> Result<String> {
        let places = Places { port: self.port, here: self.here, scratch: self.scratch.path() };
        let words = places.command(words);
        child::output(&words, self.scratch.path(), &self.subject.environment, COMMAND_LIMIT, stop)
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if let Some(words) = &self.subject.stop {
            // If it fails, the child's own end follows all the same.
            let began = Instant::now();
            if self.command(words, &|| began.elapsed() > self.subject.stop_within.0).is_ok() {
                let _ = self.child.wait(self.subject.stop_within.0, &|| false);
            }
        }
    }
}

fn folder(subject: &Subject, places: &Places<'_>) -> PathBuf {
    subject.folder.as_ref().map_or_else(|| places.scratch.to_owned(), |folder| places.here.join(places.fill(folder)))
}

/// A free port, below the range from which the system takes ports of its own choice: one of those may be taken by the time the server starts.
/// Each call returns another, because connections of a server that has ended hold its port for a minute.
fn free_port() -> Result<u16> {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 22_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let of_this_process = std::process::id().wrapping_mul(97);
    let next = |_| FIRST + of_this_process.wrapping_add(TAKEN.fetch_add(1, Relaxed)) % COUNT;
    let mut ports = (0..COUNT).map(next).filter_map(|port| u16::try_from(port).ok());
    ports
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .context("no free port from 10000 to 31999")
}

/// Why a subject cannot be started; nothing if it is installed.
pub(crate) fn absence(subject: &Subject, here: &Path, stop: &dyn Fn() -> bool) -> Option<String> {
    let Some(check) = &subject.check else {
        let start = subject.start.as_ref()?;
        let scratch = Path::new("/");
        let program = Places { port: 0, here, scratch }.command(start).swap_remove(0);
        // In the words of the file: a record is read on other machines.
        let name = &start.words()[0];
        let from = if name.contains('/') { ", looked for from the folder of the plan" } else { "" };
        return (!is_installed(&program)).then(|| format!("there is no program {name}{from}"));
    };
    run(check, subject, here, COMMAND_LIMIT, stop).err().map(|error| format!("{error:#}"))
}

/// Installs a subject.
pub(crate) fn install(subject: &Subject, words: &Words, here: &Path, stop: &dyn Fn() -> bool) -> Result<()> {
    run(words, subject, here, INSTALL_LIMIT, stop).map(|_| ())
}

/// The first line of what the version command prints.
pub(crate) fn version(subject: &Subject, here: &Path, stop: &dyn Fn() -> bool) -> Option<String> {
    let words = subject.version.as_ref()?;
    let text = run(words, subject, here, COMMAND_LIMIT, stop).unwrap_or_else(|error| format!("unknown: {error:#}"));
    text.lines().next().map(str::to_owned)
}

/// Runs a command about a subject, from the file's folder.
fn run(words: &Words, subject: &Subject, here: &Path, limit: Duration, stop: &dyn Fn() -> bool) -> Result<String> {
    let scratch = Scratch::new()?;
    let places = Places { port: subject.port.unwrap_or(0), here, scratch: scratch.path() };
    child::output(&places.command(words), here, &subject.environment, limit, stop)
}

fn is_installed(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
