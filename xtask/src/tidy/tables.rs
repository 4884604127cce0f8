//! Measured figures stand in tables that a record gives, between the marks of `cargo xtask report --readme`. Tables between the
//! marks of `cargo xtask book --renew` come from the programs.

use std::collections::BTreeMap;

/// Tables with figures that no record gives: document, beginning of the header's line.
const EXCEPTIONS: &[(&str, &str)] = &[
    // Sizes of what is built, as `cargo xtask package` and `cargo xtask deploy` print them.
    ("docs/internals/sizes.md", "| Crate | Tarball |"),
    // Times that the test `lights_that_change_their_places` prints.
    ("docs/echonet-lite/home.md", "| change | bridge (MQTT) |"),
    // The behaviour of platforms.
    ("docs/echonet-lite/platforms.md", "| | `net` | checked by |"),
    // The data that may be lost, by the setting.
    ("docs/redis/persistence.md", "| | the process is killed | the machine fails |"),
    // The cost of replies that wait for write(2), beside a build that no longer exists.
    ("docs/redis/performance.md", "| | replies leave first (earlier build) |"),
    // Limits.
    ("docs/redis/types.md", "| bound | |"),
    // Releases.
    ("docs/redis/compatibility.md", "| | since |"),
    // Counts of tests, which a list of those that fail holds.
    ("docs/redis/compatibility.md", "| | tests | pass |"),
    ("docs/redis/search.md", "| library | tests that pass |"),
    // How long a transcript waits.
    ("redis-server/tests/transcripts/README.md", "| directive | meaning |"),
];

/// Units of what is measured, behind a number.
const UNITS: &[&str] =
    &["ns", "µs", "us", "ms", "s", "/s", "B", "kB", "KB", "MB", "GB", "KiB", "MiB", "GiB", "MB/s", "MiB/s", "%", "x"];

/// Tables of figures without marks, and exceptions that nothing needs.
pub(super) fn breaches(files: &BTreeMap<String, String>) -> Vec<String> {
    let (mut breaches, mut used) = (Vec::new(), vec![false; EXCEPTIONS.len()]);
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (line, header) in by_hand(text) {
            let exception = EXCEPTIONS.iter().position(|(known, start)| known == path && header.starts_with(start));
            match exception {
                Some(at) => used[at] = true,
                None => breaches.push(format!("{path}:{line}: a table of figures without the marks of a record")),
            }
        }
    }
    let idle = EXCEPTIONS.iter().zip(used).filter(|((path, _), used)| files.contains_key(*path) && !used);
    breaches.extend(idle.map(|((path, start), _)| format!("{path}: no table of figures begins with `{start}`")));
    breaches
}

/// Tables with figures outside of any marks and code: line and header of each.
fn by_hand(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut header, mut is_kept, mut is_code) = (Vec::new(), None, false, false);
    for (number, line) in text.lines().enumerate() {
        is_code ^= line.starts_with("```");
        is_kept = line.starts_with("<!-- begin: ") || is_kept && !line.starts_with("<!-- end: ");
        if is_kept || is_code || !line.starts_with('|') {
            header = None;
            continue;
        }
        let first = *header.get_or_insert((number + 1, line));
        if found.last() != Some(&first) && has_figure(line) {
            found.push(first);
        }
    }
    found
}

/// Whether a cell of a row but its label is a number, or has one with a unit.
fn has_figure(row: &str) -> bool {
    let code: Vec<&str> = row.split('`').collect();
    let prose = code.iter().step_by(2).copied().collect::<Vec<_>>().join("code");
    prose.trim_matches('|').split('|').skip(1).any(|cell| {
        let cell = cell.replace(',', "");
        let words: Vec<&str> =
            cell.split([' ', ';', ':', '(', ')', '[', ']']).filter(|word| !word.is_empty()).collect();
        let pair = words.windows(2).any(|pair| is_number(pair[0]) && UNITS.contains(&pair[1]));
        let one = |word: &&str| {
            let (number, unit) = word.split_at(word.trim_end_matches(|c: char| !c.is_ascii_digit()).len());
            is_number(number) && UNITS.contains(&unit)
        };
        let is_bare = !words.is_empty() && words.iter().all(|word| is_number(word));
        pair || is_bare || words.iter().any(one)
    })
}

/// `12`, `1.5`.
fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_figures_has_marks() {
        #[track_caller]
        fn check(row: &str, is_measured: bool) {
            let text = format!("text\n\n| | ours | theirs |\n|---|--:|--:|\n| a row of 3 s | – | – |\n{row}\n");
            let files = |text: String| BTreeMap::from([("a/README.md".to_owned(), text)]);
            let breach = "a/README.md:3: a table of figures without the marks of a record".to_owned();
            assert_eq!(breaches(&files(text.clone())), if is_measured { vec![breach] } else { vec![] }, "{row}");
            let kept = format!("<!-- begin: table x -->\n{text}<!-- end: table x -->\n");
            assert_eq!(breaches(&files(kept)), [""; 0], "{row}");
            assert_eq!(breaches(&files(format!("```\n{text}```\n"))), [""; 0], "{row}");
        }
        check("| latency | 1.5 | fast |", true);
        check("| seconds | 1.15; 1,060 | fast |", true);
        check("| latency | 8.3 ms median | fast |", true);
        check("| latency | median: 8.3ms | |", true);
        check("| rate | 88,699/s | |", true);
        check("| memory | grows by 4.5 MiB; no more | |", true);
        check("| time | ▲ 0.48 [0.47, 0.51] of 4.44 µs | |", true);
        check("| load | 0.8 % of a core | |", true);
        check("| 5 ms | as `-c 50 ms` says | RESP2 of Redis 7.0 |", false);
        check("| `get` | 3 kinds of words | version 10, or 80 of another |", false);
    }

    #[test]
    fn an_exception_that_nothing_needs_is_none() {
        let (path, start) = EXCEPTIONS[0];
        let check = |text: String, expected: &[String]| {
            assert_eq!(breaches(&BTreeMap::from([(path.to_owned(), text)])), expected);
        };
        check(format!("{start}\n|---|---|\n| a | 5 KiB |\n"), &[]);
        check(
            format!("{start}\n|---|---|\n| a | b |\n"),
            &[format!("{path}: no table of figures begins with `{start}`")],
        );
    }
}
