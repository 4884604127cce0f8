//! FT.INFO.

use std::sync::atomic::Ordering::Relaxed;

use query_engine::vector::{Algorithm, VectorOptions};
use query_engine::{Field, FieldKind, Index, Surface};

use super::lookup::{NO_INDEX, default_deadline, index_for, refresh};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::search::{Definition, SearchIndex, Source, SourceField};

/// The cursors that an index may have.
const CURSORS: i64 = 128;

/// `FT.INFO index`
pub(super) fn info(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args, NO_INDEX)?;
    index.uses.fetch_add(1, Relaxed);
    refresh(cx, default_deadline(cx));
    let definition = index.definition();
    let keys = cx.instance().database(0).len();
    let cursors = cx.instance().search.with_cursors(|cursors| (cursors.len(), cursors.of(index.name())));
    let reply = &mut *cx.reply;
    // A temporary index has no garbage collector in RediSearch.
    let is_collected = !index.is_temporary();
    reply.map(33 + usize::from(is_collected) + usize::from(definition.has_stop_words));
    reply.simple("index_name");
    reply.bulk(index.name());
    reply.simple("index_options");
    reply.array(definition.options.len());
    definition.options.iter().for_each(|option| reply.simple(option));
    reply.simple("index_definition");
    rule(reply, &definition);
    reply.simple("attributes");
    let engine = index.engine();
    reply.array(definition.fields.len());
    for (field, source) in engine.schema().fields().iter().zip(&definition.fields) {
        attribute(reply, field, source);
    }
    let failures = index.failures();
    let (documents, records) = (engine.len(), engine.record_count());
    count(reply, "num_docs", documents);
    count(reply, "max_doc_id", engine.last_number() as usize);
    count(reply, "num_terms", engine.word_count());
    count(reply, "num_records", records as usize);
    sizes(reply, &engine, records);
    count(reply, "hash_indexing_failures", failures.count as usize);
    let (is_scanned, part) = index.progress(keys);
    number(reply, "total_indexing_time", 0.0);
    count(reply, "indexing", is_scanned.into());
    number(reply, "percent_indexed", part);
    count(reply, "number_of_uses", index.uses.load(Relaxed) as usize);
    count(reply, "cleaning", 0);
    let stop_words: Option<Vec<Box<[u8]>>> =
        definition.has_stop_words.then(|| engine.schema().stop_words.iter().map(Into::into).collect());
    drop(engine);
    if is_collected {
        reply.simple("gc_stats");
        reply.map(GC.len());
        // No cycle has a length.
        GC.iter().for_each(|name| number(reply, name, if *name == "average_cycle_time_ms" { f64::NAN } else { 0.0 }));
    }
    reply.simple("cursor_stats");
    reply.map(4);
    for (name, value) in [
        ("global_idle", cursors.0 as i64),
        ("global_total", cursors.0 as i64),
        ("index_capacity", CURSORS),
        ("index_total", cursors.1 as i64),
    ] {
        reply.simple(name);
        reply.int(value);
    }
    if let Some(words) = stop_words {
        reply.simple("stopwords_list");
        reply.array(words.len());
        words.iter().for_each(|word| reply.bulk(word));
    }
    dialects(reply, &index);
    reply.simple("Index Errors");
    errors(reply, &index, None);
    statistics(reply, &index, &definition);
    Ok(())
}

/// The dialects of queries that have come.
fn dialects(reply: &mut Reply, index: &SearchIndex) {
    reply.simple("dialect_stats");
    reply.map(4);
    for dialect in 1..=4 {
        reply.simple(&format!("dialect_{dialect}"));
        reply.int(index.has_dialect(dialect).into());
    }
}

/// Documents that could not be indexed, by field.
fn statistics(reply: &mut Reply, index: &SearchIndex, definition: &Definition) {
    reply.simple("field statistics");
    reply.array(definition.fields.len());
    for (at, field) in definition.fields.iter().enumerate() {
        reply.map(3);
        reply.simple("identifier");
        reply.bulk(&field.identifier);
        reply.simple("attribute");
        reply.bulk(field.name.as_bytes());
        reply.simple("Index Errors");
        errors(reply, index, Some(at));
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

/// A field of the schema: in RESP3 a map with its flags in a list, in RESP2 one list.
fn attribute(reply: &mut Reply, field: &Field, source: &SourceField) {
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
    };
    let is_map = reply.is_resp3();
    if is_map {
        reply.map(4 + options);
    } else {
        reply.array(6 + 2 * options + flags.len());
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
    if is_map {
        reply.simple("flags");
        reply.array(flags.len());
    }
    flags.iter().for_each(|flag| reply.simple(flag));
}

fn vector(reply: &mut Reply, options: &VectorOptions) {
    reply.simple("VECTOR");
    let mut named = |name: &str, value: &str| {
        reply.simple(name);
        reply.simple(value);
    };
    named("algorithm", if matches!(options.algorithm, Algorithm::Flat { .. }) { "FLAT" } else { "HNSW" });
    named("data_type", options.element.name());
    reply.simple("dim");
    reply.int(options.dimensions as i64);
    reply.simple("distance_metric");
    reply.simple(options.metric.name());
    if let Algorithm::Hnsw { m, ef_construction, .. } = options.algorithm {
        reply.simple("M");
        reply.int(m as i64);
        reply.simple("ef_construction");
        reply.int(ef_construction as i64);
    }
}

fn number(reply: &mut Reply, name: &str, value: f64) {
    reply.simple(name);
    reply.double(value);
}

fn count(reply: &mut Reply, name: &str, value: usize) {
    reply.simple(name);
    reply.count(value);
}

/// The memory of the index, in megabytes, and averages.
fn sizes(reply: &mut Reply, engine: &Index, records: u64) {
    let (memory, sorted) = (engine.memory(), engine.sort_key_bytes());
    let megabytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let inverted = memory.words + memory.tags + memory.numbers + memory.places;
    number(reply, "inverted_sz_mb", megabytes(inverted));
    number(reply, "vector_index_sz_mb", megabytes(memory.vectors));
    count(reply, "total_inverted_index_blocks", engine.block_count());
    // Positions are a part of the postings.
    number(reply, "offset_vectors_sz_mb", 0.0);
    number(reply, "doc_table_size_mb", megabytes(memory.documents - engine.id_table_bytes()));
    number(reply, "sortable_values_size_mb", megabytes(sorted));
    number(reply, "key_table_size_mb", megabytes(engine.id_table_bytes()));
    number(reply, "tag_overhead_sz_mb", megabytes(memory.tags));
    number(reply, "text_overhead_sz_mb", megabytes(memory.words));
    number(reply, "total_index_memory_sz_mb", megabytes(memory.total()));
    number(reply, "geoshapes_sz_mb", megabytes(memory.shapes));
    let part = |whole: f64, of: u64| whole / of as f64;
    number(reply, "records_per_doc_avg", part(records as f64, engine.len() as u64));
    number(reply, "bytes_per_record_avg", part(inverted as f64, records));
    number(reply, "offsets_per_term_avg", part(0.0, records));
    number(reply, "offset_bits_per_record_avg", part(0.0, records));
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
fn errors(reply: &mut Reply, index: &SearchIndex, field: Option<usize>) {
    let failures = index.failures();
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
