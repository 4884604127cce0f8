//! Takes what is modelled out of the product's sources as it stands there, and exchanges the standard library's threads, locks
//! and atomics for those of the scheduler.

use std::path::Path;
use std::{env, fs};

/// The replacements in all sources.
const EXCHANGED: [(&str, &str); 9] = [
    // To sleep is to let others go first.
    ("std::thread::sleep(NAP)", "shuttle::thread::yield_now()"),
    ("std::sync::", "shuttle::sync::"),
    ("std::thread", "shuttle::thread"),
    ("thread_local!", "shuttle::thread_local!"),
    ("DRAFT.with_borrow_mut(work)", "DRAFT.with(|draft| work(&mut draft.borrow_mut()))"),
    ("std::hint::", "shuttle::hint::"),
    ("tokio::sync::Notify", "crate::notify::Notify"),
    ("atomic_waker::", "crate::atomic_waker::"),
    // A scheduler has no use for hundreds of looks at the same flag.
    ("const SPINS: u32 = 500;", "const SPINS: u32 = 2;"),
];

fn main() {
    let whole = |file: &str| {
        source(&in_redis(file)).split("#[cfg(test)]\nmod tests").next().expect("a text has a beginning").to_owned()
    };
    write("exclusive.rs", &whole("exec/gate/exclusive.rs"));
    write("marks.rs", &whole("exec/gate/marks.rs"));
    write("workers.rs", &whole("exec/core/workers.rs"));
    write("queue.rs", &whole("keyspace/queue.rs"));
    write("lock.rs", &whole("exec/aof/lock.rs"));
    write("waiters.rs", &whole("exec/aof/waiters.rs"));
    // Its modules stand beside it here, as they are exchanged, too.
    write("journal.rs", &whole("journal/mod.rs").replace("mod draft;\nmod stream;\n", ""));
    write("draft.rs", &whole("journal/draft.rs"));
    write("stream.rs", &whole("journal/stream.rs"));
    write("encode.rs", &whole("protocol/encode.rs"));
    let pipe = source("http2/src/shared/pipe.rs").replace("use http::HeaderMap;", "type HeaderMap = ();");
    let pipe = pipe.replace("cfg(any(test, feature = \"model\"))", "cfg(test)");
    write("pipe.rs", pipe.split("#[cfg(test)]\nmod tests").next().expect("a text has a beginning"));
    let counters = source("server-runtime/src/counters.rs");
    let figures =
        between(&counters, "    /// The runtime's own figures", "}\n\n/// A place among the open connections");
    write("counters.rs", &counters.replace(figures, "").replace("use crate::metrics;\n", ""));
    let task =
        source("server-runtime/src/event_loop/task.rs").replace("use std::os::fd::OwnedFd;", "use super::OwnedFd;");
    let task = task.replace("rustix::io::write(&self.interrupt, &1_u64.to_ne_bytes())", "self.interrupt.write()");
    write("task.rs", &task);
    let client = source(&in_redis("clients/client.rs"));
    let mail = between(&client, "    fn mailbox(&self)", "    /// Number of its last command in the table");
    let flags =
        between(&client, "    /// Whether bits of [`flag`] are set.", "    /// Whether it acts for this account.");
    let set =
        between(&client, "    /// Sets or clears bits of [`flag`].", "    /// Names and versions.\n    pub fn labels");
    let types = between(&client, "/// The messages that other threads leave for a client.", "impl ClientShared {");
    let bits = between(&client, "/// Bits of [`ClientShared::flags`].", "/// Index into [`ClientShared::counts`].");
    write("client.rs", &format!("{bits}\n{types}\nimpl ClientShared {{\n{mail}{flags}{set}}}\n"));
}

fn in_redis(file: &str) -> String {
    format!("redis-server/src/{file}")
}

fn source(file: &str) -> String {
    let path = Path::new("..").join(file);
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
