//! Takes what is modelled out of the product's sources as it stands there, and exchanges the standard library's threads, locks
//! and atomics for those of the scheduler.

use std::path::Path;
use std::{env, fs};

/// What is exchanged everywhere.
const EXCHANGED: [(&str, &str); 6] = [
    // To sleep is to let others go first.
    ("std::thread::sleep(NAP)", "shuttle::thread::yield_now()"),
    ("std::sync::", "shuttle::sync::"),
    ("std::thread", "shuttle::thread"),
    ("std::hint::", "shuttle::hint::"),
    ("atomic_waker::", "crate::atomic_waker::"),
    // A scheduler has no use for hundreds of looks at the same flag.
    ("const SPINS: u32 = 500;", "const SPINS: u32 = 2;"),
];

fn main() {
    let whole =
        |file: &str| source(file).split("#[cfg(test)]\nmod tests").next().expect("a text has a beginning").to_owned();
    write("exclusive.rs", &whole("exec/exclusive.rs"));
    write("marks.rs", &whole("exec/slow/marks.rs"));
    write("workers.rs", &whole("exec/workers.rs"));
    write("waiters.rs", &whole("exec/aof/waiters.rs"));
    let client = source("clients/client.rs");
    let mail = between(&client, "    fn mailbox(&self)", "    /// Number of its last command in the table");
    let flags =
        between(&client, "    /// Whether bits of [`flag`] are set.", "    /// Whether it acts for this account.");
    let set =
        between(&client, "    /// Sets or clears bits of [`flag`].", "    /// Names and versions.\n    pub fn labels");
    let types = between(&client, "/// What others have left for a client.", "impl ClientShared {");
    let bits = between(&client, "/// Bits of [`ClientShared::flags`].", "/// Index into [`ClientShared::counts`].");
    write("client.rs", &format!("{bits}\n{types}\nimpl ClientShared {{\n{mail}{flags}{set}}}\n"));
}

fn source(file: &str) -> String {
    let path = Path::new("../redis-server/src").join(file);
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text from `first` on, without `end` and what follows.
fn between<'t>(text: &'t str, first: &str, end: &str) -> &'t str {
    let begin = text.find(first).unwrap_or_else(|| panic!("`{first}` is not there"));
    let length = text[begin..].find(end).unwrap_or_else(|| panic!("`{end}` is not there behind `{first}`"));
    &text[begin..begin + length]
}

fn write(name: &str, text: &str) {
    // An included file has no documentation of its own.
    let mut text: String = text.lines().filter(|line| !line.starts_with("//!")).flat_map(|line| [line, "\n"]).collect();
    for (product, model) in EXCHANGED {
        text = text.replace(product, model);
    }
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&folder).join(name), text).expect("cargo's own folder takes files");
}
