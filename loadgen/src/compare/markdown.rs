//! Reports in Markdown.

use super::record::Record;
use super::report::{self, Part, TEXTS, Table};
use crate::number;
use crate::output::html;
use crate::record::{Ending, Outcome};

/// The report of a record.
#[must_use]
pub fn markdown(record: &Record) -> String {
    let mut text = format!("# {}\n", inline(&record.header.title));
    for part in report::parts(record) {
        let block = match part {
            Part::Heading(heading) => format!("## {}\n", inline(&heading)),
            Part::Text(words) => format!("{}\n", inline(&words)),
            Part::Command(command) => format!("```text\n{command}\n```\n"),
            Part::Notes(notes) => notes.iter().map(|note| format!("- {}\n", inline(note))).collect(),
            Part::Table(lines) => table(&lines),
            // Only a page draws.
            Part::Charts(_) => String::new(),
        };
        if !block.is_empty() {
            text.push('\n');
            text.push_str(&block);
        }
    }
    text
}

/// The report of a single run.
#[must_use]
pub fn single_markdown(outcome: &Outcome) -> String {
    let mut text = format!("# Load test\n\n{}\n\n", inline(&outcome.description));
    match &outcome.ending {
        Ending::Complete => {}
        Ending::Interrupted => text.push_str("Interrupted: these are the results so far.\n\n"),
        Ending::Failed(reason) => text.push_str(&format!("Failed: {}\n\n", inline(reason))),
    }
    let (header, rows) = html::latencies(outcome);
    text.push_str(&table(&Table::new(&["result", ""], html::summary(outcome))));
    text.push('\n');
    text.push_str(&table(&Table { header, rows }));
    let failures = outcome.failures.iter().map(|failure| {
        let examples = failure.examples.join("; ");
        format!("{} {}: {examples}", number::thousands(failure.count), failure.kind.words())
    });
    for note in outcome.notes.iter().cloned().chain(failures) {
        text.push_str(&format!("\n- {}\n", inline(&note)));
    }
    text
}

/// A table.
#[must_use]
pub fn table(table: &Table) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| inline(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let align = |(column, name): (usize, &String)| {
        if column == 0 || TEXTS.contains(&name.as_str()) { ":--" } else { "--:" }
    };
    let aligned: Vec<&str> = table.header.iter().enumerate().map(align).collect();
    let rows: String = table.rows.iter().map(|cells| row(cells)).collect();
    format!("{}| {} |\n{rows}", row(&table.header), aligned.join(" | "))
}

/// A text on one line, without what Markdown would take for its own. Spaces that keep words together stay.
#[must_use]
pub fn inline(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let is_space = |character: char| character.is_whitespace() && character != '\u{a0}';
    let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
    for character in words.join(" ").chars() {
        // `](` would make a link of what stands before it.
        if matches!(character, '|' | '<' | '*' | '`' | '\\') || (character == '(' && safe.ends_with(']')) {
            safe.push('\\');
        }
        safe.push(character);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    #[test]
    fn a_report_has_tables_and_verdicts() {
        let runs: Vec<(&str, &str, usize, u64, u64)> = (0..6)
            .flat_map(|round| [("s", "a", round, 1000, 1000), ("s", "b", round, 1500 + round as u64, 1000)])
            .collect();
        let mut record = record(&runs);
        let reason = "it <died>\nof | a pipe".to_owned();
        let failed = super::super::record::FailedRun {
            scenario: "s".to_owned(),
            subject: "b".to_owned(),
            round: Some(2),
            reason,
        };
        record.failed.push(failed);
        let text = markdown(&record);
        for part in [
            "# made up\n",
            "| subject | version | command | processors | remarks |\n| :-- | :-- | :-- | --: | :-- |\n",
            "| a | v \\<1> | a --port {port} | 1 | about a; the baseline |\n",
            "| c | v \\<1> | c --port {port} | 1 | about c; absent: there is no program c |\n",
            "```text\nredis GET a|b\n```\n",
            "| a | 6 | 500 | 1000 µs |",
            "| ratio to a | b |\n| :-- | --: |\n| answers/s | 1.502 [1.494, 1.512] better |\n",
            "| CPU/answer | 0.666 [0.662, 0.670] better |\n",
            "| memory | 1.000 [1.000, 1.000] equivalent |\n",
            "| 0.50 | 12 of 6,012 |",
            "- b: made up (6 of 6 runs)\n",
            "- b: round 3 failed: it \\<died> of \\| a pipe\n",
            "Linux 6, Debian",
        ] {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
        assert_eq!(text, markdown(&record.clone()));
    }

    #[test]
    fn spaces_become_one_but_those_that_keep_words_together() {
        assert_eq!(inline(" a\u{a0}b  c\n\td | e "), "a\u{a0}b c d \\| e");
    }

    #[test]
    fn a_single_run_has_a_report() {
        let text = single_markdown(&crate::output::made_up::run_of(1000, 1000));
        for part in ["\\<made up>", "| Right answers | 1,000 |", "| GET | 1,000 |", "- 2 timed out: after 1 s\n"] {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
    }

    #[test]
    fn a_record_without_runs_has_a_report() {
        let text = markdown(&record(&[]));
        assert!(text.contains("There are no results.") && text.contains("Rounds made: 0."));
    }
}
