//! The indexes by name, and their aliases.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use query_engine::{Document, Index, Schema};

use super::definition::Definition;
use super::extract::{Extracted, Failure};
use super::idle::Idle;
use super::{Meter, Search, Words, lock};
use crate::keyspace::Database;
use crate::protocol::error::shown;
use crate::threads;

/// Panics at a document until it counts as one that cannot be indexed.
const MAX_PANICS: u32 = 2;

/// One index.
#[derive(Debug)]
pub struct SearchIndex {
    name: Box<[u8]>,
    definition: RwLock<Arc<Definition>>,
    engine: RwLock<Index>,
    meter: Meter,
    /// Bytes that changes of the engine have allocated less freed.
    bytes: AtomicI64,
    /// These per document, removed ones among them that are not yet compacted.
    bytes_per_document: AtomicU64,
    failures: Mutex<Failures>,
    /// Documents at which the engine has panicked, and how often.
    suspects: Mutex<HashMap<Box<[u8]>, u32>>,
    /// When it ends if it is TEMPORARY.
    pub(super) idle: Idle,
    /// Scans that fill it.
    pub(super) scans: AtomicUsize,
    /// Keys that they have seen.
    pub(super) scanned: AtomicU64,
    /// Queries.
    pub uses: AtomicU64,
    /// Bit n: whether a query of dialect n has come.
    dialects: AtomicU8,
}

/// Documents that could not be indexed.
#[derive(Clone, Debug, Default)]
pub struct Failures {
    /// How many.
    pub count: u64,
    /// By field.
    pub by_field: BTreeMap<usize, u64>,
    /// The last reason, and the key and the field of it.
    pub last: Option<(String, Box<[u8]>, Option<usize>)>,
}

