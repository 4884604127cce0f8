//! A block as one session of bash.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use super::blocks::{Block, Statement};
use super::known::{Known, Rule};
use super::substitute::Packages;

/// How long a command may take, with what has to be there before it.
const LIMIT: Duration = Duration::from_secs(60);

/// The exit code of a shell for a program that it does not find.
const NOT_FOUND: i32 = 127;

/// The functions of a session, and its network.
const PRELUDE: &str = include_str!("session.sh");

/// Answers of servers that say no are failures; no progress is shown beside an answer.
const CURL: &str = "fail-with-body\nsilent\nshow-error\n";

/// Where sessions run, and what they find there.
pub(super) struct Place {
    /// The folder that has one for each session.
    folder: PathBuf,
    programs: PathBuf,
    /// The value of `PATH`.
    path: String,
}

/// The outcome of a block.
#[derive(Default)]
pub(super) struct Done {
    pub(super) run: usize,
    pub(super) not_run: usize,
    /// Programs that are not there.
    pub(super) missing: Vec<String>,
    /// The first command that has failed: README, line, why, output.
    pub(super) failure: Option<String>,
    /// Commands with what they have printed.
    pub(super) shown: String,
}

/// A statement as it is run.
struct Step<'a> {
    statement: &'a Statement,
    rule: Option<&'a Rule>,
    way: Way,
    /// With `cargo run` replaced.
    command: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    ToItsEnd,
    /// Until its socket is there.
    Serves,
    /// Until it has printed something.
    Stays,
}

impl Drop for Place {
    fn drop(&mut self) {
        // Remaining files do no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Place {
    /// A folder with links to our programs, and to peers.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn new(programs: PathBuf, packages: &Packages, known: &Known) -> Result<Self> {
        // In memory, where nothing waits for a disk: moving a slot of a cluster is twenty fsyncs.
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { xtask::workspace::target_dir() };
        let folder = parent.join(format!("readme-{}", process::id()));
        let links = folder.join("bin");
        fs::create_dir_all(&links)?;
        for name in packages.programs() {
            symlink(programs.join(name), links.join(name))?;
        }
        for (name, path) in &known.peers {
            let path = xtask::workspace::target_dir().join("tmp/peers").join(path);
            if path.exists() {
                symlink(path, links.join(name))?;
            }
        }
        let system = env::var("PATH").context("PATH")?;
        // Redis' sentinel is its server by another name, as packages link it.
        let found = |name: &str| env::split_paths(&system).map(|folder| folder.join(name)).find(|path| path.is_file());
        if let (None, Some(genuine)) = (found("redis-sentinel"), found("redis-server")) {
            symlink(genuine, links.join("redis-sentinel"))?;
        }
        // Examples last: one is called like a program that every system has.
        let path = format!("{}:{system}:{}/examples", links.display(), programs.display());
        Ok(Self { folder, programs, path })
    }

    /// Has a name lead to another program.
    ///
    /// # Errors
    /// When the link cannot be made.
    pub(super) fn link(&self, name: &str, program: &Path) -> Result<()> {
        let link = self.folder.join("bin").join(name);
        if link.is_symlink() {
            fs::remove_file(&link)?;
        }
        Ok(symlink(program, link)?)
    }

    /// Runs a block until a command fails.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn run(&self, block: &Block, known: &Known, packages: &Packages) -> Result<Done> {
        let mut done = Done::default();
        let mut steps = Vec::new();
        for statement in &block.statements {
            let rule = known.rule(&block.readme, &statement.text);
            if rule.is_some_and(|rule| rule.not_run.is_some()) {
                done.not_run += 1;
                continue;
            }
            let command = match packages.substitute(&statement.text, &self.programs) {
                Ok(command) => command,
                Err(error) => {
                    done.failure =
                        Some(format!("{}:{}: `{}`: {error:#}", block.readme, statement.line, statement.text));
                    return Ok(done);
                }
            };
            let way = if rule.is_some_and(|rule| rule.stays) { Way::Stays } else { way(&command, known) };
            steps.push(Step { statement, rule, way, command });
        }
        if steps.is_empty() {
            return Ok(done);
        }
        let folder = self.folder.join(block.place().replace(['/', ':'], "-"));
        fs::create_dir_all(folder.join("here"))?;
        fs::write(folder.join(".curlrc"), CURL)?;
        fs::write(folder.join("script"), script(&steps))?;
        let session = Session::start(&folder, &self.path)?;
        let told = session.follow(&steps, &folder, &mut done);
        for (number, step) in steps.iter().enumerate().take(done.run) {
            let _ = writeln!(done.shown, "$ {}\n{}", step.statement.text, output(&folder, number));
        }
        if let Err((number, why)) = told {
            let statement = steps[number].statement;
            let (readme, line, command) = (&block.readme, statement.line, &statement.text);
            let (before, output) = (text(&folder.join(format!("{number}.before"))), output(&folder, number));
            let before = if before.is_empty() { before } else { format!("\nbefore it:\n{before}") };
            done.failure = Some(format!("{readme}:{line}: `{command}` {why}\nits output:\n{output}{before}"));
        }
        Ok(done)
    }
}

