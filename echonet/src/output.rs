//! Output to the terminal, to pipes and files.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::commands::Options;
use crate::failure::Failure;

/// How results are to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// As lines of JSON.
    pub(crate) json: bool,
    quiet: bool,
}

impl Output {
    pub(crate) fn new(options: &Options) -> Self {
        Self { json: options.json, quiet: options.quiet }
    }

    /// Writes a result, and all of it now: a program may wait for it at the other end of a pipe.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// Writes a result and ends its line.
    pub(crate) fn line(self, text: impl Display) -> Result<(), Failure> {
        self.bytes(format!("{text}\n").as_bytes())
    }

    /// Writes a line of JSON or what it is for people.
    pub(crate) fn result(self, json: impl FnOnce() -> Value, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.json { self.line(json()) } else { self.line(text()) }
    }

    /// Says something beside the results.
    pub(crate) fn remark(self, text: impl Display) {
        if !self.quiet {
            // If the user has closed it, the text is lost.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Shows that something takes its time, on a terminal, until it is dropped.
    pub(crate) fn progress(self, text: impl Into<String>) -> Progress {
        if self.quiet || !io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let bar = ProgressBar::new_spinner().with_message(text.into());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress(bar)
    }
}

/// Something that takes its time.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn say(&self, text: impl Into<String>) {
        self.0.set_message(text.into());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Lays out rows below a header, no wider than the terminal.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

#[cfg(unix)]
fn terminal_width() -> Option<u16> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok())??;
    // Narrower than this nothing can be laid out; the terminal wraps.
    (size.ws_col >= 40).then_some(size.ws_col)
}

/// Elsewhere lines are as long as they are.
#[cfg(not(unix))]
fn terminal_width() -> Option<u16> {
    None
}
