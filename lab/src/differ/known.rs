//! Differences that are meant, each with its reason, and commands that are not sent.

use anyhow::{Result, bail};

/// The lists, for Redis and for Valkey: `command | ours | genuine | reason`, in patterns where `*` stands for anything and `%` for one word; `command | reason`
/// for what is not sent, as data is different behind it.
const LISTS: [(&str, &str); 2] = [
    ("known.txt", include_str!("../../differ/known.txt")),
    ("known-valkey.txt", include_str!("../../differ/known-valkey.txt")),
];

/// The name of a list.
pub(super) fn name(valkey: bool) -> &'static str {
    LISTS[usize::from(valkey)].0
}

/// A deviation.
pub(super) struct Known {
    /// Its line of the list.
    pub(super) line: &'static str,
    command: &'static str,
    ours: &'static str,
    genuine: &'static str,
}

/// A list.
pub(super) struct List {
    known: Vec<Known>,
    unsent: Vec<&'static str>,
}

impl List {
    /// The deviation that was found, where it is one.
    pub(super) fn find(&self, command: &str, ours: &str, genuine: &str) -> Option<&Known> {
        self.known.iter().find(|known| known.is(command, ours, genuine))
    }

    /// Whether the command is to be sent.
    pub(super) fn sends(&self, command: &str) -> bool {
        let command = command.to_ascii_uppercase();
        !self.unsent.iter().any(|pattern| matches(pattern, &command))
    }
}

/// A list with all of its lines.
///
/// # Errors
/// When a line of the list is not of its form.
pub(super) fn load(valkey: bool) -> Result<List> {
    let (mut known, mut unsent) = (Vec::new(), Vec::new());
    let (file, list) = LISTS[usize::from(valkey)];
    for line in list.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        match parts[..] {
            [.., ""] => bail!("differ/{file}: `{line}` has no reason"),
            [command, ours, genuine, _] => known.push(Known { line, command, ours, genuine }),
            [command, _] => unsent.push(command),
            _ => bail!("differ/{file}: `{line}` has neither four parts nor two"),
        }
    }
    Ok(List { known, unsent })
}

impl Known {
    /// Whether this is the deviation that was found.
    fn is(&self, command: &str, ours: &str, genuine: &str) -> bool {
        matches(self.command, &command.to_ascii_uppercase())
            && matches(self.ours, ours)
            && matches(self.genuine, genuine)
    }
}

/// Whether `text` is `pattern`, whose `*` stand for anything and whose `%` stand for one word.
fn matches(pattern: &str, text: &str) -> bool {
    let Some(wild) = pattern.find(['*', '%']) else { return pattern == text };
    let (start, rest) = (&pattern[..wild], &pattern[wild + 1..]);
    let Some(text) = text.strip_prefix(start) else { return false };
    let (least, most) = match pattern.as_bytes()[wild] {
        b'%' => (1, text.find(' ').unwrap_or(text.len())),
        _ => (0, text.len()),
    };
    (least..=most).filter(|at| text.is_char_boundary(*at)).any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match() {
        let check =
            |pattern: &str, text: &str, expected| assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        check("GET *", "GET a", true);
        check("GET *", "GETX a", false);
        check("*", "", true);
        check("*b*", "abc", true);
        check("a*c", "abd", false);
        check("a %", "a b", true);
        check("a % c", "a b c", true);
        check("a %", "a b c", false);
        check("a %", "a ", false);
        assert!(load(false).is_ok());
        let list = load(true).unwrap();
        assert!(!list.sends("zadd z 0x1p3 a") && list.sends("zadd z 1 a"));
    }
}
