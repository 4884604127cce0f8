//! House rules that no compiler checks.

mod comments;
mod everywhere;
mod packages;
mod rooms;
mod source;
mod tables;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use xtask::process::run_quietly;

use crate::links::links;
use rooms::House;
use source::{is_test, is_word, without_tests};

/// Which packages of ours a package may depend on; one that is not listed may depend on none.
const ARROWS: &[(&str, &[&str])] = &[
    ("redis-server", &["query-engine", "server-runtime", "test-peers"]),
    // `--redis embedded` calls our server in its own process, without a socket; its client shares nothing but the wire.
    ("http-server", &["redis-server", "serve", "server-runtime", "test-peers"]),
    ("grpc-server", &["http2", "serve", "server-runtime", "test-peers"]),
    ("serve", &["http2", "server-runtime", "test-peers"]),
    ("http2", &["test-peers"]),
    ("server-runtime", &["test-peers"]),
    ("echonet", &["echonet-lite", "test-peers"]),
    ("echonet-lite", &["test-peers"]),
    ("loadgen", &["test-peers"]),
    ("light-idf", &["echonet-lite"]),
    ("light-node", &["echonet-lite"]),
    ("xtask", &["test-peers"]),
    // The report reads loadgen's records, with its statistics and its pages; clients of measurements read as those of tests do. Of xtask it
    // uses the library.
    ("lab", &["loadgen", "test-peers", "xtask"]),
    ("benches", &["redis-server", "http-server", "grpc-server", "serve", "server-runtime", "echonet-lite", "loadgen"]),
];

/// Past this a source file is hard to read.
const MAX_LINES: usize = 800;

/// Sources of redis-server outside of `runtime/` that may name tokio. They are the program's start and end, and channels that do not wait
/// themselves. These hand the reply of a parked command or script to its connection, or input of a connection to a thread.
const MAY_NAME_TOKIO: &[&str] = &[
    "main.rs",
    "lib.rs",
    "exec/cluster/moving/import.rs",
    "exec/replication/state.rs",
    "exec/replication/sync.rs",
    "exec/run/blocking.rs",
    "exec/run/outcome.rs",
    "exec/run/parked.rs",
];

/// Where http2 meets the crates of others, behind a feature.
const NOT_CORE: &str = "http2/src/shared/";

/// The engine of HTTP/2 reads in one sitting: lines of all its files and of one, without tests.
const HTTP2: &str = "http2/src/";
const MAX_HTTP2: usize = 4000;
const MAX_HTTP2_FILE: usize = 500;

/// The folders of redis-server from the bottom up: a file names only its own folder and those before it.
const REDIS_FOLDERS: &[&str] = &[
    "protocol",
    "types",
    "cluster",
    "config",
    "keyspace",
    "persistence",
    "journal",
    "search",
    "command",
    "clients",
    "observe",
    "process",
    "exec",
    "commands",
    "runtime",
];

/// Documents that every reader looks for.
const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// Unfinished work is an issue, not a comment. Joined here so that this file keeps its own rule.
const UNFINISHED: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("todo", "!("), concat!("unimple", "mented!(")];

/// Paths of one person's machine.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/opt/", "peers")];

/// Checks every rule.
///
/// # Errors
/// When a rule is broken; each breach is printed on a line of its own.
pub(crate) fn run() -> Result<()> {
    let tree = Tree::read(xtask::workspace::root())?;
    let breaches = tree.breaches();
    for breach in &breaches {
        eprintln!("{breach}");
    }
    if !breaches.is_empty() {
        bail!("tidy: {} breaches of the house rules", breaches.len());
    }
    println!("tidy: {} files follow the house rules; {}", tree.files.len(), House::read(&tree.files).summary());
    Ok(())
}

/// Features by which rustix uses calls of these kernels without looking. Features of a library unite over all crates of a build.
const NEWER_KERNELS: [&str; 4] = ["linux_4_11", "linux_5_1", "linux_5_11", "linux_latest"];

