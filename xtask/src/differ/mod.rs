//! The differential fuzzer: random commands, right and wrong ones, to our server and to a genuine one, whose replies must be
//! the same.
//!
//! Commands come in cases. Each begins with empty servers and new connections, in RESP2 and RESP3 by turns, and follows from
//! the seed and its number alone. A difference is shrunk to the shortest sequence that shows it.

mod draw;
mod grammar;
mod known;
mod pair;
mod reply;
mod rules;
mod shrink;
mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use draw::Draw;
use grammar::{Grammar, Request};
use known::Known;
use pair::{Difference, Pair};
use reply::{Reply, short};
use rules::Open;

/// Options of `cargo xtask differ`.
#[derive(Args)]
pub(crate) struct Options {
    /// What the commands follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many commands are sent.
    #[arg(long, default_value_t = 100_000, conflicts_with = "until_difference")]
    commands: u64,
    /// End at the first difference, and only then.
    #[arg(long)]
    until_difference: bool,
    /// End after this many seconds, however many commands were sent.
    #[arg(long)]
    seconds: Option<u64>,
    /// The first case's number, as a report names it.
    #[arg(long, default_value_t = 0)]
    case: u64,
    /// Commands of a case.
    #[arg(long, default_value_t = 1000)]
    case_length: usize,
    /// End after this many differences.
    #[arg(long, default_value_t = 20)]
    differences: usize,
    /// Our server; by default as `cargo build --release -p redis-server` leaves it.
    #[arg(long)]
    ours: Option<PathBuf>,
    /// The genuine server.
    #[arg(long, default_value = "redis-server")]
    genuine: PathBuf,
}

/// How often a sequence is run again to shrink it.
const SHRINK_ATTEMPTS: usize = 400;

/// Sends the commands and prints what differs.
///
/// # Errors
/// When replies differ and no line of the list excuses it, or when a server cannot be started.
pub(crate) fn run(options: &Options) -> Result<()> {
    let ours = options.ours.clone().unwrap_or_else(crate::release_server);
    let pair = Pair::start(&ours, &options.genuine)?;
    let mut run =
        Run { grammar: grammar(&pair)?, pair, known: known::load()?, excused: 0, unsteady: 0, found: BTreeMap::new() };
    let start = Instant::now();
    let limit = options.seconds.map(Duration::from_secs);
    let (mut sent, mut case) = (0, options.case);
    while (options.until_difference || sent < options.commands) && limit.is_none_or(|limit| start.elapsed() < limit) {
        sent += run.case(options, case)?;
        case += 1;
        let enough = if options.until_difference { 1 } else { options.differences };
        if run.found.len() >= enough {
            break;
        }
    }
    println!(
        "differ: {sent} commands in {} cases (seed {}, {} templates): {} differences, {} excused by xtask/differ/known.txt, \
         {} that did not come again; {} s",
        case - options.case,
        options.seed,
        run.grammar.len(),
        run.found.len(),
        run.excused,
        run.unsteady,
        start.elapsed().as_secs()
    );
    if !run.found.is_empty() {
        bail!("{} differences", run.found.len());
    }
    Ok(())
}

/// The commands that ours has, with values that the genuine server has dumped.
fn grammar(pair: &Pair) -> Result<Grammar> {
    let mut names: Vec<&str> = table::TEMPLATES.iter().filter_map(|template| template.text.split(' ').next()).collect();
    names.sort_unstable();
    names.dedup();
    let known: BTreeMap<_, _> = names.iter().zip(pair.known(&names)?).collect();
    let missing: Vec<_> =
        known.iter().filter(|(name, known)| !**known && ***name != "junk").map(|(name, _)| **name).collect();
    if !missing.is_empty() {
        println!("not supported, so not sent: {}", missing.join(" "));
    }
    let is_known = |name: &str| name == "junk" || known.get(&name).copied().unwrap_or(false);
    Ok(Grammar::new(is_known, payloads(pair)?))
}

