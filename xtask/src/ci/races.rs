//! The list of tests that have failed once and passed at a second try: a second failure of a test on it fails the gate, unless what the first
//! was is known.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// The list, from the workspace's root.
pub(super) const LIST: &str = "xtask/races.tsv";

/// The last field as long as nobody knows what the failure was.
const OPEN: &str = "open";

/// Notes tests that have passed at the second try only, on this day, each with its panic.
///
/// # Errors
/// One of them stands on the list already, and is open.
pub(super) fn note(list: &Path, day: &str, names: &[String], panics: &[String]) -> Result<()> {
    let text = fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))?;
    for name in names {
        if let Some(since) = open_since(&text, name) {
            bail!(
                "{name} has failed a second time (the first was on {since}): mend it, or explain it in {}",
                list.display()
            );
        }
    }
    let line = |name: &String| {
        let own = panics.iter().find(|panic| panic.contains(&format!("'{name}'")));
        let panic = own.map_or("no panic was seen", |panic| panic.split(" panicked at ").nth(1).unwrap_or(panic));
        format!("{day}\t{name}\t{}\t{OPEN}\n", panic.replace('\t', " "))
    };
    let added: String = names.iter().map(line).collect();
    fs::write(list, text + &added).with_context(|| format!("cannot write {}", list.display()))
}

/// The day of a test's open line.
fn open_since<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    list.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut fields = line.split('\t');
        let day = fields.next()?;
        (fields.next() == Some(name) && fields.nth(1) == Some(OPEN)).then_some(day)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_may_fail_once_until_it_is_mended() {
        let list = std::env::temp_dir().join(format!("races-{}.tsv", std::process::id()));
        fs::write(&list, "# day\ttest\tpanic\twhat it was\n2026-01-01\tb::c\tx\tmended: y\n").unwrap();
        let names = ["b::c".to_owned(), "a".to_owned()];
        let panics = ["thread 'a' (7) panicked at it.rs:3:5: no\troom".to_owned()];
        note(&list, "2026-01-02", &names, &panics).unwrap();
        let text = fs::read_to_string(&list).unwrap();
        assert!(
            text.ends_with("2026-01-02\tb::c\tno panic was seen\topen\n2026-01-02\ta\tit.rs:3:5: no room\topen\n"),
            "{text}"
        );
        let again = note(&list, "2026-01-03", &names[1..], &panics).unwrap_err().to_string();
        assert!(again.contains("a has failed a second time (the first was on 2026-01-02)"), "{again}");
        fs::write(&list, text.replace("no room\topen", "no room\texplained: a full disk")).unwrap();
        note(&list, "2026-01-03", &names[1..], &panics).unwrap();
        fs::remove_file(&list).unwrap();
    }

    /// Each line of the list has its four fields, and a day.
    #[test]
    fn the_list_is_well_formed() {
        let text = fs::read_to_string(xtask::workspace::root().join(LIST)).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<_> = line.split('\t').collect();
            assert!(fields.len() == 4 && fields.iter().all(|field| !field.is_empty()), "{line}");
            assert!(fields[0].len() == 10 && fields[0].split('-').all(|part| part.parse::<u32>().is_ok()), "{line}");
            assert!(["open", "mended: ", "explained: "].iter().any(|start| fields[3].starts_with(start)), "{line}");
        }
    }
}
