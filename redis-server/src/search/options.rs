//! The settings of FT.CONFIG: those that have an effect, and those that are kept for clients that set them.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use query_engine::{Limits, MAX_WINDOW, MIN_PHONETIC_LENGTH, MIN_STEM_LENGTH, TEXT_GAP};

/// Settings of queries, each a number that any thread may change.
#[derive(Debug)]
pub struct Options {
    /// Milliseconds of a query; 0 is without end.
    pub timeout_ms: AtomicU64,
    /// 1 if a query that takes too long fails, 0 if it answers with what it has found.
    pub fails_late: AtomicU64,
    /// The version of the query language.
    pub dialect: AtomicU64,
    /// The shortest prefix of a pattern (bytes).
    pub min_prefix: AtomicU64,
    /// The most words that a pattern stands for.
    pub max_expansions: AtomicU64,
    /// The most documents of FT.SEARCH.
    pub max_results: AtomicU64,
    /// The most rows of FT.AGGREGATE.
    pub max_rows: AtomicU64,
    /// Milliseconds without a use after which a cursor is closed.
    pub cursor_idle_ms: AtomicU64,
    /// Places between the texts of one field, in indexes from now on.
    pub text_gap: AtomicU64,
    /// The shortest word whose sound is indexed (bytes), in indexes from now on.
    pub min_phonetic: AtomicU64,
    /// The shortest word whose stem is indexed (bytes), in indexes from now on.
    pub min_stem: AtomicU64,
    /// 1 if FT.PROFILE tells times.
    pub shows_times: AtomicU64,
    /// Values of settings without an effect, in the order of [`SETTINGS`].
    kept: [AtomicU64; SETTINGS.len()],
}

/// A number that stands for no limit.
pub const UNLIMITED: u64 = u64::MAX;

impl Default for Options {
    fn default() -> Self {
        let kept = std::array::from_fn(|at| match SETTINGS[at].place {
            Place::Kept(default) => default.into(),
            Place::Effect(_) => 0.into(),
        });
        Self {
            timeout_ms: 500.into(),
            fails_late: 0.into(),
            dialect: 1.into(),
            min_prefix: 2.into(),
            max_expansions: 200.into(),
            max_results: (MAX_WINDOW as u64).into(),
            max_rows: UNLIMITED.into(),
            cursor_idle_ms: 300_000.into(),
            text_gap: u64::from(TEXT_GAP).into(),
            min_phonetic: (MIN_PHONETIC_LENGTH as u64).into(),
            min_stem: (MIN_STEM_LENGTH as u64).into(),
            shows_times: 1.into(),
            kept,
        }
    }
}

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    place: Place,
    kind: Kind,
    /// Whether it can be set at the start alone.
    is_fixed: bool,
    /// A line for FT.CONFIG HELP.
    pub help: &'static str,
}

#[derive(Debug)]
enum Place {
    Effect(fn(&Options) -> &AtomicU64),
    /// Without an effect, with its default.
    Kept(u64),
}

