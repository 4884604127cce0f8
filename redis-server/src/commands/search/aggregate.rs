//! FT.AGGREGATE.

use std::sync::atomic::Ordering::Relaxed;

use query_engine::{Aggregation, Datum, Index, KEY, Query, Reducer, Rows, SCORE, SearchOptions, Step};

use super::find::not_loaded;
use super::load::Loader;
use super::pipeline::Request;
use super::query::check_time;
use super::words::Words;
use super::{current, cursor, queried};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::search::{SearchIndex, Source, property};

/// `FT.AGGREGATE index query [step …]`
pub(super) fn aggregate(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = queried(cx, args)?;
    let request = Request::parse(cx, args.at(2), Words::new(args, 3))?;
    let rows = run(cx, &index, &request)?;
    match &request.cursor {
        Some(options) => cursor::begin(cx, index.name(), options, rows),
        None => {
            let mut rows = rows;
            let most = cx.instance().search.options.max_rows.load(Relaxed);
            cursor::show_rows(cx.reply, &mut rows, usize::try_from(most).unwrap_or(usize::MAX), 0);
            Ok(())
        }
    }
}

/// Runs the pipeline.
pub(super) fn run(cx: &Ctx<'_>, index: &SearchIndex, request: &Request<'_>) -> Result<Rows> {
    let deadline = current(cx, &request.common);
    index.note_dialect(request.common.dialect);
    let (engine, definition) = (index.engine(), index.definition());
    let query = request.common.parse(&engine, request.query)?;
    let is_over = || deadline.is_over();
    let options = request.common.options(cx, &is_over);
    let loader = Loader::new(cx, cx.instance(), &definition, request.common.dialect, deadline);
    let mut load: Vec<String> = request.load.iter().map(|(name, _)| name.clone()).collect();
    if request.loads_all {
        all_names(&engine, &query, &options, &loader, &mut load);
    }
    check_names(
        &engine,
        definition.source,
        request,
        load.iter().map(String::as_str).chain(query.distance_names()).collect(),
    )?;
    let computed: Vec<&str> = request.steps.iter().flat_map(computed_names).collect();
    let fetch = |id: &[u8], name: &str| {
        let alias = request.load.iter().find(|(known, _)| known == name);
        let source = alias.map_or(name.as_bytes(), |(_, field)| field);
        loader
            .read(id, |entry| {
                let is_named = request.load.iter().any(|(known, _)| known == name);
                let shows_text = is_named || request.loads_all;
                let text = || loader.field(entry, source).map(Datum::text);
                if source == KEY.as_bytes() {
                    return Some(Datum::text(id));
                }
                let whole = request.loads_all && source == b"$";
                if whole {
                    return loader.all(entry).into_iter().next().map(|(_, text)| Datum::text(text));
                }
                let value = property(&definition, entry, &String::from_utf8_lossy(source), loader.now());
                let is_kept = definition.field(name).is_some_and(|field| field.is_sortable);
                let shows_all = request.common.dialect >= 3 && definition.source == Source::Json;
                match value {
                    // All values of a path, but for those that the index keeps, and for what is computed with.
                    Some(_) if shows_all && !is_kept && (shows_text || !computed.contains(&name)) => text(),
                    // A loaded value is shown as it stands in the document. A number that LOAD names is one, those of `LOAD *` are texts.
                    Some(Datum::Number(_)) if is_named || !request.loads_all => value,
                    None => value,
                    Some(_) if shows_text && !shows_all => text(),
                    value => value,
                }
            })
            .flatten()
    };
    let aggregation =
        Aggregation { steps: &request.steps, load: &load, with_scores: request.with_scores, fetch: Some(&fetch) };
    let rows = engine.aggregate(&query, &options, &aggregation).map_err(|error| Error::Message(error.to_string()))?;
    check_time(cx, rows.is_partial())?;
    Ok(rows)
}

/// The names of properties that a step computes with.
fn computed_names(step: &Step) -> Vec<&str> {
    match step {
        Step::Apply { expression, .. } | Step::Filter(expression) => expression.properties(),
        Step::Group { reducers, .. } => reducers.iter().flat_map(Reducer::reads).collect(),
        Step::Sort { by, .. } => by.iter().map(|(name, _)| name.as_str()).collect(),
        Step::Limit { .. } => Vec::new(),
    }
}

/// The names of all fields of the documents that a query finds, for `LOAD *`.
fn all_names(engine: &Index, query: &Query, options: &SearchOptions<'_>, loader: &Loader<'_>, names: &mut Vec<String>) {
    let options = SearchOptions { limit: query_engine::MAX_WINDOW, ..*options };
    let Ok(found) = engine.search(query, &options) else { return };
    let mut known: std::collections::HashSet<Vec<u8>> = names.iter().map(|name| name.clone().into_bytes()).collect();
    for hit in &found.hits {
        for (name, _) in loader.read(&hit.id, |entry| loader.all(entry)).unwrap_or_default() {
            if known.insert(name.clone()) {
                names.push(String::from_utf8_lossy(&name).into_owned());
            }
        }
    }
}

/// Refuses a property that neither the schema has, nor LOAD, nor the query's distances, nor a step before.
fn check_names<'a>(engine: &Index, source: Source, request: &'a Request<'_>, mut made: Vec<&'a str>) -> Result {
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
            Step::Limit { .. } => {}
        }
    }
    Ok(())
}