/// The tracked files by path; the text of those that are not text is empty.
struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    fn read(root: &Path) -> Result<Self> {
        let mut command = Command::new("git");
        // Files that are about to be committed count too.
        command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root);
        let names = run_quietly(&mut command)?;
        let mut files = BTreeMap::new();
        for name in names.split('\0').filter(|name| !name.is_empty()) {
            // A file that is deleted and not yet committed has no rules. A picture has none either, but links lead to it.
            if let Ok(bytes) = fs::read(root.join(name)) {
                files.insert(name.to_owned(), String::from_utf8(bytes).unwrap_or_default());
            }
        }
        Ok(Self { files })
    }

    fn breaches(&self) -> Vec<String> {
        let mut breaches = Vec::new();
        for (path, text) in &self.files {
            breaches.extend(check_text(path, text));
            if path.ends_with(".rs") {
                breaches.extend(check_source(path, text));
                breaches.extend(comments::check(path, text));
            }
            if path.ends_with(".md") {
                breaches.extend(self.check_links(path, text));
            }
            if path.ends_with("Cargo.toml") {
                breaches.extend(self.check_manifest(path, text));
            }
        }
        breaches.extend(self.check_http2());
        breaches.extend(everywhere::breaches(&self.files));
        breaches.extend(House::read(&self.files).breaches());
        breaches.extend(rooms::circles_elsewhere(&self.files));
        breaches.extend(tables::breaches(&self.files));
        breaches.extend(packages::breaches(&self.files));
        let missing = DOCUMENTS.iter().filter(|name| !self.files.contains_key(**name));
        breaches.extend(missing.map(|name| format!("{name}: missing")));
        breaches
    }

    /// The engine is no longer than what can be read in one sitting; what others' crates need of it is not the engine.
    fn check_http2(&self) -> Vec<String> {
        let files = self.files.iter().filter(|(path, _)| path.starts_with(HTTP2) && !is_test(path));
        let lengths = files.map(|(path, text)| (path, without_tests(text).lines().count()));
        let (mut breaches, mut engine) = (Vec::new(), 0);
        for (path, length) in lengths {
            if length > MAX_HTTP2_FILE {
                breaches.push(format!("{path}: {length} lines without tests, more than {MAX_HTTP2_FILE}"));
            }
            engine += if path.starts_with(NOT_CORE) { 0 } else { length };
        }
        if engine > MAX_HTTP2 {
            breaches.push(format!("{HTTP2}: {engine} lines without tests, more than {MAX_HTTP2}"));
        }
        breaches
    }

    /// Relative links lead to tracked files or folders.
    fn check_links(&self, path: &str, text: &str) -> Vec<String> {
        let broken = links(text).into_iter().filter(|link| {
            let (target, _) = link.resolve(path);
            let folder = format!("{target}/");
            !link.is_outside() && !self.files.keys().any(|file| *file == target || file.starts_with(&folder))
        });
        broken.map(|link| format!("{path}:{}: link to `{}` leads nowhere", link.line, link.target)).collect()
    }

    /// A package is named like its folder and depends only on what [`ARROWS`] allows.
    fn check_manifest(&self, path: &str, text: &str) -> Vec<String> {
        let mut breaches = Vec::new();
        let newer = NEWER_KERNELS.iter().filter(|feature| text.contains(&format!("\"{feature}\"")));
        breaches.extend(newer.map(|feature| {
            format!("{path}: rustix' feature {feature}: all programs of a build would need that kernel, and fail on older ones")
        }));
        let Some((folder, _)) = path.rsplit_once('/') else {
            return breaches;
        };
        let name = package_name(text);
        if name.as_deref() != folder.rsplit('/').next() && folder != "fuzz" {
            breaches.push(format!("{path}: the package is not named like its folder"));
        }
        // Fuzz targets and benchmarks call what they test.
        if folder == "fuzz" || folder.starts_with("benches") {
            return breaches;
        }
        let name = name.unwrap_or_default();
        let allowed = ARROWS.iter().find(|(package, _)| *package == name).map_or(&[][..], |(_, allowed)| allowed);
        for dependency in dependencies(text) {
            let ours = self.files.contains_key(&format!("{dependency}/Cargo.toml"));
            if ours && dependency != name && !allowed.contains(&dependency.as_str()) {
                breaches.push(format!("{path}: {name} must not depend on {dependency}"));
            }
        }
        breaches
    }
}

/// Rules for any text.
fn check_text(path: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    // In the letters of a histogram any word may stand.
    let unfinished: &[&str] = if path.starts_with("benches/record/") { &[] } else { UNFINISHED };
    for (number, line) in text.lines().enumerate() {
        for word in unfinished.iter().filter(|word| line.contains(**word)) {
            breaches.push(format!("{path}:{}: {word}", number + 1));
        }
        for prefix in MACHINE_PATHS.iter().filter(|prefix| line.contains(**prefix)) {
            breaches.push(format!("{path}:{}: {prefix} is a path of one machine", number + 1));
        }
    }
    breaches
}

