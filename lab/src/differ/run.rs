//! Cases: drawn, run, and what differs shrunk and shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use xtask::reply::{Reply, short};

use super::draw::Draw;
use super::grammar::{Grammar, Request};
use super::known::{self, Known, List};
use super::options::Options;
use super::pair::{Difference, Pair, Program, words};
use super::rules::Open;
use super::{reload, replicate, shrink};

/// How often a sequence is run again to shrink it.
const SHRINK_ATTEMPTS: usize = 400;

/// The same where servers are started for each attempt.
const DATA_ATTEMPTS: usize = 60;

/// The shared state of the pairs of servers.
pub(super) struct Run<'a> {
    options: &'a Options,
    grammar: Grammar,
    known: List,
    /// When no further case is begun.
    end: Option<Instant>,
    tally: Mutex<Tally>,
}

/// The results.
#[derive(Default)]
pub(super) struct Tally {
    /// Commands whose replies were compared.
    pub(super) sent: u64,
    /// Cases that were begun.
    pub(super) cases: u64,
    /// Cases whose data was loaded again, and those whose data was replicated.
    pub(super) checked: [u64; 2],
    /// Differences that a line of the list excuses, by line.
    pub(super) excused: BTreeMap<&'static str, u64>,
    /// Differences that did not show again, when the same commands were sent once more.
    pub(super) unsteady: u64,
    /// Differences by what they have in common with those of the same cause.
    pub(super) found: BTreeMap<String, u64>,
}

impl<'a> Run<'a> {
    /// Ready to work.
    ///
    /// # Errors
    /// When the list of what is known is malformed.
    pub(super) fn new(options: &'a Options, grammar: Grammar, end: Option<Instant>) -> Result<Self> {
        Ok(Self { options, grammar, known: known::load(options.valkey)?, end, tally: Mutex::default() })
    }

