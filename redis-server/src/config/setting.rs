//! The definition of a setting: one row of the table, and the typed identifiers made from it.

use super::table::TABLE;

/// One row of the table: everything that the server knows about a setting.
#[derive(Debug)]
pub struct Setting {
    /// The name in redis.conf and in `CONFIG GET`.
    pub name: &'static str,
    /// A second, older name that means the same (`slave-priority`), or empty.
    pub alias: &'static str,
    /// The heading of `--help` under which it is listed.
    pub group: Group,
    /// The values that it takes, and their form.
    pub kind: Kind,
    /// The default, written as in redis.conf.
    pub default: &'static str,
    /// How it may be used: [`Flags::IMMUTABLE`] and its like.
    pub flags: Flags,
    /// One line for `--help`.
    pub help: &'static str,
}

impl Setting {
    /// The same row with a second name.
    pub(super) const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = alias;
        self
    }

    /// Whether `CONFIG GET` and `CONFIG SET` know it; the others exist in configuration files only.
    pub(super) fn is_readable(&self) -> bool {
        !matches!(self.kind, Kind::Lines { .. })
    }
}

/// The headings of `--help`, in the order they are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the title is the documentation")]
pub enum Group {
    General,
    Network,
    Tls,
    Clients,
    Security,
    Memory,
    Encodings,
    Observability,
    Snapshots,
    AppendOnly,
    Replication,
    Scripting,
    Cluster,
    Process,
}

impl Group {
    /// All groups, in printing order.
    pub const ALL: [Self; 14] = [
        Self::General,
        Self::Network,
        Self::Tls,
        Self::Clients,
        Self::Security,
        Self::Memory,
        Self::Encodings,
        Self::Observability,
        Self::Snapshots,
        Self::AppendOnly,
        Self::Replication,
        Self::Scripting,
        Self::Cluster,
        Self::Process,
    ];

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::General => "General",
            Self::Network => "Network",
            Self::Tls => "TLS",
            Self::Clients => "Clients",
            Self::Security => "Security",
            Self::Memory => "Memory and expiry",
            Self::Encodings => "Compact encodings",
            Self::Observability => "Logs, metrics and events",
            Self::Snapshots => "Snapshots (RDB)",
            Self::AppendOnly => "Append-only file (AOF)",
            Self::Replication => "Replication",
            Self::Scripting => "Scripting",
            Self::Cluster => "Cluster",
            Self::Process => "Process",
        }
    }
}

/// The type of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A decimal integer within inclusive bounds.
    Int {
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
    /// A decimal integer that is brought within the bounds.
    Clamped {
        /// The least value in force.
        min: i64,
        /// The greatest value in force.
        max: i64,
    },
    /// Bytes: a number with an optional unit (`1k` = 1000, `1kb` = 1024, … `gb`).
    Memory {
        /// The least value, bytes.
        min: i64,
        /// The greatest value, bytes.
        max: i64,
    },
    /// Bytes, or a percentage of `maxmemory` (`5%`), kept as a negative number.
    MemoryOrPercent,
    /// File permissions in octal.
    Octal {
        /// The greatest value.
        max: i64,
    },
    /// One of the words; its number is its place in the list.
    Enum(&'static [&'static str]),
    /// Several of the words, each with its bits.
    FlagWords(&'static [(&'static str, i64)]),
    /// The letters of `notify-keyspace-events`.
    Events,
    /// Any text.
    Text,
    /// The name of a file without a directory.
    FileName,
    /// The name of a host, or none.
    Hostname,
    /// The template of the process' title.
    Title,
    /// A directory that exists.
    Directory,
    /// Several words on one line, at most `max`.
    Words {
        /// The greatest number of words.
        max: usize,
        /// The error for more words.
        too_many: &'static str,
    },
    /// Numbers between 0 and 100.
    Percentiles,
    /// Exactly three integers of `oom-score-adj`.
    OomScores,
    /// Pairs of seconds and changes.
    SavePoints,
    /// Hard limit, soft limit and seconds of every client class.
    OutputLimits,
    /// Host and port, or `no one`.
    HostPort,
    /// A directive of configuration files that repeats; `CONFIG` does not know it.
    Lines {
        /// The least number of arguments on a line.
        min: usize,
        /// The greatest number of arguments on a line.
        max: usize,
    },
}

