//! Seeded random commands against a model that is too simple to be wrong.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use redis_server::commands::TABLE;
use redis_server::config::{Caller, Config};
use redis_server::exec::core::{Instance, Worker};
use redis_server::runtime::embedded::Session;

use crate::support::Random;
use crate::support::genuine::Genuine;
use crate::support::resp::{Value, parse, request};

const SEEDS: u64 = 40;
const STEPS: usize = 2000;
const KEYS: usize = 6;
/// Different elements, fields and members.
const ELEMENTS: usize = 12;

/// A value of the model.
#[derive(Clone, Debug, PartialEq)]
enum Thing {
    Text(Vec<u8>),
    Hash(BTreeMap<String, String>),
    List(VecDeque<String>),
    Set(BTreeSet<String>),
    Sorted(BTreeMap<String, i64>),
}

/// The keyspace of the model. A key with a deadline far away is one that may not lose it by accident.
#[derive(Default)]
struct Model {
    things: BTreeMap<String, Thing>,
    with_deadline: BTreeSet<String>,
}

/// The compared part of a reply: all but the difference between RESP's kinds of null.
#[derive(Debug, PartialEq)]
enum Answer {
    Ok,
    Null,
    Int(i64),
    Text(String),
    /// In this order.
    All(Vec<Self>),
    /// In any order.
    Any(Vec<String>),
    WrongType,
    NotAnInteger,
}

fn text(text: impl ToString) -> Answer {
    Answer::Text(text.to_string())
}

fn optional(value: Option<impl ToString>) -> Answer {
    value.map_or(Answer::Null, text)
}

impl Answer {
    /// The server's reply in the form that the model expects.
    fn of(value: Value, like: &Self) -> Self {
        match value {
            Value::Status(_) => Self::Ok,
            Value::NullBulk | Value::NullArray => Self::Null,
            Value::Int(number) => Self::Int(number),
            Value::Error(text) if text == b"ERR no such key" => Self::Null,
            Value::Error(text) if text.starts_with(b"WRONGTYPE") => Self::WrongType,
            Value::Error(text) if text == b"ERR value is not an integer or out of range" => Self::NotAnInteger,
            Value::Array(values) if matches!(like, Self::Any(_)) => {
                let mut texts: Vec<_> = values.iter().map(Value::text).collect();
                texts.sort();
                Self::Any(texts)
            }
            Value::Array(values) => Self::All(values.into_iter().map(|value| Self::of(value, &Self::Null)).collect()),
            Value::Bulk(_) => Self::Text(value.text()),
            other => panic!("unexpected: {other:?}"),
        }
    }
}

/// Takes a variant out of the model, or an empty one; anything else is the wrong type.
macro_rules! typed {
    ($model:expr, $key:expr, $variant:ident) => {
        match $model.things.get_mut($key) {
            Some(Thing::$variant(value)) => Some(value),
            Some(_) => return Answer::WrongType,
            None => None,
        }
    };
    ($model:expr, $key:expr, $variant:ident, new) => {
        match $model.things.entry($key.to_owned()).or_insert_with(|| Thing::$variant(Default::default())) {
            Thing::$variant(value) => value,
            _ => return Answer::WrongType,
        }
    };
}

impl Model {
    /// Removes a key, or a collection that has become empty.
    fn forget(&mut self, key: &str) -> Option<Thing> {
        self.with_deadline.remove(key);
        self.things.remove(key)
    }

    fn tidy(&mut self, key: &str) {
        let empty = match self.things.get(key) {
            Some(Thing::Hash(hash)) => hash.is_empty(),
            Some(Thing::List(list)) => list.is_empty(),
            Some(Thing::Set(set)) => set.is_empty(),
            Some(Thing::Sorted(sorted)) => sorted.is_empty(),
            Some(Thing::Text(_)) | None => false,
        };
        if empty {
            self.forget(key);
        }
    }

    /// Runs the command and returns its reply.
    fn run(&mut self, words: &[&str]) -> Answer {
        let key = words[1];
        let answer = match words[0] {
            "SET" | "GET" | "APPEND" | "INCRBY" | "STRLEN" | "GETDEL" => self.strings(words),
            "HSET" | "HGET" | "HDEL" | "HGETALL" | "HLEN" => self.hashes(words),
            "LPUSH" | "RPUSH" | "LPOP" | "RPOP" | "LRANGE" | "LREM" | "LMOVE" => self.lists(words),
            "SADD" | "SREM" | "SMEMBERS" | "SISMEMBER" | "SMOVE" | "SINTER" | "SUNIONSTORE" => self.sets(words),
            "ZADD" | "ZREM" | "ZSCORE" | "ZRANGE" | "ZRANK" | "ZINCRBY" | "ZPOPMIN" | "ZCOUNT" => self.sorted(words),
            _ => self.keys(words),
        };
        self.tidy(key);
        answer
    }

