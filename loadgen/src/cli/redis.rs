//! `loadgen redis`.

use std::str::FromStr;

use clap::Args;
use serde_json::json;

use super::load_args::LOAD;
use super::login::{self, LOGIN, LoginArgs};
use super::subjects::SubjectArgs;
use super::{Drive, Invalid, LoadArgs, ReplayArgs, Transport};
use crate::cluster::{self, Cluster};
use crate::codec::{Login, Redis, RedisCommand};
use crate::load::{Length, Load, Refill, Sampled};
use crate::pace::Pace;
use crate::scenario::{Scenario, Workload};
use crate::watch::{Progress, Watch};
use crate::workload::{self, Distribution, Keys, Subjects};
use crate::{record::Outcome, session};

/// The port of Redis.
const PORT: u16 = 6379;

/// Runs commands on a Redis server (RESP2 or RESP3).
#[derive(Args, Clone, Debug)]
pub struct RedisArgs {
    #[command(flatten)]
    load: LoadArgs,

    /// A command. `{key}` is the number of a key, `{value}` the value that belongs to it, `{random}` any number below
    /// --keys, `{sequence}` counts up [default: GET key:{key}]
    #[arg(value_name = "WORD", trailing_var_arg = true, conflicts_with = "replay")]
    words: Vec<String>,

    /// A command of a mix, with its weight: `9:GET key:{key}`. Can be given several times
    #[arg(long, value_name = "WEIGHT:COMMAND", conflicts_with_all = ["words", "replay"], help_heading = LOAD)]
    mix: Vec<Weighted>,

    /// Store the value of every key before the run, by `SET key:{key} {value}`; then --verify expects them
    #[arg(long, conflicts_with = "replay", help_heading = LOAD)]
    preload: bool,

    #[command(flatten)]
    replay: ReplayArgs,

    #[command(flatten)]
    subjects: SubjectArgs,

    /// TARGET is a node of a Redis Cluster. Each request goes to the node that has its key's slot. The map of slots is
    /// read at the start and corrected on the way; MOVED and ASK are followed and counted. -c counts clients, each with
    /// a connection to every primary
    #[arg(
        long, help_heading = LOAD,
        conflicts_with_all = ["inline", "no_keep_alive", "also", "requests_per_connection", "replay"],
    )]
    cluster: bool,

    /// Send commands as lines, as people do by telnet, not in RESP
    #[arg(long, conflicts_with = "replay", help_heading = LOAD)]
    inline: bool,

    /// A new connection for every request, or for every batch of --depth requests
    #[arg(long, conflicts_with = "replay", help_heading = LOAD)]
    no_keep_alive: bool,

    #[command(flatten)]
    login: LoginArgs,

    /// Ask the server to track the keys that are read (client-side caching); needs --resp3
    #[arg(long, requires = "resp3", help_heading = LOGIN)]
    tracking: bool,
}

/// A command of a mix.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Weighted {
    weight: u32,
    words: Vec<String>,
}

impl FromStr for Weighted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected a weight and a command, as in `9:GET key:{key}`";
        let (weight, command) = text.split_once(':').ok_or(expected)?;
        let weight = weight.trim().parse().map_err(|_| expected)?;
        Ok(Self { weight, words: split_words(command)? })
    }
}

/// Words as a shell takes them apart, as far as quotes go.
fn split_words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for char in text.chars() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, _) if char.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    if let Some(open) = quote {
        return Err(format!("`{text}` has an open {open}"));
    }
    words.extend(word);
    Ok(words)
}

impl Drive for RedisArgs {
    fn load_args(&self) -> &LoadArgs {
        &self.load
    }

    fn scenario(&self) -> Result<Scenario, Invalid> {
        let tls = login::is_tls(&self.load.target)?;
        let transport = Transport { port: PORT, tls, ..Transport::default() };
        let load = self.load.load(transport)?;
        if let Some(text) = self.replay.read()? {
            return self.replayed(load, &text);
        }
        let commands = self.commands();
        let subjects = self.subjects.subjects(self.load.seed)?;
        let login = Login { tracking: self.tracking, ..self.login.login(&self.load.target)? };
        let words = commands.iter().map(|weighted| weighted.words.join(" "));
        let what = words.collect::<Vec<_>>().join(", ");
        let weights: Vec<_> =
            commands.iter().map(|weighted| format!("{}:{}", weighted.weight, weighted.words.join(" "))).collect();
        let mut compiled = Vec::new();
        for weighted in &commands {
            let command = RedisCommand::new(&weighted.words).map_err(Invalid::because)?;
            let command = command.with_preloaded(self.preload).with_inline(self.inline);
            compiled.push((command, weighted.weight));
        }
        let redis = Redis::new(compiled, subjects.clone(), &login, self.load.verify).map_err(Invalid::because)?;
        let redis = redis.with_connection_per_batch(self.no_keep_alive);
        let preload = if self.preload { Some(preload(&load, subjects.clone(), &login)?) } else { None };
        let mut settings = vec![
            ("commands", json!(weights)),
            ("resp3", json!(self.login.resp3)),
            ("database", json!(login.database)),
            ("preload", json!(self.preload)),
            ("inline", json!(self.inline)),
            ("keep_alive", json!(!self.no_keep_alive)),
            ("tracking", json!(self.tracking)),
            ("cluster", json!(self.cluster)),
        ];
        settings.extend(self.subjects.settings());
        if self.cluster {
            if login.database != 0 {
                return Err(Invalid::new("--database", login.database, "0 with --cluster: a cluster has no other"));
            }
            let cluster = Cluster::new(&load, &login, redis, preload, &subjects);
            let cluster = cluster.map_err(|error| Invalid::because(format!("--cluster: {error}")))?;
            return Ok(self.load.scenario(load, "redis cluster", &what, settings, cluster));
        }
        Ok(self.load.scenario(load, "redis", &what, settings, Preloaded { redis, preload }))
    }
}

