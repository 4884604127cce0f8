//! Why tests fail that are known to: `lab/suite/known.txt`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The parsed file.
#[derive(Default)]
pub(super) struct Known {
    entries: Vec<Entry>,
}

struct Entry {
    pattern: Pattern,
    reason: String,
    concerns_us: bool,
    /// It would wait for ever for what is not supported, so it is not run.
    waits: bool,
}

enum Pattern {
    /// The test of this name.
    Test(String),
    /// Tests whose name starts so.
    Prefix(String),
    /// Tests that fail because this command is unknown.
    Command(String),
    /// Tests whose message holds this text, in any case of letters.
    Message(String),
}

/// The verdict on one failure.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// It needs something that is not supported: not counted.
    Unsupported(String),
    /// It concerns us and fails for this reason: counted.
    Fails(String),
    /// Nothing is known: counted.
    Unexplained,
}

impl Known {
    /// Reads the file: `TEST | unsupported: REASON`, `TEST | waits: REASON`, `TEST | fails: REASON`, `command NAME | REASON`,
    /// `message TEXT | REASON`; `*` ends a prefix.
    ///
    /// # Errors
    /// When a line has another form.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Self::parse(&text)
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut entries = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let Some((name, reason)) = line.rsplit_once(" | ") else {
                bail!("known.txt: no ` | ` in `{line}`");
            };
            let (name, reason) = (name.trim(), reason.trim());
            let by_message = match name.split_once(' ') {
                Some(("command", command)) => Some(Pattern::Command(command.to_ascii_lowercase())),
                Some(("message", text)) => Some(Pattern::Message(text.to_ascii_lowercase())),
                _ => None,
            };
            if let Some(pattern) = by_message {
                entries.push(Entry { pattern, reason: reason.to_owned(), concerns_us: false, waits: false });
                continue;
            }
            let Some((kind @ ("unsupported" | "waits" | "fails"), reason)) = reason.split_once(": ") else {
                bail!("known.txt: a reason starts with `unsupported: `, `waits: ` or `fails: `, not `{reason}`");
            };
            let pattern = name
                .strip_suffix('*')
                .map_or_else(|| Pattern::Test(name.to_owned()), |prefix| Pattern::Prefix(prefix.to_owned()));
            let (concerns_us, waits) = (kind == "fails", kind == "waits");
            entries.push(Entry { pattern, reason: reason.to_owned(), concerns_us, waits });
        }
        Ok(Self { entries })
    }

    /// Tests that would wait for ever for what is not supported.
    pub(super) fn waiting(&self) -> Vec<String> {
        let waiting = self.entries.iter().filter(|entry| entry.waits);
        waiting
            .filter_map(|entry| match &entry.pattern {
                Pattern::Test(name) => Some(name.clone()),
                Pattern::Prefix(_) | Pattern::Command(_) | Pattern::Message(_) => None,
            })
            .collect()
    }

    /// The verdict on a test that failed with this message (empty for one that was not reached).
    pub(super) fn verdict(&self, name: &str, message: &str) -> Verdict {
        let unknown_command = unknown_command(message);
        let found = self.entries.iter().find(|entry| match &entry.pattern {
            Pattern::Test(test) => test == name,
            Pattern::Prefix(prefix) => name.starts_with(prefix),
            Pattern::Command(command) => unknown_command.as_ref() == Some(command),
            Pattern::Message(text) => message.to_ascii_lowercase().contains(text),
        });
        match found {
            Some(entry) if entry.concerns_us => Verdict::Fails(entry.reason.clone()),
            Some(entry) => Verdict::Unsupported(entry.reason.clone()),
            None => Verdict::Unexplained,
        }
    }
}

/// The command that a message calls unknown, in lower case.
fn unknown_command(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("unknown command '")?;
    Some(rest.split('\'').next()?.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_classified() {
        let text = "# note\ncommand eval | scripting\nmessage for 'reload' | disk\nBIG* | fails: slow\nRELOAD a | b | unsupported: disk\n";
        let known = Known::parse(text).unwrap();
        let check = |name: &str, message: &str, expected: Verdict| {
            assert_eq!(known.verdict(name, message), expected, "{name}");
        };
        check("any", "ERR unknown command 'EVAL', with args", Verdict::Unsupported("scripting".to_owned()));
        check("any", "ERR arguments for 'RELOAD'. Try", Verdict::Unsupported("disk".to_owned()));
        check("BIGGER", "", Verdict::Fails("slow".to_owned()));
        check("RELOAD a | b", "", Verdict::Unsupported("disk".to_owned()));
        check("any", "ERR unknown command 'GET'", Verdict::Unexplained);
        assert!(Known::parse("no bar").is_err());
        assert!(Known::parse("a | because").is_err());
    }
}
