//! Regular expressions, whose work is counted as that of paths is.
//!
//! A text is read by an automaton whose states are made when they are met: a step or two for each byte, once they are there. Some
//! expressions meet new states all the time; then the automaton gives up, and the states of the expression are followed one by one, each of
//! which may be a step for each byte.

use std::cell::RefCell;
use std::fmt;

use regex_automata::Input;
use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::nfa::thompson::{self, NFA};

use crate::types::json::document::Refused;

/// Longest regular expression.
const MAX_LEN: usize = 1024;
/// Bytes that an expression may take when it is compiled, which bounds its states.
const MAX_SIZE: usize = 64 * 1024;
/// Bytes of an automaton's states that are kept.
const CACHE: usize = 256 * 1024;
/// The automaton gives up when its states have been thrown away so many times, and are good for fewer bytes of text each.
const MOST_CLEARED: usize = 3;
const LEAST_BYTES: usize = 10;
/// Bytes of a text that are a step for the automaton.
const STEP: usize = 64;

/// A regular expression.
pub(super) struct Regex {
    automaton: DFA,
    states: RefCell<dfa::Cache>,
    follower: PikeVM,
    threads: RefCell<Option<pikevm::Cache>>,
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Regex").finish_non_exhaustive()
    }
}

impl Regex {
    /// The one that a text is, if it does not grow too large.
    pub(super) fn new(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= MAX_LEN)?;
        let size = thompson::Config::new().nfa_size_limit(Some(MAX_SIZE));
        let nfa = NFA::compiler().configure(size).build(text).ok()?;
        let bounds = dfa::Config::new()
            .cache_capacity(CACHE)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(MOST_CLEARED))
            .minimum_bytes_per_state(Some(LEAST_BYTES))
            // Where a text is not ASCII, it gives up at boundaries of words.
            .unicode_word_boundary(true);
        let automaton = DFA::builder().configure(bounds).build_from_nfa(nfa.clone()).ok()?;
        let follower = PikeVM::new_from_nfa(nfa).ok()?;
        let states = RefCell::new(automaton.create_cache());
        Some(Self { automaton, states, follower, threads: RefCell::new(None) })
    }

    /// Whether a part of a text matches; `work` counts steps.
    pub(super) fn is_match(
        &self,
        text: &[u8],
        mut work: impl FnMut(usize) -> Result<(), Refused>,
    ) -> Result<bool, Refused> {
        work(text.len() / STEP)?;
        let input = Input::new(text).earliest(true);
        if let Ok(found) = self.automaton.try_search_fwd(&mut self.states.borrow_mut(), &input) {
            return Ok(found.is_some());
        }
        work(text.len().saturating_mul(self.follower.get_nfa().states().len()))?;
        let mut threads = self.threads.borrow_mut();
        let threads = threads.get_or_insert_with(|| self.follower.create_cache());
        Ok(self.follower.is_match(threads, input))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a text matches, and the steps that it takes.
    #[track_caller]
    fn check(pattern: &str, text: &str, expected: bool) -> usize {
        let mut steps = 0;
        let regex = Regex::new(pattern.as_bytes()).unwrap_or_else(|| panic!("{pattern} is one"));
        let count = |more| {
            steps += more;
            Ok(())
        };
        assert_eq!(regex.is_match(text.as_bytes(), count), Ok(expected), "{pattern} {text}");
        steps
    }

    #[test]
    fn regexes_match_unicode_and_have_size_limits() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("b", "abc", true),
            ("^b", "abc", false),
            ("c$", "abc", true),
            ("(?i)É", "é", true),
            ("^.$", "é", true),
            (r"^\d+$", "٣4", true),
            (r"\bfoo\b", "a foo b", true),
            (r"\bfoo\b", "é foo é", true),
            (r"\bfoo\b", "éfooé", false),
            ("a{2,3}$", "ba", false),
        ] {
            check(pattern, text, expected);
        }
        for refused in ["(", "a{9999}", "((a{1,99}){1,99}){1,99}", r"(\w{50}){50}", &"a".repeat(MAX_LEN + 1)] {
            assert!(Regex::new(refused.as_bytes()).is_none(), "{refused}");
        }
        assert!(Regex::new(b"\xff").is_none());
    }

    /// A state for each of the last letters' subsets: the text is never read by what was made before.
    #[test]
    fn work_that_cannot_be_kept_is_counted() {
        let mut rng = crate::types::testing::Rng::new(1);
        let text: String = (0..20_000).map(|_| if rng.below(2) == 0 { 'a' } else { 'b' }).collect();
        assert!(check("^[ab]*c", &text, false) < 1000);
        assert!(check("a[ab]{100}c", &text, false) > 100 * text.len());
    }
}
