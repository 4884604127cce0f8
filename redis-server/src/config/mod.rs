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
pub use special::event_bit;
pub use store::{Caller, Config, OutputLimit, SavePoint};

/// Whether the name matches the glob pattern, in any case of letters.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_exactly(&pattern.to_ascii_lowercase(), &text.to_ascii_lowercase())
}

/// Whether the text matches the glob pattern.
fn matches_exactly(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Where to go on when what follows the last star fits no longer: the star takes one byte more.
    let mut star = None;
    while read < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, read));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[read] => {
                at += 1;
                read += 1;
            }
            Some(_) | None => {
                let Some((after, taken)) = star else { return false };
                star = Some((after, taken + 1));
                at = after;
                read = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
