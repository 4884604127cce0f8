//! The order in which the kernel ends processes when memory runs out: `oom-score-adj`, by the file that proc(5) describes. The
//! score belongs to the process, so that only a server that is one ([`crate::persistence::Status::is_automatic`]) has it set.

use std::sync::{Mutex, PoisonError};
use std::{fs, io};

use crate::config::{Config, settings};

/// The kernel accepts scores from `-LIMIT` to `LIMIT`.
const LIMIT: i32 = 1000;

/// For which process a score is.
#[derive(Clone, Copy)]
enum Process {
    Primary,
    Replica,
    Child,
}

/// The score that the process had before one was set here.
#[derive(Debug, Default)]
pub struct OomScore {
    inherited: Mutex<Option<i32>>,
}

impl OomScore {
    /// Sets the score of this process as the configuration and its role have it, or back to what it was.
    ///
    /// # Errors
    /// The kernel refuses it: a score below the inherited one needs a privilege.
    pub fn apply(&self, config: &Config, is_replica: bool) -> io::Result<()> {
        let mut inherited = self.inherited.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mode) = mode(config) else {
            return inherited.take().map_or(Ok(()), |score| write("self", score));
        };
        let base = inherited.map_or_else(|| read("self"), Ok)?;
        let process = if is_replica { Process::Replica } else { Process::Primary };
        write("self", mode.score(config, process, base))?;
        *inherited = Some(base);
        Ok(())
    }

    /// Sets the score of a process that this one has started.
    ///
    /// # Errors
    /// As [`OomScore::apply`].
    pub fn apply_to_child(&self, config: &Config, pid: u32) -> io::Result<()> {
        let inherited = *self.inherited.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(mode), Some(base)) = (mode(config), inherited) else { return Ok(()) };
        write(&pid.to_string(), mode.score(config, Process::Child, base))
    }
}

#[derive(Clone, Copy)]
enum Mode {
    Relative,
    Absolute,
}

impl Mode {
    fn score(self, config: &Config, process: Process, base: i32) -> i32 {
        let words = config.words(settings::OOM_SCORE_ADJ_VALUES);
        let word = words.get(process as usize).and_then(|word| std::str::from_utf8(word).ok());
        let value: i32 = word.and_then(|word| word.parse().ok()).unwrap_or(0);
        let score = match self {
            Self::Relative => base + value,
            Self::Absolute => value,
        };
        score.clamp(-LIMIT, LIMIT)
    }
}

/// `None`: scores are left alone.
fn mode(config: &Config) -> Option<Mode> {
    match config.word(settings::OOM_SCORE_ADJ) {
        "yes" | "relative" => Some(Mode::Relative),
        "absolute" => Some(Mode::Absolute),
        _ => None,
    }
}

fn read(process: &str) -> io::Result<i32> {
    let text = fs::read_to_string(path(process))?;
    text.trim().parse().map_err(|_| io::Error::other(format!("{}: {text:?} is no number", path(process))))
}

fn write(process: &str, score: i32) -> io::Result<()> {
    fs::write(path(process), score.to_string())
}

fn path(process: &str) -> String {
    format!("/proc/{process}/oom_score_adj")
}
