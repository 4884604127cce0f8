//! Other programs than this one that ask a server: what they cost, and what they print of what they have done.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::child::{Child, LOOK, Scratch, Start};
use super::cores::Cores;
use super::plan::Subject;
use super::printed::{Format, Read, figures};
use super::server::Server;
use super::surroundings::Surroundings;
use super::usage::Usage;
use super::words::Words;
use crate::process::{Process, Sample};
use crate::record::{Cpu, Ending, Fairness, Generator, Outcome, ServerUse};

/// A run of a program against a server.
pub(super) struct ProgramRun {
    asked: Asked,
    description: String,
    server: u32,
    /// The server's use meanwhile.
    used: Sample,
    notes: Vec<String>,
}

/// Lets a program ask a server.
pub(super) fn against(
    words: &Words,
    subject: Option<&Subject>,
    cores: Option<&Cores>,
    server: &Server<'_>,
    around: &dyn Surroundings,
) -> Result<ProgramRun> {
    let (filled, folder) = server.asking(words);
    let none = BTreeMap::new();
    let environment = subject.map_or(&none, |subject| &subject.environment);
    let process = Process::open(server.pid())?;
    let (usage, mut before) = (Usage::now(server.pid()), Ok(Sample::default()));
    let asked = run(&filled, environment, folder, cores, &|| around.interrupted(), &mut || before = process.sample());
    let (used, asked) = (process.sample()?.since(&before?), asked.with_context(|| words.to_string())?);
    let notes = Usage::now(server.pid()).disturbances_since(&usage);
    Ok(ProgramRun { asked, description: words.to_string(), server: server.pid(), used, notes })
}

impl ProgramRun {
    /// The figures of the server.
    pub(super) fn of_server(self) -> Outcome {
        let (cpu, used) = (self.asked.cpu, self.used);
        let server = ServerUse {
            pid: self.server,
            cpu: used.cpu,
            resident_bytes: used.resident_bytes,
            peak_resident_bytes: used.resident_bytes,
            voluntary_switches: used.voluntary_switches,
            involuntary_switches: used.involuntary_switches,
            ..ServerUse::default()
        };
        self.outcome(server, cpu)
    }

    /// The figures of the program, in the server's place; the server is in the generator's.
    pub(super) fn of_program(self) -> Outcome {
        let (cpu, other) = (self.asked.cpu, self.used.cpu);
        self.outcome(ServerUse { cpu, ..ServerUse::default() }, other)
    }

    /// `other` is the processor time of the side that is not measured. It counts as one thread's.
    fn outcome(self, server: ServerUse, other: Cpu) -> Outcome {
        let Asked { printed: Read { told, seconds, failures }, elapsed, .. } = self.asked;
        let busiest_thread = (other.total() / elapsed.as_secs_f64().max(f64::MIN_POSITIVE)).min(1.0);
        Outcome {
            description: self.description,
            settings: serde_json::Map::new(),
            ending: Ending::Complete,
            seconds,
            operations: Vec::new(),
            told: Some(told),
            failures,
            offered_per_second: None,
            bytes_received: 0,
            bytes_sent: 0,
            deliveries: None,
            iterations: None,
            redirects: None,
            openings: None,
            statuses: Vec::new(),
            fairness: Fairness::default(),
            generator: Generator { cpu: other, busiest_thread, ..Generator::default() },
            server: Some(server),
            timeline: Vec::new(),
            notes: self.notes,
        }
    }
}

/// How long one run may take.
const LIMIT: Duration = Duration::from_secs(600);

/// The work of a program.
struct Asked {
    printed: Read,
    /// Its CPU time: of the whole process, or from its line `begin` to its figures.
    cpu: Cpu,
    /// How long that was.
    elapsed: Duration,
}

/// Runs a program to its end, or to its figures; `begun` is called when it begins to ask.
///
/// # Errors
/// When it cannot be started, fails, is not understood, or `stop` says to give up.
fn run(
    words: &[String],
    environment: &BTreeMap<String, String>,
    folder: &Path,
    cores: Option<&Cores>,
    stop: &dyn Fn() -> bool,
    begun: &mut dyn FnMut(),
) -> Result<Asked> {
    let scratch = Scratch::new()?;
    let log = scratch.path().join("log");
    let patience = Duration::from_millis(500);
    let (mut child, input, output) = Child::piped(&Start { words, folder, environment, cores, log: &log, patience })?;
    let process = Process::open(child.pid())?;
    let (sender, lines) = mpsc::channel();
    // It ends with the program's output.
    thread::spawn(move || {
        let all = BufReader::new(output).lines().map_while(Result::ok);
        all.map_while(|line| sender.send(line).ok()).for_each(drop);
    });
    begun();
    let format = Format::of(words);
    let (mut start, mut before, mut text) = (Instant::now(), Sample::default(), String::new());
    let deadline = start + LIMIT;
    while let Some(line) = next(&lines, deadline, stop)? {
        if format == Format::Figures && line == "begin" {
            begun();
            (start, before) = (Instant::now(), process.sample()?);
            continue;
        }
        text += &line;
        text.push('\n');
        if format == Format::Figures && figures(&line).is_some() {
            break;
        }
    }
    if format != Format::Figures {
        // Nothing is waited for, so that its times can be read when it has ended.
        child.until_ended(deadline, stop)?;
    }
    let (elapsed, cpu) = (start.elapsed(), process.sample()?.since(&before).cpu);
    // A program that waits for the end of its input may go on now.
    drop(input);
    let status = child.wait(Duration::from_secs(5), stop)?;
    ensure!(status.success(), "it failed ({status}): {text}{}", child.last_words());
    let printed = format.read(words, &text).with_context(|| format!("it printed: {text}{}", child.last_words()))?;
    ensure!(printed.told.answers > 0, "nothing was answered: {text}");
    Ok(Asked { printed, cpu, elapsed })
}

/// The next line; nothing at the output's end.
fn next(lines: &Receiver<String>, deadline: Instant, stop: &dyn Fn() -> bool) -> Result<Option<String>> {
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => return Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if stop() => bail!("interrupted"),
            Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                bail!("takes longer than {} s", LIMIT.as_secs())
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(script: &str) -> Result<Asked> {
        let words = ["sh", "-c", script].map(str::to_owned);
        run(&words, &BTreeMap::new(), Path::new("/"), None, &|| false, &mut || {})
    }

    #[test]
    fn cpu_time_before_begin_is_excluded() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let whole = asked(&format!("{busy}; echo 10 0.5 1")).unwrap();
        assert_eq!((whole.printed.told.answers, whole.printed.seconds, whole.printed.failures[0].count), (10, 0.5, 1));
        // It waits for the end of its input.
        let part = asked(&format!("{busy}; echo begin; echo 10 0.5 1; cat")).unwrap();
        assert!(part.cpu.total() < whole.cpu.total() / 2.0, "{} {}", part.cpu.total(), whole.cpu.total());
    }

    #[test]
    fn a_program_that_fails_is_an_error() {
        let error = |script: &str| format!("{:#}", asked(script).err().unwrap());
        assert!(error("echo why >&2; exit 3").contains("(exit status: 3): why"));
        assert!(error("echo hello").contains("it printed: hello"));
        assert!(error("echo 0 1 5").contains("nothing was answered"));
    }
}