/// Rules for Rust.
fn check_source(path: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let length = text.lines().count();
    if length > MAX_LINES {
        breaches.push(format!("{path}: {length} lines, more than {MAX_LINES}"));
    }
    let Some(inner) = path.strip_prefix("redis-server/src/") else {
        return breaches;
    };
    breaches.extend(check_order(path, inner, text));
    let waits = inner.starts_with("runtime/") || MAY_NAME_TOKIO.contains(&inner);
    for (number, line) in text.lines().enumerate() {
        let words = code_words(line);
        let has = |word: &str| words.contains(&word);
        if !waits && (has("async") || has("await") || has("tokio")) {
            breaches.push(format!("{path}:{}: only runtime/ may wait", number + 1));
        }
        if !inner.starts_with("keyspace/") && (has("dashmap") || has("DashMap")) {
            breaches.push(format!("{path}:{}: only keyspace/ knows the map behind the keyspace", number + 1));
        }
    }
    breaches
}

/// A folder of redis-server uses only those below it, but for its tests.
fn check_order(path: &str, inner: &str, text: &str) -> Vec<String> {
    let rank = |folder: &str| REDIS_FOLDERS.iter().position(|known| *known == folder);
    let Some((folder, file)) = inner.split_once('/') else {
        // Threads start in all folders, and tests of all look at the places of fields.
        let known = ["main.rs", "lib.rs", "threads.rs", "cache_lines.rs"].contains(&inner);
        return if known { Vec::new() } else { vec![format!("{path}: stands in none of redis-server's folders")] };
    };
    let Some(own) = rank(folder) else {
        return vec![format!("{path}: the folder `{folder}` has no place in the order of redis-server's folders")];
    };
    if is_test(file) {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    for (number, line) in without_tests(text).lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let named = code.split("crate::").skip(1).filter_map(|rest| rest.split(|c: char| !is_word(c)).next());
        for other in named.filter(|other| rank(other).is_some_and(|other| other > own)) {
            breaches.push(format!("{path}:{}: `{folder}` stands below `{other}`", number + 1));
        }
    }
    breaches
}

/// The identifiers of a line, without those in comments and string literals on that line.
fn code_words(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or_default();
    let outside_of_strings = code.split('"').step_by(2);
    outside_of_strings.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_')).collect()
}

/// The `name` of a manifest's `[package]`.
fn package_name(manifest: &str) -> Option<String> {
    let line = manifest.lines().find(|line| line.starts_with("name"))?;
    Some(line.split_once('=')?.1.trim().trim_matches('"').to_owned())
}

