//! Sentences of comments have a thing as subject, as far as a program can tell: by their first word.

/// First words that name no thing.
const REFUSED: &[&str] = &[
    "Who",
    "Whom",
    "Whose",
    "Whoever",
    "What",
    "Whatever",
    "Somebody",
    "Nobody",
    "Everybody",
    "Anybody",
    "Someone",
    "Everyone",
    "Anyone",
];

/// Checks the lines of a Rust source that are comments.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let (mut breaches, mut begins) = (Vec::new(), true);
    for (number, line) in text.lines().enumerate() {
        let comment = comment(line);
        begins |= comment.is_empty() || comment.starts_with("- ");
        for word in comment.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)) {
            let first = word.trim_start_matches(['(', '"', '*']).trim_end_matches(|c: char| !c.is_alphabetic());
            if begins && REFUSED.contains(&first) {
                breaches.push(format!("{path}:{}: a sentence has `{first}` as subject; name the thing", number + 1));
            }
            begins = word.trim_end_matches([')', '"', '*']).ends_with(['.', '?', '!']);
        }
        begins |= comment.starts_with('#');
    }
    breaches
}

/// The text of a comment's line; empty for any other line.
fn comment(line: &str) -> &str {
    line.trim_start().strip_prefix("//").unwrap_or_default().trim_start_matches(['/', '!']).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_a_thing_as_subject() {
        let check = |text: &str, lines: &[usize]| {
            let expected = lines.iter().map(|line| format!("a.rs:{line}: ")).collect::<Vec<_>>();
            let found = check("a.rs", text);
            let fits = found.iter().zip(&expected).all(|(found, expected)| found.starts_with(expected));
            assert!(found.len() == expected.len() && fits, "{text}: {found:?}");
        };
        check("// Who waits sleeps.", &[1]);
        check("fn a() {}\n    /// What waits.", &[2]);
        check("//! Clients sleep. (Nobody else does.)", &[1]);
        check("/// Clients sleep.\n/// Whoever wakes them wins.", &[2]);
        check("// Waits:\n// - Whatever comes", &[2]);
        check("/// # Errors\n/// What the disk says.", &[2]);
        check("// One\n\n// Somebody", &[3]);
        check("// Clients know\n// What and who they are.", &[]);
        check("// `What` is a type. A client who waits sleeps.", &[]);
        check("let a = \"// Who waits sleeps.\";", &[]);
    }
}
