//! The suite's output, taken apart.

/// The outcome of one file of the suite.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// Names of the tests that passed.
    pub(super) passed: Vec<String>,
    /// Name and message of the tests that failed; an error between tests has the name of its file.
    pub(super) failed: Vec<(String, String)>,
    /// Name (where the suite says it) and reason of what the suite left out in external mode.
    pub(super) ignored: Vec<String>,
    /// Names of the tests that never ended.
    pub(super) hung: Vec<String>,
    /// Whether every test is known to have been reached.
    pub(super) is_whole: bool,
    /// Whether the suite has gone through the file to its end, without a failure.
    pub(super) is_through: bool,
}

/// The suite's message about a test, or a file, whose inner server it has ended because of an error outside of tests.
const AFTERMATH: &str = "key \"pid\" not known in dictionary";

impl Outcome {
    fn add_failure(&mut self, (name, message): (String, String)) {
        match self.failed.last_mut() {
            Some(cause) if message.contains(AFTERMATH) && cause.0 == BETWEEN_TESTS => cause.0 = name,
            _ => self.failed.push((name, message)),
        }
    }
}

/// The name under which an error outside of any test is reported.
pub(super) const BETWEEN_TESTS: &str = "(between tests)";

/// Reads the whole output of one run.
pub(super) fn parse(text: &str) -> Outcome {
    let text = without_colours(text);
    let mut outcome = Outcome { is_through: text.contains("All tests passed without errors!"), ..Outcome::default() };
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        // The summary repeats the failures.
        if line.trim() == "The End" {
            break;
        }
        if line.starts_with("[TIMEOUT]") {
            outcome.hung.extend(lines.by_ref().filter_map(running_test));
            break;
        }
        let Some((status, rest)) = line.strip_prefix('[').and_then(|line| line.split_once("]: ")) else {
            continue;
        };
        match status {
            "ok" => outcome.passed.push(without_duration(rest).to_owned()),
            "ignore" => outcome.ignored.push(rest.to_owned()),
            "err" | "exception" => {
                let mut details = vec![rest];
                while let Some(more) = lines.next_if(|line| !is_status(line)) {
                    details.push(more);
                }
                outcome.add_failure(failure(&details));
            }
            _ => {}
        }
    }
    outcome
}

/// Whether a line starts a new report of the suite, and so ends the details of a failure.
fn is_status(line: &str) -> bool {
    const STATUSES: &[&str] = &["ok", "err", "exception", "ignore", "skip", "TIMEOUT"];
    let status = line.strip_prefix('[').and_then(|line| line.split_once("]: ")).map(|(status, _)| status);
    line.trim() == "The End" || status.is_some_and(|status| STATUSES.contains(&status) || status.ends_with("done"))
}

/// `sock => (IN PROGRESS) NAME` in the report of a time-out.
fn running_test(line: &str) -> Option<String> {
    line.split_once("(IN PROGRESS) ").map(|(_, name)| name.to_owned())
}

/// `NAME (12 ms)` without its time.
fn without_duration(text: &str) -> &str {
    match text.rsplit_once(" (") {
        Some((name, time)) if time.ends_with(" ms)") => name,
        _ => text,
    }
}

/// Name and message from the lines of one failure: `NAME in tests/FILE`, the message, and for a Tcl exception its trace,
/// whose first line is the message in full (the suite cuts ten characters off the other).
fn failure(details: &[&str]) -> (String, String) {
    let is_exception = details.iter().any(|line| line.trim() == "while executing");
    let Some((name, _)) = details[0].rsplit_once(" in tests/") else {
        return (BETWEEN_TESTS.to_owned(), (*details.get(usize::from(is_exception)).unwrap_or(&details[0])).to_owned());
    };
    let message = if is_exception { details.get(2) } else { details.get(1) };
    (name.to_owned(), (*message.unwrap_or(&"")).to_owned())
}

/// Text as it is without a terminal.
pub(super) fn without_colours(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push_str(piece.split_once('m').map_or(piece, |(_, rest)| rest));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_is_understood() {
        let text = "Starting test server at port 1\n[ready]: 7\n\
            [\u{1b}[0;32;49mok\u{1b}[0m]: SET and GET (1) an item (12 ms)\n\
            [ignore]: AOF test: Not supported on external server\n\
            [err]: MGET in tests/unit/type/string.tcl\nExpected 'a' to be 'b'\n\
            [err]: EVAL works in tests/unit/other.tcl\nwn command\nERR unknown command 'eval'\n    while executing\n\"r eval\"\n\
            [1/1 done]: unit/other (1 seconds)\n\n   The End\n\n*** [err]: MGET in tests/unit/type/string.tcl\n";
        let outcome = parse(text);
        assert_eq!(outcome.passed, ["SET and GET (1) an item"]);
        assert_eq!(outcome.ignored, ["AOF test: Not supported on external server"]);
        let failed = [("MGET", "Expected 'a' to be 'b'"), ("EVAL works", "ERR unknown command 'eval'")];
        assert_eq!(outcome.failed, failed.map(|(name, message)| (name.to_owned(), message.to_owned())));
        assert!(outcome.hung.is_empty());
    }

    #[test]
    fn server_ending_errors_are_attributed_to_their_test() {
        let outcome = parse(
            "[err]: n command 'slaveof'\nERR unknown command 'slaveof', with\n    while executing\n\"r slaveof\"\n\
             [err]: MULTI in tests/unit/other.tcl\nnot known in dictionary\nkey \"pid\" not known in dictionary\n    \
             while executing\n\"dict get\"\n",
        );
        assert_eq!(outcome.failed, [("MULTI".to_owned(), "ERR unknown command 'slaveof', with".to_owned())]);
    }

    #[test]
    fn a_time_out_names_the_running_test() {
        let outcome = parse("[ok]: A (1 ms)\n[TIMEOUT]: clients state report follows.\nsock5 => (IN PROGRESS) BLPOP\n");
        assert_eq!(outcome.hung, ["BLPOP"]);
    }
}
