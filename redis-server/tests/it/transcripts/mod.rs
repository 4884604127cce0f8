//! Conversations written down, replayed in every way (see `tests/transcripts/README.md`).

mod expect;
mod render;
mod replay;
mod script;
mod wire;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use redis_server::commands::TABLE;
use redis_server::exec::core::{Instance, Worker};
use replay::{Mode, Outcome, replay};
use script::Script;
use wire::{InProcess, Tcp};

use crate::support::genuine::Genuine;
use crate::support::resp::Value;
use crate::support::server::{Server, config};

/// Seed of the places where requests are cut.
const SEED: u64 = 0x5eed;

/// The transcripts that `TRANSCRIPT` selects, all without it.
fn files() -> Vec<PathBuf> {
    let wanted = std::env::var("TRANSCRIPT").unwrap_or_default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.ends_with(".txt") && name.contains(&wanted)
    };
    let mut files: Vec<_> = entries.filter(is_it).collect();
    files.sort();
    files
}

fn read(path: &Path) -> (String, Script) {
    let text = fs::read_to_string(path).unwrap();
    let script = Script::parse(&text).unwrap_or_else(|reason| panic!("{}:{reason}", name(path)));
    (text, script)
}

fn name(path: &Path) -> String {
    format!("tests/transcripts/{}", path.file_name().unwrap().to_string_lossy())
}

/// Replays all files in one way; fails with all that was not as written.
fn all(way: &str, one: impl Fn(&Script) -> Option<Outcome>) {
    if std::env::var_os("TRANSCRIPT_PRINT").is_some() {
        return;
    }
    let mut report = String::new();
    for path in files() {
        let (_, script) = read(&path);
        let Some(outcome) = one(&script) else { return };
        for (line, failure) in outcome.failures {
            write!(report, "{}:{line}: {way}: {failure}\n\n", name(&path)).unwrap();
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

fn in_process(script: &Script) -> Outcome {
    let instance = Arc::new(Instance::new(Arc::new(config(&script.settings)), &TABLE));
    replay(script, &mut InProcess(Rc::new(Worker::new(instance))), Mode::default())
}

fn tcp(script: &Script, cut: Option<u64>, pipelined: bool) -> Outcome {
    let server = Server::configured(config(&script.settings));
    replay(script, &mut Tcp { server, cut }, Mode { pipelined, ..Mode::default() })
}

/// The genuine server that a script is for.
fn oracle(script: &Script) -> Option<Genuine> {
    let start = if script.modules { Genuine::with_modules } else { Genuine::start };
    start(&script.settings)
}

fn genuine(script: &Script) -> Option<Outcome> {
    let mut genuine = oracle(script)?;
    if script.needs.is_some_and(|version| genuine.version < version) {
        return Some(Outcome::default());
    }
    let mode = Mode { genuine: Some(genuine.version), ..Mode::default() };
    Some(replay(script, &mut genuine, mode))
}

#[test]
fn without_sockets() {
    all("in-process", |script| Some(in_process(script)));
}

#[test]
fn cut_at_random_bytes() {
    all("cut at random bytes", |script| Some(tcp(script, Some(SEED), false)));
}

#[test]
fn pipelined() {
    all("pipelined", |script| Some(tcp(script, None, true)));
}

#[test]
fn genuine_server_agrees() {
    all("genuine", |script| {
        let mut outcome = genuine(script)?;
        let shapes = shapes_differ(script, &in_process(script), &outcome);
        outcome.failures.extend(shapes);
        Some(outcome)
    });
}

/// Commands that are newer than Debian's version.
#[test]
fn valkey_agrees() {
    if std::env::var_os("VALKEY_SERVER").is_none() {
        println!("skipped: VALKEY_SERVER names no Valkey to compare with");
        return;
    }
    all("valkey", |script| {
        if script.needs.is_none() {
            return Some(Outcome::default());
        }
        let mut genuine = Genuine::valkey(&script.settings)?;
        if script.needs.is_some_and(|version| genuine.version < version) {
            return Some(Outcome::default());
        }
        let mode = Mode { genuine: Some(genuine.version), ..Mode::default() };
        let mut outcome = replay(script, &mut genuine, mode);
        let shapes = shapes_differ(script, &in_process(script), &outcome);
        outcome.failures.extend(shapes);
        Some(outcome)
    });
}

/// Replies whose types on the wire differ from the genuine server's.
fn shapes_differ(script: &Script, ours: &Outcome, genuine: &Outcome) -> Vec<(usize, String)> {
    let mut failures = Vec::new();
    for (index, theirs) in &genuine.replies {
        let step = &script.steps[*index];
        let Some(ours) = ours.replies.get(index) else { continue };
        let (ours, theirs) = (ours.shape(), theirs.shape());
        // The replay already reports a reply that is an error on one side only.
        if !step.rules.any && !step.rules.like && ours != theirs && ours != "-" {
            failures.push((step.line, format!("the types on the wire differ: ours {ours}, genuine {theirs}")));
        }
    }
    failures
}

/// `TRANSCRIPT_PRINT=genuine` prints the files with the genuine server's replies, `=write` writes them back.
#[test]
fn print() {
    let Ok(mode) = std::env::var("TRANSCRIPT_PRINT") else { return };
    for path in files() {
        let (text, script) = read(&path);
        let Some(mut genuine) = oracle(&script) else { return };
        let recording = Mode { recording: true, genuine: Some(genuine.version), ..Mode::default() };
        let outcome = replay(&script, &mut genuine, recording);
        for (line, failure) in &outcome.failures {
            println!("{}:{line}: {failure}", name(&path));
        }
        let answered = answered(&text, &script, &outcome);
        if mode == "write" && outcome.failures.is_empty() {
            fs::write(&path, answered).unwrap();
        } else {
            println!("{answered}");
        }
    }
}

/// The file with the replies of a recording. Replies that were written by hand stay.
fn answered(text: &str, script: &Script, outcome: &Outcome) -> String {
    let mut lines: Vec<Option<String>> = text.lines().map(|line| Some(line.to_owned())).collect();
    for (index, step) in script.steps.iter().enumerate() {
        let by_hand = step.rules.is_special() || step.expected.iter().any(|line| line.contains(") ~"));
        let keep = by_hand && (!step.expected.is_empty() || step.rules.any || step.rules.name.is_some());
        let Some(value) = outcome.replies.get(&index).filter(|_| !keep) else { continue };
        for line in &mut lines[step.line..step.line + step.expected.len()] {
            *line = None;
        }
        let reply: &Value = value;
        let head = lines[step.line - 1].as_mut().unwrap();
        *head = [vec![head.clone()], render::render(reply)].concat().join("\n");
    }
    lines.into_iter().flatten().map(|line| line + "\n").collect()
}
