//! The commands of every README and of the documents in docs/, run as they are printed.
//!
//! Each fenced block of language `sh` or `console` is a session of its own, in an empty folder and a network of its own, so that the
//! printed ports are free: `eth0` there has the address 192.0.2.2. The differences from a reader's terminal:
//!
//! - `cargo run` becomes the program that the gate has built, after its package, features and target were looked up; the names of
//!   our programs lead to the same ones.
//! - A server that runs in the foreground ([`Known::servers`]) goes on while the next commands run, until the block ends or starts another
//!   one. Behind `&` servers are waited for, as a reader at a terminal would.
//! - redis-cli answers as on a terminal (`FAKETTY`), curl fails where an answer says so (`fail-with-body`).
//! - The file `xtask/readme/known.toml` lists a command's preconditions (`$WORKSPACE` there is the folder of the workspace), and the commands that do not run, with the reason.
//!
//! A command fails if its exit code, or that of a part of it, is not 0, if redis-cli prints an error, or if a `console` block shows
//! another output.

mod blocks;
mod known;
mod session;
mod substitute;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use xtask::process::run_quietly;

use self::blocks::Block;
use self::known::Known;
use self::session::{Done, Place};
use self::substitute::Packages;

/// Sessions at a time: most of them wait for servers, or for time.
const AT_A_TIME: usize = 4;

/// Options of `cargo xtask readme`.
#[derive(Args)]
pub(crate) struct Options {
    /// Blocks whose place, FILE:LINE of the opening fence, holds this alone.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Takes the programs in this folder as they are, and those in its folder `examples`.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// Takes this redis-server in place of the folder's: one that is built for release moves slots of a cluster in seconds.
    #[arg(long, value_name = "FILE")]
    redis_server: Option<PathBuf>,
    /// Runs nothing: prints each command, and why it is not run if it is not.
    #[arg(long)]
    list: bool,
    /// Prints what each command has printed.
    #[arg(long)]
    show: bool,
}

impl Options {
    /// Blocks in the files of this folder, by the programs that are built.
    pub(crate) fn of_built(folder: &str) -> Self {
        let programs = Some(xtask::workspace::target_dir().join("debug"));
        Self { only: folder.to_owned(), programs, redis_server: None, list: false, show: false }
    }
}

/// Runs them.
///
/// # Errors
/// When a command fails; each is named with README, line and output. When a line of known.toml fits no command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let known = Known::read(&xtask::workspace::root().join("xtask/readme/known.toml"))?;
    let blocks = all_blocks()?;
    known.check_used(&blocks)?;
    if options.list {
        print_list(&known, &blocks);
        return Ok(());
    }
    if let Err(error) = run_quietly(xtask::process::unshare().arg("true")) {
        if xtask::workspace::requires_peers() {
            return Err(error
                .context("REQUIRE_PEERS=1, and there are no network namespaces: they need root, or user namespaces"));
        }
        println!("skipped: commands of the READMEs (network namespaces need root, or user namespaces)");
        return Ok(());
    }
    if options.programs.is_none() {
        run_quietly(xtask::workspace::cargo().arg("everything"))?;
    }
    let whole = |path: &Path| fs::canonicalize(path).with_context(|| path.display().to_string());
    let programs = whole(&options.programs.clone().unwrap_or_else(|| xtask::workspace::target_dir().join("debug")))?;
    let packages = Packages::read()?;
    let place = Place::new(programs, &packages, &known)?;
    if let Some(program) = &options.redis_server {
        place.link("redis-server", &whole(program)?)?;
    }
    let chosen = blocks.iter().filter(|block| block.place().contains(&options.only));
    let waiting = Mutex::new(chosen.rev().collect::<Vec<_>>());
    let found = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    // A statement of its own, so that the lock is not held while a session runs.
                    let next = waiting.lock().expect("nobody panics with it").pop();
                    let Some(block) = next else { break };
                    let began = Instant::now();
                    let done = place.run(block, &known, &packages);
                    let seconds = began.elapsed().as_secs_f64();
                    found.lock().expect("nobody panics with it").push((block, done, seconds));
                }
            });
        }
    });
    report(found.into_inner().expect("nobody panics with it"), options.show)
}

/// Prints what was found; an error if anything has failed.
fn report(mut found: Vec<(&Block, Result<Done>, f64)>, show: bool) -> Result<()> {
    found.sort_by_key(|(block, ..)| (&block.readme, block.line));
    let (mut run, mut not_run, mut failures, mut missing) = (0, 0, Vec::new(), BTreeSet::new());
    let files = found.iter().map(|(block, ..)| &block.readme).collect::<BTreeSet<_>>().len();
    for (block, done, seconds) in found {
        let done = done.with_context(|| block.place())?;
        if show {
            println!("{} ({seconds:.1} s)\n{}", block.place(), done.shown);
        }
        (run, not_run) = (run + done.run, not_run + done.not_run);
        failures.extend(done.failure);
        missing.extend(done.missing);
    }
    if !missing.is_empty() && xtask::workspace::requires_peers() {
        failures.extend(missing.iter().map(|missing| format!("REQUIRE_PEERS=1, and {missing}")));
    }
    missing.iter().for_each(|missing| println!("skipped: {missing}"));
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    println!("readme: {run} commands of {files} files run, {not_run} not run (xtask/readme/known.toml)");
    Ok(())
}

/// The blocks of every README, and of the documents in docs/.
fn all_blocks() -> Result<Vec<Block>> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard", "*README.md", "docs/*.md"])
        .current_dir(xtask::workspace::root());
    let mut blocks = Vec::new();
    for name in run_quietly(&mut list)?.lines() {
        let text =
            fs::read_to_string(xtask::workspace::root().join(Path::new(name))).with_context(|| name.to_owned())?;
        blocks.extend(blocks::blocks(name, &text)?);
    }
    Ok(blocks)
}

fn print_list(known: &Known, blocks: &[Block]) {
    for block in blocks {
        for statement in &block.statements {
            let command = statement.text.lines().next().unwrap_or_default();
            let reason = known.rule(&block.readme, &statement.text).and_then(|rule| rule.not_run.as_deref());
            let reason = reason.map_or_else(String::new, |reason| format!("   NOT RUN: {reason}"));
            println!("{}:{}: {command}{reason}", block.readme, statement.line);
        }
    }
}