    /// The results, when all work is done.
    pub(super) fn into_tally(self) -> Tally {
        self.tally.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs cases on `pair` until there have been enough.
    ///
    /// # Errors
    /// When a server cannot be reached.
    pub(super) fn work(&self, pair: &Pair) -> Result<()> {
        while let Some(case) = self.next_case() {
            let sent = self.case(pair, case).with_context(|| format!("case {case}"))?;
            self.tally().sent += sent;
        }
        Ok(())
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_case(&self) -> Option<u64> {
        let mut tally = self.tally();
        // Cases that other pairs are at count as whole: so many are begun that the commands suffice.
        let begun = tally.cases * self.options.case_length as u64;
        let done = !self.options.until_difference && begun.max(tally.sent) >= self.options.commands;
        let late = self.end.is_some_and(|end| Instant::now() >= end);
        let enough = if self.options.until_difference { 1 } else { self.options.differences };
        if done || late || tally.found.len() >= enough {
            return None;
        }
        tally.cases += 1;
        Some(self.options.case + tally.cases - 1)
    }

    /// One case. Returns how many commands it had.
    fn case(&self, pair: &Pair, number: u64) -> Result<u64> {
        let mut draw = Draw::new(self.options.seed, number);
        let drawn = (0..self.options.case_length).map(|_| self.grammar.draw(&mut draw));
        let mut requests: Vec<Request> = drawn.filter(|request| self.known.sends(&command(request))).collect();
        // Queues and watches end here, and the whole state is compared.
        requests.push(Request { words: words("EXEC"), open: Open::Content });
        let state = ["SELECT 0", "DEBUG DIGEST", "DBSIZE"];
        requests.extend(state.map(|line| Request { words: words(line), open: Open::Nothing }));
        let resp3 = number % 2 == 1;
        let mut excused = Vec::new();
        let difference = self.attempt(pair, &requests, resp3, |known| excused.push(known.line))?;
        excused.into_iter().for_each(|line| *self.tally().excused.entry(line).or_default() += 1);
        let Some(difference) = difference else {
            let sent = requests.len() as u64;
            self.check_data(requests, number)?;
            return Ok(sent);
        };
        requests.truncate(difference.at + 1);
        let sent = requests.len() as u64;
        if self.attempt(pair, &requests, resp3, |_| ())?.is_none() {
            self.tally().unsteady += 1;
            println!(
                "case {number}: a difference did not come again: {}\n{}",
                command(&requests[difference.at]),
                both(&difference)
            );
            return Ok(sent);
        }
        if self.is_new(signature(&requests[difference.at], &difference)) {
            self.report(pair, requests, resp3, number, &difference)?;
        }
        Ok(sent)
    }

    /// Counts a difference. Whether it is the first with this signature.
    fn is_new(&self, signature: String) -> bool {
        let mut tally = self.tally();
        let times = tally.found.entry(signature).or_default();
        *times += 1;
        *times == 1
    }

    /// Has the data that a case has made loaded again, or replicated, where that is this case's turn.
    fn check_data(&self, requests: Vec<Request>, case: u64) -> Result<()> {
        type Check = fn(&Program, &Program, &[Request]) -> Result<Option<String>>;
        let checks: [(u64, Check); 2] =
            [(self.options.reload_each, reload::check), (self.options.replicate_each, replicate::check)];
        for (turn, (each, check)) in checks.into_iter().enumerate() {
            if each == 0 || !case.is_multiple_of(each) {
                continue;
            }
            let check = |requests: &[Request]| check(&self.options.ours(), &self.options.genuine(), requests);
            let found = check(&requests)?;
            self.tally().checked[turn] += 1;
            if let Some(first) = found {
                return self.report_data(requests, case, &first, check);
            }
        }
        Ok(())
    }

    /// Prints the shortest sequence behind which data is not the same.
    fn report_data(
        &self,
        requests: Vec<Request>,
        case: u64,
        first: &str,
        check: impl Fn(&[Request]) -> Result<Option<String>>,
    ) -> Result<()> {
        if !self.is_new(first.split(':').next().unwrap_or_default().to_owned()) {
            return Ok(());
        }
        let shrunk = shrink::shrink(requests, DATA_ATTEMPTS, |requests| matches!(check(requests), Ok(Some(_))));
        let mut text = format!("\ndifference in case {case} of seed {}:\n", self.options.seed);
        for request in &shrunk {
            writeln!(text, "> {}", command(request))?;
        }
        let last = check(&shrunk)?;
        println!("{text}{}", last.unwrap_or_else(|| format!("(comes and goes; at first {first})")));
        Ok(())
    }

    fn attempt(
        &self,
        pair: &Pair,
        requests: &[Request],
        resp3: bool,
        mut excuse: impl FnMut(&Known),
    ) -> Result<Option<Difference>> {
        pair.run(requests, resp3, |request, difference| {
            let shown =
                |reply: &Option<Reply>| reply.as_ref().map_or_else(String::new, |reply| reply.show().trim().to_owned());
            let (ours, genuine) = (shown(&difference.ours), shown(&difference.genuine));
            let known = self.known.find(&command(request), &ours, &genuine);
            known.into_iter().for_each(&mut excuse);
            known.is_some()
        })
    }

    /// Prints the shortest sequence that shows a difference.
    fn report(&self, pair: &Pair, requests: Vec<Request>, resp3: bool, case: u64, first: &Difference) -> Result<()> {
        let last = requests.last().map(command).unwrap_or_default();
        let shrunk = shrink::shrink(requests, SHRINK_ATTEMPTS, |requests| {
            // A server that cannot be reached any more is the difference.
            self.attempt(pair, requests, resp3, |_| ()).map_or(true, |difference| difference.is_some())
        });
        let mut text =
            format!("\ndifference in case {case} of seed {} (RESP{}):\n", self.options.seed, if resp3 { 3 } else { 2 });
        for request in &shrunk {
            writeln!(text, "> {}", command(request))?;
        }
        match self.attempt(pair, &shrunk, resp3, |_| ())? {
            Some(difference) => println!("{text}{}", both(&difference)),
            None => println!("{text}(comes and goes; at first in {last})\n{}", both(first)),
        }
        Ok(())
    }
}

/// The two replies, below each other.
fn both(difference: &Difference) -> String {
    let shown = |reply: &Option<Reply>| reply.as_ref().map_or_else(|| "    no reply".to_owned(), Reply::show);
    format!("  ours:\n{}\n  genuine:\n{}", shown(&difference.ours), shown(&difference.genuine))
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

/// The common part of differences with one cause, so that each is shrunk and shown once: the command, and how the replies begin.
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
