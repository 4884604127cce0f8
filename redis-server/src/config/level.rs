//! Which server clients take this one for: the setting `compatibility`.

/// A server whose replies, where those of several servers differ, are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Redis 7.0.
    #[default]
    Redis70,
    /// Redis 7.2.
    Redis72,
    /// Redis 8.0.
    Redis80,
    /// Valkey 9, which comes from Redis 7.2.
    Valkey9,
}

/// The names of all levels, in their order.
pub(super) const NAMES: &[&str] = &["7.0", "7.2", "8.0", "valkey-9"];

impl Level {
    const ALL: [Self; NAMES.len()] = [Self::Redis70, Self::Redis72, Self::Redis80, Self::Valkey9];

    /// The level whose name stands at this place.
    pub(super) fn of(place: i64) -> Self {
        usize::try_from(place).ok().and_then(|at| Self::ALL.get(at)).copied().unwrap_or_default()
    }

    /// Whether it is Redis 7.2 or one of its successors.
    pub fn is_72(self) -> bool {
        self != Self::Redis70
    }

    /// Whether it is Valkey.
    pub fn is_valkey(self) -> bool {
        self == Self::Valkey9
    }

    /// The version of Redis whose commands clients may expect: of Valkey the one that it comes from.
    pub fn redis_version(self) -> &'static str {
        match self {
            Self::Redis70 => crate::REDIS_VERSION,
            Self::Redis72 => "7.2.11",
            Self::Redis80 => "8.0.6",
            Self::Valkey9 => "7.2.4",
        }
    }

    /// The name and version that `HELLO` tells.
    pub fn server(self) -> (&'static str, &'static str) {
        if self.is_valkey() { ("valkey", VALKEY_VERSION) } else { ("redis", self.redis_version()) }
    }

    /// Settings whose defaults are other ones than those of 7.0.
    pub(super) fn defaults(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let since_72 = self.is_72().then_some(("set-max-listpack-entries", "128"));
        let lazy: &[&str] = if self.is_valkey() { LAZY } else { &[] };
        since_72.into_iter().chain(lazy.iter().map(|name| (*name, "yes")))
    }
}

/// The Valkey whose suite and replies were the measure.
pub const VALKEY_VERSION: &str = "9.1.2";

/// The settings that Valkey turns on by default.
const LAZY: &[&str] = &[
    "lazyfree-lazy-eviction",
    "lazyfree-lazy-expire",
    "lazyfree-lazy-server-del",
    "lazyfree-lazy-user-del",
    "lazyfree-lazy-user-flush",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::{Caller, Launch};

    #[test]
    fn a_level_has_its_name_and_its_defaults() {
        let check = |flags: &[&str], level: Level, listpack: &str, lazy: &str| {
            let (config, _) = Config::load(&Launch::from_flags(flags).unwrap(), []).unwrap();
            assert_eq!(config.level(), level);
            let text = |name| config.get(&[name])[0].1.clone();
            assert_eq!([text("set-max-listpack-entries"), text("lazyfree-lazy-expire")], [listpack, lazy]);
        };
        check(&[], Level::Redis70, "0", "no");
        check(&["--compatibility", "7.2"], Level::Redis72, "128", "no");
        check(&["--compatibility", "8.0"], Level::Redis80, "128", "no");
        check(&["--compatibility", "valkey-9"], Level::Valkey9, "128", "yes");
        // An explicit value wins, before and behind `compatibility`.
        let said = ["--set-max-listpack-entries", "0", "--compatibility", "valkey-9", "--lazyfree-lazy-expire", "no"];
        check(&said, Level::Valkey9, "0", "no");
        // Of a running server the defaults stay what they are.
        let config = Config::default();
        config.set(&[("compatibility", "valkey-9")], Caller::Local).unwrap();
        assert_eq!(config.level(), Level::Valkey9);
        assert_eq!(config.get(&["set-max-listpack-entries"])[0].1, "0");
    }
}
