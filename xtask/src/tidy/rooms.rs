//! The import graph of a crate's files: circles, and the order of the rooms of redis-server's `exec/`.
//!
//! An arrow leads from a file to the file that defines a name it uses, by a path that begins with `crate`, `self`, `super`, a child module
//! or an imported module; re-exports are followed to the definition. Tests count as no room, and methods draw no arrow.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{is_test, is_word, without_tests};

/// Where redis-server's files lie.
const SOURCES: &str = "redis-server/src/";

/// Files of a circle, at most: a reader can hold these in mind together.
const MAX_CIRCLE: usize = 5;

/// Crates whose files import each other in no circle.
const WITHOUT_CIRCLES: &[&str] = &["http2/src/", "lab/src/", "loadgen/src/", "server-runtime/src/", "xtask/src/"];

/// A room's name, the beginnings of its files' paths, and the rooms that it may name.
type Room = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The rooms of `exec/`, from the bottom up. Of several beginnings of a path the longest counts. `run` knows no service, such as snapshots or
/// replication.
const ROOMS: &[Room] = &[
    ("gate", &["gate/"], &[]),
    ("core", CORE, &["gate"]),
    ("eviction", &["eviction/"], &["core", "gate"]),
    ("run", &["run/"], &["eviction", "core", "gate"]),
    ("script", &["script/"], &["run", "core"]),
    ("apply", &["apply/"], &["run", "core"]),
    ("search", &["search/"], &["core"]),
    ("snapshot", &["snapshot/"], &["search", "core", "gate"]),
    ("aof", &["aof/"], &["snapshot", "apply", "core", "gate"]),
    ("replication", &["replication/"], &["snapshot", "apply", "core", "gate"]),
    ("cluster", &["cluster/"], &["replication", "apply", "eviction", "core", "gate"]),
];

/// The instance, the workers, a call; and the state of each service, which the instance consists of, with what that needs.
const CORE: &[&str] = &[
    "core/",
    "aof/lock.rs",
    "aof/state.rs",
    "aof/waiters.rs",
    "cluster/file.rs",
    "cluster/redirect.rs",
    "cluster/saver.rs",
    "cluster/state.rs",
    "eviction/state.rs",
    "replication/local.rs",
    "replication/state.rs",
    "script/lock.rs",
    "script/sha.rs",
    "script/shebang.rs",
    "script/state.rs",
    "script/status.rs",
    "snapshot/stand_in.rs",
    "snapshot/state.rs",
];

/// The files of a crate with what each names of the others.
pub(super) struct House {
    files: BTreeMap<String, File>,
    /// Path of the file by its module's path, `crate::exec::window`.
    modules: BTreeMap<String, String>,
    arrows: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

struct File {
    module: String,
    tokens: Vec<String>,
    defined: BTreeSet<String>,
    /// Whole path by the name that it has in this file.
    imported: BTreeMap<String, String>,
    /// Paths that end in `*`.
    globs: Vec<String>,
    used: BTreeSet<String>,
}

/// The thing that a path names.
enum Place {
    Module(String),
    Item(String, String),
}

impl House {
    pub(super) fn read(files: &BTreeMap<String, String>) -> Self {
        Self::below(SOURCES, files)
    }

    /// The files of one crate.
    fn below(folder: &str, files: &BTreeMap<String, String>) -> Self {
        let sources = files.iter().filter_map(|(path, text)| {
            let inner = path.strip_prefix(folder)?.strip_suffix(".rs")?;
            (!is_test(path) && inner != "main").then(|| (path.clone(), File::read(&module_of(inner), text)))
        });
        let files: BTreeMap<_, _> = sources.collect();
        let modules = files.iter().map(|(path, file)| (file.module.clone(), path.clone())).collect();
        let mut house = Self { files, modules, arrows: BTreeMap::new() };
        house.arrows = house.files.iter().map(|(path, file)| (path.clone(), house.arrows_of(path, file))).collect();
        house
    }

    fn arrows_of(&self, path: &str, file: &File) -> BTreeMap<String, BTreeSet<String>> {
        let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for used in file.used.iter().chain(file.imported.values()).chain(&file.globs) {
            if let Some(Place::Item(to, name)) = self.find(file, used, 0)
                && to != path
            {
                arrows.entry(to).or_default().insert(name);
            }
        }
        arrows
    }

