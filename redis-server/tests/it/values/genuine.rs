//! The same with genuine servers: values that the same commands make here and there are the same, each side loads what the other has
//! written, as payloads of DUMP and as files.

use std::fs;
use std::io::{Cursor, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use redis_server::exec::core::clock::now_ms;
use redis_server::exec::snapshot;
use redis_server::persistence::rdb::{self, Access, Fork, WriteOptions, Writer};

use super::commands::{Knows, Words};
use super::routes::Side;
use super::{FEW, REPORTED, settings, shown, steps};
use crate::support::genuine::Genuine;
use crate::support::resp::{Value, parse, request};

/// Steps of an ordinary run with each server.
const STEPS: usize = 6_000;
/// Steps with which a seed's servers are done.
const STEPS_OF_SEED: usize = 20_000;
/// Steps whose commands are sent at once.
const BATCH: usize = 100;

/// A moment that is not the same in two servers, as seconds pass between them: it is taken for now.
const SOON_MS: i64 = 3_600_000;

/// The letter that says of which type a key is.
fn letter(key: &str) -> char {
    key.chars().next().expect("keys have letters")
}

/// The queries for a key.
fn questions(key: &str, knows: Knows) -> Vec<u8> {
    let value: &[&str] = match letter(key) {
        's' | 'p' => &["GET", key],
        'l' => &["LRANGE", key, "0", "-1"],
        'e' => &["SMEMBERS", key],
        'h' => &["HGETALL", key],
        'z' => &["ZRANGE", key, "0", "-1", "WITHSCORES"],
        'x' => &["XINFO", "STREAM", key, "FULL", "COUNT", "0"],
        other => panic!("no keys begin with {other}"),
    };
    let fields: &[&str] = match letter(key) {
        'h' if knows >= Knows::Newer => &["HPEXPIRETIME", key, "FIELDS", "3", "m0", "m1", "m2"],
        _ => &["EXISTS", key],
    };
    [&["TYPE", key], &["PEXPIRETIME", key], value, fields].map(request).concat()
}

/// How many that are.
const QUESTIONS: usize = 4;
/// The one of them to which the value is the answer.
const VALUE: usize = 2;
/// Replies for a value: to the questions, DUMP and RESTORE, and to the questions about what was restored.
const REPLIES: usize = QUESTIONS + 2 + QUESTIONS;

/// A member or a field.
fn text(value: &Value) -> &[u8] {
    match value {
        Value::Bulk(text) => text,
        other => panic!("{other:?} is no text"),
    }
}

/// Answers as they are compared: what has no order is sorted, and moments near `now` are all the same.
fn normal(value: Value, letter: char, now: i64) -> Value {
    match value {
        Value::Int(number) if (number - now).abs() < SOON_MS => Value::Int(-1),
        Value::Array(values) => {
            let mut values: Vec<_> = values.into_iter().map(|value| normal(value, letter, now)).collect();
            match letter {
                'e' => values.sort_by(|a, b| text(a).cmp(text(b))),
                'h' => {
                    let mut pairs: Vec<_> = values.chunks(2).map(<[Value]>::to_vec).collect();
                    pairs.sort_by(|a, b| text(&a[0]).cmp(text(&b[0])));
                    values = pairs.concat();
                }
                _ => {}
            }
            Value::Array(values)
        }
        other => other,
    }
}

/// An answer on a line.
fn line(answer: &Value) -> String {
    match answer {
        Value::Bulk(text) | Value::Status(text) | Value::Error(text) => text.escape_ascii().to_string(),
        Value::Array(parts) => format!("[{}]", parts.iter().map(line).collect::<Vec<_>>().join(" ")),
        other => format!("{other:?}"),
    }
}

/// Answers to the questions, as they are compared.
fn compared(answers: impl IntoIterator<Item = Value>, letter: char) -> Vec<Value> {
    let now = i64::try_from(now_ms()).unwrap();
    let order = |place| if place == VALUE { letter } else { ' ' };
    answers.into_iter().enumerate().map(|(place, answer)| normal(answer, order(place), now)).collect()
}

/// An answer as it is after its value was written and loaded. A sorted set that has been large stays in a form that keeps -0;
/// loaded, it is small again, and a small one keeps 0.
fn without_signs(answer: &Value) -> Value {
    match answer {
        Value::Bulk(score) if score == b"-0" => Value::Bulk(b"0".to_vec()),
        Value::Array(values) => Value::Array(values.iter().map(without_signs).collect()),
        other => other.clone(),
    }
}

/// Sends commands, and reads so many replies.
fn converse(stream: &mut UnixStream, commands: Vec<u8>, count: usize) -> Vec<Value> {
    let mut writer = stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(&commands).unwrap());
    let (mut input, mut at, mut replies) = (Vec::new(), 0, Vec::new());
    while replies.len() < count {
        match parse(&input[at..]).unwrap() {
            Some((value, len)) => {
                replies.push(value);
                at += len;
            }
            None => {
                input.drain(..at);
                at = 0;
                let mut chunk = vec![0; 1 << 16];
                let count = test_peers::read(stream, &mut chunk).expect("a reply in time");
                assert!(count > 0, "the genuine server has ended");
                input.extend_from_slice(&chunk[..count]);
            }
        }
    }
    sender.join().unwrap();
    replies
}