/// How a setting may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// May change at run time.
    pub const MUTABLE: Self = Self(0);
    /// Fixed once the server has started.
    pub const IMMUTABLE: Self = Self(1);
    /// May change at run time only where `enable-protected-configs` allows it.
    pub const PROTECTED: Self = Self(2);
    /// Listed by `CONFIG GET` only under its full name.
    pub const HIDDEN: Self = Self(4);
    /// A secret: never shown in an error or a log.
    pub const SENSITIVE: Self = Self(8);
    /// Accepted because real configuration files carry it; changes nothing in this server.
    pub const NO_EFFECT: Self = Self(16);
    /// Redis does not have it. A tool that lists all settings and sets them again must not fail, so an immutable one can be set to its
    /// current value.
    pub const OURS: Self = Self(32);
    /// Names a file whose content counts: `CONFIG SET` to the value that it has is a change, too.
    pub const NAMES_CONTENT: Self = Self(64);

    /// Both sets of flags.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The place of a setting in the table, of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(usize);

impl Id {
    /// The setting's row.
    pub fn setting(self) -> &'static Setting {
        &TABLE[self.0]
    }

    pub(super) fn index(self) -> usize {
        self.0
    }

    /// Every setting, in the table's order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..TABLE.len()).map(Self)
    }

    /// The setting of that name or alias, in any case of letters.
    pub fn find(name: &[u8]) -> Option<Self> {
        Self::all().find(|id| {
            let Setting { name: canonical, alias, .. } = id.setting();
            name.eq_ignore_ascii_case(canonical.as_bytes())
                || (!alias.is_empty() && name.eq_ignore_ascii_case(alias.as_bytes()))
        })
    }
}

/// A setting whose value is a number; words of an enumeration are numbered by their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(Id);

/// A setting that is `yes` or `no`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch(Id);

/// A setting that is one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text(Id);

/// A setting that is a list of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words(Id);

/// A directive that repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines(Id);

/// Generates what the typed identifiers share: the checked constructor and the way back.
macro_rules! typed_id {
    ($($type:ident $make:ident $kinds:pat, $what:literal;)*) => { $(
        impl $type {
            /// The untyped identifier.
            pub const fn id(self) -> Id {
                self.0
            }
        }

        impl From<$type> for Id {
            fn from(typed: $type) -> Self {
                typed.0
            }
        }

        /// The setting of that name; a wrong name or kind does not compile in a constant.
        pub(super) const fn $make(name: &str) -> $type {
            let id = id(name);
            assert!(matches!(TABLE[id.0].kind, $kinds), $what);
            $type(id)
        }
    )* };
}

typed_id! {
    Number number
        Kind::Int { .. } | Kind::Clamped { .. } | Kind::Memory { .. } | Kind::MemoryOrPercent | Kind::Octal { .. } | Kind::Enum(_)
        | Kind::FlagWords(_) | Kind::Events, "not a number";
    Switch switch Kind::Bool, "not a yes/no setting";
    Text text Kind::Text | Kind::FileName | Kind::Hostname | Kind::Title | Kind::Directory, "not a text";
    Words words
        Kind::Words { .. } | Kind::Percentiles | Kind::OomScores | Kind::SavePoints | Kind::OutputLimits
        | Kind::HostPort, "not a list of words";
    Lines lines Kind::Lines { .. }, "not a repeated directive";
}

/// The place of `name`, at compile time.
const fn id(name: &str) -> Id {
    let mut at = 0;
    while at < TABLE.len() {
        if same(TABLE[at].name.as_bytes(), name.as_bytes()) {
            return Id(at);
        }
        at += 1;
    }
    panic!("no such setting");
}

pub(super) const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}