    /// The definition of a path that stands in `file`.
    fn find(&self, file: &File, path: &str, depth: usize) -> Option<Place> {
        let mut parts = path.split("::");
        let mut at = match parts.next()? {
            "crate" => Place::Module("crate".to_owned()),
            "self" => Place::Module(file.module.clone()),
            "super" => Place::Module(parent(&file.module)),
            first => self.member(&file.module, first, depth)?,
        };
        for part in parts {
            at = match at {
                Place::Module(module) if part == "super" => Place::Module(parent(&module)),
                Place::Module(module) => self.member(&module, part, depth)?,
                item @ Place::Item(..) => return Some(item),
            };
        }
        Some(at)
    }

    /// A module's member of this name.
    fn member(&self, module: &str, name: &str, depth: usize) -> Option<Place> {
        let child = format!("{module}::{name}");
        if self.modules.contains_key(&child) || self.modules.keys().any(|m| m.starts_with(&format!("{child}::"))) {
            return Some(Place::Module(child));
        }
        let path = self.modules.get(module)?;
        let file = &self.files[path];
        if file.defined.contains(name) {
            return Some(Place::Item(path.clone(), name.to_owned()));
        }
        if depth > 8 {
            return None;
        }
        if let Some(whole) = file.imported.get(name) {
            return self.find(file, whole, depth + 1);
        }
        let mut globs = file.globs.iter().filter_map(|glob| match self.find(file, glob, depth + 1)? {
            Place::Module(module) if module != file.module => self.member(&module, name, depth + 1),
            _ => None,
        });
        globs.next()
    }

    /// Circles of files, the largest first.
    pub(super) fn circles(&self) -> Vec<Vec<String>> {
        let mut search =
            Search { house: self, index: BTreeMap::new(), low: BTreeMap::new(), stack: Vec::new(), found: Vec::new() };
        for path in self.files.keys() {
            if !search.index.contains_key(path.as_str()) {
                search.visit(path);
            }
        }
        let mut circles: Vec<Vec<String>> = search.found.into_iter().filter(|circle| circle.len() > 1).collect();
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }

    /// Circles above the bound, and arrows between rooms that are not allowed.
    pub(super) fn breaches(&self) -> Vec<String> {
        let mut breaches: Vec<String> = self.circles().iter().filter_map(|circle| too_large(circle)).collect();
        let arrows = self.arrows.iter().flat_map(|(from, to)| to.iter().map(move |(to, names)| (from, to, names)));
        for (from, to, names) in arrows {
            let (Some(own), Some(other)) = (room(from), room(to)) else { continue };
            if own.0 != other.0 && !own.2.contains(&other.0) {
                let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                breaches.push(format!("{from}: the room `{}` does not see `{}`: {names} of {to}", own.0, other.0));
            }
        }
        breaches
    }

    /// The size of the circles, in a sentence.
    pub(super) fn summary(&self) -> String {
        let circles = self.circles();
        let largest = circles.first().map_or(1, Vec::len);
        let in_exec = circles.iter().filter(|circle| room(&circle[0]).is_some()).map(Vec::len).max().unwrap_or(1);
        format!("{} files of redis-server, largest circle {largest}, in exec {in_exec}", self.files.len())
    }
}

/// Circles in crates that have none.
pub(super) fn circles_elsewhere(files: &BTreeMap<String, String>) -> Vec<String> {
    let circles = WITHOUT_CIRCLES.iter().flat_map(|folder| House::below(folder, files).circles());
    circles.map(|circle| format!("a circle where none is allowed: {}", circle.join(" "))).collect()
}

/// The complaint about a circle, if it has too many files.
fn too_large(circle: &[String]) -> Option<String> {
    let is_large = circle.len() > MAX_CIRCLE;
    is_large.then(|| format!("a circle of {} files, at most {MAX_CIRCLE}: {}", circle.len(), circle.join(" ")))
}

/// The room of a file of `exec/`.
fn room(path: &str) -> Option<&'static Room> {
    let inner = path.strip_prefix(SOURCES)?.strip_prefix("exec/")?;
    let length = |room: &&Room| room.1.iter().filter(|begin| inner.starts_with(**begin)).map(|begin| begin.len()).max();
    ROOMS.iter().max_by_key(|room| length(room)).filter(|room| length(room).is_some())
}