fn ours(side: &mut Side, commands: &[u8]) -> Vec<Value> {
    let (bytes, mut at, mut replies) = (side.run(commands), 0, Vec::new());
    while let Some((value, len)) = parse(&bytes[at..]).unwrap() {
        replies.push(value);
        at += len;
    }
    replies
}

/// A value that a step has made.
struct Made {
    key: String,
    /// The key that it has in files, which each value has to itself. It begins with the same letter.
    name: String,
    /// The command of the [`History`] that has made it.
    step: usize,
    /// The answers to the questions.
    answers: Vec<Value>,
    /// The same when our payload was restored on our side.
    loaded: Vec<Value>,
    /// Our payload, if there is a value, and when its key expires.
    payload: Option<(Vec<u8>, Option<u64>)>,
}

impl Made {
    /// That a server which has the value under a key answers the same.
    fn check(&self, what: &str, answers: Vec<Value>, expected: &[Value], history: &History) {
        let answers = compared(answers, letter(&self.key));
        let lines = |answers: &[Value]| answers.iter().map(line).collect::<Vec<_>>().join("\n");
        let said = || history.said(self.step, &self.key);
        assert!(answers == expected, "{what}\n{}\nnot\n{}\nbehind {}", lines(&answers), lines(expected), said());
    }
}

/// The commands of a seed.
struct History {
    seed: u64,
    commands: Vec<Vec<Vec<u8>>>,
}

impl History {
    /// A step's command, and those before it that name keys of the same type.
    fn said(&self, step: usize, key: &str) -> String {
        let is_of_type =
            |words: &&Vec<Vec<u8>>| words.iter().skip(1).any(|word| word.first() == key.as_bytes().first());
        let before = self.commands[step.saturating_sub(REPORTED)..step].iter().filter(is_of_type);
        let before: Vec<_> = before.map(|words| shown(words)).collect();
        format!("seed {}, step {step}: {}\nbehind\n{}", self.seed, shown(&self.commands[step]), before.join("\n"))
    }
}

/// A genuine server, and ours of its version.
struct Pair<'p> {
    history: History,
    program: &'p Path,
    stream: UnixStream,
    genuine: Genuine,
    source: Side,
    restored: Side,
    words: Words,
    fork: Fork,
    /// All that our side has made.
    file: Writer<Vec<u8>>,
    /// Values that are compared.
    made: Vec<Made>,
    /// Values so far.
    count: usize,
}

impl<'p> Pair<'p> {
    fn start(program: &'p Path, seed: u64) -> Option<Self> {
        let genuine = Genuine::of(program, &genuine_settings(), None)?;
        let (level, knows, fork) = match genuine.version[0] {
            7 => ("7.0", Knows::Redis70, Fork::Redis),
            8 => ("8.0", Knows::Newer, Fork::Redis),
            _ => ("valkey-9", Knows::Newer, Fork::Valkey),
        };
        let mine = [settings(FEW), vec![("compatibility", level)]].concat();
        let fields_expire = knows >= Knows::Newer;
        let mut file = Writer::new(Vec::new(), WriteOptions { compress: true, checksum: true, fork, fields_expire });
        file.database(0, STEPS, STEPS);
        let (source, restored) = (Side::new(&mine), Side::new(&mine));
        let words = Words::new(seed, FEW, knows);
        Some(Self {
            history: History { seed, commands: Vec::new() },
            program,
            stream: genuine.connect(),
            genuine,
            source,
            restored,
            words,
            fork,
            file,
            made: Vec::new(),
            count: 0,
        })
    }

    /// Some steps on both sides. Each takes what the other has dumped.
    fn step(&mut self) {
        let (mut commands, mut batch) = (Vec::new(), Vec::new());
        for _ in 0..BATCH {
            let command = self.words.command(now_ms());
            let bytes = request(&command.words);
            self.source.run(&bytes);
            self.history.commands.push(command.words);
            commands.extend(bytes);
            let made: Vec<_> = command.keys.iter().map(|key| self.make(key)).collect();
            for Made { key, name, payload, .. } in &made {
                commands.extend([questions(key, self.words.knows), request(&["DUMP", key])].concat());
                let (payload, at) = payload.clone().unwrap_or_default();
                let at = at.unwrap_or(0).to_string();
                commands.extend(request(&[b"RESTORE", name.as_bytes(), at.as_bytes(), &payload, b"ABSTTL"]));
                commands.extend(questions(name, self.words.knows));
            }
            batch.push(made);
        }
        let count = batch.iter().map(|made| 1 + made.len() * REPLIES).sum();
        let mut replies = converse(&mut self.stream, commands, count).into_iter();
        for made in batch {
            replies.next();
            for made in made {
                self.compare(made, replies.by_ref().take(REPLIES).collect());
            }
        }
    }

