//! FT.INFO.

use std::sync::atomic::Ordering::Relaxed;

use query_engine::vector::{Algorithm, VectorOptions};
use query_engine::{Field, FieldKind, MIN_STEM_LENGTH, NO_STEMS, Schema, Surface};

use super::gathered;
use super::lookup::{NO_INDEX, default_deadline, index_for, refresh};
use super::scope::Scope;
use super::wire::{Reader, Writer};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::search::{Definition, Failures, SearchIndex, Source, SourceField};

/// The cursors that an index may have.
const CURSORS: i64 = 128;

/// The figures of an index at one node, or their sums over all nodes.
#[derive(Default)]
struct Figures {
    documents: f64,
    /// The number of the last document.
    last: f64,
    words: f64,
    records: f64,
    blocks: f64,
    uses: f64,
    /// Cursors of all indexes, and of this one.
    cursors: f64,
    own_cursors: f64,
    /// Bytes.
    inverted: f64,
    vectors: f64,
    document_table: f64,
    sortable: f64,
    key_table: f64,
    tags: f64,
    texts: f64,
    memory: f64,
    shapes: f64,
    is_scanned: bool,
    /// The part of the keys that a scan has seen: at the node that has seen the least, and at the one that has seen the most.
    part: f64,
    most: f64,
    /// Queries of each dialect have come.
    dialects: [bool; 4],
    failures: Failures,
}

impl Figures {
    /// Those of this node.
    fn of(cx: &Ctx<'_>, index: &SearchIndex) -> Self {
        refresh(cx, default_deadline(cx));
        let keys = cx.instance().database(0).len();
        let cursors = cx.instance().search.with_cursors(|cursors| (cursors.len(), cursors.of(index.name())));
        let engine = index.engine();
        let memory = engine.memory();
        let (is_scanned, part) = index.progress(keys);
        Self {
            documents: engine.len() as f64,
            last: engine.last_number() as f64,
            words: engine.word_count() as f64,
            records: engine.record_count() as f64,
            blocks: engine.block_count() as f64,
            uses: index.uses.load(Relaxed) as f64,
            cursors: cursors.0 as f64,
            own_cursors: cursors.1 as f64,
            inverted: (memory.words + memory.tags + memory.numbers + memory.places) as f64,
            vectors: memory.vectors as f64,
            document_table: (memory.documents - engine.id_table_bytes()) as f64,
            sortable: engine.sort_key_bytes() as f64,
            key_table: engine.id_table_bytes() as f64,
            tags: memory.tags as f64,
            texts: memory.words as f64,
            memory: memory.total() as f64,
            shapes: memory.shapes as f64,
            is_scanned,
            part,
            most: part,
            dialects: [1, 2, 3, 4].map(|dialect| index.has_dialect(dialect)),
            failures: index.failures(),
        }
    }

    /// Numbers that add up.
    fn sums(&mut self) -> [&mut f64; 17] {
        [
            &mut self.documents,
            &mut self.last,
            &mut self.words,
            &mut self.records,
            &mut self.blocks,
            &mut self.uses,
            &mut self.cursors,
            &mut self.own_cursors,
            &mut self.inverted,
            &mut self.vectors,
            &mut self.document_table,
            &mut self.sortable,
            &mut self.key_table,
            &mut self.tags,
            &mut self.texts,
            &mut self.memory,
            &mut self.shapes,
        ]
    }

    fn write(mut self, writer: &mut Writer) {
        self.sums().into_iter().for_each(|number| writer.double(*number));
        writer.flag(self.is_scanned);
        writer.double(self.part);
        self.dialects.iter().for_each(|dialect| writer.flag(*dialect));
        writer.number(self.failures.count);
        let by_field: Vec<_> = self.failures.by_field.into_iter().collect();
        writer.list(&by_field, |writer, (field, count)| {
            writer.count(*field);
            writer.number(*count);
        });
        writer.option(self.failures.last.as_ref(), |writer, (why, key, field)| {
            writer.text(why.as_bytes());
            writer.text(key);
            writer.option(field.as_ref(), |writer, field| writer.count(*field));
        });
    }