/// Values of all types as the genuine server dumps them, made of the same templates.
fn payloads(pair: &Pair) -> Result<Vec<Vec<u8>>> {
    let plain = Grammar::new(
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

struct Run {
    pair: Pair,
    grammar: Grammar,
    known: Vec<Known>,
    /// Differences that the list excuses.
    excused: u64,
    /// Differences that did not show again, when the same commands were sent once more.
    unsteady: u64,
    /// Differences by what they have in common with those of the same cause.
    found: BTreeMap<String, u64>,
}

impl Run {
    /// One case. Returns how many commands it had.
    fn case(&mut self, options: &Options, number: u64) -> Result<u64> {
        let mut draw = Draw::new(options.seed, number);
        let mut requests: Vec<Request> = (0..options.case_length).map(|_| self.grammar.draw(&mut draw)).collect();
        // Whatever is queued or watched ends, and the whole state is compared.
        for words in [&["EXEC"][..], &["SELECT", "0"], &["DEBUG", "DIGEST"], &["DBSIZE"]] {
            let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            requests.push(Request {
                words,
                open: if requests.len() == options.case_length { Open::Content } else { Open::Nothing },
            });
        }
        let resp3 = number % 2 == 1;
        let Some(difference) = self.attempt(&requests, resp3)? else { return Ok(requests.len() as u64) };
        requests.truncate(difference.at + 1);
        let sent = requests.len() as u64;
        if self.attempt(&requests, resp3)?.is_none() {
            self.unsteady += 1;
            println!(
                "case {number}: a difference at {} did not come again: {}",
                difference.at,
                command(&requests[difference.at])
            );
            return Ok(sent);
        }
        let signature = signature(&requests[difference.at], &difference);
        if let Some(count) = self.found.get_mut(&signature) {
            *count += 1;
            return Ok(sent);
        }
        self.report(requests, resp3, number, options.seed)?;
        self.found.insert(signature, 1);
        Ok(sent)
    }

    fn attempt(&mut self, requests: &[Request], resp3: bool) -> Result<Option<Difference>> {
        let (known, excused) = (&self.known, &mut self.excused);
        self.pair.run(requests, resp3, |request, difference| {
            let shown =
                |reply: &Option<Reply>| reply.as_ref().map_or_else(String::new, |reply| reply.show().trim().to_owned());
            let (ours, genuine) = (shown(&difference.ours), shown(&difference.genuine));
            let is_known = known.iter().any(|known| known.is(&command(request), &ours, &genuine));
            *excused += u64::from(is_known);
            is_known
        })
    }

    /// Prints the shortest sequence that shows a difference.
    fn report(&mut self, requests: Vec<Request>, resp3: bool, case: u64, seed: u64) -> Result<()> {
        let mut failure = None;
        let shrunk = shrink::shrink(requests, SHRINK_ATTEMPTS, |requests| {
            // A server that cannot be reached any more is the difference.
            self.attempt(requests, resp3).map_or(true, |difference| difference.is_some())
        });
        if let Ok(difference) = self.attempt(&shrunk, resp3) {
            failure = difference;
        }
        println!("\ndifference in case {case} of seed {seed} (RESP{}):", if resp3 { 3 } else { 2 });
        shrunk.iter().for_each(|request| println!("> {}", command(request)));
        let difference = failure.context("a difference was there while it was shrunk, and is no longer")?;
        let shown = |reply: &Option<Reply>| reply.as_ref().map_or_else(|| "    no reply".to_owned(), Reply::show);
        println!("  ours:\n{}\n  genuine:\n{}", shown(&difference.ours), shown(&difference.genuine));
        Ok(())
    }
}

/// A command as a transcript shows it.
fn command(request: &Request) -> String {
    let word = |word: &Vec<u8>| {
        let plain = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && !b"\"\\'".contains(byte));
        if plain && word.len() <= 200 {
            String::from_utf8_lossy(word).into_owned()
        } else {
            format!("\"{}\"", short(word))
        }
    };
    request.words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// What differences of one cause have in common, so that each is shrunk and shown once: the command, and how the replies
/// begin.
fn signature(request: &Request, difference: &Difference) -> String {
    let begin = |reply: &Option<Reply>| match reply {
        None => "gone".to_owned(),
        Some(Reply::Plain(b'-', text)) => String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned(),
        Some(Reply::List(kind, _)) => char::from(*kind).to_string(),
        Some(other) => format!("{:?}", std::mem::discriminant(other)),
    };
    let name = String::from_utf8_lossy(&request.words[0]).to_ascii_uppercase();
    format!("{name} {} {}", begin(&difference.ours), begin(&difference.genuine))
}
