//! Search indexes over the hashes and JSON documents of database 0: what is indexed, and how an index follows the keys.
//!
//! No clients, no protocol and no clock: callers pass the time and read the answers of [`query_engine`].
//!
//! - The database notes the names of changed documents under the locks of the writers
//!   ([`Database::note_changes`](crate::keyspace::Database::note_changes)).
//! - [`Search::catch_up`] reads these keys and updates the indexes. Every query calls it first, so a query sees each write that was
//!   answered before it. A thread calls it in slices while no query comes.
//! - A scan fills a new index in slices of the same work.
//!
//! Order of locks: `feed`, then a shard; an index, then a shard. A thread that has locked a shard waits for neither, but for the mutexes of a
//! moment: `catalog`, `wanted`, the database's names.

mod catalog;
mod cursors;
mod definition;
mod extract;
mod feed;
mod idle;
mod options;

pub use catalog::{CatalogError, Failures, SearchIndex};
pub use cursors::{Cursor, Cursors};
pub use definition::{Definition, Source, SourceField, Words, path};
pub use extract::{listed, property, shown};
pub use feed::Progress;
pub use options::{OptionError, Options, SETTINGS, Setting, UNLIMITED};

use crate::config::Config;
use crate::config::settings;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use query_engine::{Suggestions, WordList};

use catalog::Catalog;
use feed::Feed;

use crate::keyspace::{Database, Entry};

/// Suggestions (FT.SUGADD) by name. A snapshot shares them; the next change of shared ones copies them.
pub type SuggestionsByName = BTreeMap<Box<[u8]>, Arc<Suggestions>>;

/// A count of bytes: those that the calling thread has allocated less freed since it began. The default is always 0.
#[derive(Clone, Copy, Debug)]
pub struct Meter(pub fn() -> i64);

impl Default for Meter {
    fn default() -> Self {
        Self(|| 0)
    }
}

/// The search indexes of a server, and the dictionaries and suggestions beside them.
#[derive(Debug, Default)]
pub struct Search {
    catalog: RwLock<Catalog>,
    feed: Mutex<Feed>,
    meter: Meter,
    /// Bytes that indexes are going to give back, because documents of theirs were evicted.
    owed: AtomicU64,
    /// Indexes that a scan is to fill, and whether it reads all documents again. A mutex of its own, because a thread that has locked shards may ask for a scan.
    wanted: Mutex<Vec<(Arc<SearchIndex>, bool)>>,
    /// Whether a thread feeds the indexes.
    is_fed: AtomicBool,
    /// Custom dictionaries (FT.DICTADD), by name.
    dictionaries: Mutex<BTreeMap<Box<[u8]>, Arc<WordList>>>,
    /// Suggestions (FT.SUGADD), by name.
    suggestions: Mutex<SuggestionsByName>,
    cursors: Mutex<Cursors>,
    /// The settings of FT.CONFIG.
    pub options: Options,
    /// Commands that a file in the making of being loaded has brought.
    expected: Mutex<Vec<Words>>,
    /// Whether a thread runs these commands, which may have locked all shards.
    is_restoring: AtomicBool,
    /// The version of the cluster's definitions; 0 where there is no cluster.
    version: AtomicU64,
    /// Held while definitions are changed in the name of the cluster.
    changes: Mutex<()>,
    defining: Mutex<()>,
    /// When it is compared with those of other nodes next, in milliseconds of a steady clock.
    pub look_at: AtomicU64,
}

/// Indexes, aliases, dictionaries and suggestions of one moment. Large parts are shared.
#[derive(Debug)]
pub struct Kept {
    version: u64,
    catalog: Vec<Words>,
    dictionaries: BTreeMap<Box<[u8]>, Arc<WordList>>,
    suggestions: SuggestionsByName,
}

impl Kept {
    /// Calls `take` with each command that makes them anew.
    pub fn commands(&self, mut take: impl FnMut(&[&[u8]])) {
        self.definitions(&mut take);
        if self.version > 0 {
            take(&[b"FT._DEFINE", b"VERSION", self.version.to_string().as_bytes()]);
        }
    }

    /// [`Self::commands`] without the version.
    pub fn definitions(&self, mut take: impl FnMut(&[&[u8]])) {
        for words in &self.catalog {
            take(&words.iter().map(|word| &**word).collect::<Vec<_>>());
        }
        for (name, words) in &self.dictionaries {
            // A removal from a dictionary that is not there makes it.
            if words.is_empty() {
                take(&[b"FT.DICTDEL", name, b""]);
                continue;
            }
            let head: [&[u8]; 2] = [b"FT.DICTADD", name];
            take(&head.into_iter().chain(words.iter().map(|word| &**word)).collect::<Vec<_>>());
        }
        for (name, suggestions) in &self.suggestions {
            for suggestion in suggestions.iter() {
                let score = suggestion.score.to_string();
                let mut words: Vec<&[u8]> = vec![b"FT.SUGADD", name, suggestion.text.as_bytes(), score.as_bytes()];
                if let Some(payload) = suggestion.payload {
                    words.extend([b"PAYLOAD".as_slice(), payload]);
                }
                take(&words);
            }
        }
    }