    /// Adds the figures of another node.
    fn add(&mut self, reader: &mut Reader<'_>) -> Result {
        for number in self.sums() {
            *number += reader.double()?;
        }
        self.is_scanned |= reader.flag()?;
        let part = reader.double()?;
        (self.part, self.most) = (self.part.min(part), self.most.max(part));
        for dialect in &mut self.dialects {
            *dialect |= reader.flag()?;
        }
        self.failures.count += reader.number()?;
        for (field, count) in reader.list(|reader| Ok((reader.number()? as usize, reader.number()?)))? {
            *self.failures.by_field.entry(field).or_default() += count;
        }
        let last = reader.option(|reader| {
            let (why, key) = (reader.name()?, reader.text()?.into());
            Ok((why, key, reader.option(|reader| Ok(reader.number()? as usize))?))
        })?;
        self.failures.last = self.failures.last.take().or(last);
        Ok(())
    }
}

/// This node's part of FT.INFO.
pub(super) fn part(cx: &Ctx<'_>, args: Args<'_>, writer: &mut Writer) -> Result {
    let index = index_for(cx, args, NO_INDEX)?;
    Figures::of(cx, &index).write(writer);
    Ok(())
}

/// `FT.INFO index [scope …]`
pub(super) fn info(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let scope = Scope::parse(cx, args)?;
    let parts = gathered::all_parts(cx, args)?;
    let index = index_for(cx, args, NO_INDEX)?;
    index.uses.fetch_add(1, Relaxed);
    let figures = match parts {
        None => Figures::of(cx, &index),
        Some(parts) => {
            let mut figures = Figures { part: 1.0, ..Figures::default() };
            for part in &parts {
                figures.add(&mut Reader::new(part))?;
            }
            figures
        }
    };
    let is_valkey = cx.config().level().is_valkey();
    show(cx.reply, &index, &figures, is_valkey.then_some(scope));
    Ok(())
}

fn show(reply: &mut Reply, index: &SearchIndex, figures: &Figures, valkey: Option<Option<Scope>>) {
    let definition = index.definition();
    // A temporary index has no garbage collector in RediSearch.
    let is_collected = !index.is_temporary() && valkey.is_none();
    let added = valkey.map_or(STATISTICS, |scope| PROGRESS + READS + usize::from(scope.is_some()));
    reply.map(30 + usize::from(is_collected) + usize::from(definition.has_stop_words) + added);
    reply.simple("index_name");
    reply.bulk(index.name());
    if let Some(scope) = valkey {
        progress(reply, scope, figures);
        reads(reply, &definition, index.engine().schema());
    }
    reply.simple("index_options");
    reply.array(definition.options.len());
    definition.options.iter().for_each(|option| reply.simple(option));
    reply.simple("index_definition");
    rule(reply, &definition);
    reply.simple("attributes");
    let engine = index.engine();
    reply.array(definition.fields.len());
    for (field, source) in engine.schema().fields().iter().zip(&definition.fields) {
        attribute(reply, field, source, valkey.is_some().then(|| engine.schema()));
    }
    count(reply, "num_docs", figures.documents);
    count(reply, "max_doc_id", figures.last);
    count(reply, "num_terms", figures.words);
    count(reply, "num_records", figures.records);
    sizes(reply, figures);
    count(reply, "hash_indexing_failures", figures.failures.count as f64);
    number(reply, "total_indexing_time", 0.0);
    count(reply, "indexing", f64::from(u8::from(figures.is_scanned)));
    number(reply, "percent_indexed", figures.part);
    count(reply, "number_of_uses", figures.uses);
    count(reply, "cleaning", 0.0);
    let stop_words: Option<Vec<Box<[u8]>>> =
        definition.has_stop_words.then(|| engine.schema().stop_words.iter().map(Into::into).collect());
    drop(engine);
    if is_collected {
        reply.simple("gc_stats");
        reply.map(GC.len());
        // No cycle has a length.
        GC.iter().for_each(|name| number(reply, name, if *name == "average_cycle_time_ms" { f64::NAN } else { 0.0 }));
    }
    if valkey.is_none() {
        cursors(reply, figures);
    }
    if let Some(words) = stop_words {
        reply.simple("stopwords_list");
        reply.array(words.len());
        words.iter().for_each(|word| reply.bulk(word));
    }
    if valkey.is_none() {
        reply.simple("dialect_stats");
        reply.map(4);
        for (dialect, has_come) in (1..).zip(figures.dialects) {
            reply.simple(&format!("dialect_{dialect}"));
            reply.int(has_come.into());
        }
        reply.simple("Index Errors");
        errors(reply, &figures.failures, None);
    }
    statistics(reply, &figures.failures, &definition);
}

