//! A program's help as a manual page (man(7)).

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::tool::is_there;

/// The page of a program in section 1.
pub(super) fn page(program: &str, help: &str) -> String {
    let Help { before, synopsis, behind } = Help::of(help);
    let about: Vec<&str> = before.iter().take_while(|line| !line.is_empty()).copied().collect();
    let description = before[about.len()..].iter().chain(&behind);
    let about = if about.is_empty() { "a server for clients of Redis".to_owned() } else { about.join(" ") };
    let (title, name) = (text(&program.to_uppercase()), text(program));
    let mut page = format!(".TH {title} 1\n.SH NAME\n{name} \\- {}\n", text(&about));
    page.push_str(".SH SYNOPSIS\n.nf\n");
    synopsis.iter().for_each(|line| push(&mut page, line.trim_start()));
    page.push_str(".fi\n");
    let mut lines = description.filter(|line| !line.trim().is_empty()).peekable();
    let mut is_examples = false;
    while let Some(line) = lines.next() {
        let is_title = !line.starts_with(' ') && lines.peek().is_some_and(|next| next.starts_with(' '));
        if is_title {
            is_examples = *line == "Examples:";
            let _ = writeln!(page, ".SH {}", text(&line.trim_end_matches(':').to_uppercase()));
        } else if is_examples && line.starts_with(' ') {
            let _ = write!(page, ".br\n{}\n", text(line.trim_start()));
        } else if line.trim_start().starts_with('-') {
            option(&mut page, line.trim_start());
        } else if line.starts_with(' ') {
            entry(&mut page, line);
        } else {
            page.push_str(".PP\n");
            push(&mut page, line);
        }
    }
    page
}

/// Formats a page; groff has nothing to say about it.
pub(super) fn check(page: &Path) -> Result<()> {
    if !is_there("groff") {
        return Ok(());
    }
    let output = Command::new("groff").args(["-man", "-ww", "-z", "-Kutf8", "-Tutf8"]).arg(page).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || !said.is_empty() {
        bail!("{}: {said}", page.display());
    }
    Ok(())
}

/// The lines of a help: those of `Usage:`, and all others.
struct Help<'a> {
    before: Vec<&'a str>,
    synopsis: Vec<&'a str>,
    behind: Vec<&'a str>,
}

impl<'a> Help<'a> {
    fn of(help: &'a str) -> Self {
        let mut lines = help.lines().peekable();
        let mut before = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("Usage:")) {
            before.push(line);
        }
        let synopsis = lines.by_ref().take_while(|line| !line.is_empty());
        let synopsis = synopsis.map(|line| line.trim_start_matches("Usage:")).collect();
        Self { before, synopsis, behind: lines.collect() }
    }
}

/// An option, and what it does if that stands on its line.
fn option(page: &mut String, line: &str) {
    let (name, what) = line.split_once("   ").unwrap_or((line, ""));
    let _ = writeln!(page, ".TP\n.B {}", text(name.trim_end()));
    push(page, what.trim());
}

/// A line below an option, or a command and what it does.
fn entry(page: &mut String, line: &str) {
    let inner = line.trim_start();
    let indent = line.len() - inner.len();
    match inner.split_once("  ") {
        Some((name, what)) if indent < 10 => {
            let _ = writeln!(page, ".TP\n.B {}", text(name));
            push(page, what.trim_start());
        }
        _ => {
            if indent > 10 || inner.starts_with('[') || inner.contains("  ") {
                page.push_str(".br\n");
            }
            push(page, inner);
        }
    }
}

/// Adds a line, unless it is empty: one in a page would be a gap.
fn push(page: &mut String, line: &str) {
    if !line.is_empty() {
        page.push_str(&text(line));
        page.push('\n');
    }
}

/// Escapes text that roff would read as commands.
fn text(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_help_become_a_page() {
        let clap = "Serves.\n\nUsage: a [OPTIONS]\n\nOptions:\n  -h, --help\n          Print help\n          \n          [default: 1]\n\n\
                    Network:\n      --listen <PLACE>\n          .hidden\n";
        let expected = ".TH A 1\n.SH NAME\na \\- Serves.\n.SH SYNOPSIS\n.nf\na [OPTIONS]\n.fi\n.SH OPTIONS\n.TP\n.B \\-h, \\-\\-help\nPrint help\n\
                        .br\n[default: 1]\n.SH NETWORK\n.TP\n.B \\-\\-listen <PLACE>\n\\&.hidden\n";
        assert_eq!(page("a", clap), expected);
        let table = "Usage: a [FILE]\n       a --version\n\nExamples:\n  a b  c\n\nA flag wins.\n\nGeneral\n  --port    the port [1]\n";
        let expected = ".TH A 1\n.SH NAME\na \\- a server for clients of Redis\n.SH SYNOPSIS\n.nf\na [FILE]\na \\-\\-version\n.fi\n.SH EXAMPLES\n.br\na b  c\n\
                        .PP\nA flag wins.\n.SH GENERAL\n.TP\n.B \\-\\-port\nthe port [1]\n";
        assert_eq!(page("a", table), expected);
    }
}
