//! The sections of `INFO modules` about search indexes.

use query_engine::vector::{Algorithm, VectorOptions};
use query_engine::{Field, FieldKind};

use crate::exec::core::Ctx;
use crate::search::SETTINGS;

/// A field type's name, and whether a field has it.
type Type = (&'static str, fn(&FieldKind) -> bool);

const TYPES: &[Type] = &[
    ("Text", |kind| matches!(kind, FieldKind::Text { .. })),
    ("Numeric", |kind| matches!(kind, FieldKind::Numeric)),
    ("Tag", |kind| matches!(kind, FieldKind::Tag { .. })),
    ("Geo", |kind| matches!(kind, FieldKind::Geo)),
    ("Geoshape", |kind| matches!(kind, FieldKind::Shape(_))),
    ("Vector", |kind| matches!(kind, FieldKind::Vector(_))),
];

/// A property of a field, and its name in INFO.
type Trait = (&'static str, fn(&Field) -> bool);

/// The properties that INFO counts beside types.
const TRAITS: &[Trait] = &[
    ("Sortable", |field| field.sortable),
    ("NoIndex", |field| !field.indexed),
    ("CaseSensitive", |field| matches!(field.kind, FieldKind::Tag { case_sensitive: true, .. })),
    ("Flat", |field| algorithm(field).is_some_and(|algorithm| matches!(algorithm, Algorithm::Flat { .. }))),
    ("HNSW", |field| algorithm(field).is_some_and(|algorithm| matches!(algorithm, Algorithm::Hnsw { .. }))),
];

fn algorithm(field: &Field) -> Option<Algorithm> {
    match &field.kind {
        FieldKind::Vector(VectorOptions { algorithm, .. }) => Some(*algorithm),
        _ => None,
    }
}

/// Settings by their names there.
const NAMED: &[(&str, &str)] = &[
    ("search_minimal_term_prefix", "MINPREFIX"),
    ("search_minimal_stem_length", "MINSTEMLEN"),
    ("search_maximal_prefix_expansions", "MAXPREFIXEXPANSIONS"),
    ("search_query_timeout_ms", "TIMEOUT"),
    ("search_timeout_policy", "ON_TIMEOUT"),
    ("search_cursor_max_idle_time", "CURSOR_MAX_IDLE"),
    ("search_max_doc_table_size", "MAXDOCTABLESIZE"),
    ("search_max_search_results", "MAXSEARCHRESULTS"),
    ("search_max_aggregate_results", "MAXAGGREGATERESULTS"),
    ("search_gc_scan_size", "GCSCANSIZE"),
    ("search_min_phonetic_term_length", "MIN_PHONETIC_TERM_LEN"),
];

/// Calls `line` with each section's name alone, and with the names and values of its lines.
pub(in crate::commands) fn describe(cx: &Ctx<'_>, line: &mut dyn FnMut(&str, Option<&str>)) {
    let search = &cx.instance().search;
    let indexes = search.indexes();
    line("search_version", None);
    line("search_version", Some("2.10.5"));
    line("search_index", None);
    line("search_number_of_indexes", Some(&indexes.len().to_string()));
    line("search_fields_statistics", None);
    let (mut fields, mut bytes) = (Vec::new(), 0);
    for index in &indexes {
        let engine = index.engine();
        fields.extend(engine.schema().fields().iter().cloned());
        bytes += engine.memory().total();
    }
    for (name, is_one) in TYPES {
        let of: Vec<&Field> = fields.iter().filter(|field| is_one(&field.kind)).collect();
        if of.is_empty() {
            continue;
        }
        let mut counts = vec![format!("{name}={}", of.len())];
        for (name, has) in TRAITS {
            let count = of.iter().filter(|field| has(field)).count();
            counts.extend((count > 0).then(|| format!("{name}={count}")));
        }
        line(&format!("search_fields_{}", name.to_lowercase()), Some(&counts.join(",")));
    }
    line("search_memory", None);
    line("search_used_memory_indexes", Some(&bytes.to_string()));
    line("search_used_memory_indexes_human", Some(&(bytes as f64 / f64::from(1 << 20)).to_string()));
    line("search_total_indexing_time", Some("0"));
    line("search_cursors", None);
    let cursors = search.with_cursors(|cursors| cursors.len()).to_string();
    line("search_global_idle", Some(&cursors));
    line("search_global_total", Some(&cursors));
    line("search_gc", None);
    for name in ["search_bytes_collected", "search_total_cycles", "search_total_ms_run"] {
        line(name, Some("0"));
    }
    line("search_dialect_statistics", None);
    for dialect in 1..=4 {
        let is_used = indexes.iter().any(|index| index.has_dialect(dialect));
        line(&format!("search_dialect_{dialect}"), Some(if is_used { "1" } else { "0" }));
    }
    line("search_runtime_configurations", None);
    line("search_enableGC", Some("ON"));
    for (name, setting) in NAMED {
        let setting = SETTINGS.iter().find(|known| known.name == *setting).expect("the table has every setting");
        let shown = search.options.shown(setting).unwrap_or_default();
        let is_bound = matches!(setting.name, "MAXSEARCHRESULTS" | "MAXAGGREGATERESULTS");
        line(name, Some(if is_bound && shown == "unlimited" { "-1" } else { &shown }));
    }
}