    /// The version of the cluster's definitions.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Search {
    /// No indexes yet, with the settings that a line `loadmodule …/redisearch.so` names.
    pub fn new(config: &Config, meter: Meter) -> Self {
        let search = Self { meter, ..Self::default() };
        for line in config.lines(settings::LOADMODULE) {
            let Some((path, arguments)) = line.split_first() else { continue };
            let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            if file == b"redisearch.so" || file == b"search.so" {
                search.options.load(arguments, |name, error| {
                    tracing::warn!(
                        "the argument {} of loadmodule is left out: {error}",
                        crate::protocol::error::shown(name)
                    );
                });
            }
        }
        search
    }

    /// Whether there is any index.
    pub fn has_indexes(&self) -> bool {
        !self.read_catalog().is_empty()
    }

    /// Forgets all indexes, aliases, dictionaries, suggestions and cursors, as FLUSHALL does. The caller may have locked shards.
    pub fn clear(&self, database: &Database) {
        self.clear_catalog(database);
        self.set_version(0);
        lock(&self.cursors).clear();
        lock(&self.dictionaries).clear();
        lock(&self.suggestions).clear();
    }

    /// An entry of database 0 was evicted, and the indexes do not know it yet.
    pub fn note_evicted(&self, entry: &Entry) {
        if !self.is_fed() {
            return;
        }
        let bytes: u64 = self.visit_indexes(|indexes| {
            indexes.filter(|index| index.definition().takes(entry)).map(SearchIndex::bytes_per_document).sum()
        });
        self.owed.fetch_add(bytes, Relaxed);
    }

    /// Bytes that indexes are going to give back for evicted entries.
    pub fn owed(&self) -> u64 {
        self.owed.load(Relaxed)
    }

    /// Begins the work of a thread that feeds the indexes; false if there is one.
    pub fn begin_feeding(&self) -> bool {
        !self.is_fed.swap(true, SeqCst)
    }

    /// Ends it.
    pub fn end_feeding(&self) {
        self.owed.store(0, Relaxed);
        self.is_fed.store(false, SeqCst);
    }

    /// Whether a thread feeds the indexes.
    pub fn is_fed(&self) -> bool {
        self.is_fed.load(Relaxed)
    }

    /// Calls `change` with a dictionary, which is there from then on.
    pub fn with_dictionary<R>(&self, name: &[u8], change: impl FnOnce(&mut WordList) -> R) -> R {
        change(Arc::make_mut(lock(&self.dictionaries).entry(name.into()).or_default()))
    }

    /// A dictionary.
    pub fn dictionary(&self, name: &[u8]) -> Option<Arc<WordList>> {
        lock(&self.dictionaries).get(name).cloned()
    }

    /// The names of all dictionaries.
    pub fn dictionary_names(&self) -> Vec<Box<[u8]>> {
        lock(&self.dictionaries).keys().cloned().collect()
    }

    /// Calls `work` with all suggestions by name.
    pub fn with_suggestions<R>(&self, work: impl FnOnce(&mut SuggestionsByName) -> R) -> R {
        work(&mut lock(&self.suggestions))
    }

    /// Calls `work` with the cursors of aggregations.
    pub fn with_cursors<R>(&self, work: impl FnOnce(&mut Cursors) -> R) -> R {
        work(&mut lock(&self.cursors))
    }

    /// The indexes, aliases, dictionaries and suggestions of this moment, for files.
    pub fn kept(&self) -> Kept {
        Kept {
            version: self.version(),
            catalog: self.read_catalog().commands(),
            dictionaries: lock(&self.dictionaries).clone(),
            suggestions: lock(&self.suggestions).clone(),
        }
    }

    /// The version of the cluster's definitions.
    pub fn version(&self) -> u64 {
        self.version.load(SeqCst)
    }

    /// The definitions have this version.
    pub fn set_version(&self, version: u64) {
        self.version.store(version, SeqCst);
    }

    /// Waits for its turn to change the definitions of all nodes.
    pub fn changes(&self) -> MutexGuard<'_, ()> {
        lock(&self.changes)
    }

    /// Waits for its turn to change the definitions of this node in the name of the cluster. The caller holds no lock of a shard.
    pub fn defining(&self) -> MutexGuard<'_, ()> {
        lock(&self.defining)
    }

    /// A file has a command for [`Search::take_expected`].
    pub fn expect(&self, command: Words) {
        lock(&self.expected).push(command);
    }

    /// Says whether the commands of a file run.
    pub fn set_restoring(&self, is_restoring: bool) {
        self.is_restoring.store(is_restoring, SeqCst);
    }

    /// Whether the commands of a file run: their thread may have locked shards, and must not wait for `feed`.
    pub fn is_restoring(&self) -> bool {
        self.is_restoring.load(SeqCst)
    }

    /// Takes the commands of a file that was loaded.
    pub fn take_expected(&self) -> Vec<Words> {
        std::mem::take(&mut lock(&self.expected))
    }
}
