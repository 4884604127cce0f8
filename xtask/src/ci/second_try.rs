//! Tests that have failed beside all others are tried once more, beside busy programs: hundreds of servers on two cores are no fault of a test,
//! and a broken test fails again. A test that passes then is named, with the words of the first panic: it is a test to mend, or a race
//! ([`races`](super::races)).

use std::collections::BTreeSet;
use std::process::Output;

/// More failures than this, of some two thousand tests, are no accident.
const MOST: usize = 8;

/// Tests to run again.
#[derive(Debug, PartialEq)]
pub(super) struct SecondTry {
    /// Full names of tests.
    pub(super) names: Vec<String>,
    /// Arguments that select their programs: `--test it`, `--lib`.
    targets: BTreeSet<Vec<String>>,
}

impl SecondTry {
    /// The tests that a run of `cargo test --no-fail-fast` leaves to be tried; `None` if there are too many, or no test is known to have
    /// failed: a compiler's error, a program that was aborted.
    pub(super) fn of(run: &Output) -> Option<Self> {
        let (stdout, stderr) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        let failed = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
        let names: Vec<_> = stdout.lines().filter_map(failed).collect();
        // Cargo's list of them: "    `-p http-server --test it`".
        let target = |line: &str| {
            let words = line.strip_prefix("    `-p ")?.strip_suffix('`')?;
            Some(words.split(' ').skip(1).map(str::to_owned).collect::<Vec<_>>())
        };
        let targets: BTreeSet<_> = stderr.lines().filter_map(target).collect();
        // "test result: FAILED. 119 passed; 1 failed; …"
        let result = |line: &str| {
            line.strip_prefix("test result: FAILED. ")?.split("; ").nth(1)?.strip_suffix(" failed")?.parse().ok()
        };
        let results: Vec<usize> = stdout.lines().filter_map(result).collect();
        // A program that says no result was ended in another way.
        let is_whole =
            results.len() == stderr.lines().filter_map(target).count() && results.iter().sum::<usize>() == names.len();
        let is_told = is_whole && (1..=MOST).contains(&names.len());
        // Tests of documentation are built as they are run, one by one.
        (is_told && !targets.contains(&vec!["--doc".to_owned()])).then_some(Self { names, targets })
    }

    /// The arguments of `cargo test` beside those of the first run.
    pub(super) fn arguments(&self) -> Vec<&str> {
        let targets = self.targets.iter().flatten().map(String::as_str);
        let names = self.names.iter().map(String::as_str);
        targets.chain(["--", "--exact", "--test-threads", "1"]).chain(names).collect()
    }

    /// Whether every one of them ran again in a run that has succeeded.
    pub(super) fn holds(&self, again: &Output) -> bool {
        let stdout = String::from_utf8_lossy(&again.stdout);
        let has_passed = |name: &String| stdout.lines().any(|line| line == format!("test {name} ... ok"));
        again.status.success() && self.names.iter().all(has_passed)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn output(code: i32, stdout: &str, stderr: &str) -> Output {
        Output { status: ExitStatus::from_raw(code << 8), stdout: stdout.into(), stderr: stderr.into() }
    }

    const ONE: &str = "test a::b ... ok\ntest a::c ... FAILED\n\nfailures:\n    a::c\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\n";
    const ITS: &str = "error: 1 target failed:\n    `-p http-server --test it`\n";

    #[test]
    fn one_is_tried_again() {
        let second = SecondTry::of(&output(101, ONE, ITS)).unwrap();
        assert_eq!(second.names, ["a::c"]);
        assert_eq!(second.arguments(), ["--test", "it", "--", "--exact", "--test-threads", "1", "a::c"]);
        assert!(second.holds(&output(0, "test a::c ... ok\n", "")));
        assert!(!second.holds(&output(101, "test a::c ... FAILED\n", "")));
        assert!(!second.holds(&output(101, "test a::c ... ok\n", "")), "another one has failed");
        assert!(!second.holds(&output(0, "test a::b ... ok\n", "")), "it was not run");
        // The words of a test program that the test started, as `test_peers` quotes them.
        let quoted = ONE.lines().map(|line| format!("> {line}\n")).collect::<String>();
        assert_eq!(SecondTry::of(&output(101, &(quoted + ONE), ITS)), Some(second));
    }

    #[test]
    fn systematic_failures_are_not_retried() {
        let failed = MOST + 1;
        let many = "test a ... FAILED\n".repeat(failed)
            + &format!("test result: FAILED. 0 passed; {failed} failed; 0 ignored\n");
        assert_eq!(SecondTry::of(&output(101, &many, ITS)), None);
        assert_eq!(SecondTry::of(&output(101, "", "error: could not compile `loadgen`\n")), None);
        let doc = "error: 1 target failed:\n    `-p http2 --doc`\n";
        assert_eq!(SecondTry::of(&output(101, ONE, doc)), None);
        let aborted = format!("{ITS}    `-p loadgen --lib`\n");
        assert_eq!(SecondTry::of(&output(101, ONE, &aborted)), None, "one of the two has said nothing");
    }
}
