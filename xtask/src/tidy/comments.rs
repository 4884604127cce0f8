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

/// Folders that still have such sentences. Remove a folder from this list with its last one.
const NOT_YET: &[&str] = &["grpc-server/", "http-server/", "http2/"];

/// Checks the lines of a Rust source that are comments.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let (mut breaches, mut begins) = (Vec::new(), true);
    if NOT_YET.iter().any(|folder| path.starts_with(folder)) {
        return breaches;
    }
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

    #[test]
    fn a_folder_that_is_not_clean_yet_is_left_out() {
        assert_eq!(check("http2/src/a.rs", "// Who waits sleeps."), Vec::<String>::new());
        assert_eq!(check("redis-server/src/types/a.rs", "// Who waits sleeps.").len(), 1);
    }
}