    /// The present value on our side, which also goes to the file.
    fn make(&mut self, key: &str) -> Made {
        let (knows, fork) = (self.words.knows, self.fork);
        let ask = |side: &mut Side| compared(ours(side, &questions(key, knows)), letter(key));
        let answers = ask(&mut self.source);
        self.count += 1;
        let name = format!("{}:{}", letter(key), self.count);
        let file = &mut self.file;
        let payload = self.source.look(key.as_bytes(), |entry| {
            let entry = entry?;
            file.record(name.as_bytes(), entry.value(), entry.expire_at(), Access::Untold);
            Some((rdb::dump(entry.value(), fork), entry.expire_at()))
        });
        let step = self.history.commands.len() - 1;
        let said = || self.history.said(step, key);
        let mut loaded = answers.clone();
        if let Some((payload, at)) = &payload {
            let at = at.unwrap_or(0).to_string();
            let restore = request(&[b"RESTORE", key.as_bytes(), at.as_bytes(), payload, b"ABSTTL", b"REPLACE"]);
            assert_eq!(ours(&mut self.restored, &restore), [Value::Status(b"OK".into())], "{}", said());
            loaded = ask(&mut self.restored);
            let unsigned = |answers: &[Value]| -> Vec<Value> {
                let is_sorted_set = letter(key) == 'z';
                answers
                    .iter()
                    .map(|answer| if is_sorted_set { without_signs(answer) } else { answer.clone() })
                    .collect()
            };
            assert_eq!(unsigned(&loaded), unsigned(&answers), "of our payload, behind {}", said());
        }
        Made { key: key.to_owned(), name, step, answers, loaded, payload }
    }

    fn compare(&mut self, made: Made, replies: Vec<Value>) {
        let mut replies = replies.into_iter();
        let history = &self.history;
        let said = || history.said(made.step, &made.key);
        made.check("the genuine server has", replies.by_ref().take(QUESTIONS).collect(), &made.answers, history);
        let (Some(Value::Bulk(theirs)), Some(_)) = (replies.next(), &made.payload) else { return };
        assert_eq!(replies.next(), Some(Value::Status(b"OK".into())), "it takes our payload, behind {}", said());
        made.check("of our payload the genuine server has", replies.collect(), &made.loaded, history);
        let restore = request(&[b"RESTORE", made.key.as_bytes(), b"0", &theirs, b"REPLACE"]);
        let answer = ours(&mut self.restored, &restore);
        assert_eq!(answer, [Value::Status(b"OK".into())], "ours takes their payload, behind {}", said());
        let answers = ours(&mut self.restored, &questions(&made.key, self.words.knows));
        let mut expected = made.loaded.clone();
        // A payload does not say when the key expires.
        expected[1] = Value::Int(-1);
        made.check("of their payload ours has", answers, &expected, history);
        self.made.push(made);
    }

    /// Each side loads the other's file of all values.
    fn exchange_files(mut self) {
        assert_eq!(self.genuine.ask(&["SAVE"]).text(), "OK");
        let theirs = fs::read(self.genuine.folder.join("dump.rdb")).unwrap();
        let len = theirs.len() as u64;
        let aside = snapshot::load_aside(&self.restored.instance, Box::new(Cursor::new(theirs)), len).unwrap();
        let alone = self.restored.instance.exclusive.stop().unwrap();
        aside.take_place(&self.restored.instance, &alone).unwrap();
        drop(alone);
        let folder = std::env::temp_dir().join(format!("values-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("dump.rdb");
        fs::write(&path, self.file.finish().unwrap()).unwrap();
        let again = Genuine::of(self.program, &genuine_settings(), Some(&path)).unwrap();
        let mut stream = again.connect();
        fs::remove_dir_all(&folder).unwrap();
        for batch in self.made.chunks(BATCH) {
            let asked = |made: &Made| questions(&made.name, self.words.knows);
            let replies = converse(&mut stream, batch.iter().flat_map(asked).collect(), batch.len() * QUESTIONS);
            let mut replies = replies.into_iter();
            for made in batch {
                let (answers, theirs) =
                    (ours(&mut self.restored, &asked(made)), replies.by_ref().take(QUESTIONS).collect());
                made.check("of their file ours has", answers, &made.loaded, &self.history);
                made.check("of our file the genuine server has", theirs, &made.loaded, &self.history);
            }
        }
    }
}

/// Those that a genuine server knows.
fn genuine_settings() -> Vec<(String, String)> {
    let known = settings(FEW).into_iter().filter(|(name, _)| *name != "workers");
    known.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn genuine_servers_have_the_same_values_and_load_them() {
    let (wanted, first) = (steps("VALUES_GENUINE_STEPS", STEPS), steps("VALUES_GENUINE_SEED", 11));
    for program in Genuine::programs() {
        let mut exchanged = 0;
        for seed in 0..wanted.div_ceil(STEPS_OF_SEED) {
            let Some(mut pair) = Pair::start(&program, (first + seed) as u64) else { return };
            let steps = wanted.min(STEPS_OF_SEED);
            (0..steps / BATCH).for_each(|_| pair.step());
            exchanged += pair.made.len();
            pair.exchange_files();
        }
        println!("{wanted} steps: {exchanged} values exchanged with {}", program.display());
    }
}