impl RedisArgs {
    /// The scenario of commands that were recorded.
    fn replayed(&self, load: Load, text: &[u8]) -> Result<Scenario, Invalid> {
        let login = self.login.login(&self.load.target)?;
        let recording = workload::monitored(text, login.database);
        let load = self.replay.load(&self.load, load, &recording)?;
        let what = self.replay.describe(&recording);
        let commands: Result<Vec<_>, _> = recording.requests.iter().map(|words| RedisCommand::literal(words)).collect();
        let (commands, subjects) = (commands.map_err(Invalid::because)?, self.subjects.subjects(self.load.seed)?);
        let redis = Redis::in_turn(commands, recording.order, subjects, &login, self.load.verify);
        let redis = redis.map_err(Invalid::because)?;
        let settings = [("resp3", json!(self.login.resp3)), ("database", json!(login.database))];
        let settings = settings.into_iter().chain(self.replay.settings());
        Ok(self.load.scenario(load, "redis", &what, settings, redis))
    }

    fn commands(&self) -> Vec<Weighted> {
        if !self.mix.is_empty() {
            return self.mix.clone();
        }
        let words =
            if self.words.is_empty() { vec!["GET".to_owned(), "key:{key}".to_owned()] } else { self.words.clone() };
        vec![Weighted { weight: 1, words }]
    }
}

/// Commands, and what fills the server before them.
struct Preloaded {
    redis: Redis,
    preload: Option<(Redis, Load)>,
}

/// Requests in flight while keys are stored: enough for a fast server.
const PRELOAD_DEPTH: usize = 64;

/// A run that stores every key.
fn preload(load: &Load, subjects: Subjects, login: &Login) -> Result<(Redis, Load), Invalid> {
    let space = subjects.keys.space();
    let keys = Keys::new(space, Distribution::Sequential).map_err(Invalid::because)?;
    let set = RedisCommand::new(["SET", "key:{key}", "{value}"]).map_err(Invalid::because)?;
    let redis = Redis::new(vec![(set, 1)], Subjects { keys, ..subjects }, login, true).map_err(Invalid::because)?;
    let load = Load {
        depth: PRELOAD_DEPTH,
        requests_per_connection: None,
        refill: Refill::Batch,
        pace: Pace::Closed,
        recorded: None,
        stages: None,
        // One thread, so that the sequence has no gap where a thread is ahead of another.
        threads: 1,
        length: Length::Requests(space),
        warm_up: std::time::Duration::ZERO,
        sampled: Sampled::Nobody,
        ..load.clone()
    };
    Ok((redis, load))
}

impl Workload for Preloaded {
    fn run(&self, load: &Load, watch: &mut dyn FnMut(&Progress<'_>) -> Watch) -> Outcome {
        if let Some((preload, preload_load)) = &self.preload {
            let outcome = session::run(preload, preload_load, watch);
            if outcome.ending != crate::record::Ending::Complete || outcome.failed() > 0 {
                return cluster::not_preloaded(outcome);
            }
        }
        session::run(&self.redis, load, watch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::assert_scenario as check;

    #[test]
    fn command_lines_become_scenarios() {
        check(
            &["redis", "127.0.0.1", "-c", "1", "-t1"],
            Ok("redis 127.0.0.1:6379, 1 connection, 1 thread, closed loop, 10s: GET key:{key}"),
        );
        check(
            &["redis", "redis://:pw@127.0.0.1:7/2", "-c1", "-t1", "--pipeline", "16", "SET", "k{key}", "{value}"],
            Ok("redis 127.0.0.1:7, 1 connection, 16 deep, 1 thread, closed loop, 10s: SET k{key} {value}"),
        );
        check(
            &["redis", "127.0.0.1", "-c1", "-t1", "--mix", "9:GET {key}", "--mix", "1:SET {key} 'a b'"],
            Ok("redis 127.0.0.1:6379, 1 connection, 1 thread, closed loop, 10s: GET {key}, SET {key} a b"),
        );
        check(&["redis", "http://127.0.0.1"], Err("TARGET's scheme is `http`, expected redis:// or rediss://"));
        check(&["redis", "redis://127.0.0.1/x"], Err("TARGET's database is `x`, expected a number"));
        check(
            &["redis", "127.0.0.1", "--key-choice", "zipf:-1"],
            Err("the Zipf exponent is -1, expected a number from 0"),
        );
    }

    #[test]
    fn words_are_taken_apart_as_a_shell_does() {
        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            assert_eq!(split_words(text).unwrap(), expected);
        }
        check("", &[]);
        check(" GET  key ", &["GET", "key"]);
        check("SET k 'a \"b' \"\" x\"y z\"", &["SET", "k", "a \"b", "", "xy z"]);
        assert_eq!(split_words("SET 'x").unwrap_err(), "`SET 'x` has an open '");
    }
}
