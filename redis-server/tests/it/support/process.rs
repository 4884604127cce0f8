//! Our server as a process of its own, for what concerns a whole process: memory, open files.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::resp::{Value, parse, request};
use super::{PATIENCE, until};

/// Our program.
pub(crate) const OURS: &str = env!("CARGO_BIN_EXE_redis-server");

/// The program, reached by a Unix socket in a folder of its own; ends with this value.
pub(crate) struct Process {
    program: &'static str,
    child: Child,
    pub(crate) folder: PathBuf,
    flags: Vec<String>,
    /// Variables of its environment, besides the tests'.
    environment: Vec<(&'static str, PathBuf)>,
}

impl Process {
    pub(crate) fn start(name: &str, settings: &[(&str, &str)]) -> Self {
        Self::of(OURS, name, settings, Vec::new())
    }

    /// One to whose programs this library is loaded before all others.
    pub(crate) fn with_library(name: &str, settings: &[(&str, &str)], library: &Path) -> Self {
        Self::of(OURS, name, settings, vec![("LD_PRELOAD", library.to_owned())])
    }

    /// The genuine program; it is there.
    pub(crate) fn genuine(name: &str, settings: &[(&str, &str)]) -> Self {
        Self::of("redis-server", name, settings, Vec::new())
    }

    fn of(
        program: &'static str,
        name: &str,
        settings: &[(&str, &str)],
        environment: Vec<(&'static str, PathBuf)>,
    ) -> Self {
        let folder = std::env::temp_dir().join(format!("redis-server-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let flags = settings.iter().flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()]);
        let flags: Vec<_> = flags.collect();
        let child = command(program, &folder, &flags, &environment).spawn().unwrap();
        let process = Self { program, child, folder, flags, environment };
        process.wait();
        process
    }

    fn wait(&self) {
        self.wait_for_socket();
        let is_loading = |reply: Value| matches!(reply, Value::Error(text) if text.starts_with(b"LOADING"));
        until("its data is loaded", || !is_loading(ask(&mut self.connect(), &["PING"])));
    }

    fn wait_for_socket(&self) {
        until("the server listens", || UnixStream::connect(self.folder.join("socket")).is_ok());
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts it again, in the same folder; it has ended.
    pub(crate) fn restart(&mut self) {
        self.child = self.command().spawn().unwrap();
        self.wait();
    }

    /// Starts it again, where it may still load its data when this returns.
    pub(crate) fn restart_loading(&mut self) {
        self.child = self.command().spawn().unwrap();
        self.wait_for_socket();
    }

    fn command(&self) -> Command {
        command(self.program, &self.folder, &self.flags, &self.environment)
    }

    /// Has it start with these flags, too, from now on.
    pub(crate) fn add_flags(&mut self, flags: &[&str]) {
        self.flags.extend(flags.iter().map(|&flag| flag.to_owned()));
    }

    /// Starts it again, in the same folder, where it does not come far: its exit status and the last line it has printed.
    pub(crate) fn fail_to_start(&self) -> (ExitStatus, String) {
        let output = self.command().stdout(Stdio::piped()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status, text.lines().next_back().unwrap_or_default().to_owned())
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.folder.join("socket")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the server ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }

    /// Processes that it has started and that live.
    pub(crate) fn children(&self) -> Vec<i32> {
        let mut children = Vec::new();
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten() {
            // A thread may have ended meanwhile.
            let listed = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            children.extend(listed.split_whitespace().map(|pid| pid.parse::<i32>().unwrap()));
        }
        children
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most resident memory that there was, in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// A figure of `/proc/PID/status`, in bytes.
    pub(crate) fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// User and system CPU time of all its threads so far.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // Behind the program's name, which may hold anything: fields 14 and 15, in hundredths.
        let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
    }

    pub(crate) fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }
}

fn command(program: &str, folder: &Path, flags: &[String], environment: &[(&str, PathBuf)]) -> Command {
    // The socket tells whether a server listens.
    let _ = fs::remove_file(folder.join("socket"));
    let mut command = Command::new(program);
    let workers: &[&str] = if program == OURS { &["--workers", "2"] } else { &[] };
    command.args(["--port", "0", "--unixsocket", "socket"]).args(workers).arg("--logfile");
    // A name alone would be one in `dir`, which some change.
    command.arg(folder.join("log")).args(flags).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Why it ended, if it did, is in its log, which goes with the folder.
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            let from = log.lines().count().saturating_sub(20);
            eprintln!("{}: {:?}", self.folder.display(), self.child.try_wait());
            log.lines().skip(from).for_each(|line| eprintln!("{line}"));
        }
        // It may have ended by itself, which the test has noticed then.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Asks and waits for the reply, on any stream.
#[track_caller]
pub(crate) fn ask(stream: &mut (impl Read + Write), words: &[&str]) -> Value {
    try_ask(stream, words).expect("a reply in time")
}

/// The same of a server that may close the connection.
pub(crate) fn try_ask(stream: &mut (impl Read + Write), words: &[&str]) -> io::Result<Value> {
    stream.write_all(&request(words))?;
    next_reply(stream)
}

/// Waits for what the server says next; drops what has come with it.
pub(crate) fn next_reply(stream: &mut impl Read) -> io::Result<Value> {
    let mut input = Vec::new();
    loop {
        if let Some((value, _)) = parse(&input).unwrap() {
            return Ok(value);
        }
        let mut chunk = [0; 4096];
        let count = test_peers::read(stream, &mut chunk)?;
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        input.extend_from_slice(&chunk[..count]);
    }
}
