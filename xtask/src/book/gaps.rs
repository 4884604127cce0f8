//! Tables of what redis-server lacks: commands of other servers that it does not have, and settings that it takes without effect.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::process::run_quietly;

use super::table::row;

/// Commands of other servers: area, a way without them, names.
const ELSEWHERE: &str = include_str!("../../record/commands-elsewhere.txt");

/// The mark of a setting without effect on its page of `--help`.
const INERT: &str = "accepted for compatibility, without effect";

/// The commands of other servers that are not among ours, which `COMMAND DOCS` names.
///
/// # Errors
/// If the list of other servers' commands is malformed.
pub(super) fn missing_commands<'a>(ours: impl Iterator<Item = &'a String>) -> Result<String> {
    let ours: BTreeSet<String> = ours.map(|name| name.replace('|', " ").to_uppercase()).collect();
    table(ELSEWHERE, &ours)
}

fn table(elsewhere: &str, ours: &BTreeSet<String>) -> Result<String> {
    let mut out = "| area | commands | instead |\n|---|---|---|\n".to_owned();
    let mut seen = BTreeSet::new();
    for line in elsewhere.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [area, instead, commands] = cells[..] else {
            anyhow::bail!("{line}: expected AREA | A WAY WITHOUT THEM | COMMANDS");
        };
        let mut missing = Vec::new();
        for name in commands.split(' ') {
            ensure!(seen.insert(name), "{name} is listed twice");
            let name = name.replace('-', " ");
            if !ours.contains(&name) {
                missing.push(format!("`{name}`"));
            }
        }
        if !missing.is_empty() {
            row(&mut out, &[area, &missing.join(", "), instead]);
        }
    }
    Ok(out)
}

/// The settings without effect, of those that `CONFIG GET *` names.
///
/// # Errors
/// If the program has no page about a setting.
pub(super) fn inert_settings(program: &Path, settings: &[String]) -> Result<String> {
    let help = run_quietly(Command::new(program).arg("--help"))?;
    let listed: BTreeSet<&str> =
        help.lines().filter_map(|line| line.strip_prefix("  --")?.split_whitespace().next()).collect();
    let mut inert = BTreeSet::new();
    for name in settings.iter().filter(|name| !listed.contains(name.as_str())) {
        let page = run_quietly(Command::new(program).args(["--help", name])).with_context(|| name.clone())?;
        if page.contains(INERT) {
            inert.insert(format!("`{name}`"));
        }
    }
    let names: Vec<String> = inert.into_iter().collect();
    Ok(format!(
        "\n## Without effect\n\nThe server accepts these {} settings of Redis and Valkey, and ignores them. It logs a warning at the start for each \
         of them that is not at its default.\n\n{}.\n",
        names.len(),
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_are_there_leave_the_table() {
        let check = |elsewhere: &str, ours: &[&str], expected: &str| {
            let ours = ours.iter().map(|name| (*name).to_owned()).collect();
            let found = table(elsewhere, &ours).unwrap_or_else(|error| error.to_string());
            assert_eq!(found.lines().skip(2).collect::<Vec<_>>().join("\n"), expected);
        };
        let list = "# a comment\nlists | `LMOVE` | LMOVEM BLMOVEM\nclusters | none | CLUSTER-MIGRATION\n";
        check(list, &[], "| lists | `LMOVEM`, `BLMOVEM` | `LMOVE` |\n| clusters | `CLUSTER MIGRATION` | none |");
        check(list, &["LMOVEM", "CLUSTER MIGRATION"], "| lists | `BLMOVEM` | `LMOVE` |");
    }

    #[test]
    fn a_malformed_list_is_an_error() {
        assert!(table("lists LMOVEM", &BTreeSet::new()).is_err());
        assert!(table("lists | none | A A", &BTreeSet::new()).is_err());
    }
}