impl SearchIndex {
    fn new(name: &[u8], schema: Schema, definition: Definition, meter: Meter) -> Self {
        Self {
            name: name.into(),
            idle: Idle::new(definition.idle_ms),
            definition: RwLock::new(Arc::new(definition)),
            engine: RwLock::new(Index::new(schema)),
            meter,
            bytes: AtomicI64::new(0),
            bytes_per_document: AtomicU64::new(0),
            failures: Mutex::default(),
            suspects: Mutex::default(),
            scans: AtomicUsize::new(0),
            scanned: AtomicU64::new(0),
            uses: AtomicU64::new(0),
            dialects: AtomicU8::new(0),
        }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Its definition.
    pub fn definition(&self) -> Arc<Definition> {
        Arc::clone(&self.definition.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The engine, for queries.
    pub fn engine(&self) -> RwLockReadGuard<'_, Index> {
        self.engine.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the engine, and counts the bytes that it takes or gives back. The caller holds no lock of a shard.
    pub fn with_engine<R>(&self, change: impl FnOnce(&mut Index) -> R) -> R {
        let mut engine = self.engine.write().unwrap_or_else(PoisonError::into_inner);
        let before = (self.meter.0)();
        let result = change(&mut engine);
        let grown = (self.meter.0)() - before;
        let bytes = u64::try_from(self.bytes.fetch_add(grown, Relaxed) + grown).unwrap_or(0);
        // Removed documents hold bytes until they are compacted.
        let documents = engine.len() as u64 + engine.uncompacted();
        self.bytes_per_document.store(bytes / documents.max(1), Relaxed);
        result
    }

    /// A query of this dialect, 1 to 4, has come.
    pub fn note_dialect(&self, dialect: u64) {
        self.dialects.fetch_or(1 << (dialect & 7), Relaxed);
    }

    /// Whether a query of this dialect has come.
    pub fn has_dialect(&self, dialect: u64) -> bool {
        self.dialects.load(Relaxed) >> (dialect & 7) & 1 == 1
    }

    /// Documents that could not be indexed.
    pub fn failures(&self) -> Failures {
        lock(&self.failures).clone()
    }

    /// Whether a scan fills it, and the part of the keys that it has seen, of so many.
    pub fn progress(&self, keys: usize) -> (bool, f64) {
        let is_scanned = self.scans.load(Relaxed) > 0;
        let part = self.scanned.load(Relaxed) as f64 / keys.max(1) as f64;
        (is_scanned, if is_scanned { part.min(0.99) } else { 1.0 })
    }

    /// Changes the definition alone. Unlike [`Self::alter`], the caller may have locked shards.
    pub fn redefine(&self, change: impl FnOnce(&mut Definition)) {
        let mut definition = self.definition.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut definition));
    }

    /// Changes the definition, and the engine with it. The caller holds no lock of a shard.
    ///
    /// # Errors
    /// That of `change`; nothing has changed then.
    pub fn alter<E>(&self, change: impl FnOnce(&mut Definition, &mut Index) -> Result<(), E>) -> Result<(), E> {
        self.with_engine(|engine| {
            let mut definition = self.definition.write().unwrap_or_else(PoisonError::into_inner);
            let mut changed = Definition::clone(&definition);
            change(&mut changed, engine)?;
            *definition = Arc::new(changed);
            Ok(())
        })
    }

    /// Bytes that it is going to give back when it loses a document.
    pub(super) fn bytes_per_document(&self) -> u64 {
        self.bytes_per_document.load(Relaxed)
    }

    /// Forgets all documents.
    pub(super) fn empty(&self) {
        self.with_engine(|engine| *engine = Index::new(engine.schema().clone()));
    }

    /// A key is this document now, or none. False if the engine has panicked: it is empty, and wants to be filled anew. It refuses a document
    /// at which it has panicked twice.
    #[must_use]
    pub(super) fn update(&self, key: &[u8], document: Result<Option<Extracted>, Failure>) -> bool {
        let is_refused = lock(&self.suspects).get(key).is_some_and(|panics| *panics >= MAX_PANICS);
        let document = match document {
            Ok(Some(_)) if is_refused => Err(Failure::panic()),
            document => document,
        };
        let change = || {
            threads::panic_point();
            self.change(key, document);
        };
        let Err(_) = catch_unwind(AssertUnwindSafe(change)) else { return true };
        let (index, document) = (shown(&self.name), shown(key));
        tracing::error!(%index, %document, "a panic while a document was indexed: the index is filled anew");
        *lock(&self.suspects).entry(key.into()).or_default() += 1;
        self.empty();
        false
    }

    /// Removes what documents that are gone have left, reading at most so many postings and values; whether there is more. `None` if the engine
    /// has panicked: it wants to be emptied and filled anew.
    pub(super) fn compact(&self, most: u64) -> Option<bool> {
        let compacted = catch_unwind(AssertUnwindSafe(|| {
            self.with_engine(|engine| {
                threads::panic_point_of(threads::COMPACTION);
                engine.compact(most)
            })
        }));
        compacted.ok()
    }

    fn change(&self, key: &[u8], document: Result<Option<Extracted>, Failure>) {
        let failure = match document {
            Ok(None) => {
                self.remove(key);
                None
            }
            Ok(Some(extracted)) => extracted.with_document(key, |document| self.put(document)),
            Err(failure) => {
                self.remove(key);
                Some(failure)
            }
        };
        if let Some(Failure { field, why }) = failure {
            let mut failures = lock(&self.failures);
            // A scan may meet what a change has brought already.
            let is_known = failures.last.as_ref().is_some_and(|last| *last == (why.clone(), key.into(), field));
            if is_known {
                return;
            }
            failures.count += 1;
            if let Some(field) = field {
                *failures.by_field.entry(field).or_default() += 1;
            }
            failures.last = Some((why, key.into(), field));
        }
    }

    fn remove(&self, key: &[u8]) {
        // Most changed keys are no documents of most indexes, and readers need not wait for that.
        if self.engine().contains(key) {
            self.with_engine(|engine| engine.remove(key));
        }
    }

    fn put(&self, document: &Document<'_>) -> Option<Failure> {
        self.with_engine(|engine| {
            let error = engine.put(document).err()?;
            let field = engine.schema().find(error.field.as_bytes());
            Some(Failure { field, why: error.to_string() })
        })
    }
}

/// Why the catalog is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogError {
    /// There is an index of this name.
    Exists,
    /// There is no index of this name.
    Unknown,
    /// There is an alias of this name.
    AliasExists,
    /// There is no alias of this name.
    NoAlias,
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exists => "Index already exists",
            Self::Unknown => "Unknown index name (or name is an alias itself)",
            Self::AliasExists => "Alias already exists",
            Self::NoAlias => "Alias does not exist",
        })
    }
}

impl std::error::Error for CatalogError {}

/// All indexes.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    indexes: BTreeMap<Box<[u8]>, Arc<SearchIndex>>,
    aliases: BTreeMap<Box<[u8]>, Box<[u8]>>,
}