#[derive(Debug)]
enum Kind {
    /// From the least to the greatest value.
    Number(u64, u64),
    /// The same, and −1 for no limit.
    Bounded(u64),
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A text that is never set.
    Text(Option<&'static str>),
}

use Kind::{Bounded, Number, Switch, Text, Word};
use Place::{Effect, Kept};

const MS: u64 = 1 << 40;
const ANY: u64 = i64::MAX as u64;

/// Every setting, in RediSearch's order.
#[rustfmt::skip]
pub const SETTINGS: &[Setting] = &[
    fixed("EXTLOAD", 0, Text(None), "Extensions are not loaded"),
    fixed("NOGC", 0, Switch, "Without effect: compaction always runs"),
    row("MINPREFIX", Effect(|options| &options.min_prefix), Number(1, 1024), "Shortest text of a pattern (bytes)"),
    row("MINSTEMLEN", Effect(|options| &options.min_stem), Number(2, u32::MAX as u64), "Shortest word whose stem is indexed (bytes), in new indexes"),
    row("FORKGC_SLEEP_BEFORE_EXIT", Kept(0), Number(0, ANY), "Without effect: compaction does not fork"),
    fixed("MAXDOCTABLESIZE", 1_000_000, Number(1, 100_000_000), "Without effect: the table of documents grows"),
    row("MAXSEARCHRESULTS", Effect(|options| &options.max_results), Bounded(0), "Most documents of FT.SEARCH"),
    row("MAXAGGREGATERESULTS", Effect(|options| &options.max_rows), Bounded(0), "Most rows of FT.AGGREGATE"),
    row("MAXEXPANSIONS", Effect(|options| &options.max_expansions), Number(1, u32::MAX as u64), "Most words that a pattern stands for"),
    row("MAXPREFIXEXPANSIONS", Effect(|options| &options.max_expansions), Number(1, u32::MAX as u64), "Most words that a pattern stands for"),
    row("TIMEOUT", Effect(|options| &options.timeout_ms), Number(0, MS), "Milliseconds of a query; 0 is without end"),
    fixed("FRISOINI", 0, Text(None), "Without effect: Chinese is read without a dictionary"),
    row("ON_TIMEOUT", Effect(|options| &options.fails_late), Word(&["return", "fail"]), "What a query does at the end of its time: return or fail"),
    row("GCSCANSIZE", Kept(100), Number(1, ANY), "Without effect: compaction has steps of its own"),
    row("MIN_PHONETIC_TERM_LEN", Effect(|options| &options.min_phonetic), Number(1, ANY), "Shortest word whose sound is indexed (bytes), in new indexes"),
    fixed("GC_POLICY", 0, Word(&["fork", "default"]), "Without effect: compaction does not fork"),
    row("FORK_GC_RUN_INTERVAL", Kept(30), Number(1, ANY), "Without effect: compaction runs when it is due"),
    row("FORK_GC_CLEAN_THRESHOLD", Kept(100), Number(0, ANY), "Without effect: compaction runs when it is due"),
    row("FORK_GC_RETRY_INTERVAL", Kept(5), Number(1, ANY), "Without effect: compaction does not fork"),
    row("FORK_GC_CLEAN_NUMERIC_EMPTY_NODES", Kept(1), Switch, "Without effect"),
    row("_FORK_GC_CLEAN_NUMERIC_EMPTY_NODES", Kept(1), Switch, "Without effect"),
    row("UNION_ITERATOR_HEAP", Kept(20), Number(1, ANY), "Without effect: unions always have a heap"),
    row("CURSOR_MAX_IDLE", Effect(|options| &options.cursor_idle_ms), Number(1, MS), "Milliseconds without a use after which a cursor is closed"),
    fixed("NO_MEM_POOLS", 0, Switch, "Without effect: there are no pools"),
    fixed("PARTIAL_INDEXED_DOCS", 0, Switch, "Without effect"),
    fixed("UPGRADE_INDEX", 0, Text(Some("none")), "Indexes of RediSearch 1.x are not loaded"),
    row("_NUMERIC_COMPRESS", Kept(0), Switch, "Without effect"),
    row("_FREE_RESOURCE_ON_THREAD", Kept(1), Switch, "Without effect"),
    row("_PRINT_PROFILE_CLOCK", Effect(|options| &options.shows_times), Switch, "Whether FT.PROFILE tells times"),
    fixed("RAW_DOCID_ENCODING", 0, Switch, "Without effect"),
    row("_NUMERIC_RANGES_PARENTS", Kept(0), Number(0, 2), "Without effect"),
    row("DEFAULT_DIALECT", Effect(|options| &options.dialect), Number(1, 4), "Version of the query language"),
    row("VSS_MAX_RESIZE", Kept(0), Number(0, ANY), "Without effect"),
    Setting {
        is_fixed: true,
        ..row("MULTI_TEXT_SLOP", Effect(|options| &options.text_gap), Number(0, 1 << 20), "Places between the texts of one field")
    },
    fixed("BG_INDEX_SLEEP_GAP", 100, Number(1, ANY), "Without effect"),
    row("_PRIORITIZE_INTERSECT_UNION_CHILDREN", Kept(0), Switch, "Without effect"),
    row("WORKERS", Kept(0), Number(0, 8192), "Without effect: see the setting `workers` of the server"),
    row("MIN_OPERATION_WORKERS", Kept(4), Number(0, 8192), "Without effect: see the setting `workers` of the server"),
    fixed("TIERED_HNSW_BUFFER_LIMIT", 1024, Number(0, ANY), "Without effect: vectors have no buffer"),
    fixed("WORKERS_PRIORITY_BIAS_THRESHOLD", 1, Number(0, ANY), "Without effect"),
];

const fn row(name: &'static str, place: Place, kind: Kind, help: &'static str) -> Setting {
    Setting { name, place, kind, is_fixed: false, help }
}

const fn fixed(name: &'static str, default: u64, kind: Kind, help: &'static str) -> Setting {
    Setting { name, place: Kept(default), kind, is_fixed: true, help }
}

/// Why a setting is not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// There is none of this name.
    Unknown,
    /// It can be set at the start alone.
    Fixed,
    /// The value is no number, or no `true` or `false`.
    Kind,
    /// The value is too small or too great; the bounds.
    Bounds(&'static str, u64, u64),
    /// The value is none of the words.
    Word(&'static str, &'static [&'static str]),
    /// There is no value.
    NoValue(&'static str),
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("Invalid option"),
            Self::Fixed => f.write_str("Not modifiable at runtime"),
            Self::Kind => f.write_str("Could not convert argument to expected type"),
            Self::Bounds("MINSTEMLEN", ..) => f.write_str("Minimum stem length cannot be lower than 2"),
            Self::Bounds("_NUMERIC_RANGES_PARENTS", ..) => {
                f.write_str("Max depth for range cannot be higher than max depth for balance")
            }
            Self::Bounds("DEFAULT_DIALECT", ..) => f.write_str("Default dialect version cannot be higher than 4"),
            Self::Bounds(name, least, greatest) => {
                write!(f, "Value is outside acceptable bounds: {name} is from {least} to {greatest}")
            }
            Self::Word(name, _) => write!(f, "Invalid {name} value"),
            Self::NoValue(name) => write!(f, "{name}: Expected an argument, but none provided"),
        }
    }
}

impl std::error::Error for OptionError {}

impl Setting {
    /// The setting of a name, in any case of letters.
    pub fn find(name: &[u8]) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name.as_bytes().eq_ignore_ascii_case(name))
    }