/// RediSearch's fields of cursors, dialects and errors, which valkey-search lacks as it lacks `gc_stats`.
const STATISTICS: usize = 3;

fn cursors(reply: &mut Reply, figures: &Figures) {
    reply.simple("cursor_stats");
    reply.map(4);
    for (name, value) in [
        ("global_idle", figures.cursors as i64),
        ("global_total", figures.cursors as i64),
        ("index_capacity", CURSORS),
        ("index_total", figures.own_cursors as i64),
    ] {
        reply.simple(name);
        reply.int(value);
    }
}

/// Fields of [`progress`].
const PROGRESS: usize = 7;

/// The progress of an index under valkey-search's names. Queries wait for changes, so none is in a queue.
fn progress(reply: &mut Reply, scope: Option<Scope>, figures: &Figures) {
    if let Some(scope) = scope {
        reply.simple("mode");
        reply.simple(scope.name());
    }
    count(reply, "backfill_in_progress", f64::from(u8::from(figures.is_scanned)));
    number(reply, "backfill_complete_percent", figures.part);
    number(reply, "backfill_complete_percent_max", figures.most);
    number(reply, "backfill_complete_percent_min", figures.part);
    count(reply, "mutation_queue_size", 0.0);
    reply.simple("recent_mutations_queue_delay");
    reply.simple("0 sec");
    reply.simple("state");
    reply.simple(if figures.is_scanned { "backfill_in_progress" } else { "ready" });
}

/// Fields of [`reads`].
const READS: usize = 5;

/// How an index reads its texts, under valkey-search's names.
fn reads(reply: &mut Reply, definition: &Definition, schema: &Schema) {
    reply.simple("language");
    reply.simple(schema.language.name());
    reply.simple("punctuation");
    match &definition.punctuation {
        Some(given) => reply.bulk(given),
        None => reply.bulk(schema.punctuation.characters().collect::<String>().as_bytes()),
    }
    reply.simple("stop_words");
    reply.array(schema.stop_words.iter().count());
    schema.stop_words.iter().for_each(|word| reply.bulk(word));
    reply.simple("with_offsets");
    reply.simple(if schema.keeps.positions { "1" } else { "0" });
    // An index without stems has no length of its own.
    let length = if schema.min_stem_length == NO_STEMS { MIN_STEM_LENGTH } else { schema.min_stem_length };
    count(reply, "min_stem_size", length as f64);
}

/// Documents that could not be indexed, by field.
fn statistics(reply: &mut Reply, failures: &Failures, definition: &Definition) {
    reply.simple("field statistics");
    reply.array(definition.fields.len());
    for (at, field) in definition.fields.iter().enumerate() {
        reply.map(3);
        reply.simple("identifier");
        reply.bulk(&field.identifier);
        reply.simple("attribute");
        reply.bulk(field.name.as_bytes());
        reply.simple("Index Errors");
        errors(reply, failures, Some(at));
    }
}

/// Which keys are documents.
fn rule(reply: &mut Reply, definition: &Definition) {
    let before = [
        ("filter", definition.filter.as_ref().map(|(text, _)| &**text)),
        ("default_language", (!definition.language_name.is_empty()).then_some(definition.language_name.as_bytes())),
        ("language_field", definition.language_field.as_deref()),
    ];
    let behind =
        [("score_field", definition.score_field.as_deref()), ("payload_field", definition.payload_field.as_deref())];
    reply.map(3 + before.iter().chain(&behind).filter(|(_, text)| text.is_some()).count());
    reply.simple("key_type");
    reply.simple(match definition.source {
        Source::Hash => "HASH",
        Source::Json => "JSON",
    });
    reply.simple("prefixes");
    reply.array(definition.prefixes.len());
    definition.prefixes.iter().for_each(|prefix| reply.bulk(prefix));
    texts(reply, &before);
    number(reply, "default_score", definition.score);
    texts(reply, &behind);
}

