//! Versions of the format, and what only some servers read.

use crate::config::Config;
/// The version that is written where every server can read what there is.
pub(super) const VERSION: u16 = 10;

/// The newest version of Redis that is read: the first in which fields expire.
pub(super) const NEWEST: u16 = 12;

/// The version of Valkey that is read: its first in which fields expire.
pub(super) const VALKEY: u16 = 80;

/// Which of two servers can read what no common version has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fork {
    /// Redis, from 7.4 on.
    #[default]
    Redis,
    /// Valkey, from 9.0 on.
    Valkey,
}

impl Fork {
    /// The one with which the server is to be compatible.
    pub fn of(config: &Config) -> Self {
        if config.level().is_valkey() { Self::Valkey } else { Self::Redis }
    }

    /// The version of what is written, where fields expire in it or not.
    pub(super) fn version(self, fields_expire: bool) -> u16 {
        match self {
            _ if !fields_expire => VERSION,
            Self::Redis => NEWEST,
            Self::Valkey => VALKEY,
        }
    }
}

/// The note in front of a stream that knows what its producers have added: Redis keeps that from 8.6 on, in a type of which nothing is
/// published. A server that does not know the note ignores it.
pub(super) const IDEMPOTENCE: &str = "stream-idmp";