    fn keys(&mut self, words: &[&str]) -> Answer {
        let key = words[1];
        match words[0] {
            "DEL" => Answer::Int(self.forget(key).is_some().into()),
            "EXISTS" => Answer::Int(self.things.contains_key(key).into()),
            "EXPIRE" => {
                let there = self.things.contains_key(key);
                if there {
                    self.with_deadline.insert(key.to_owned());
                }
                Answer::Int(there.into())
            }
            "PEXPIREAT" => Answer::Int(self.forget(key).is_some().into()),
            "PERSIST" => Answer::Int(self.with_deadline.remove(key).into()),
            "TTL" if !self.things.contains_key(key) => Answer::Int(-2),
            "TTL" => Answer::Int(if self.with_deadline.contains(key) { 1 } else { -1 }),
            "RENAMENX" if !self.things.contains_key(key) => Answer::Null,
            "RENAMENX" if self.things.contains_key(words[2]) => Answer::Int(0),
            "RENAMENX" => {
                let deadline = self.with_deadline.contains(key);
                if let Some(thing) = self.forget(key) {
                    self.things.insert(words[2].to_owned(), thing);
                }
                if deadline {
                    self.with_deadline.insert(words[2].to_owned());
                }
                Answer::Int(1)
            }
            "KEYS" => Answer::Any(self.things.keys().cloned().collect()),
            // A status: its text is not compared, the commands of the type are.
            "TYPE" => Answer::Ok,
            other => panic!("the model does not know {other}"),
        }
    }

    fn strings(&mut self, words: &[&str]) -> Answer {
        let key = words[1];
        match words[0] {
            "SET" => {
                self.forget(key);
                self.things.insert(key.to_owned(), Thing::Text(words[2].into()));
                Answer::Ok
            }
            "GET" => optional(typed!(self, key, Text).map(|text| String::from_utf8_lossy(text).into_owned())),
            "STRLEN" => Answer::Int(typed!(self, key, Text).map_or(0, |text| text.len() as i64)),
            "APPEND" => {
                let value = typed!(self, key, Text, new);
                value.extend_from_slice(words[2].as_bytes());
                Answer::Int(value.len() as i64)
            }
            "INCRBY" => {
                let old = typed!(self, key, Text).map_or(Some(0), |text| number(text));
                let Some(new) = old.map(|old| old + words[2].parse::<i64>().unwrap()) else {
                    return Answer::NotAnInteger;
                };
                *typed!(self, key, Text, new) = new.to_string().into();
                Answer::Int(new)
            }
            _ => {
                let value = typed!(self, key, Text).map(|text| String::from_utf8_lossy(text).into_owned());
                self.forget(key);
                optional(value)
            }
        }
    }

    fn hashes(&mut self, words: &[&str]) -> Answer {
        let key = words[1];
        match words[0] {
            "HSET" => {
                let old = typed!(self, key, Hash, new).insert(words[2].to_owned(), words[3].to_owned());
                Answer::Int(old.is_none().into())
            }
            "HGET" => optional(typed!(self, key, Hash).and_then(|hash| hash.get(words[2]))),
            "HDEL" => Answer::Int(typed!(self, key, Hash).and_then(|hash| hash.remove(words[2])).is_some().into()),
            "HLEN" => Answer::Int(typed!(self, key, Hash).map_or(0, |hash| hash.len() as i64)),
            _ => {
                let hash = typed!(self, key, Hash).cloned().unwrap_or_default();
                let mut flat: Vec<_> = hash.into_iter().flat_map(|(field, value)| [field, value]).collect();
                flat.sort();
                Answer::Any(flat)
            }
        }
    }

    fn lists(&mut self, words: &[&str]) -> Answer {
        let key = words[1];
        match words[0] {
            "LPUSH" | "RPUSH" => {
                let list = typed!(self, key, List, new);
                let element = words[2].to_owned();
                if words[0] == "LPUSH" {
                    list.push_front(element)
                } else {
                    list.push_back(element)
                }
                Answer::Int(list.len() as i64)
            }
            "LPOP" => optional(typed!(self, key, List).and_then(VecDeque::pop_front)),
            "RPOP" => optional(typed!(self, key, List).and_then(VecDeque::pop_back)),
            "LRANGE" => {
                let list = typed!(self, key, List).cloned().unwrap_or_default();
                let (from, to) = (words[2].parse::<i64>().unwrap(), words[3].parse::<i64>().unwrap());
                Answer::All(slice(list.len(), from, to).map(|at| text(&list[at])).collect())
            }
            "LREM" => {
                let Some(list) = typed!(self, key, List) else { return Answer::Int(0) };
                let before = list.len();
                list.retain(|element| element != words[3]);
                Answer::Int((before - list.len()) as i64)
            }
            _ => {
                let target = words[2];
                if typed!(self, key, List).is_none() {
                    return Answer::Null;
                }
                let _ = typed!(self, target, List);
                let Some(element) = typed!(self, key, List).and_then(VecDeque::pop_front) else { return Answer::Null };
                if key != target {
                    self.tidy(key);
                }
                typed!(self, target, List, new).push_back(element.clone());
                text(element)
            }
        }
    }

