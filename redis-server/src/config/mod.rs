//! The configuration: one table behind redis.conf, flags, environment and `CONFIG GET`, `SET` and `REWRITE`.
//!
//! A setting is one row of [`table`](self); [`settings`] names those that the server reads. Nothing here listens or waits: the caller gets
//! the changed settings and puts them into effect.
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
mod level;
mod limits;
mod load;
pub mod logging;
mod parse;
mod rewrite;
mod setting;
pub mod settings;
mod special;
mod store;
mod table;
pub(crate) mod title;
pub mod tls;
mod value;

pub use args::{Launch, Request};
pub use error::{ConfigError, Origin, SetError, Warning};
pub use level::{Level, VALKEY_VERSION};
pub(crate) use rewrite::replace as replace_file;
pub use setting::{Flags, Group, Id, Kind, Lines, Number, Setting, Switch, Text, Words};
pub use special::event_bit;
pub use store::{Caller, Config, OutputLimit, SavePoint};

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;
