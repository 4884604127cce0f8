//! Sentences of comments, and names of functions, have a thing as subject, as far as a program can tell: by their words.

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

/// Checks a Rust source's comments and names of functions.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let (mut breaches, mut begins) = (Vec::new(), true);
    for (number, line) in text.lines().enumerate() {
        if let Some(word) = function(line).and_then(refused_in) {
            breaches.push(format!("{path}:{}: a function's name says `{word}`; name the thing", number + 1));
        }
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

/// The name of the function that a line declares.
fn function(line: &str) -> Option<&str> {
    let declared = line.trim_start();
    let behind = declared.strip_prefix("fn ").or_else(|| declared.split_once(" fn ").map(|(_, behind)| behind))?;
    if declared.starts_with("//") || declared.split(" fn ").next().is_some_and(|before| before.contains('"')) {
        return None;
    }
    behind.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The word of a name that names no thing. `what` and `whose` may stand within: `says_what_is_missing`, `a_reply_whose_reader_left`.
fn refused_in(name: &str) -> Option<&str> {
    let is_refused = |word: &str| REFUSED.iter().any(|refused| refused.eq_ignore_ascii_case(word));
    name.split('_')
        .enumerate()
        .find(|(at, word)| is_refused(word) && (*at == 0 || !["what", "whose"].contains(word)))
        .map(|(_, word)| word)
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
        check("fn who_waits_sleeps() {}\n    pub(crate) async fn nobody_sleeps<T>() {}", &[1, 2]);
        check("fn what_is_wrong() {}\nfn errors_say_what_is_wrong() {}\nfn a_client_who_waits() {}", &[1, 3]);
        check("fn whole() {}\n// A call of fn who_waits().\nlet a = \"pub fn who_waits\";", &[]);
    }
}