impl Catalog {
    pub(super) fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    /// The commands that make it.
    pub(super) fn commands(&self) -> Vec<Words> {
        let made = self.indexes.values().flat_map(|index| index.definition().commands.clone());
        let aliased = self.aliases.iter().map(|(alias, index)| {
            let command: Box<[u8]> = b"FT.ALIASADD".as_slice().into();
            vec![command, alias.clone(), index.clone()]
        });
        made.chain(aliased).collect()
    }
}

impl Search {
    pub(super) fn clear_catalog(&self, database: &Database) {
        let mut catalog = self.write_catalog();
        *catalog = Catalog::default();
        database.note_changes(false);
    }

    pub(super) fn read_catalog(&self) -> RwLockReadGuard<'_, Catalog> {
        self.catalog.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_catalog(&self) -> RwLockWriteGuard<'_, Catalog> {
        self.catalog.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a name or an alias.
    pub fn index(&self, name: &[u8]) -> Option<Arc<SearchIndex>> {
        let catalog = self.read_catalog();
        let name = catalog.aliases.get(name).map_or(name, |name| name);
        catalog.indexes.get(name).cloned()
    }

    /// Whether an alias has this name.
    pub fn is_alias(&self, name: &[u8]) -> bool {
        self.read_catalog().aliases.contains_key(name)
    }

    /// All indexes by name.
    pub fn indexes(&self) -> Vec<Arc<SearchIndex>> {
        self.read_catalog().indexes.values().cloned().collect()
    }

    /// Calls `visit` with all indexes, without a copy of their list. It must not ask for the catalog again.
    pub(super) fn visit_indexes<R>(&self, visit: impl FnOnce(&mut dyn Iterator<Item = &SearchIndex>) -> R) -> R {
        visit(&mut self.read_catalog().indexes.values().map(|index| &**index))
    }

    /// The aliases of an index.
    pub fn aliases(&self, index: &[u8]) -> Vec<Box<[u8]>> {
        let catalog = self.read_catalog();
        let of = catalog.aliases.iter().filter(|(_, name)| ***name == *index);
        of.map(|(alias, _)| alias.clone()).collect()
    }

    /// Adds an index, and from now on has its documents followed. A scan fills it if it `scans`.
    ///
    /// # Errors
    /// [`CatalogError::Exists`].
    pub fn create(
        &self,
        database: &Database,
        name: &[u8],
        (schema, definition): (Schema, Definition),
        scans: bool,
    ) -> Result<(), CatalogError> {
        let index = Arc::new(SearchIndex::new(name, schema, definition, self.meter));
        let mut catalog = self.write_catalog();
        if catalog.indexes.contains_key(name) || catalog.aliases.contains_key(name) {
            return Err(CatalogError::Exists);
        }
        catalog.indexes.insert(name.into(), Arc::clone(&index));
        database.note_changes(true);
        drop(catalog);
        if scans {
            self.scan(&index, false);
        }
        Ok(())
    }

    /// Removes an index with its aliases and cursors.
    pub fn drop_index(&self, database: &Database, name: &[u8]) -> Option<Arc<SearchIndex>> {
        let mut catalog = self.write_catalog();
        let name = catalog.aliases.get(name).map_or(name, |name| name).to_vec();
        let index = catalog.indexes.remove(name.as_slice())?;
        catalog.aliases.retain(|_, index| **index != *name);
        if catalog.indexes.is_empty() {
            database.note_changes(false);
        }
        drop(catalog);
        self.with_cursors(|cursors| cursors.drop_of(&name));
        Some(index)
    }

    /// Gives an index a further name; one that is there is moved if it `moves`.
    ///
    /// # Errors
    /// [`CatalogError::AliasExists`], or there is no such index.
    pub fn add_alias(&self, alias: &[u8], index: &[u8], moves: bool) -> Result<(), CatalogError> {
        let mut catalog = self.write_catalog();
        if !catalog.indexes.contains_key(index) {
            return Err(CatalogError::Unknown);
        }
        if catalog.indexes.contains_key(alias) || !moves && catalog.aliases.contains_key(alias) {
            return Err(CatalogError::AliasExists);
        }
        catalog.aliases.insert(alias.into(), index.into());
        Ok(())
    }

    /// Takes a further name away.
    ///
    /// # Errors
    /// [`CatalogError::NoAlias`].
    pub fn remove_alias(&self, alias: &[u8]) -> Result<(), CatalogError> {
        self.write_catalog().aliases.remove(alias).map(drop).ok_or(CatalogError::NoAlias)
    }
}