/// Names and those texts that are there.
fn texts(reply: &mut Reply, texts: &[(&str, Option<&[u8]>)]) {
    for (name, text) in texts {
        if let Some(text) = text {
            reply.simple(name);
            reply.bulk(text);
        }
    }
}

/// A field of the schema: in RESP3 a map with its flags in a list, in RESP2 one list. valkey-search has no flags, but names
/// and numbers; `valkey` is the schema for them.
fn attribute(reply: &mut Reply, field: &Field, source: &SourceField, valkey: Option<&Schema>) {
    let numbers = valkey.map_or_else(Vec::new, |schema| numbers(field, schema));
    let flags: &[(bool, &str)] = &[
        (matches!(field.kind, FieldKind::Text { stem: false, .. }), "NOSTEM"),
        (matches!(field.kind, FieldKind::Tag { case_sensitive: true, .. }), "CASESENSITIVE"),
        (field.sortable, "SORTABLE"),
        (field.sortable && field.unnormalized, "UNF"),
        (!field.indexed, "NOINDEX"),
        (field.index_empty, "INDEXEMPTY"),
        (field.index_missing, "INDEXMISSING"),
    ];
    let set = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name);
    let flags: Vec<&str> = set.chain(source.options.iter().copied()).collect();
    let options = match &field.kind {
        FieldKind::Text { .. } | FieldKind::Tag { .. } => 1,
        FieldKind::Numeric | FieldKind::Geo => 0,
        FieldKind::Shape(_) => 1,
        FieldKind::Vector(VectorOptions { algorithm: Algorithm::Flat { .. }, .. }) => 4,
        FieldKind::Vector(VectorOptions { algorithm: Algorithm::Hnsw { .. }, .. }) => 6,
        FieldKind::Vector(VectorOptions { algorithm: Algorithm::Vamana { .. }, .. }) => 7,
    };
    let is_map = reply.is_resp3();
    if is_map {
        reply.map(4 + options + numbers.len());
    } else {
        let flags = if valkey.is_some() { 0 } else { flags.len() };
        reply.array(6 + 2 * (options + numbers.len()) + flags);
    }
    reply.simple("identifier");
    reply.bulk(&source.identifier);
    reply.simple("attribute");
    reply.bulk(field.name.as_bytes());
    reply.simple("type");
    match &field.kind {
        FieldKind::Text { weight, .. } => {
            reply.simple("TEXT");
            number(reply, "WEIGHT", *weight);
        }
        FieldKind::Tag { separator, .. } => {
            reply.simple("TAG");
            reply.simple("SEPARATOR");
            reply.bulk(separator.as_ref().map_or(&[], std::slice::from_ref));
        }
        FieldKind::Numeric => reply.simple("NUMERIC"),
        FieldKind::Geo => reply.simple("GEO"),
        FieldKind::Shape(surface) => {
            reply.simple("GEOSHAPE");
            reply.simple("coord_system");
            reply.simple(match surface {
                Surface::Flat => "FLAT",
                Surface::Spherical => "SPHERICAL",
            });
        }
        FieldKind::Vector(options) => vector(reply, options),
    }
    numbers.iter().for_each(|(name, is_set)| count(reply, name, f64::from(u8::from(*is_set))));
    if is_map {
        reply.simple("flags");
        reply.array(flags.len());
    }
    if is_map || valkey.is_none() {
        flags.iter().for_each(|flag| reply.simple(flag));
    }
}

/// A field's flags as valkey-search has them: names, and 1 or 0. Flags that it lacks stand there if they are set.
fn numbers(field: &Field, schema: &Schema) -> Vec<(&'static str, bool)> {
    let own: &[(&str, bool)] = match field.kind {
        FieldKind::Text { stem, .. } => {
            let has_stems = stem && schema.min_stem_length != NO_STEMS;
            &[("WITH_SUFFIX_TRIE", field.suffix_trie), ("NO_STEM", !has_stems)]
        }
        FieldKind::Tag { case_sensitive, .. } => &[("CASESENSITIVE", case_sensitive)],
        _ => &[],
    };
    let set = [
        ("SORTABLE", field.sortable),
        ("UNF", field.sortable && field.unnormalized),
        ("NOINDEX", !field.indexed),
        ("INDEXEMPTY", field.index_empty),
        ("INDEXMISSING", field.index_missing),
    ];
    own.iter().copied().chain(set.into_iter().filter(|(_, is_set)| *is_set)).collect()
}

