//! The packages of `Cargo.lock`: their number, and those of several versions, which `deny.toml` lists with reasons.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

/// Packages at most. Each one is code to audit and to update.
const MAX_PACKAGES: usize = 400;

/// Too many packages, duplicates that `deny.toml` does not list, and entries that nothing needs.
///
/// cargo-deny reads the same list for Linux alone. This check covers all systems.
pub(super) fn breaches(files: &BTreeMap<String, String>) -> Vec<String> {
    let (Some(lock), Some(deny)) = (files.get("Cargo.lock"), files.get("deny.toml")) else { return Vec::new() };
    let [lock, deny] = match [lock.parse::<Table>(), deny.parse::<Table>()] {
        [Ok(lock), Ok(deny)] => [lock, deny],
        [Err(error), _] => return vec![format!("Cargo.lock: {error}")],
        [_, Err(error)] => return vec![format!("deny.toml: {error}")],
    };
    let packages =
        tables(lock.get("package")).filter_map(|package| Some((text(package, "name")?, text(package, "version")?)));
    let packages: BTreeSet<(&str, &str)> = packages.collect();
    let mut breaches = Vec::new();
    if packages.len() > MAX_PACKAGES {
        breaches.push(format!("Cargo.lock: {} packages, more than {MAX_PACKAGES}", packages.len()));
    }
    let mut unlisted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, version) in packages {
        unlisted.entry(name).or_default().insert(version);
    }
    unlisted.retain(|_, versions| versions.len() > 1);
    for skipped in tables(deny.get("bans").and_then(|bans| bans.get("skip"))) {
        let package = text(skipped, "crate").unwrap_or_default();
        if text(skipped, "reason").is_none() {
            breaches.push(format!("deny.toml: {package} has no reason"));
        }
        let (name, begin) = package.split_once('@').unwrap_or((package, ""));
        let is_meant = |version: &&str| version.strip_prefix(begin).is_some_and(|rest| rest.starts_with('.'));
        let versions = unlisted.entry(name).or_default();
        match versions.iter().copied().find(is_meant).filter(|_| versions.len() > 1) {
            Some(version) => _ = versions.remove(version),
            None => breaches.push(format!("deny.toml: {package} is no duplicate in Cargo.lock")),
        }
    }
    let unlisted = unlisted.iter().filter(|(_, versions)| versions.len() > 1);
    breaches.extend(unlisted.map(|(name, versions)| {
        let versions = versions.iter().copied().collect::<Vec<_>>().join(", ");
        format!("Cargo.lock: {name} in the versions {versions}, without a reason in deny.toml")
    }));
    breaches
}

/// The tables of an array.
fn tables(array: Option<&Value>) -> impl Iterator<Item = &Table> {
    array.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table)
}

fn text<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    table.get(key)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(packages: &[(&str, &str)], skipped: &[&str], expected: &[&str]) {
        let lock =
            packages.iter().map(|(name, version)| format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n"));
        let skipped = skipped.iter().map(|name| format!("{{ crate = \"{name}\", reason = \"b needs it\" }},\n"));
        let deny = format!("[bans]\nskip = [\n{}]\n", skipped.collect::<String>());
        let files = [("Cargo.lock", lock.collect::<String>()), ("deny.toml", deny)];
        let files = files.map(|(path, text)| (path.to_owned(), text)).into();
        assert_eq!(breaches(&files), expected);
    }

    #[test]
    fn duplicates_have_reasons() {
        check(&[("a", "1.0.0"), ("b", "1.0.0")], &[], &[]);
        check(&[("a", "1.0.0"), ("a", "2.0.0")], &["a@1"], &[]);
        let without = "Cargo.lock: a in the versions 1.0.0, 2.0.0, without a reason in deny.toml";
        check(&[("a", "1.0.0"), ("a", "2.0.0")], &[], &[without]);
        let without = "Cargo.lock: a in the versions 0.2.0, 0.3.0, without a reason in deny.toml";
        check(&[("a", "0.1.0"), ("a", "0.2.0"), ("a", "0.3.0")], &["a@0.1"], &[without]);
        check(&[("a", "0.1.0"), ("a", "0.2.0"), ("a", "0.3.0")], &["a@0.1", "a@0.2"], &[]);
    }

    #[test]
    fn entries_of_the_list_are_needed() {
        let idle = "deny.toml: a@1 is no duplicate in Cargo.lock";
        check(&[("a", "1.0.0"), ("b", "1.0.0")], &["a@1"], &[idle]);
        check(&[("a", "2.0.0"), ("a", "3.0.0"), ("a", "10.0.0")], &["a@1", "a@2", "a@3"], &[idle]);
        check(&[("a", "2.0.0"), ("a", "1.0.0")], &["a@2", "a@1"], &[idle]);
    }

    #[test]
    fn packages_are_counted() {
        let names: Vec<_> = (0..=MAX_PACKAGES).map(|number| format!("a{number}")).collect();
        let packages: Vec<_> = names.iter().map(|name| (name.as_str(), "1.0.0")).collect();
        check(&packages[1..], &[], &[]);
        check(&packages, &[], &["Cargo.lock: 401 packages, more than 400"]);
    }
}
