//! A value is the same after it was written and loaded, by every route, whatever commands made it.
//!
//! Random commands lead values of every type into [shapes](shapes) that are seldom: each of them has a name and is counted, and a run
//! that misses one fails. After each step, the value is copied in every way that the server has. These are DUMP and RESTORE, MIGRATE over
//! TCP, a snapshot as a server and as a replica loads it, the journal of the append-only file, and the commands of a plain base, which also
//! move slots. [Genuine servers](genuine) run the commands that they know, too. `VALUES_STEPS=10000000` and `VALUES_GENUINE_STEPS=10000000`
//! make long runs of them, `VALUES_GENUINE_SEED=11` begins with another seed.

mod commands;
mod genuine;
mod picture;
mod routes;
mod shapes;

use std::collections::VecDeque;

use commands::{Knows, Words};
use redis_server::exec::core::clock::now_ms;
use routes::{Routes, Side};
use shapes::{Counters, Seen};

use crate::support::resp::request;

/// Steps of an ordinary run.
const STEPS: usize = 30_000;
/// Steps with which a seed's servers are done.
const STEPS_OF_SEED: usize = 5_000;
/// Elements at which collections leave their compact forms, where they do so early.
const FEW: usize = 8;
/// The same by default: of listpacks.
const MANY: usize = 128;

/// The most that the report shows of a word.
const SHOWN: usize = 80;
/// Commands among which the report looks for those of the key.
const REPORTED: usize = 300;

/// One database, and a thread that loads.
const ONE: [(&str, &str); 2] = [("databases", "1"), ("workers", "1")];

fn settings(limit: usize) -> Vec<(&'static str, &'static str)> {
    let mut settings = ONE.to_vec();
    if limit == FEW {
        settings.extend([
            ("hash-max-listpack-entries", "8"),
            ("zset-max-listpack-entries", "8"),
            ("set-max-intset-entries", "8"),
            ("stream-node-max-entries", "4"),
            ("hll-sparse-max-bytes", "60"),
        ]);
    } else {
        // Sets have another default.
        settings.push(("set-max-intset-entries", "128"));
    }
    settings
}

/// Which values a run of `steps` steps has seen.
fn run(seed: u64, steps: usize) -> Counters {
    // Long values take their time: one seed in four has them.
    let limit = if seed % 4 == 3 { MANY } else { FEW };
    let settings = settings(limit);
    let mut source = Side::new(&settings);
    let mut routes = Routes::new(&source, &settings);
    let mut words = Words::new(seed, limit, Knows::All);
    let mut counters = Counters::new();
    // The last commands, for the report.
    let mut last = VecDeque::new();
    for step in 0..steps {
        let command = words.command(now_ms());
        let said = || format!("seed {seed}, step {step}: {}", shown(&command.words));
        let reply = source.run(&request(&command.words));
        last.push_back((step, command.words.clone(), reply[..reply.len().min(80)].to_vec()));
        if last.len() > REPORTED {
            last.pop_front();
        }
        if command.ends_soon {
            let end = now_ms() + 1;
            while now_ms() <= end {
                std::hint::spin_loop();
            }
        }
        let is_refused = reply.starts_with(b"-");
        let mut outcome = routes.replay();
        for key in command.keys.iter().filter(|_| !is_refused) {
            source.look(key.as_bytes(), |entry| {
                let Some(entry) = entry else { return };
                let seen = Seen { value: entry.value(), expires: entry.expire_at().is_some(), limit, now: now_ms() };
                counters.note(&seen);
            });
            outcome = outcome.and_then(|()| routes.send(&mut source, key, &said));
        }
        if let Err(why) = outcome {
            let of_key = last.iter().filter(|(_, words, _)| words.iter().any(|word| is_one_of(&command.keys, word)));
            let lines =
                of_key.map(|(step, words, reply)| format!("{step}: {} → {}", shown(words), reply.escape_ascii()));
            panic!("seed {seed}: {why}\n{}", lines.collect::<Vec<_>>().join("\n"));
        }
    }
    if let Err(why) = routes.flush() {
        panic!("seed {seed}: {why}");
    }
    counters
}

fn is_one_of(keys: &[String], word: &[u8]) -> bool {
    keys.iter().any(|key| key.as_bytes() == word)
}

/// A command as a line.
fn shown(words: &[Vec<u8>]) -> String {
    let word = |word: &Vec<u8>| word[..word.len().min(SHOWN)].escape_ascii().to_string();
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The steps that a variable of the environment wants.
fn steps(variable: &str, default: usize) -> usize {
    let wanted = std::env::var(variable).ok();
    wanted.map_or(default, |steps| steps.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

#[test]
fn every_value_is_the_same_after_it_was_written_and_loaded() {
    let (steps, began) = (steps("VALUES_STEPS", STEPS), std::time::Instant::now());
    let mut counters = Counters::new();
    for seed in 0..steps.div_ceil(STEPS_OF_SEED) {
        counters.add(&run(seed as u64, STEPS_OF_SEED));
    }
    counters.print();
    println!("{steps} steps in {:.1} s", began.elapsed().as_secs_f64());
    assert_eq!(counters.missing(), [""; 0], "shapes that were not reached");
}
