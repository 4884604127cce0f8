//! Counts of callgrind, by the library that they were spent in.

use std::collections::HashMap;

use anyhow::{Context, Result};

/// The standard library's folders in debug information, below the compiler's own.
const STD: &str = "/library/";

/// Crates whose code is told by the function that it was inlined into.
const STD_CRATES: [&str; 5] = ["core", "alloc", "std", "hashbrown", "__rustc"];

/// The crates of each part; the last part takes all others.
pub(super) const PARTS: [(&str, &[&str]); 11] = [
    ("ours", &["grpc-server", "serve", "server-runtime", "grpc-rust"]),
    ("tonic", &["tonic", "tonic-prost", "tower", "tower-service", "axum", "axum-core", "async-trait"]),
    ("hyper", &["hyper", "hyper-util"]),
    ("h2", &["h2"]),
    ("http", &["http", "http-body", "http-body-util", "httparse"]),
    ("prost", &["prost"]),
    ("tokio", &["tokio", "tokio-util", "tokio-stream", "mio", "futures-core", "futures-util"]),
    ("bytes", &["bytes"]),
    ("allocator", &["libmimalloc-sys", "mimalloc", "malloc"]),
    ("libc", &["libc"]),
    ("rest", &[]),
];

/// The number of instructions in a dump.
pub(super) fn total(dump: &str) -> Result<u64> {
    sum(dump, 0)
}

/// The number of locked instructions in a dump: callgrind calls them global bus events.
pub(super) fn locked(dump: &str) -> Result<u64> {
    let events = dump.lines().find_map(|line| line.strip_prefix("events:")).context("a dump names its events")?;
    let place = events.split_whitespace().position(|name| name == "Ge").context("it was run with --collect-bus=yes")?;
    sum(dump, place)
}

/// The sum of the event at this place.
fn sum(dump: &str, place: usize) -> Result<u64> {
    let line = dump.lines().find_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")));
    let line = line.context("a dump has a summary")?;
    // Zeros at the end are left out.
    line.split_whitespace().nth(place).map_or(Ok(0), |number| Ok(number.parse()?))
}

/// Instructions by crate, with `libc`, `malloc` and `?` beside crates' names.
///
/// A line of code counts for the crate that its file belongs to, inlined or not; a line of the standard library for the
/// crate of the function in whose symbol it stands.
pub(super) fn by_crate(dump: &str) -> Result<HashMap<String, u64>> {
    let mut names = Names::default();
    let (mut object, mut file, mut function) = (String::new(), String::new(), String::new());
    let mut counts = HashMap::new();
    let mut is_inclusive = false;
    for line in dump.lines() {
        if let Some((key, value)) = line.split_once('=').filter(|(key, _)| key.chars().all(char::is_alphabetic)) {
            match key {
                "ob" => object = names.of("ob", value),
                "fl" | "fi" | "fe" => file = names.of("fl", value),
                "fn" => function = names.of("fn", value),
                // Those that are called have their own lines elsewhere; here they may be named for the first time.
                "cob" => drop(names.of("ob", value)),
                "cfi" | "cfl" => drop(names.of("fl", value)),
                "cfn" => drop(names.of("fn", value)),
                "calls" => is_inclusive = true,
                _ => {}
            }
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            // The line behind `calls=` is what the called one cost.
            if std::mem::take(&mut is_inclusive) {
                continue;
            }
            let cost: u64 = line.split_whitespace().nth(1).context("a line has its cost")?.parse()?;
            *counts.entry(crate_of(&object, &file, &function)).or_default() += cost;
        }
    }
    Ok(counts)
}

/// Names by their numbers: callgrind writes `(3) name` once and then `(3)`.
#[derive(Default)]
struct Names(HashMap<(&'static str, String), String>);

impl Names {
    fn of(&mut self, kind: &'static str, value: &str) -> String {
        let Some((number, name)) = value.split_once(')') else { return value.to_owned() };
        let key = (kind, number.to_owned());
        let name = name.trim();
        if name.is_empty() {
            return self.0.get(&key).cloned().unwrap_or_default();
        }
        self.0.insert(key, name.to_owned());
        name.to_owned()
    }
}

fn crate_of(object: &str, file: &str, function: &str) -> String {
    let library = object.rsplit('/').next().unwrap_or_default();
    if ["libc.", "libc-", "ld-", "libm.", "vgpreload", "libgcc_s"].iter().any(|name| library.starts_with(name)) {
        let allocates = ["malloc", "free", "calloc", "realloc", "_int_"].iter().any(|word| function.contains(word));
        return if allocates { "malloc" } else { "libc" }.to_owned();
    }
    if let Some((_, rest)) = file.split_once("/registry/src/") {
        return unversioned(rest.split('/').nth(1).unwrap_or("?"));
    }
    if !file.contains(STD) && !file.starts_with("???") {
        let root = xtask::workspace::root().display().to_string();
        let inside = file.strip_prefix(&root).unwrap_or(file).trim_start_matches('/');
        if let Some((folder, _)) = inside.split_once("/src/").filter(|(folder, _)| !folder.is_empty()) {
            return unversioned(folder.rsplit('/').next().unwrap_or_default());
        }
    }
    of_symbol(function)
}

/// A package's name as its crate is listed, without the version that its folder may have.
fn unversioned(folder: &str) -> String {
    let version = folder.rsplit_once('-').filter(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()));
    version.map_or(folder, |(name, _)| name).replace('_', "-")
}

/// The first crate in a symbol that is not of the standard library.
fn of_symbol(function: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(function));
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let paths = name.split(|c: char| !is_letter(c) && c != ':').filter_map(|path| path.split_once("::"));
    let crates = paths.map(|(first, _)| first).filter(|first| !first.is_empty());
    let mut others = crates.filter(|first| !STD_CRATES.contains(first));
    others
        .next()
        .map_or_else(|| if name.contains("::") { "std" } else { "?" }.to_owned(), |name| name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
events: Ir
ob=(1) /target/dist/grpc-server
fl=(1) /x/registry/src/index/h2-0.4.20/src/codec.rs
fn=(1) _ZN2h25codec4sendE
10 5
+3 7
fi=(2) /rustc/abc/library/core/src/ptr.rs
* 11
fe=(1)
cob=(2) /lib/libc.so.6
cfi=(3) ???
cfn=(2) memcpy
calls=3 0
14 900
ob=(2)
fl=(3)
fn=(2)
0 900
ob=(1)
fl=(4) grpc-server/src/engine/conn.rs
fn=(3) _ZN4core3ptr34drop_in_place$LT$http..Request$GT$E
1 2
fi=(2)
2 3

totals: 928
";

    #[test]
    fn locked_instructions_have_a_column_of_their_own() {
        let dump = "events: Ir Ge\ntotals: 928 31\n";
        assert_eq!((total(dump).unwrap(), locked(dump).unwrap()), (928, 31));
        assert_eq!(locked("events: Ir Ge\ntotals: 928\n").unwrap(), 0);
        assert!(locked(DUMP).is_err(), "a run without buses tells nothing");
    }

    #[test]
    fn costs_belong_to_crates() {
        let counts = by_crate(DUMP).unwrap();
        let count = |name: &str| counts.get(name).copied().unwrap_or_default();
        assert_eq!((count("h2"), count("libc"), count("grpc-server"), count("http")), (23, 900, 2, 3));
        assert_eq!(counts.values().sum::<u64>(), total(DUMP).unwrap());
    }
}