fn vector(reply: &mut Reply, options: &VectorOptions) {
    reply.simple("VECTOR");
    let mut named = |name: &str, value: &str| {
        reply.simple(name);
        reply.simple(value);
    };
    named(
        "algorithm",
        match options.algorithm {
            Algorithm::Flat { .. } => "FLAT",
            Algorithm::Hnsw { .. } => "HNSW",
            Algorithm::Vamana { .. } => "SVS-VAMANA",
        },
    );
    named("data_type", options.element.name());
    reply.simple("dim");
    reply.int(options.dimensions as i64);
    reply.simple("distance_metric");
    reply.simple(options.metric.name());
    let mut integer = |name: &str, value: usize| {
        reply.simple(name);
        reply.int(value as i64);
    };
    match options.algorithm {
        Algorithm::Flat { .. } => {}
        Algorithm::Hnsw { m, ef_construction, .. } => {
            integer("M", m);
            integer("ef_construction", ef_construction);
        }
        Algorithm::Vamana { degree, construction_window, .. } => {
            integer("graph_max_degree", degree);
            integer("construction_window_size", construction_window);
            reply.simple("compression");
            reply.simple("NO_COMPRESSION");
        }
    }
}

fn number(reply: &mut Reply, name: &str, value: f64) {
    reply.simple(name);
    reply.double(value);
}

fn count(reply: &mut Reply, name: &str, value: f64) {
    reply.simple(name);
    reply.int(value as i64);
}

/// The memory of the index, in megabytes, and averages.
fn sizes(reply: &mut Reply, figures: &Figures) {
    let megabytes = |bytes: f64| bytes / f64::from(1 << 20);
    number(reply, "inverted_sz_mb", megabytes(figures.inverted));
    number(reply, "vector_index_sz_mb", megabytes(figures.vectors));
    count(reply, "total_inverted_index_blocks", figures.blocks);
    // Positions are a part of the postings.
    number(reply, "offset_vectors_sz_mb", 0.0);
    number(reply, "doc_table_size_mb", megabytes(figures.document_table));
    number(reply, "sortable_values_size_mb", megabytes(figures.sortable));
    number(reply, "key_table_size_mb", megabytes(figures.key_table));
    number(reply, "tag_overhead_sz_mb", megabytes(figures.tags));
    number(reply, "text_overhead_sz_mb", megabytes(figures.texts));
    number(reply, "total_index_memory_sz_mb", megabytes(figures.memory));
    number(reply, "geoshapes_sz_mb", megabytes(figures.shapes));
    // RediSearch divides by 0, too, where documents are gone and their records are not.
    let per_document = if figures.documents == 0.0 { f64::NAN } else { figures.records / figures.documents };
    number(reply, "records_per_doc_avg", per_document);
    number(reply, "bytes_per_record_avg", figures.inverted / figures.records);
    number(reply, "offsets_per_term_avg", 0.0 / figures.records);
    number(reply, "offset_bits_per_record_avg", 0.0 / figures.records);
}

/// Figures of RediSearch's garbage collector, which there is not.
const GC: &[&str] = &[
    "bytes_collected",
    "total_ms_run",
    "total_cycles",
    "average_cycle_time_ms",
    "last_run_time_ms",
    "gc_numeric_trees_missed",
    "gc_blocks_denied",
];

/// Documents that could not be indexed, because of one field or of any.
fn errors(reply: &mut Reply, failures: &Failures, field: Option<usize>) {
    let last = failures.last.as_ref().filter(|(.., of)| field.is_none() || *of == field);
    reply.map(3);
    reply.simple("indexing failures");
    let count = field.map_or(failures.count, |field| failures.by_field.get(&field).copied().unwrap_or(0));
    reply.int(count as i64);
    reply.simple("last indexing error");
    reply.bulk(last.map_or(b"N/A".as_slice(), |(why, ..)| why.as_bytes()));
    reply.simple("last indexing error key");
    reply.bulk(last.map_or(b"N/A".as_slice(), |(_, key, _)| key));
}
