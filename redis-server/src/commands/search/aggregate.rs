//! FT.AGGREGATE.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;

use query_engine::{
    Aggregation, Datum, Index, KEY, MAX_WINDOW, Part, Profiler, Query, Reducer, Rows, SCORE, SearchOptions, Step,
};

use super::find::{Watch, not_loaded};
use super::load::Loader;
use super::lookup::{current, queried};
use super::pipeline::Request;
use super::query::check_time;
use super::words::Words;
use super::{cursor, expand, gathered, merge};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::keyspace::Entry;
use crate::protocol::error::Error;
use crate::search::{Definition, SearchIndex, Source};

/// `FT.AGGREGATE index query [step …]`
pub(super) fn aggregate(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let parts = gathered::parts(cx, args)?;
    let index = queried(cx, args)?;
    let request = Request::parse(cx, args.at(2), Words::new(args, 3))?;
    let rows = match parts {
        Some(parts) => merge::rows(cx, &index, &request, &parts)?,
        None => run(cx, &index, &request, None)?,
    };
    let json = request.common.expands.then(|| json_columns(&index.definition(), &request, &rows));
    match &request.cursor {
        Some(options) => cursor::begin(cx, index.name(), options, (rows, json)),
        None => {
            let mut rows = rows;
            // The total of valkey-search.
            if cx.config().level().is_valkey() {
                rows.count_rows();
            }
            if request.no_content {
                cursor::show_nothing(cx.reply, &rows);
                return Ok(());
            }
            let most = cx.instance().search.options.max_rows.load(Relaxed);
            cursor::show_expanded(cx.reply, &mut rows, usize::try_from(most).unwrap_or(usize::MAX), json.as_deref());
            Ok(())
        }
    }
}

/// The steps of a call, with these names for `LOAD *`: they stand behind what other steps name, and behind a group there are none.
pub(super) fn all_steps(request: &Request<'_>, all: &[String]) -> Vec<Step> {
    let mut steps = request.steps.clone();
    if request.loads_all {
        let group = steps.iter().position(|step| matches!(step, Step::Group { .. }));
        steps.insert(group.unwrap_or(steps.len()), Step::Load(all.to_vec()));
    }
    steps
}

/// Runs the pipeline. One that is watched by a profiler does not fail at the end of its time.
pub(super) fn run(
    cx: &Ctx<'_>,
    index: &SearchIndex,
    request: &Request<'_>,
    profiler: Option<&Profiler>,
) -> Result<Rows> {
    let watch = Watch { profiler, keeps: None };
    let rows = with_source(cx, index, request, watch, |engine, query, options, aggregation| {
        engine.aggregate(query, options, aggregation).map_err(|error| Error::Message(error.to_string()))
    })??;
    if profiler.is_none() {
        check_time(cx, rows.is_partial())?;
    }
    Ok(rows)
}

/// The rows of this node's documents before any step.
pub(super) fn part(cx: &Ctx<'_>, index: &SearchIndex, request: &Request<'_>, watch: Watch<'_>) -> Result<Part> {
    let part = with_source(cx, index, request, watch, Index::part)?;
    check_time(cx, part.is_partial)?;
    Ok(part)
}

/// Calls `work` with what makes the rows of a pipeline.
fn with_source<R>(
    cx: &Ctx<'_>,
    index: &SearchIndex,
    request: &Request<'_>,
    Watch { profiler, keeps }: Watch<'_>,
    work: impl FnOnce(&Index, &Query, &SearchOptions<'_>, &Aggregation<'_>) -> R,
) -> Result<R> {
    let deadline = current(cx, &request.common);
    index.note_dialect(request.common.query_dialect);
    let (engine, definition) = (index.engine(), index.definition());
    request.common.check_source(definition.source)?;
    let query = request.common.parse(&engine, request.query)?;
    let is_over = || deadline.is_over();
    let options = SearchOptions { keeps, ..request.common.options(cx, &is_over) };
    let loader = Loader::new(cx, cx.instance(), &definition, request.common.dialect, deadline);
    let mut load: Vec<String> = request.load.iter().map(|(name, _)| name.clone()).collect();
    if request.loads_all {
        let all = SearchOptions { limit: MAX_WINDOW, ..options };
        let hits = engine.search(&query, &all).map_or_else(|_| Vec::new(), |found| found.hits);
        all_names(hits.iter().map(|hit| &*hit.id), &loader, &mut load);
    }
    let steps = all_steps(request, &load);
    let options = SearchOptions { profiler, ..options };
    let by_steps = |name: &&String| request.load.iter().all(|(known, _)| known != *name);
    let made = load.iter().filter(by_steps).map(String::as_str).chain(query.distance_names());
    check_names(&engine, definition.source, request, made.collect())?;
    let fetch = |id: &[u8], name: &str| fetched(request, &loader, id, name);
    let ahead = |ids: &[&[u8]]| loader.ask_for(ids);
    let aggregation = Aggregation {
        steps: &steps,
        load: &load,
        with_scores: request.with_scores,
        fetch: Some(&fetch),
        ahead: Some(&ahead),
        fetches_all: loader.lists_values(),
    };
    Ok(work(&engine, &query, &options, &aggregation))
}

