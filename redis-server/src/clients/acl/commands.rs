//! Which commands are allowed: the rules in their order, and what they come to.

use super::rule::{RuleError, has_spaces};
use crate::command::{Args, Categories, MAX_ROWS, Registry, Row};

const WORDS: usize = MAX_ROWS.div_ceil(64);

/// A set of rows of the registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rows([u64; WORDS]);

impl Rows {
    const NONE: Self = Self([0; WORDS]);
    const ALL: Self = Self([u64::MAX; WORDS]);

    #[inline]
    fn has(&self, id: u16) -> bool {
        self.0[usize::from(id) / 64] >> (id % 64) & 1 == 1
    }

    fn add(&mut self, id: u16) {
        self.0[usize::from(id) / 64] |= 1 << (id % 64);
    }

    fn add_with_subcommands(&mut self, row: &Row) {
        (row.id..=row.id + row.subcommands).for_each(|id| self.add(id));
    }

    fn set(&mut self, others: &Self, on: bool) {
        for (word, other) in self.0.iter_mut().zip(&others.0) {
            *word = if on { *word | other } else { *word & !other };
        }
    }

    fn contains(&self, others: &Self) -> bool {
        self.0.iter().zip(&others.0).all(|(word, other)| other & !word == 0)
    }
}

/// The commands that a rule names.
#[derive(Clone, Debug)]
enum Subject {
    /// A command with its subcommands, or a subcommand.
    Command(&'static Row),
    /// All commands of a category; where a command belongs to it, all its subcommands do.
    Category(Categories),
    /// A command with this first argument.
    FirstArg(&'static Row, Box<[u8]>),
}

impl PartialEq for Subject {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Command(row), Self::Command(other)) => row.id == other.id,
            (Self::Category(category), Self::Category(other)) => category == other,
            (Self::FirstArg(row, word), Self::FirstArg(other, text)) => row.id == other.id && word == text,
            _ => false,
        }
    }
}

impl Eq for Subject {}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    allow: bool,
    subject: Subject,
    /// The rows whose bits the rule sets.
    rows: Rows,
}

impl Rule {
    fn new(allow: bool, subject: Subject, registry: &Registry) -> Self {
        let mut rows = Rows::NONE;
        match &subject {
            Subject::Command(row) => rows.add_with_subcommands(row),
            Subject::Category(category) => {
                let belongs = |row: &&Row| row.categories().0 & category.0 != 0;
                registry.rows().iter().filter(belongs).for_each(|row| rows.add_with_subcommands(row));
            }
            Subject::FirstArg(..) => {}
        }
        Self { allow, subject, rows }
    }

    /// Whether an earlier rule says nothing any more when this one follows.
    fn replaces(&self, earlier: &Self) -> bool {
        match &earlier.subject {
            Subject::Command(..) => self.rows.contains(&earlier.rows),
            // One category may grow where the other does not.
            Subject::Category(_) => earlier.subject == self.subject,
            Subject::FirstArg(row, _) => self.rows.has(row.id),
        }
    }

    fn describe(&self, out: &mut Vec<u8>) {
        out.push(if self.allow { b'+' } else { b'-' });
        match &self.subject {
            Subject::Command(row) => out.extend_from_slice(row.name().as_bytes()),
            Subject::Category(category) => category.names().for_each(|name| out.extend_from_slice(name.as_bytes())),
            Subject::FirstArg(row, word) => {
                out.extend_from_slice(row.name().as_bytes());
                out.push(b'|');
                out.extend_from_slice(word);
            }
        }
    }
}

/// Which commands are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandRules {
    /// Whether what no rule speaks of is allowed.
    all: bool,
    /// The rules in force, in their order; none that a later one makes meaningless.
    rules: Vec<Rule>,
    /// The commands that the rules allow together.
    allowed: Rows,
}

impl CommandRules {
    /// Everything, or nothing.
    pub(super) fn new(all: bool) -> Self {
        Self { all, rules: Vec::new(), allowed: if all { Rows::ALL } else { Rows::NONE } }
    }

    /// Whether everything is allowed, whatever commands there may come to be.
    pub(super) fn is_all(&self) -> bool {
        self.all && self.rules.is_empty()
    }

    /// Whether the call is allowed.
    #[inline]
    pub(super) fn allow(&self, row: &Row, args: Args<'_>) -> bool {
        self.allowed.has(row.id) || self.allow_first_arg(row, args)
    }

    #[cold]
    fn allow_first_arg(&self, row: &Row, args: Args<'_>) -> bool {
        let Some(first) = args.get(1) else { return false };
        let is_it = |rule: &Rule| matches!(&rule.subject, Subject::FirstArg(about, word) if about.id == row.id && first.eq_ignore_ascii_case(word));
        self.rules.iter().any(is_it)
    }

    /// Follows a rule that begins with `+` or `-`.
    pub(super) fn apply(&mut self, word: &[u8], registry: &Registry) -> Result<(), RuleError> {
        let allow = word[0] == b'+';
        let name = &word[1..];
        if let Some(category) = name.strip_prefix(b"@") {
            if category.eq_ignore_ascii_case(b"all") {
                *self = Self::new(allow);
                return Ok(());
            }
            let known = |(_, known): &&(Categories, &str)| known.as_bytes()[1..].eq_ignore_ascii_case(category);
            let (category, _) = Categories::NAMES.iter().find(known).ok_or(RuleError::Unknown)?;
            self.add(Rule::new(allow, Subject::Category(*category), registry));
            return Ok(());
        }
        let subject =
            if allow { allowed(name, registry)? } else { command(name, registry).ok_or(RuleError::Unknown)? };
        self.add(Rule::new(allow, subject, registry));
        Ok(())
    }