/// The keys of all dependency tables of a manifest. A version alone is a package of the registry, which may have the name of one of ours.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = table.ends_with("dependencies");
            if let Some((_, name)) = table.split_once("dependencies.") {
                found.push(name.to_owned());
            }
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            let is_version =
                line.split_once(" = ").is_some_and(|(key, value)| !key.contains('.') && value.starts_with('"'));
            found.extend(line.split(['=', '.', ' ']).next().filter(|_| !is_version).map(str::to_owned));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let all = Tree { files }.breaches();
        all.into_iter().filter(|breach| !breach.ends_with(": missing")).collect()
    }

    #[test]
    fn each_rule_finds_its_breach() {
        let check = |path: &str, text: &str, expected: Option<&str>| {
            assert_eq!(breaches(&[(path, text)]).first().map(String::as_str), expected, "{path}: {text}");
        };
        check("a.md", "text", None);
        check("a.md", &format!("x\n{} y", UNFINISHED[0]), Some(&format!("a.md:2: {}", UNFINISHED[0])));
        check("a.md", MACHINE_PATHS[0], Some(&format!("a.md:1: {} is a path of one machine", MACHINE_PATHS[0])));
        check("docs/a.md", "[x](../b.md)", Some("docs/a.md:1: link to `../b.md` leads nowhere"));
        check("docs/a.md", "[x](a.md#top) [y](https://example.com) [z](../docs) [t](#top)", None);
        check("a.rs", &"\n".repeat(MAX_LINES + 1), Some("a.rs: 801 lines, more than 800"));
        check(
            "redis-server/src/types/a.rs",
            "use tokio::x;",
            Some("redis-server/src/types/a.rs:1: only runtime/ may wait"),
        );
        check("redis-server/src/types/a.rs", "// tokio\nlet x = \"async\"; flush_async();", None);
        check("redis-server/src/runtime/a.rs", "async fn x() {}", None);
        let knows = "redis-server/src/types/a.rs:1: only keyspace/ knows the map behind the keyspace";
        check("redis-server/src/types/a.rs", "use dashmap::DashMap;", Some(knows));
        check("redis-server/src/keyspace/a.rs", "use dashmap::DashMap;", None);
    }

    #[test]
    fn the_engine_of_http2_stays_short() {
        let check = |files: &[(&str, usize)], expected: &[&str]| {
            let texts: Vec<_> = files.iter().map(|(path, lines)| (*path, "\n".repeat(*lines))).collect();
            let files: Vec<_> = texts.iter().map(|(path, text)| (*path, text.as_str())).collect();
            assert_eq!(breaches(&files), expected);
        };
        check(&[("http2/src/a.rs", 501)], &["http2/src/a.rs: 501 lines without tests, more than 500"]);
        check(&[("http2/src/hpack/tests.rs", 501), ("http2/tests/it/a.rs", 501)], &[]);
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| format!("http2/src/{name}.rs"));
        let mut files: Vec<_> = names.iter().map(|name| (name.as_str(), 500)).collect();
        files.push(("http2/src/shared/a.rs", 500));
        check(&files, &[]);
        files.push(("http2/src/i.rs", 1));
        check(&files, &["http2/src/: 4001 lines without tests, more than 4000"]);
        let text = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", "\n".repeat(500), "\n".repeat(50));
        assert_eq!(breaches(&[("http2/src/a.rs", &text)]), [""; 0]);
    }

    #[test]
    fn arrows_between_packages_are_checked() {
        let manifest = |name: &str, dependency: &str| {
            format!("[package]\nname = \"{name}\"\n[dependencies]\n{dependency}.workspace = true\nbytes = \"1\"\n")
        };
        let server = manifest("redis-server", "server-runtime");
        let runtime = manifest("server-runtime", "redis-server");
        let found = breaches(&[("redis-server/Cargo.toml", &server), ("server-runtime/Cargo.toml", &runtime)]);
        assert_eq!(found, ["server-runtime/Cargo.toml: server-runtime must not depend on redis-server"]);
        let peer = "[package]\nname = \"peer\"\n[dependencies]\nredis-server = \"1\"\n";
        let found = breaches(&[("redis-server/Cargo.toml", &server), ("peer/Cargo.toml", peer)]);
        assert_eq!(found, [""; 0]);
        let found = breaches(&[("other/Cargo.toml", &manifest("redis-server", "bytes"))]);
        assert_eq!(found, ["other/Cargo.toml: the package is not named like its folder"]);
        let newer = manifest("other", "bytes") + "rustix = { features = [\"fs\", \"linux_5_11\"] }\n";
        let found = breaches(&[("other/Cargo.toml", &newer)]);
        assert!(found.len() == 1 && found[0].starts_with("other/Cargo.toml: rustix' feature linux_5_11"), "{found:?}");
    }

    #[test]
    fn the_workspace_itself_is_tidy() {
        let tree = Tree::read(xtask::workspace::root()).unwrap();
        assert_eq!(tree.breaches(), Vec::<String>::new());
    }
}

#[cfg(test)]
mod order_tests {
    use super::*;

    #[test]
    fn a_folder_of_redis_server_names_only_those_below_it() {
        let check = |inner: &str, text: &str, breaches: usize| {
            let found = check_order("path", inner, text);
            assert_eq!(found.len(), breaches, "{inner}: {text}: {found:?}");
        };
        check("exec/ctx.rs", "use crate::keyspace::View;\nuse crate::exec::Ctx;", 0);
        check("keyspace/view.rs", "use crate::exec::Ctx;", 1);
        check("keyspace/view.rs", "let a = crate::exec::a(crate::runtime::b());", 2);
        check("keyspace/view.rs", "// crate::exec::Ctx", 0);
        check("keyspace/tests.rs", "use crate::exec::Ctx;", 0);
        check("keyspace/cut/tests/model.rs", "use crate::exec::Ctx;", 0);
        check("keyspace/view.rs", "#[cfg(test)]\nmod tests {\n    use crate::exec::Ctx;\n}", 0);
        check("world/view.rs", "", 1);
        check("world.rs", "", 1);
        check("main.rs", "", 0);
    }
}
