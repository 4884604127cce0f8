//! The configuration: one table behind redis.conf, flags, environment and `CONFIG GET`, `SET` and `REWRITE`.
//!
//! A setting is one row of [`table`](self); [`settings`] names those that the server reads. Nothing here listens
//! or waits: what a change brings about is the caller's part, who is told which settings changed.
//!
//! ```
//! use redis_server::config::{Caller, Config, settings};
//!
//! let config = Config::default();
//! assert_eq!(config.int(settings::PORT), 6379);
//! let changed = config.set(&[("maxmemory", "100mb")], Caller::Local).expect("a good value");
//! assert_eq!(changed, [settings::MAXMEMORY.id()]);
//! assert_eq!(config.get(&["maxmem*y"])[0], ("maxmemory", "104857600".into()));
//! ```

mod args;
mod error;
pub mod help;
mod load;
mod parse;
mod rewrite;
mod setting;
pub mod settings;
mod special;
mod store;
mod table;
mod value;

pub use args::{Launch, Request};
pub use error::{ConfigError, Origin, SetError, Warning};
pub use setting::{Flags, Group, Id, Kind, Lines, Number, Setting, Switch, Text, Words};
pub use store::{Caller, Config, OutputLimit, SavePoint};

/// Whether the name matches the glob pattern, in any case of letters.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_exactly(&pattern.to_ascii_lowercase(), &text.to_ascii_lowercase())
}

/// Whether the text matches the glob pattern.
fn matches_exactly(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|at| matches_exactly(rest, &text[at..])),
        ([b'?', rest @ ..], [_, after @ ..]) => matches_exactly(rest, after),
        ([first, rest @ ..], [byte, after @ ..]) => first == byte && matches_exactly(rest, after),
        (_, []) => false,
    }
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
