//! The differential fuzzer: random commands, right and wrong ones, to our server and to a genuine one, whose replies must be
//! the same.
//!
//! Commands come in cases. Each begins with empty servers and new connections, in RESP2 and RESP3 by turns, and follows from
//! the seed and its number alone. Cases run side by side, each on a pair of servers of its own. A difference is shrunk to the
//! shortest sequence that shows it. Behind some cases both servers load their data again ([`reload`]), which must not change it, or
//! chains of replicas must have it ([`replicate`]).

mod draw;
mod grammar;
mod known;
mod options;
mod pair;
mod reload;
mod replicate;
mod rules;
mod run;
mod shrink;
mod state;
mod table;

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use xtask::reply::Reply;

use draw::Draw;
use grammar::Grammar;
pub(crate) use options::Options;
use pair::Pair;
use run::Run;

/// Sends the commands and prints what differs.
///
/// # Errors
/// When replies differ and no line of the list excuses it, or when a server cannot be started.
pub(crate) fn run(options: &Options) -> Result<()> {
    let ours = options.ours();
    let pairs =
        (0..options.pairs.max(1)).map(|_| Pair::start(&ours, &options.genuine())).collect::<Result<Vec<_>>>()?;
    let grammar = grammar(&pairs[0], options.valkey)?;
    let templates = grammar.len();
    let start = Instant::now();
    let end = options.seconds.map(|seconds| start + Duration::from_secs(seconds));
    let run = Run::new(options, grammar, end)?;
    thread::scope(|scope| {
        let workers: Vec<_> = pairs.iter().map(|pair| scope.spawn(|| run.work(pair))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow!("a worker panicked"))?)
    })?;
    let tally = run.into_tally();
    tally.excused.iter().filter(|(_, times)| **times > 0).for_each(|(line, times)| println!("{times} times: {line}"));
    println!(
        "differ: {} commands in {} cases, {} of them loaded again, {} replicated (seed {}, {templates} templates): {} differences, {} excused by \
         lab/differ/{}, {} that did not come again; {} s",
        tally.sent,
        tally.cases,
        tally.checked[0],
        tally.checked[1],
        options.seed,
        tally.found.len(),
        tally.excused.values().sum::<u64>(),
        known::name(options.valkey),
        tally.unsteady,
        start.elapsed().as_secs()
    );
    if !tally.found.is_empty() {
        bail!("{} differences", tally.found.len());
    }
    Ok(())
}

/// The commands that ours has, with values that the genuine server has dumped.
fn grammar(pair: &Pair, valkey: bool) -> Result<Grammar> {
    let templates = table::templates(valkey);
    let mut names: Vec<&str> = templates.clone().filter_map(|template| template.text.split(' ').next()).collect();
    names.sort_unstable();
    names.dedup();
    let known: BTreeMap<_, _> = names.iter().zip(pair.known(&names)?).collect();
    let missing: Vec<_> =
        known.iter().filter(|(name, known)| !**known && ***name != "junk").map(|(name, _)| **name).collect();
    if !missing.is_empty() {
        println!("not supported, so not sent: {}", missing.join(" "));
    }
    let is_known = |name: &str| name == "junk" || known.get(&name).copied().unwrap_or(false);
    let grammar = Grammar::new(templates, is_known, payloads(pair)?);
    let commands = pair.commands()?;
    let lacking = grammar.lacks(&commands);
    if !lacking.is_empty() {
        println!("without a template, so not sent: {}", lacking.join(" "));
    }
    Ok(grammar)
}

/// Values of all types as the genuine server dumps them, made of the same templates.
fn payloads(pair: &Pair) -> Result<Vec<Vec<u8>>> {
    let plain = Grammar::new(
        table::templates(false),
        |name| matches!(name, "SET" | "RPUSH" | "SADD" | "HSET" | "ZADD" | "XADD" | "PFADD" | "XGROUP"),
        Vec::new(),
    );
    let mut draw = Draw::new(0, 0);
    let words = |words: &[&[u8]]| -> Vec<Vec<u8>> { words.iter().map(|word| word.to_vec()).collect() };
    let mut commands: Vec<_> = (0..400).map(|_| plain.draw(&mut draw).words).collect();
    let made = commands.len();
    for kind in ['s', 'l', 'S', 'h', 'z', 'x', 'p'] {
        commands.extend((0..4).map(|number| words(&[b"DUMP", format!("{kind}{number}").as_bytes()])));
    }
    let replies = pair.ask_genuine(&commands)?;
    Ok(replies[made..]
        .iter()
        .filter_map(|reply| if let Reply::Bulk(payload) = reply { Some(payload.clone()) } else { None })
        .collect())
}