    fn parse(&self, text: &[u8]) -> Result<u64, OptionError> {
        let number = || std::str::from_utf8(text).ok()?.parse::<i64>().ok();
        let (least, greatest) = match self.kind {
            Switch => {
                return match text {
                    word if word.eq_ignore_ascii_case(b"true") => Ok(1),
                    word if word.eq_ignore_ascii_case(b"false") => Ok(0),
                    _ => Err(OptionError::Kind),
                };
            }
            Word(words) => {
                let at = words.iter().position(|word| word.as_bytes().eq_ignore_ascii_case(text));
                return at.map(|at| at as u64).ok_or(OptionError::Word(self.name, words));
            }
            Text(_) => return Err(OptionError::Fixed),
            Bounded(_) if text.eq_ignore_ascii_case(b"unlimited") || number() == Some(-1) => return Ok(UNLIMITED),
            Bounded(least) => (least, ANY),
            Number(least, greatest) => (least, greatest),
        };
        let number = u64::try_from(number().ok_or(OptionError::Kind)?).ok();
        let number = number.filter(|number| (least..=greatest).contains(number));
        number.ok_or(OptionError::Bounds(self.name, least, greatest))
    }
}

impl Options {
    /// How far patterns reach.
    pub fn limits(&self) -> Limits {
        Limits {
            min_prefix: self.min_prefix.load(Relaxed) as usize,
            max_expansions: self.max_expansions.load(Relaxed) as usize,
        }
    }