    fn sets(&mut self, words: &[&str]) -> Answer {
        let key = words[1];
        match words[0] {
            "SADD" => Answer::Int(typed!(self, key, Set, new).insert(words[2].to_owned()).into()),
            "SREM" => Answer::Int(typed!(self, key, Set).is_some_and(|set| set.remove(words[2])).into()),
            "SISMEMBER" => Answer::Int(typed!(self, key, Set).is_some_and(|set| set.contains(words[2])).into()),
            "SMEMBERS" => Answer::Any(typed!(self, key, Set).cloned().unwrap_or_default().into_iter().collect()),
            "SMOVE" => {
                if typed!(self, key, Set).is_none() {
                    return Answer::Int(0);
                }
                let _ = typed!(self, words[2], Set);
                let there = typed!(self, key, Set).is_some_and(|set| set.contains(words[3]));
                if there && key != words[2] {
                    typed!(self, key, Set).map(|set| set.remove(words[3]));
                    typed!(self, words[2], Set, new).insert(words[3].to_owned());
                }
                Answer::Int(there.into())
            }
            "SINTER" => {
                let left = typed!(self, key, Set).cloned().unwrap_or_default();
                let right = typed!(self, words[2], Set).cloned().unwrap_or_default();
                Answer::Any(left.intersection(&right).cloned().collect())
            }
            _ => {
                let left = typed!(self, words[2], Set).cloned().unwrap_or_default();
                let right = typed!(self, words[3], Set).cloned().unwrap_or_default();
                let union: BTreeSet<_> = left.union(&right).cloned().collect();
                let count = union.len() as i64;
                self.forget(key);
                self.things.insert(key.to_owned(), Thing::Set(union));
                Answer::Int(count)
            }
        }
    }

    fn sorted(&mut self, words: &[&str]) -> Answer {
        let key = words[1];
        match words[0] {
            "ZADD" => {
                let score = words[2].parse().unwrap();
                Answer::Int(typed!(self, key, Sorted, new).insert(words[3].to_owned(), score).is_none().into())
            }
            "ZINCRBY" => {
                let score = typed!(self, key, Sorted, new).entry(words[3].to_owned()).or_default();
                *score += words[2].parse::<i64>().unwrap();
                text(*score)
            }
            "ZREM" => {
                Answer::Int(typed!(self, key, Sorted).and_then(|sorted| sorted.remove(words[2])).is_some().into())
            }
            "ZSCORE" => optional(typed!(self, key, Sorted).and_then(|sorted| sorted.get(words[2]))),
            _ => {
                let Some(sorted) = typed!(self, key, Sorted) else {
                    return match words[0] {
                        "ZRANK" => Answer::Null,
                        "ZCOUNT" => Answer::Int(0),
                        _ => Answer::All(Vec::new()),
                    };
                };
                let mut ranked: Vec<_> = sorted.iter().map(|(member, score)| (*score, member.clone())).collect();
                ranked.sort();
                match words[0] {
                    "ZRANK" => {
                        let rank = ranked.iter().position(|(_, member)| member == words[2]);
                        rank.map_or(Answer::Null, |rank| Answer::Int(rank as i64))
                    }
                    "ZCOUNT" => {
                        let (low, high) = (words[2].parse::<i64>().unwrap(), words[3].parse::<i64>().unwrap());
                        Answer::Int(ranked.iter().filter(|(score, _)| (low..=high).contains(score)).count() as i64)
                    }
                    "ZPOPMIN" => {
                        let (score, member) = ranked.swap_remove(0);
                        sorted.remove(&member);
                        Answer::All(vec![text(member), text(score)])
                    }
                    _ => {
                        let (from, to) = (words[2].parse::<i64>().unwrap(), words[3].parse::<i64>().unwrap());
                        Answer::All(slice(ranked.len(), from, to).map(|at| text(&ranked[at].1)).collect())
                    }
                }
            }
        }
    }
}

/// The number that a text is, written as the server writes it.
fn number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let number = text.parse::<i64>().ok()?;
    (number.to_string() == text).then_some(number)
}

/// The positions that `from` and `to` mean, counted from the end if negative.
fn slice(len: usize, from: i64, to: i64) -> std::ops::Range<usize> {
    let at = |index: i64| if index < 0 { index + len as i64 } else { index };
    let from = at(from).max(0) as usize;
    let to = (at(to) + 1).clamp(0, len as i64) as usize;
    from.min(to)..to
}

