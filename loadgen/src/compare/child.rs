//! Child processes that never outlive their owner: each in a process group of its own, which is ended as a whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::cores::{self, Cores};

/// How often it is looked whether something has happened.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new folder among the temporary ones.
    pub(crate) fn new() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("loadgen-{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self { path })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Remaining temporary files do no harm.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A running process and all that it starts; dropping it ends them.
#[derive(Debug)]
pub(crate) struct Child {
    child: std::process::Child,
    log: PathBuf,
    patience: Duration,
    ended: bool,
}

/// How a process is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'a> {
    pub(crate) words: &'a [String],
    pub(crate) folder: &'a Path,
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) cores: Option<&'a Cores>,
    /// Takes what it prints.
    pub(crate) log: &'a Path,
    /// How long it may take to end after a SIGTERM.
    pub(crate) patience: Duration,
}

impl Child {
    /// Starts a process.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self> {
        let log = File::create(start.log).with_context(|| start.log.display().to_string())?;
        Self::with(start, Stdio::null(), log.try_clone()?.into(), log)
    }

    /// Starts a process whose input and output are its caller's; the log takes its errors.
    pub(crate) fn piped(start: &Start<'_>) -> Result<(Self, ChildStdin, ChildStdout)> {
        let log = File::create(start.log).with_context(|| start.log.display().to_string())?;
        let mut child = Self::with(start, Stdio::piped(), Stdio::piped(), log)?;
        let (input, output) = (child.child.stdin.take(), child.child.stdout.take());
        Ok((child, input.context("its input is piped")?, output.context("its output is piped")?))
    }

    fn with(start: &Start<'_>, input: Stdio, output: Stdio, errors: File) -> Result<Self> {
        let (program, arguments) = start.words.split_first().context("a command needs a program")?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(start.folder).envs(start.environment).stdin(input);
        command.stdout(output).stderr(errors);
        // A Ctrl-C at the terminal reaches this program alone, which then ends the group.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = cores::on(start.cores, || command.spawn())?.with_context(|| format!("cannot start {program}"))?;
        Ok(Self { child, log: start.log.to_owned(), patience: start.patience, ended: false })
    }

    /// The process, which is also the number of its group.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn end(&mut self) -> io::Result<Option<std::process::ExitStatus>> {
        if !self.has_ended()? {
            return Ok(None);
        }
        // Its number is free after `wait`: what is left of its group must be ended before.
        self.kill(Signal::KILL);
        self.ended = true;
        self.child.wait().map(Some)
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self, limit: Duration, stop: &dyn Fn() -> bool) -> Result<std::process::ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.end()? {
                return Ok(status);
            }
            if stop() {
                bail!("interrupted");
            }
            if Instant::now() >= deadline {
                bail!("takes longer than {} s", limit.as_secs_f64());
            }
            thread::sleep(LOOK);
        }
    }

    /// Waits for its end, but leaves it to [`wait`](Self::wait): what it has used can still be read.
    pub(crate) fn until_ended(&self, deadline: Instant, stop: &dyn Fn() -> bool) -> Result<()> {
        while !self.has_ended()? {
            if stop() {
                bail!("interrupted");
            }
            if Instant::now() >= deadline {
                bail!("takes too long");
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// The end of what it printed.
    pub(crate) fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[text.len().saturating_sub(LAST_BYTES)..]).trim().to_owned();
        if text.is_empty() { "it printed nothing".to_owned() } else { text }
    }

    /// Whether it has ended; it is not waited for, so that its number stays its own.
    fn has_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(self.ended || waitid(WaitId::Pid(self.group()), options)?.is_some())
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn kill(&self, signal: Signal) {
        if !self.ended {
            // The group may be empty, which is what is wanted.
            let _ = kill_process_group(self.group(), signal);
        }
    }
}

/// How much of a process' last words is told.
const LAST_BYTES: usize = 2000;

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.kill(Signal::TERM);
        let deadline = Instant::now() + self.patience;
        while Instant::now() < deadline && !self.has_ended().unwrap_or(true) {
            thread::sleep(LOOK);
        }
        self.kill(Signal::KILL);
        // After SIGKILL this is short. A failure means that there is no child.
        let _ = self.child.wait();
        self.ended = true;
    }
}

/// Runs a command to its end and gives what it printed.
///
/// # Errors
/// When it cannot be started, fails, or takes longer than `limit`; the text holds the end of what it printed.
pub fn output(
    words: &[String],
    folder: &Path,
    environment: &BTreeMap<String, String>,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<String> {
    let scratch = Scratch::new()?;
    let log = scratch.path().join("log");
    let patience = Duration::from_millis(500);
    let mut child = Child::start(&Start { words, folder, environment, cores: None, log: &log, patience })?;
    let status = child.wait(limit, stop).with_context(|| words.join(" "))?;
    if !status.success() {
        bail!("`{}` failed ({status}): {}", words.join(" "), child.last_words());
    }
    Ok(String::from_utf8_lossy(&fs::read(&log)?).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|word| (*word).to_owned()).collect()
    }

    fn run(text: &[&str], limit: Duration) -> Result<String> {
        output(&words(text), Path::new("/"), &BTreeMap::from([("X".to_owned(), "1".to_owned())]), limit, &|| false)
    }

    #[test]
    fn commands_run_to_their_end() {
        let minute = Duration::from_secs(60);
        assert_eq!(run(&["sh", "-c", "pwd; echo $X"], minute).unwrap(), "/\n1");
        let error = |text: &[&str], limit| format!("{:#}", run(text, limit).unwrap_err());
        assert!(error(&["sh", "-c", "echo why >&2; exit 3"], minute).contains("(exit status: 3): why"));
        assert!(error(&["a-program-that-is-not-there"], minute).contains("cannot start a-program-that-is-not-there"));
        assert!(error(&["sleep", "60"], Duration::from_millis(50)).contains("takes longer than 0.05 s"));
    }

    /// Whether a process runs, and is not a zombie that another process will wait for.
    fn lives(pid: u32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    fn wait_for(what: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !what() {
            assert!(Instant::now() < deadline, "nothing happens");
            thread::sleep(LOOK);
        }
    }

    // A shell and its child, of which both, or the child alone, do not listen to SIGTERM.
    #[test]
    fn dropping_a_child_kills_its_process_group() {
        for script in ["sleep 600 & echo $! > pid; wait", "trap '' TERM; sleep 600 & echo $! > pid; wait"] {
            let scratch = Scratch::new().unwrap();
            let log = scratch.path().join("log");
            let words = words(&["sh", "-c", script]);
            let start = Start {
                words: &words,
                folder: scratch.path(),
                environment: &BTreeMap::new(),
                cores: None,
                log: &log,
                patience: Duration::from_millis(100),
            };
            let child = Child::start(&start).unwrap();
            let pid = || fs::read_to_string(scratch.path().join("pid")).ok()?.trim().parse::<u32>().ok();
            wait_for(|| pid().is_some());
            let (shell, sleep) = (child.pid(), pid().unwrap());
            assert!(lives(shell) && lives(sleep));
            let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
                let _child = child;
                panic!("as a run might");
            }));
            assert!(dropped.is_err());
            wait_for(|| !lives(shell) && !lives(sleep));
        }
    }

    #[test]
    fn orphans_of_an_exited_child_are_killed() {
        let scratch = Scratch::new().unwrap();
        let pid = scratch.path().join("pid").display().to_string();
        run(&["sh", "-c", &format!("sleep 600 & echo $! > {pid}")], Duration::from_secs(60)).unwrap();
        let sleep: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        wait_for(|| !lives(sleep));
    }
}