    fn place(&self, setting: &Setting) -> &AtomicU64 {
        match setting.place {
            Effect(place) => place(self),
            Kept(_) => {
                let at = SETTINGS.iter().position(|known| known.name == setting.name);
                &self.kept[at.expect("every setting stands in the table")]
            }
        }
    }

    /// The value of a setting as text; `None` if it is none.
    pub fn shown(&self, setting: &Setting) -> Option<String> {
        let value = self.place(setting).load(Relaxed);
        Some(match setting.kind {
            Text(text) => return text.map(str::to_owned),
            Switch => (value != 0).to_string(),
            // A second word stands for the first one.
            Word(words) if setting.is_fixed => words[0].to_owned(),
            Word(words) => words.get(value as usize).copied().unwrap_or_default().to_owned(),
            Number(..) | Bounded(_) if value == UNLIMITED => "unlimited".to_owned(),
            Number(..) | Bounded(_) => value.to_string(),
        })
    }

    /// Changes a setting while the server runs.
    ///
    /// # Errors
    /// There is none of this name, it can be set at the start alone, or the value is none of it.
    pub fn set(&self, name: &[u8], value: Option<&[u8]>) -> Result<(), OptionError> {
        let setting = Setting::find(name).ok_or(OptionError::Unknown)?;
        if setting.is_fixed {
            return Err(OptionError::Fixed);
        }
        let value = setting.parse(value.ok_or(OptionError::NoValue(setting.name))?)?;
        self.place(setting).store(value, Relaxed);
        Ok(())
    }

    /// Takes the arguments of a line `loadmodule …/redisearch.so NAME value …`; calls `refuse` with those that it does not take.
    pub fn load<A: AsRef<[u8]>>(&self, arguments: &[A], mut refuse: impl FnMut(&[u8], OptionError)) {
        let mut words = arguments.iter().map(AsRef::as_ref).peekable();
        while let Some(name) = words.next() {
            let Some(setting) = Setting::find(name) else {
                refuse(name, OptionError::Unknown);
                continue;
            };
            // Some switches are set by their name alone.
            let value = match setting.kind {
                Switch => words.next_if(|word| Setting::find(word).is_none()).unwrap_or(b"true"),
                _ => words.next().unwrap_or_default(),
            };
            let value = match (&setting.kind, value) {
                (Switch, b"1") => b"true".as_slice(),
                (Switch, b"0") => b"false",
                (_, value) => value,
            };
            match setting.parse(value) {
                Ok(value) => self.place(setting).store(value, Relaxed),
                Err(error) => refuse(name, error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_loadmodule_sets_settings() {
        let (options, mut refused) = (Options::default(), Vec::new());
        let line = b"DEFAULT_DIALECT 2 NOGC TIMEOUT 0 FOO 1 PARTIAL_INDEXED_DOCS 1 MAXSEARCHRESULTS -1 WORKERS x ON_TIMEOUT FAIL";
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        options.load(&words, |name, error| refused.push((String::from_utf8_lossy(name).into_owned(), error)));
        let check = |name: &str, expected: Option<&str>| {
            let shown = options.shown(Setting::find(name.as_bytes()).unwrap());
            assert_eq!(shown.as_deref(), expected, "{name}");
        };
        check("default_dialect", Some("2"));
        check("NOGC", Some("true"));
        check("TIMEOUT", Some("0"));
        check("PARTIAL_INDEXED_DOCS", Some("true"));
        check("MAXSEARCHRESULTS", Some("unlimited"));
        check("ON_TIMEOUT", Some("fail"));
        check("EXTLOAD", None);
        check("GC_POLICY", Some("fork"));
        let unknown = |name: &str| (name.to_owned(), OptionError::Unknown);
        assert_eq!(refused, [unknown("FOO"), unknown("1"), ("WORKERS".to_owned(), OptionError::Kind)]);
    }
}