/// A random command.
fn command(random: &mut Random) -> String {
    let key = format!("k{}", random.below(KEYS));
    let other = format!("k{}", random.below(KEYS));
    let third = format!("k{}", random.below(KEYS));
    let element = random.below(ELEMENTS);
    let value = if random.below(8) == 0 { "v".repeat(random.below(100)) } else { random.below(1000).to_string() };
    let value = if value.is_empty() { "v".to_owned() } else { value };
    let (from, to) = (random.below(8) as i64 - 4, random.below(12) as i64 - 4);
    match random.below(45) {
        0 | 1 => format!("SET {key} {value}"),
        2 => format!("GET {key}"),
        3 => format!("APPEND {key} {value}"),
        4 => format!("INCRBY {key} {from}"),
        5 => format!("STRLEN {key}"),
        6 => format!("GETDEL {key}"),
        7..=9 => format!("HSET {key} f{element} {value}"),
        10 => format!("HGET {key} f{element}"),
        11 => format!("HDEL {key} f{element}"),
        12 => format!("HGETALL {key}"),
        13 => format!("HLEN {key}"),
        14 | 15 => format!("LPUSH {key} {value}"),
        16 | 17 => format!("RPUSH {key} {element}"),
        18 => format!("LPOP {key}"),
        19 => format!("RPOP {key}"),
        20 => format!("LRANGE {key} {from} {to}"),
        21 => format!("LREM {key} 0 {element}"),
        22 => format!("LMOVE {key} {other} LEFT RIGHT"),
        23 | 24 => format!("SADD {key} {value}"),
        25 => format!("SREM {key} {element}"),
        26 => format!("SMEMBERS {key}"),
        27 => format!("SISMEMBER {key} {element}"),
        28 => format!("SMOVE {key} {other} {element}"),
        29 => format!("SINTER {key} {other}"),
        30 => format!("SUNIONSTORE {key} {other} {third}"),
        31 | 32 => format!("ZADD {key} {from} m{element}"),
        33 => format!("ZINCRBY {key} {to} m{element}"),
        34 => format!("ZREM {key} m{element}"),
        35 => format!("ZSCORE {key} m{element}"),
        36 => format!("ZRANGE {key} {from} {to}"),
        37 => format!("ZRANK {key} m{element}"),
        38 => format!("ZPOPMIN {key}"),
        39 => format!("ZCOUNT {key} {from} {to}"),
        40 => format!("DEL {key}"),
        41 => format!("RENAMENX {key} {other}"),
        42 => format!("EXPIRE {key} 1000"),
        43 => format!("{} {key}", ["PERSIST", "TTL", "EXISTS", "TYPE"][random.below(4)]),
        _ if random.below(3) == 0 => format!("PEXPIREAT {key} 1"),
        _ => "KEYS *".to_owned(),
    }
}

/// Runs one seed with a server that `send` reaches.
fn check(seed: u64, mut send: impl FnMut(&[&str]) -> Value) {
    let mut random = Random::new(seed * 2 + 1);
    let mut model = Model::default();
    for step in 0..STEPS {
        let line = command(&mut random);
        let words: Vec<_> = line.split(' ').collect();
        let expected = model.run(&words);
        let mut actual = Answer::of(send(&words), &expected);
        if words[0] == "TTL" && matches!(actual, Answer::Int(1..)) {
            actual = Answer::Int(1);
        }
        assert_eq!(actual, expected, "seed {seed}, step {step}: {line}; the model says on the right");
    }
}

/// Our server; small collections become large ones at once when `compact` is off.
fn ours(compact: bool) -> impl FnMut(&[&str]) -> Value {
    let config = Config::default();
    if !compact {
        let limits = ["hash-max-listpack-entries", "set-max-intset-entries", "zset-max-listpack-entries"];
        let pairs: Vec<_> = limits.iter().map(|name| (*name, "2")).collect();
        config.set(&pairs, Caller::Local).unwrap();
    }
    let worker = Rc::new(Worker::new(Arc::new(Instance::new(Arc::new(config), &TABLE))));
    let mut session = Session::new(worker);
    move |words| {
        session.receive(&request(words));
        parse(&session.transmit()).unwrap().expect("a reply").0
    }
}

#[test]
fn random_commands_do_what_the_model_does() {
    (0..SEEDS).for_each(|seed| check(seed, ours(seed % 2 == 0)));
}

#[test]
fn the_model_does_what_the_genuine_server_does() {
    let Some(mut genuine) = Genuine::start(&[]) else { return };
    for seed in 0..3 {
        genuine.ask(&["FLUSHALL"]);
        check(seed, |words| genuine.ask(words));
    }
}