/// Tarjan's search for strongly connected components.
struct Search<'a> {
    house: &'a House,
    index: BTreeMap<&'a str, usize>,
    low: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    found: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, path: &'a str) {
        let number = self.index.len();
        self.index.insert(path, number);
        self.low.insert(path, number);
        self.stack.push(path);
        for to in self.house.arrows[path].keys() {
            if !self.index.contains_key(to.as_str()) {
                self.visit(to);
                let low = self.low[to.as_str()].min(self.low[path]);
                self.low.insert(path, low);
            } else if self.stack.contains(&to.as_str()) {
                let low = self.index[to.as_str()].min(self.low[path]);
                self.low.insert(path, low);
            }
        }
        if self.low[path] == number {
            let at = self.stack.iter().position(|other| *other == path).expect("it is on the stack");
            let mut circle: Vec<String> = self.stack.drain(at..).map(str::to_owned).collect();
            circle.sort();
            self.found.push(circle);
        }
    }
}

impl File {
    fn read(module: &str, text: &str) -> Self {
        let tokens = without_test_items(tokens(without_tests(text)));
        let mut file = Self {
            module: module.to_owned(),
            tokens,
            defined: BTreeSet::new(),
            imported: BTreeMap::new(),
            globs: Vec::new(),
            used: BTreeSet::new(),
        };
        let tokens = std::mem::take(&mut file.tokens);
        let mut at = 0;
        while at < tokens.len() {
            at = file.take(&tokens, at);
        }
        file
    }

    /// Reads one token, or the path or `use` that begins with it; returns the place behind it.
    fn take(&mut self, tokens: &[String], at: usize) -> usize {
        let next = |ahead: usize| tokens.get(at + ahead).map_or("", String::as_str);
        match tokens[at].as_str() {
            // Not the `use<'a>` of a type.
            "use" if next(1) != "<" => return self.take_use(tokens, at + 1, ""),
            "struct" | "enum" | "fn" | "static" | "const" | "type" | "trait" | "union" | "macro_rules" => {
                let ahead = match (next(1), next(2)) {
                    ("mut" | "!", _) => 2,
                    ("unsafe" | "fn", _) => 0,
                    _ => 1,
                };
                self.defined.insert(next(ahead).to_owned());
                return at + ahead.max(1);
            }
            word if is_name(word) && next(1) == "::" && (at == 0 || tokens[at - 1] != "::") => {
                let mut path = word.to_owned();
                let mut end = at + 1;
                while tokens.get(end).is_some_and(|token| token == "::")
                    && tokens.get(end + 1).is_some_and(|token| is_name(token))
                {
                    path = format!("{path}::{}", tokens[end + 1]);
                    end += 2;
                }
                self.used.insert(path);
                return end.max(at + 1);
            }
            _ => {}
        }
        at + 1
    }

    /// Reads a tree of `use` behind `prefix`; returns the place behind its end.
    fn take_use(&mut self, tokens: &[String], mut at: usize, prefix: &str) -> usize {
        let mut path = prefix.to_owned();
        while at < tokens.len() {
            match tokens[at].as_str() {
                "::" => at += 1,
                "{" => {
                    at += 1;
                    while tokens.get(at).is_some_and(|token| token != "}") {
                        at = self.take_use(tokens, at, &path);
                        if tokens.get(at).is_some_and(|token| token == ",") {
                            at += 1;
                        }
                    }
                    return at + 1;
                }
                "*" => {
                    self.globs.push(path.clone());
                    at += 1;
                }
                "as" => {
                    self.import(tokens[at + 1].clone(), path.clone());
                    return at + 2;
                }
                "," | "}" | ";" => {
                    if path != prefix && !self.globs.contains(&path) {
                        let name = path.rsplit("::").next().unwrap_or_default().to_owned();
                        self.import(name, path);
                    }
                    return at;
                }
                "self" if !prefix.is_empty() && path == prefix => {
                    let name = path.rsplit("::").next().unwrap_or_default().to_owned();
                    self.import(name, path.clone());
                    at += 1;
                    if tokens.get(at).is_some_and(|token| token == "as") {
                        self.import(tokens[at + 1].clone(), path.clone());
                        at += 2;
                    }
                    return at;
                }
                word => {
                    path = if path.is_empty() { word.to_owned() } else { format!("{path}::{word}") };
                    at += 1;
                }
            }
        }
        at
    }

    fn import(&mut self, name: String, path: String) {
        self.imported.insert(name, path);
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn parent(module: &str) -> String {
    module.rsplit_once("::").map_or(module, |(parent, _)| parent).to_owned()
}

/// The path of the module whose file this is, without its ending, below `src/`.
fn module_of(inner: &str) -> String {
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    if inner == "lib" { "crate".to_owned() } else { format!("crate::{}", inner.replace('/', "::")) }
}

/// Words, `::` and single marks of a source, without comments and literals.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if let Some(len) = literal(rest) {
            len
        } else if is_word(first) {
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(rest[..len].to_owned());
            len
        } else {
            let len = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            if !first.is_whitespace() {
                tokens.push(rest[..len].to_owned());
            }
            len
        };
        rest = &rest[len..];
    }
    tokens
}