/// How a command is run: a server in the foreground is not waited for.
fn way(command: &str, known: &Known) -> Way {
    let mut words = command.split_whitespace().skip_while(|word| is_assignment(word));
    let program = words.next().unwrap_or_default();
    let mut words = words.peekable();
    let is_server = known.servers.iter().any(|server| program == server || program.ends_with(&format!("/{server}")));
    let is_alone =
        !command.contains(['\n', ';', '|', '&']) && words.all(|word| !known.at_once.iter().any(|one| one == word));
    if is_server && is_alone { Way::Serves } else { Way::ToItsEnd }
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// All of the session in the words of bash. `exec` in front of what is not waited for, so that its process is known.
fn script(steps: &[Step<'_>]) -> String {
    let mut script = PRELUDE.to_owned();
    for (number, Step { rule, way, command, .. }) in steps.iter().enumerate() {
        let _ = writeln!(script, "report begin {number}");
        if *way == Way::Serves {
            script.push_str("end_server\n");
        }
        if let Some(before) = rule.and_then(|rule| rule.before.as_deref()) {
            let _ = writeln!(script, "{{\n{before}\n}} >../{number}.before 2>&1 </dev/null");
            if before.trim_end().ends_with('&') {
                script.push_str("settle\n");
            }
        }
        let words = command.split_inclusive(' ');
        let assignments: usize = words.take_while(|word| is_assignment(word.trim())).map(str::len).sum();
        let (assignments, program) = command.split_at(assignments);
        let _ = match way {
            Way::ToItsEnd => {
                let settle = if has_background(command) { "settle; " } else { "" };
                writeln!(
                    script,
                    "failed=; trap 'failed=${{failed:-$?}}' ERR\n{{\n{command}\n}} >../{number}.out 2>&1 </dev/null\n\
                     trap - ERR; {settle}report end {number} ${{failed:-0}}"
                )
            }
            Way::Serves => writeln!(
                script,
                "there=$(listeners)\n{{\n{assignments}exec {program}\n}} >../{number}.out 2>&1 </dev/null &\n\
                 server=$! server_of={number}\nawait_socket $server {number} \"$there\""
            ),
            Way::Stays => writeln!(
                script,
                "{{\nexec {command}\n}} >../{number}.out 2>&1 </dev/null &\nawait_output $! {number} ../{number}.out"
            ),
        };
    }
    script.push_str("end_server\nreport over\n");
    script
}

/// Whether it starts something that goes on.
fn has_background(command: &str) -> bool {
    command.replace("&&", "").contains('&')
}

/// The output of a command, as text.
fn output(folder: &Path, number: usize) -> String {
    text(&folder.join(format!("{number}.out")))
}

/// A file's text; nothing if it is not there.
fn text(path: &Path) -> String {
    fs::read(path).map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// A running bash and all that it has started: one process group, which ends with this value.
struct Session {
    child: Child,
    told: Receiver<String>,
}

impl Session {
    fn start(folder: &Path, path: &str) -> Result<Self> {
        let mut command = xtask::process::unshare();
        let errors = File::create(folder.join("errors"))?;
        command.args(["bash", "-c", "exec 3>&1 >&2; cd here; source ../script"]).current_dir(folder);
        command
            .env("PATH", path)
            .env("HOME", folder)
            .env("CURL_HOME", folder)
            .env("FAKETTY", "1")
            .env("WORKSPACE", xtask::workspace::root())
            .env_remove("REDISCLI_AUTH");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).process_group(0);
        let mut child = command.spawn().context("cannot start unshare")?;
        let lines = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
        let (teller, told) = mpsc::channel();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| teller.send(line)));
        Ok(Self { child, told })
    }

    /// Follows what it tells to the end; which command has failed, and how.
    fn follow(&self, steps: &[Step<'_>], folder: &Path, done: &mut Done) -> Result<(), (usize, String)> {
        let errors = || text(&folder.join("errors"));
        let mut current = 0;
        loop {
            let line = match self.told.recv_timeout(LIMIT) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    return Err((current, format!("takes longer than {} s", LIMIT.as_secs())));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err((current, format!("has ended its session: {}", errors())));
                }
            };
            let mut words = line.split(' ');
            let (what, number) = (words.next().unwrap_or_default(), words.next().and_then(|word| word.parse().ok()));
            let code = words.next().and_then(|word| word.parse().ok());
            match (what, number, code) {
                ("begin", Some(number), None) => (current, done.run) = (number, number + 1),
                ("end", Some(number), Some(code)) => {
                    judge(&steps[number], code, &output(folder, number), done).map_err(|why| (number, why))?;
                }
                ("ended", Some(number), Some(code)) => {
                    return Err((number, format!("has ended with {code}, and was expected to serve")));
                }
                ("silent", Some(number), None) => return Err((number, "has begun to listen nowhere".to_owned())),
                ("gone", Some(number), None) => return Err((number, "has ended before its time".to_owned())),
                ("over", None, None) => break,
                ("network", None, None) => return Err((current, format!("has no network: {}", errors()))),
                _ => return Err((current, format!("has told `{line}`: {}", errors()))),
            }
        }
        for (number, step) in steps.iter().enumerate().filter(|(_, step)| step.way == Way::Stays) {
            // The effect of the last command may still be on its way.
            let look = || compare(step, &output(folder, number));
            for _ in 0..50 {
                if look().is_ok() {
                    break;
                }
                thread::sleep(Duration::from_millis(100));
            }
            look().map_err(|why| (number, why))?;
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Whether a command did what is printed; a program that is not there is noted.
fn judge(step: &Step<'_>, code: i32, output: &str, done: &mut Done) -> Result<(), String> {
    if code == NOT_FOUND && !Rule::allows(step.rule, code) {
        done.missing.push(format!("`{}`: {}", step.statement.text, output.lines().last().unwrap_or_default()));
        return Ok(());
    }
    if !Rule::allows(step.rule, code) {
        return Err(format!("has ended with {code}"));
    }
    if output.lines().any(|line| line.starts_with("(error)")) && step.command.contains("redis-cli") {
        return Err("was answered by an error".to_owned());
    }
    if step.way == Way::Stays { Ok(()) } else { compare(step, output) }
}

/// Whether what a block shows was printed, unless that varies.
fn compare(step: &Step<'_>, output: &str) -> Result<(), String> {
    let Some(shown) = &step.statement.output else { return Ok(()) };
    let varies = step.rule.is_some_and(|rule| rule.varies.is_some());
    if varies || output.replace('\r', "") == shown.trim_end() {
        return Ok(());
    }
    Err(format!("does not print what is shown:\n{}", shown.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_reports_mismatches_and_missing_commands() {
        let place = Place {
            folder: xtask::workspace::target_dir().join("readme"),
            programs: PathBuf::from("/nowhere"),
            path: env::var("PATH").unwrap(),
        };
        let known: Known = toml::from_str("servers = ['cat', 'true']\nat_once = ['--help']\npeers = {}\n[[command]]\nreadme = 'A'\ncommand = 'exit-3'\nexit = [3]\nbefore = 'exit-3() { return 3; }'").unwrap();
        let packages = Packages::read().unwrap();
        let check = |text: &str, expected: &str| {
            let text = format!("```console\n{text}\n```\n");
            let block = &super::super::blocks::blocks("A", &text).unwrap()[0];
            let done = place.run(block, &known, &packages).unwrap();
            assert_eq!(done.failure.unwrap_or_default().trim_end(), expected, "{text}");
            done.missing
        };
        assert!(check("$ echo a; echo b\na\nb\n$ exit-3", "").is_empty());
        check("$ echo a\nb", "A:2: `echo a` does not print what is shown:\nb\nits output:\na");
        check("$ true\n$ false; echo on", "A:2: `true` has ended with 0, and was expected to serve\nits output:");
        check("$ x=1\n$ false; echo $x", "A:3: `false; echo $x` has ended with 1\nits output:\n1");
        let missing = check("$ no-such-program -x", "");
        assert!(missing[0].contains("no-such-program: command not found"), "{missing:?}");
    }
}
