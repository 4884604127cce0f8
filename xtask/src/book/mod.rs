//! The documentation as a book: the chapters of `docs/SUMMARY.md` by mdBook, with search, in light and dark, without anything from outside.
//!
//! mdBook takes chapters from below one folder only, and ours stand beside the code. So the book is built from a copy below
//! `target/book-source`, in which every file has the path that it has in the repository: relative links are the same in both.

mod check;
mod gaps;
mod help;
mod reference;
mod source;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use xtask::process::run_quietly;

use self::source::Source;

/// How to install mdBook, of the version that `docs/book.toml` is written for. Even without optimisation it makes the book in two seconds of
/// processor time. As a library it would add most of its 123 crates to every build of xtask.
const INSTALL: &str = "cargo install --locked --debug mdbook@0.5.4 --no-default-features --features search";

/// Options of `cargo xtask book`.
#[derive(Args)]
pub(crate) struct Options {
    /// Opens the book in a browser.
    #[arg(long)]
    open: bool,
    /// Writes the reference tables as the programs give them: settings, commands, metrics, options, classes.
    #[arg(long)]
    renew: bool,
    /// Compares the reference tables with the programs in this folder; --renew takes them as they are, and otherwise builds them.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
}

/// Builds the book into `target/book` and checks its links.
///
/// # Errors
/// With file and line of each link that leads nowhere; when a chapter is missing in the summary, or a table is not that of the programs.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(programs) = &options.programs {
        reference::run(programs, options.renew)?;
    } else if options.renew {
        run_quietly(xtask::workspace::cargo().arg("everything"))?;
        reference::run(&xtask::workspace::target_dir().join("debug"), true)?;
    }
    if run_quietly(Command::new("mdbook").arg("--version")).is_err() {
        if xtask::workspace::requires_peers() {
            bail!("REQUIRE_PEERS=1, and no mdbook is installed: {INSTALL}");
        }
        println!("skipped: book (mdbook is not installed: {INSTALL})");
        return Ok(());
    }
    let source = Source::read(xtask::workspace::root())?;
    let (folder, book) =
        (xtask::workspace::target_dir().join("book-source"), xtask::workspace::target_dir().join("book"));
    source.write(&folder)?;
    fs::create_dir_all(&book)?;
    // A relative folder would begin at that of the source.
    let whole = fs::canonicalize(&book).with_context(|| book.display().to_string())?;
    run_quietly(Command::new("mdbook").arg("build").arg(&folder).arg("--dest-dir").arg(&whole))?;
    let outside = check::links_of(&source, &whole)?;
    for (url, place) in &outside {
        println!("outside: {url} ({place})");
    }
    println!("book: {} chapters, {} outside links, {}", source.chapters.len(), outside.len(), book.display());
    if options.open {
        run_quietly(Command::new("xdg-open").arg(whole.join("index.html")))?;
    }
    Ok(())
}