    /// Adds a rule in place of those that say nothing any more.
    fn add(&mut self, rule: Rule) {
        let count = self.rules.len();
        self.rules.retain(|earlier| !rule.replaces(earlier));
        if self.rules.len() < count {
            let rules = std::mem::take(&mut self.rules);
            *self = Self::new(self.all);
            rules.into_iter().for_each(|rule| self.follow(rule));
        }
        self.follow(rule);
    }

    /// Follows a rule, and keeps it unless it changes nothing.
    fn follow(&mut self, rule: Rule) {
        if self.is_changed_by(&rule) {
            self.allowed.set(&rule.rows, rule.allow);
            self.rules.push(rule);
        }
    }

    fn is_changed_by(&self, rule: &Rule) -> bool {
        let mut after = self.allowed;
        after.set(&rule.rows, rule.allow);
        match &rule.subject {
            Subject::Command(..) => after != self.allowed,
            // It stands for commands that may come to be: only what speaks of no exception says nothing.
            Subject::Category(_) => {
                after != self.allowed
                    || rule.allow != self.all
                    || self.rules.iter().any(|other| other.allow != rule.allow)
            }
            Subject::FirstArg(row, word) => {
                let is_same = |other: &Rule| matches!(&other.subject, Subject::FirstArg(other, text) if other.id == row.id && text.eq_ignore_ascii_case(word));
                !self.allowed.has(row.id) && !self.rules.iter().any(is_same)
            }
        }
    }

    /// Appends the rules, `+@all` or `-@all` first.
    pub(super) fn describe(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.all { b"+@all" } else { b"-@all" });
        for rule in &self.rules {
            out.push(b' ');
            rule.describe(out);
        }
    }
}

/// The command, or subcommand, of a full name.
fn command(name: &[u8], registry: &Registry) -> Option<Subject> {
    registry.lookup_full(name).map(Subject::Command)
}

/// The subject of `+name`: a command, a subcommand, or a command with a first argument.
fn allowed(name: &[u8], registry: &Registry) -> Result<Subject, RuleError> {
    let Some(bar) = memchr::memrchr(b'|', name) else { return command(name, registry).ok_or(RuleError::Unknown) };
    let (parent, sub) = (&name[..bar], &name[bar + 1..]);
    let row = registry.lookup_full(parent).ok_or(RuleError::Unknown)?;
    if row.parent.is_some() {
        return Err(RuleError::FirstArgOfSubcommand);
    }
    if sub.is_empty() || has_spaces(sub) {
        return Err(RuleError::Syntax);
    }
    if row.subcommands != 0 {
        return command(name, registry).ok_or(RuleError::Unknown);
    }
    Ok(Subject::FirstArg(row, sub.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::REGISTRY;

    fn described(words: &str) -> String {
        let mut rules = CommandRules::new(false);
        words.split_whitespace().for_each(|word| rules.apply(word.as_bytes(), REGISTRY).unwrap());
        let mut out = Vec::new();
        rules.describe(&mut out);
        let text = String::from_utf8(out).unwrap();
        // The description parses to the same rules.
        let mut again = CommandRules::new(false);
        text.split(' ').for_each(|word| again.apply(word.as_bytes(), REGISTRY).unwrap());
        assert_eq!(again, rules, "{words}");
        text
    }

    #[test]
    fn rules_are_told_back_without_those_that_say_nothing() {
        let check = |words: &str, expected: &str| assert_eq!(described(words), expected, "{words}");
        check("", "-@all");
        check("+@all", "+@all");
        check("+@all +get", "+@all");
        check("+GET +get", "-@all +get");
        check("+get -get", "-@all");
        check("+@all -client", "+@all -client");
        check("+@all -client +client|id", "+@all -client +client|id");
        check("+@all -memory|usage -memory", "+@all -memory");
        check("+memory|usage +memory", "-@all +memory");
        check("+memory|usage -memory", "-@all");
        check("+get +@string", "-@all +@string");
        check("+@string -incr +@string", "-@all +@string");
        check("+@all -@string +incr -debug +debug|digest", "+@all -@string +incr -debug +debug|digest");
        check("+debug|A +debug|a", "-@all +debug|A");
        check("+debug|a +debug|b -debug", "-@all");
        check("+debug|a +debug", "-@all +debug");
        check("+@all +select|0", "+@all");
        check("+select|0 -@connection", "-@all");
        check("+config -config|set", "-@all +config -config|set");
        for (_, name) in Categories::NAMES {
            check(&format!("+@all -{name}"), &format!("+@all -{name}"));
            check(&format!("-@all +{name}"), &format!("-@all +{name}"));
            check(&format!("+@all +{name}"), "+@all");
        }
    }

    #[test]
    fn wrong_rules_are_refused() {
        let check = |word: &str, expected: RuleError| {
            assert_eq!(CommandRules::new(false).apply(word.as_bytes(), REGISTRY), Err(expected), "{word}");
        };
        check("+", RuleError::Unknown);
        check("-", RuleError::Unknown);
        check("+@", RuleError::Unknown);
        check("+nonesuch", RuleError::Unknown);
        check("+@nonesuch", RuleError::Unknown);
        check("+get|", RuleError::Syntax);
        check("+debug|a b", RuleError::Syntax);
        check("+debug|a\nuser", RuleError::Syntax);
        check("-get|a", RuleError::Unknown);
        check("-select|0", RuleError::Unknown);
        check("+config|nonesuch", RuleError::Unknown);
        check("+get|a|b", RuleError::Unknown);
        check("+config|get|dir", RuleError::FirstArgOfSubcommand);
    }
}