/// The length of the string or character literal at the head.
fn literal(text: &str) -> Option<usize> {
    let body = text.strip_prefix('b').unwrap_or(text);
    let prefix = text.len() - body.len();
    if let Some(raw) = body.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = prefix + 1 + hashes + 1;
            return text[start..].find(&end).map(|at| start + at + end.len());
        }
    }
    let mut chars = body.char_indices();
    match chars.next()?.1 {
        '"' => {
            let mut escaped = false;
            for (at, c) in chars {
                match c {
                    '\\' if !escaped => escaped = true,
                    '"' if !escaped => return Some(prefix + at + 1),
                    _ => escaped = false,
                }
            }
            Some(text.len())
        }
        '\'' => {
            let (_, c) = chars.next()?;
            if c == '\\' {
                let (_, _) = chars.next()?;
                return chars.find(|(_, c)| *c == '\'').map(|(at, _)| prefix + at + 1);
            }
            let (at, close) = chars.next()?;
            // Otherwise it is a lifetime.
            (close == '\'').then_some(prefix + at + 1)
        }
        _ => None,
    }
}

/// Leaves out items, fields and statements behind `#[cfg(test)]`.
fn without_test_items(tokens: Vec<String>) -> Vec<String> {
    const MARK: &[&str] = &["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].iter().map(String::as_str).take(MARK.len()).eq(MARK.iter().copied()) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += MARK.len();
        let mut depth = 0_i32;
        while at < tokens.len() {
            match tokens[at].as_str() {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 && (tokens[at - 1] == "}" || tokens[at - 1] == ";") || depth < 0 {
                break;
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house(files: &[(&str, &str)]) -> House {
        House::read(&files.iter().map(|(path, text)| (format!("{SOURCES}{path}"), (*text).to_owned())).collect())
    }

    #[test]
    fn arrows_lead_to_definitions() {
        let house = house(&[
            ("exec/run/mod.rs", "mod window;\npub use window::run;\n"),
            ("exec/run/window.rs", "pub fn run() {}\n#[cfg(test)]\nuse crate::exec::aof::late;\n"),
            (
                "exec/aof/mod.rs",
                "use crate::exec::run::{self, run as again};\nfn late() -> impl Sized + use<> { run::run(); '\"' }\n",
            ),
        ]);
        let arrows: Vec<&String> = house.arrows[&format!("{SOURCES}exec/aof/mod.rs")].keys().collect();
        assert_eq!(arrows, [&format!("{SOURCES}exec/run/window.rs")]);
        assert!(house.arrows[&format!("{SOURCES}exec/run/window.rs")].is_empty());
        assert!(house.circles().is_empty());
        assert_eq!(house.breaches().len(), 1, "aof does not see run");
    }

    #[test]
    fn some_crates_have_no_circle() {
        let files =
            [("http2/src/a.rs", "use crate::b::F;\npub struct G;"), ("http2/src/b.rs", "pub struct F(crate::a::G);")];
        let check = |files: &[(&str, &str)], expected: &[&str]| {
            let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
            assert_eq!(circles_elsewhere(&files), expected);
        };
        check(&files[..1], &[]);
        check(&files, &["a circle where none is allowed: http2/src/a.rs http2/src/b.rs"]);
    }

    #[test]
    fn a_large_circle_and_a_room_that_sees_too_much_are_found() {
        let files: Vec<(String, String)> = (0..6)
            .map(|at| (format!("types/a{at}.rs"), format!("use crate::types::a{}::F;\npub struct F;", (at + 1) % 6)))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!(house(&files).breaches().len(), 1);
        assert_eq!(house(&files[..5]).breaches(), [""; 0]);
        let of_service = ("exec/aof/state.rs", "pub struct Aof;");
        let check = |path: &str, expected: usize| {
            let found = house(&[of_service, (path, "use crate::exec::aof::state::Aof;")]).breaches().len();
            assert_eq!(found, expected, "{path}");
        };
        // The state of a service is a part of the core, which the gate does not see.
        check("exec/run/dispatch.rs", 0);
        check("exec/gate/mod.rs", 1);
    }
}
