//! Servers as child processes: a free port, a temporary folder, readiness, CPU time and memory, an end by process id.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a server may take until it answers PING (under valgrind too).
const START_LIMIT: Duration = Duration::from_secs(30);

/// Unit of the times in `/proc/PID/stat`: USER_HZ is 100 on every Linux that Rust targets.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running server; dropping it ends the process and removes its folder.
pub struct Server {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Server {
    /// Starts `command` in a folder of its own below `parent` and waits until it answers on `port`.
    ///
    /// # Errors
    /// When the process cannot be started, ends early, or stays silent for too long.
    pub fn start(command: &[String], port: u16, parent: &Path) -> Result<Self> {
        Self::start_when(answers, command, port, parent)
    }

    /// The same for a server that is ready when `is_ready` says so of its port.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_when(is_ready: fn(u16) -> bool, command: &[String], port: u16, parent: &Path) -> Result<Self> {
        let folder = parent.join(format!("server-{port}"));
        fs::create_dir_all(&folder)?;
        let child = spawn(command, &folder)?;
        let mut server = Self { child, port, folder };
        server.wait_until_ready(is_ready).with_context(|| format!("`{}`", command.join(" ")))?;
        Ok(server)
    }

    /// Starts it anew in its folder, as `command` says, when the one before has ended, as it was told to.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_again(&mut self, command: &[String], port: u16) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                bail!("the server does not end");
            }
            thread::sleep(Duration::from_millis(5));
        }
        (self.child, self.port) = (spawn(command, &self.folder)?, port);
        self.wait_until_ready(answers)
    }

    fn wait_until_ready(&mut self, is_ready: fn(u16) -> bool) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                bail!("ended at once ({status}):\n{}", fs::read_to_string(self.folder.join("log"))?);
            }
            if is_ready(self.port) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("does not answer on port {}", self.port)
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder in which it runs, with its output in the file `log`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// User and system CPU time of all its threads so far, in seconds.
    pub fn cpu_seconds(&self) -> Result<f64> {
        let fields = stat_fields(&format!("/proc/{}/stat", self.pid()))?;
        Ok((fields[UTIME] + fields[UTIME + 1]) / TICKS_PER_SECOND)
    }

    /// User and system CPU time of each of its threads so far, in seconds, in the order of their numbers.
    pub fn threads_cpu_seconds(&self) -> Result<Vec<f64>> {
        let folder = format!("/proc/{}/task", self.pid());
        let names = fs::read_dir(&folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().parse()?));
        let mut threads = names.collect::<Result<Vec<u32>>>()?;
        threads.sort_unstable();
        let cpu = |thread| -> Result<f64> {
            let fields = stat_fields(&format!("{folder}/{thread}/stat"))?;
            Ok((fields[UTIME] + fields[UTIME + 1]) / TICKS_PER_SECOND)
        };
        threads.into_iter().map(cpu).collect()
    }

    /// Resident memory in bytes (`VmRSS`).
    pub fn resident_bytes(&self) -> Result<u64> {
        self.status_bytes("VmRSS:")
    }

    /// The most that it was since [`Server::forget_peak`] in bytes (`VmHWM`).
    pub fn peak_bytes(&self) -> Result<u64> {
        self.status_bytes("VmHWM:")
    }

    /// Resident memory counts from now on for [`Server::peak_bytes`] (proc(5), `clear_refs`).
    pub fn forget_peak(&self) -> Result<()> {
        fs::write(format!("/proc/{}/clear_refs", self.pid()), "5").context("the peak of memory cannot be reset")
    }

    fn status_bytes(&self, name: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1024)
    }
}

fn spawn(command: &[String], folder: &Path) -> Result<Child> {
    let log = File::create(folder.join("log"))?;
    let (program, arguments) = command.split_first().context("a server needs a command")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.spawn().with_context(|| format!("cannot start {program}"))
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing useful can be done about a failure here: the process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Index of `utime` among the fields that follow the command name; `stime`, `cutime` and `cstime` come next (proc(5)).
const UTIME: usize = 11;

/// The numeric fields of a stat file after the name in parentheses, which may itself hold spaces.
fn stat_fields(path: &str) -> Result<Vec<f64>> {
    let text = fs::read_to_string(path)?;
    let (_, fields) = text.rsplit_once(") ").context("a stat file has a name in parentheses")?;
    let fields: Vec<f64> = fields.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect();
    if fields.len() <= UTIME + 3 {
        bail!("{path} is too short");
    }
    Ok(fields)
}

/// Whether a server on this port of the loopback interface answers PING.
pub fn answers(port: u16) -> bool {
    let ping = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0; 7];
        stream.read_exact(&mut reply)?;
        Ok(&reply == b"+PONG\r\n")
    };
    ping().unwrap_or(false)
}

/// The words of a command line. Paths become absolute, because servers run in folders of their own.
pub fn words(command: &str) -> Vec<String> {
    let whole = |word: &str| fs::canonicalize(word).map_or_else(|_| word.to_owned(), |path| path.display().to_string());
    command.split_whitespace().map(whole).collect()
}

/// Runs a command quietly.
///
/// # Errors
/// When it cannot be started or fails; the error holds its whole output.
pub fn run_quietly(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("{command:?} failed ({}):\n{text}", output.status);
    }
    Ok(text)
}

/// The beginning of a command line that runs a program in a network of its own.
pub fn unshare() -> Command {
    let mut command = Command::new("unshare");
    let is_root = run_quietly(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    command.args(if is_root { &["--net"][..] } else { &["--user", "--map-root-user", "--net"] });
    command
}