/// Which columns show JSON: properties of documents that no step has made.
fn json_columns(definition: &Definition, request: &Request<'_>, rows: &Rows) -> Box<[bool]> {
    let made = |name: &str| {
        request.steps.iter().any(|step| match step {
            Step::Apply { name: made, .. } => made == name,
            Step::Group { reducers, .. } => reducers.iter().any(|reducer| reducer.name == name),
            Step::Filter(_) | Step::Load(_) | Step::Sort { .. } | Step::Limit { .. } => false,
        })
    };
    let is_json = |name: &String| {
        let loaded = request.load.iter().find(|(known, _)| known == name);
        let identifier = loaded.map_or(name.as_bytes(), |(_, identifier)| identifier);
        name != SCORE && !made(name) && expand::is_json(definition, identifier)
    };
    rows.columns().iter().map(is_json).collect()
}

/// A document's property as steps read it.
pub(super) fn fetched(request: &Request<'_>, loader: &Loader<'_>, id: &[u8], name: &str) -> Option<Datum> {
    let alias = request.load.iter().find(|(known, _)| known == name);
    let source = alias.map_or(name.as_bytes(), |(_, field)| field);
    let read = |entry: &Entry| {
        let is_named = alias.is_some();
        if source == KEY.as_bytes() {
            return Some(Datum::text(id));
        }
        if request.loads_all && source == b"$" {
            return loader.all(entry).into_iter().next().map(|(_, text)| Datum::text(text));
        }
        let value = loader.value(entry, source);
        match value {
            _ if loader.lists_values() => value,
            // A loaded value is shown as it stands in the document. A number that LOAD names is one, those of `LOAD *` are texts.
            Some(Datum::Number(_)) if is_named || !request.loads_all => value,
            Some(_) if is_named || request.loads_all => loader.field(entry, source).map(Datum::text),
            value => value,
        }
    };
    loader.read(id, read).flatten()
}

/// The names of all fields of documents, for `LOAD *`.
pub(super) fn all_names<'i>(ids: impl Iterator<Item = &'i [u8]>, loader: &Loader<'_>, names: &mut Vec<String>) {
    let mut known: HashSet<Vec<u8>> = names.iter().map(|name| name.clone().into_bytes()).collect();
    for id in ids {
        for (name, _) in loader.read(id, |entry| loader.all(entry)).unwrap_or_default() {
            if known.insert(name.clone()) {
                names.push(String::from_utf8_lossy(&name).into_owned());
            }
        }
    }
}

/// Refuses a property that neither the schema has, nor LOAD, nor the query's distances, nor a step before.
pub(super) fn check_names<'a>(
    engine: &Index,
    source: Source,
    request: &'a Request<'_>,
    mut made: Vec<&'a str>,
) -> Result {
    let mut is_grouped = false;
    // A step that reads properties by itself loads those of the schema; behind a group there are its own alone.
    let check = |name: &str, made: &[&str], is_grouped: bool| {
        let is_known = made.contains(&name)
            || name == KEY
            || name == SCORE && request.with_scores
            || !is_grouped && engine.schema().find(name.as_bytes()).is_some();
        if is_known { Ok(()) } else { Err(not_loaded(name)) }
    };
    let not_there = |name: &str| Error::Message(format!("Property `{name}` not loaded nor in pipeline"));
    // An expression loads nothing.
    let check_expression = |name: &str, made: &[&str], is_grouped: bool| {
        let field = engine.schema().find(name.as_bytes()).and_then(|field| engine.schema().fields().get(field));
        let is_loaded = request.loads_all && source == Source::Hash;
        let is_kept = !is_grouped && (is_loaded || field.is_some_and(|field| field.sortable));
        let is_known = is_kept || made.contains(&name) || name == KEY || name == SCORE && request.with_scores;
        if is_known { Ok(()) } else { Err(not_there(name)) }
    };
    for step in &request.steps {
        match step {
            Step::Apply { expression, name } => {
                expression.properties().iter().try_for_each(|name| check_expression(name, &made, is_grouped))?;
                made.push(name);
            }
            Step::Filter(expression) => {
                expression.properties().iter().try_for_each(|name| check_expression(name, &made, is_grouped))?;
            }
            Step::Group { by, reducers } => {
                let no_property = |name: &str| Error::Message(format!("No such property `{name}`"));
                by.iter().try_for_each(|name| check(name, &made, is_grouped).map_err(|_| no_property(name)))?;
                let absent =
                    |name: &str| Error::Message(format!("Property `{name}` not present in document or pipeline"));
                for name in reducers.iter().flat_map(Reducer::reads) {
                    check(name, &made, is_grouped).map_err(|_| absent(name))?;
                }
                let mut names = by.iter().chain(reducers.iter().map(|reducer| &reducer.name)).collect::<Vec<_>>();
                names.sort_unstable();
                if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(Error::Message(format!("Property `{}` specified more than once", pair[0])));
                }
                is_grouped = true;
                made.clear();
                made.extend(by.iter().map(String::as_str));
                made.extend(reducers.iter().map(|reducer| reducer.name.as_str()));
            }
            Step::Sort { by, .. } => {
                by.iter().try_for_each(|(name, _)| check(name, &made, is_grouped))?;
                made.extend(by.iter().map(|(name, _)| name.as_str()));
            }
            Step::Load(names) => made.extend(names.iter().map(String::as_str)),
            Step::Limit { .. } => {}
        }
    }
    Ok(())
}
