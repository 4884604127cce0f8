//! Command flags and ACL categories, as bit sets.

/// The flags of a command in `COMMAND INFO` (<https://redis.io/docs/latest/commands/command/#flags>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u32);

impl std::ops::BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Flags {
    /// Whether every flag of `other` is set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

macro_rules! bits {
    ($type:ident: $($(#[$doc:meta])* $name:ident = $text:literal @ $bit:literal,)*) => {
        impl $type {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*
            /// Every bit with the name that clients see; empty if they do not.
            pub const NAMES: &'static [(Self, &'static str)] = &[$((Self::$name, $text)),*];

            /// Names of the bits that are set.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                let is_seen = move |(bit, name): &&(Self, &str)| self.0 & bit.0 != 0 && !name.is_empty();
                Self::NAMES.iter().filter(is_seen).map(|(_, name)| *name)
            }
        }
    };
}

bits! { Flags:
    /// May change data.
    WRITE = "write" @ 0,
    /// Only reads.
    READONLY = "readonly" @ 1,
    /// Refused when memory is short.
    DENYOOM = "denyoom" @ 2,
    /// Administration.
    ADMIN = "admin" @ 3,
    /// Publish and subscribe.
    PUBSUB = "pubsub" @ 4,
    /// Not from scripts.
    NOSCRIPT = "noscript" @ 5,
    /// May make the client wait.
    BLOCKING = "blocking" @ 6,
    /// Allowed while data is loaded.
    LOADING = "loading" @ 7,
    /// Allowed on a replica without current data.
    STALE = "stale" @ 8,
    /// Not shown by MONITOR.
    SKIP_MONITOR = "skip_monitor" @ 9,
    /// Not in the slow log.
    SKIP_SLOWLOG = "skip_slowlog" @ 10,
    /// Accepted by a node that imports the slot.
    ASKING = "asking" @ 11,
    /// Constant or logarithmic time.
    FAST = "fast" @ 12,
    /// Before authentication.
    NO_AUTH = "no_auth" @ 13,
    /// May be replicated though it is no write: CLIENT PAUSE WRITE holds it back. COMMAND INFO does not tell.
    MAY_REPLICATE = "" @ 14,
    /// `COMMAND GETKEYS` needs more than the first key specifications.
    NO_MANDATORY_KEYS = "no_mandatory_keys" @ 15,
    /// Not while data is loaded asynchronously.
    NO_ASYNC_LOADING = "no_async_loading" @ 16,
    /// Not inside MULTI.
    NO_MULTI = "no_multi" @ 17,
    /// Its keys cannot be known from the table alone.
    MOVABLEKEYS = "movablekeys" @ 18,
    /// Allowed while a script runs too long.
    ALLOW_BUSY = "allow_busy" @ 19,
}

/// Groups of commands for access control (<https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Categories(pub u32);

impl Categories {
    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

bits! { Categories:
    /// Key space.
    KEYSPACE = "@keyspace" @ 0,
    /// Reads data.
    READ = "@read" @ 1,
    /// Writes data.
    WRITE = "@write" @ 2,
    /// Sets.
    SET = "@set" @ 3,
    /// Sorted sets.
    SORTEDSET = "@sortedset" @ 4,
    /// Lists.
    LIST = "@list" @ 5,
    /// Hashes.
    HASH = "@hash" @ 6,
    /// Strings.
    STRING = "@string" @ 7,
    /// Bitmaps.
    BITMAP = "@bitmap" @ 8,
    /// HyperLogLog.
    HYPERLOGLOG = "@hyperloglog" @ 9,
    /// Geographic data.
    GEO = "@geo" @ 10,
    /// Streams.
    STREAM = "@stream" @ 11,
    /// Publish and subscribe.
    PUBSUB = "@pubsub" @ 12,
    /// Administration.
    ADMIN = "@admin" @ 13,
    /// Fast commands.
    FAST = "@fast" @ 14,
    /// All others.
    SLOW = "@slow" @ 15,
    /// May block the client.
    BLOCKING = "@blocking" @ 16,
    /// Potentially dangerous.
    DANGEROUS = "@dangerous" @ 17,
    /// Concern the connection.
    CONNECTION = "@connection" @ 18,
    /// Transactions.
    TRANSACTION = "@transaction" @ 19,
    /// Scripting.
    SCRIPTING = "@scripting" @ 20,
    /// JSON documents.
    JSON = "@json" @ 21,
    /// Bloom filters.
    BLOOM = "@bloom" @ 22,
    /// Search indexes.
    SEARCH = "@search" @ 23,
}

/// The categories under shorter names, for the tables.
pub mod acl {
    pub use super::Categories;

    /// No category of its own.
    pub const NONE: Categories = Categories(0);
}
