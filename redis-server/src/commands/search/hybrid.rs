//! FT.HYBRID: a text query and a vector query, whose answers become one.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use query_engine::{
    Aggregation, Answers, Fetch, FieldKind, Fused, Fusion, Hybrid, Index, KEY, Keep, Query, Rows, SCORE, ScoreNames,
    Scorer, SearchOptions, Step,
};

use super::aggregate::{all_names, all_steps, check_names, fetched};
use super::find::escaped;
use super::load::Loader;
use super::lookup::{current, queried};
use super::query::{check_time, scorer};
use super::wire::{Reader, Writer};
use super::words::{MAX_ECHO, Words};
use super::{cursor, gathered, pipeline};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::exec::core::clock::steady_ms;
use crate::protocol::Reply;
use crate::protocol::error::{Error, echo};
use crate::search::SearchIndex;

/// Neighbours, if the call does not say.
const DEFAULT_K: usize = 10;
/// Documents of each answer that count, if the call does not say.
const DEFAULT_WINDOW: usize = 20;
/// RRF's constant, if the call does not say.
const DEFAULT_CONSTANT: f64 = 60.0;
/// LINEAR's weights of text and vector, if the call does not say.
const DEFAULT_WEIGHTS: (f64, f64) = (0.3, 0.7);
/// Rows, if the call does not say.
const DEFAULT_LIMIT: usize = 10;
/// The first dialect with vectors.
const DIALECT: u64 = 2;
/// The parameter of the query that a vector clause becomes.
const VECTOR: &str = "vector";

const NO_DIALECT: Error = Error::Static(
    "DIALECT is not supported in FT.HYBRID or any of its subqueries. Please check the documentation on search-default-dialect configuration.",
);

/// A call.
struct Request<'a> {
    /// The text query with the steps behind both queries.
    tail: pipeline::Request<'a>,
    near: Near<'a>,
    fusion: Fusion,
    window: usize,
    text_name: Option<&'a str>,
    both_name: Option<&'a str>,
    /// NOSORT: all rows, unless LIMIT says.
    is_unsorted: bool,
}

/// VSIM.
struct Near<'a> {
    field: &'a [u8],
    /// The parameter with the vector.
    param: &'a str,
    bound: Bound<'a>,
    filter: Option<&'a [u8]>,
    name: Option<&'a str>,
}

/// How many neighbours count, or how near ones.
enum Bound<'a> {
    Nearest { k: usize, ef_runtime: Option<usize> },
    Within { radius: f64, epsilon: Option<&'a str> },
}

/// `FT.HYBRID index [2] SEARCH query … VSIM @field $vector … [step …]`
pub(super) fn hybrid(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let begun = steady_ms();
    let parts = gathered::parts(cx, args)?;
    let index = queried(cx, args)?;
    let request = Request::parse(cx, Words::new(args, 2))?;
    let (rows, is_partial) = match parts {
        Some(parts) => merged(cx, &index, &request, &parts)?,
        None => run(cx, &index, &request)?,
    };
    check_time(cx, is_partial)?;
    show(cx.reply, rows, is_partial, steady_ms().saturating_sub(begun));
    Ok(())
}

impl<'a> Request<'a> {
    fn parse(cx: &Ctx<'_>, mut words: Words<'a>) -> Result<Self> {
        let count = words.peek().is_some_and(|word| word.iter().all(u8::is_ascii_digit));
        if count && words.number::<u64>("FT.HYBRID")? != 2 {
            return Err(Error::Static("FT.HYBRID currently supports only two subqueries"));
        }
        if !words.take("SEARCH") {
            return Err(Error::Static("SEARCH keyword is required"));
        }
        let query = words.next().ok_or(Error::Static("No query string provided for SEARCH"))?;
        let mut tail = pipeline::Request::new(cx, query);
        tail.common.dialect = tail.common.dialect.max(DIALECT);
        tail.common.query_dialect = tail.common.dialect;
        // The default at all levels.
        tail.common.scorer = Some(Scorer::Bm25Std);
        let mut text_name = None;
        while !words.take("VSIM") {
            match () {
                () if words.take("SCORER") => tail.common.scorer = Some(scorer(words.text("SCORER")?)?),
                () if words.take("YIELD_SCORE_AS") => text_name = Some(alias(&mut words)?),
                () if words.take("DIALECT") => return Err(NO_DIALECT),
                () if words.is_empty() => return Err(Error::Static("VSIM argument is required")),
                () => return Err(unknown(&words, "SEARCH")),
            }
        }
        let near = Near::parse(&mut words)?;
        let fusion = Fusion::Ranks { constant: DEFAULT_CONSTANT };
        let (window, both_name) = (DEFAULT_WINDOW, None);
        let mut request = Self { tail, near, fusion, window, text_name, both_name, is_unsorted: false };
        let most = cx.instance().search.options.max_rows.load(Relaxed);
        while !words.is_empty() {
            request.take(&mut words, most)?;
        }
        request.complete(cx.reply.is_resp3())?;
        Ok(request)
    }

    /// Takes an option behind both queries.
    fn take(&mut self, words: &mut Words<'a>, most: u64) -> Result {
        match () {
            () if words.take("DIALECT") => Err(NO_DIALECT),
            () if words.take("COMBINE") => self.combine(words),
            () if words.take("NOSORT") => {
                self.is_unsorted = true;
                Ok(())
            }
            () if words.take("WITHCURSOR") => Err(Error::Static("WITHCURSOR is not supported on FT.HYBRID")),
            () if words.take("ADDSCORES") || words.take("NOCONTENT") => Err(unknown(words, "FT.HYBRID")),
            () if self.tail.common.take(words)? => Ok(()),
            () => self.tail.take(words, most),
        }
    }

    /// `RRF count … ` or `LINEAR count …`
    fn combine(&mut self, words: &mut Words<'a>) -> Result {
        let is_rrf = words.take("RRF");
        if !is_rrf && !words.take("LINEAR") {
            return Err(Error::Static("COMBINE: Invalid value for argument"));
        }
        let method = if is_rrf { "RRF" } else { "LINEAR" };
        let mut list = pairs(words, method)?;
        let (mut constant, mut text, mut vector) = (DEFAULT_CONSTANT, None, None);
        while !list.is_empty() {
            match () {
                () if is_rrf && list.take("CONSTANT") => constant = finite(&mut list, "CONSTANT")?,
                () if !is_rrf && list.take("ALPHA") => text = Some(finite(&mut list, "ALPHA")?),
                () if !is_rrf && list.take("BETA") => vector = Some(finite(&mut list, "BETA")?),
                () if list.take("WINDOW") => self.window = positive(&mut list, "WINDOW")?,
                () if list.take("YIELD_SCORE_AS") => self.both_name = Some(alias(&mut list)?),
                () => return Err(unknown(&list, method)),
            }
        }
        self.fusion = match (text, vector) {
            _ if is_rrf => Fusion::Ranks { constant },
            (Some(text), Some(vector)) => Fusion::Scores { text, vector },
            (None, None) => Fusion::Scores { text: DEFAULT_WEIGHTS.0, vector: DEFAULT_WEIGHTS.1 },
            (Some(_), None) => return Err(Error::Static("Missing value for BETA")),
            (None, Some(_)) => return Err(Error::Static("Missing value for ALPHA")),
        };
        if words.take("YIELD_SCORE_AS") {
            if self.both_name.is_some() {
                return Err(Error::Static("YIELD_SCORE_AS specified more than once"));
            }
            self.both_name = Some(alias(words)?);
        }
        Ok(())
    }

    /// Behind all options: the best rows, unless a step behind the last group chooses others.
    fn complete(&mut self, is_resp3: bool) -> Result {
        let steps = &mut self.tail.steps;
        let group = steps.iter().rposition(|step| matches!(step, Step::Group { .. }));
        let mut last = steps[group.unwrap_or(0)..].iter();
        if self.is_unsorted && steps.iter().any(|step| matches!(step, Step::Sort { .. })) {
            return Err(Error::Static("NOSORT is not allowed with SORTBY"));
        }
        if !self.is_unsorted && !last.any(|step| matches!(step, Step::Sort { .. } | Step::Limit { .. })) {
            steps.push(Step::Limit { offset: 0, count: DEFAULT_LIMIT });
        }
        if self.tail.common.expands {
            return Err(Error::Static("FORMAT EXPAND is not supported on FT.HYBRID"));
        }
        self.tail.complete(is_resp3)
    }
}

impl<'a> Near<'a> {
    /// `@field $vector [KNN …|RANGE …] [FILTER …] [YIELD_SCORE_AS name]`
    fn parse(words: &mut Words<'a>) -> Result<Self> {
        let field = words.next().ok_or(Error::Static("Missing vector field name"))?;
        let field = field.strip_prefix(b"@").ok_or(Error::Static("Missing @ prefix for vector field name"))?;
        if words.is_empty() {
            return Err(Error::Static("Missing vector argument"));
        }
        let param = words.text("VSIM").ok().and_then(|word| word.strip_prefix('$'));
        let why = "Invalid vector argument, expected a parameter name starting with $";
        let param = param.ok_or(Error::Static(why))?;
        let bound = match () {
            () if words.take("KNN") => nearest(words)?,
            () if words.take("RANGE") => within(words)?,
            () => Bound::Nearest { k: DEFAULT_K, ef_runtime: None },
        };
        let filter = if words.take("FILTER") { Some(filter(words)?) } else { None };
        let name = if words.take("YIELD_SCORE_AS") { Some(alias(words)?) } else { None };
        Ok(Self { field, param, bound, filter, name })
    }

    /// The query of the vectors, of which the window bounds the neighbours.
    fn query(&self, index: &Index, request: &pipeline::Request<'_>, window: usize) -> Result<Query> {
        let field = index.schema().find(self.field).and_then(|field| index.schema().fields().get(field));
        let shown = echo(self.field, MAX_ECHO);
        match field.map(|field| &field.kind) {
            None => return Err(Error::Message(format!("Unknown field at offset 0 near {shown}"))),
            Some(FieldKind::Vector(_)) => {}
            Some(_) => {
                return Err(Error::Message(format!("Expected a VECTOR field at offset 0 near {shown}")));
            }
        }
        let missing = || Error::Message(format!("No such parameter `{}`", self.param));
        let vector = request.common.param(self.param).ok_or_else(missing)?;
        let name = escaped(self.field);
        let text = match self.bound {
            Bound::Nearest { k, ef_runtime } => {
                let effort = ef_runtime.map_or_else(String::new, |effort| format!(" EF_RUNTIME {effort}"));
                format!("*=>[KNN {} @{name} ${VECTOR}{effort}]", k.min(window))
            }
            Bound::Within { radius, epsilon } => {
                let epsilon = epsilon.map_or_else(String::new, |epsilon| format!(" $epsilon:{epsilon};"));
                format!("@{name}:[VECTOR_RANGE {radius} ${VECTOR}]=>{{{epsilon} $yield_distance_as:__distance}}")
            }
        };
        let near = request.common.parse_with(index, text.as_bytes(), &[(VECTOR, vector)])?;
        let Some(filter) = self.filter else { return Ok(near) };
        let filter = request.common.parse(index, filter)?;
        if filter.has_vectors() {
            return Err(Error::Static("Vector expressions are not allowed in FT.HYBRID VSIM FILTER"));
        }
        Ok(near.and(filter))
    }
}

/// `count K neighbours [EF_RUNTIME effort]`
fn nearest<'a>(words: &mut Words<'a>) -> Result<Bound<'a>> {
    let (mut list, mut neighbours, mut ef_runtime) = (arguments(words)?, None, None);
    while !list.is_empty() {
        match () {
            () if list.take("K") => neighbours = Some(positive(&mut list, "K")?),
            () if list.take("EF_RUNTIME") => ef_runtime = Some(positive(&mut list, "EF_RUNTIME")?),
            // There is one shard.
            () if list.take("SHARD_K_RATIO") => _ = list.number::<f64>("SHARD_K_RATIO")?,
            () => return Err(unknown(&list, "KNN")),
        }
    }
    let k = neighbours.ok_or(Error::Static("Missing required argument K"))?;
    Ok(Bound::Nearest { k, ef_runtime })
}

/// `count RADIUS radius [EPSILON epsilon]`
fn within<'a>(words: &mut Words<'a>) -> Result<Bound<'a>> {
    let (mut list, mut radius, mut epsilon) = (arguments(words)?, None, None);
    while !list.is_empty() {
        match () {
            () if list.take("RADIUS") => {
                let given = list.number("RADIUS").ok().filter(|given: &f64| given.is_finite() && *given >= 0.0);
                radius = Some(given.ok_or(Error::Static("Invalid RADIUS value"))?);
            }
            () if list.take("EPSILON") => {
                let given = list.text("EPSILON").ok().filter(|text| text.parse().is_ok_and(|given: f64| given > 0.0));
                epsilon = Some(given.ok_or(Error::Static("Invalid EPSILON value"))?);
            }
            () => return Err(unknown(&list, "RANGE")),
        }
    }
    let radius = radius.ok_or(Error::Static("Missing required argument RADIUS"))?;
    Ok(Bound::Within { radius, epsilon })
}

/// `query`, or `count query [POLICY policy] [BATCH_SIZE size]`: as for `=>[KNN …]`, the engine chooses.
fn filter<'a>(words: &mut Words<'a>) -> Result<&'a [u8]> {
    let word = words.next().ok_or(Error::Static("Missing argument count for FILTER"))?;
    let Some(count) = std::str::from_utf8(word).ok().and_then(|word| word.parse::<usize>().ok()) else {
        return Ok(word);
    };
    let left = words.left();
    if count > left {
        let why = format!("Not enough arguments in FILTER, specified {count} but provided only {left}");
        return Err(Error::Message(why));
    }
    let query = words.next().filter(|_| count > 0).ok_or(Error::Static("Missing filter-expression for FILTER"))?;
    for _ in 0..count.saturating_sub(1) / 2 {
        match () {
            () if words.take("POLICY") => {
                if !words.take("ADHOC") && !words.take("BATCHES") {
                    return Err(Error::Static("POLICY: Invalid value for argument"));
                }
            }
            () if words.take("BATCH_SIZE") => _ = positive(words, "BATCH_SIZE")?,
            () => return Err(unknown(words, "FILTER")),
        }
    }
    Ok(query)
}

/// `count` and so many arguments of KNN or RANGE.
fn arguments<'a>(words: &mut Words<'a>) -> Result<Words<'a>> {
    let Some(word) = words.peek() else { return Err(Error::Static("Missing argument count")) };
    let count: Option<usize> = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
    let count = count.ok_or(Error::Static("Invalid argument count: expected an unsigned integer"))?;
    if count == 0 || count % 2 != 0 {
        let why = format!("Invalid argument count: {count} (must be a positive even number for key/value pairs)");
        return Err(Error::Message(why));
    }
    let left = words.left() - 1;
    words.list("VSIM").map_err(|_| Error::Message(format!("Expected arguments {count}, but {left} were provided")))
}

/// `count` and so many arguments of COMBINE.
fn pairs<'a>(words: &mut Words<'a>, method: &str) -> Result<Words<'a>> {
    let list = words.list(method)?;
    if list.left() % 2 != 0 {
        let why = format!("{method} expects pairs of key value arguments, argument count must be an even number");
        return Err(Error::Message(why));
    }
    Ok(list)
}

fn positive(words: &mut Words<'_>, option: &str) -> Result<usize> {
    let number = words.number(option).ok().filter(|number| *number > 0);
    number.ok_or_else(|| Error::Message(format!("Invalid {option} value")))
}

/// A part of a sum of scores, which is to be a number.
fn finite(words: &mut Words<'_>, option: &str) -> Result<f64> {
    let number = words.number(option).ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| Error::Message(format!("Invalid {option} value")))
}

/// The name behind YIELD_SCORE_AS.
fn alias<'a>(words: &mut Words<'a>) -> Result<&'a str> {
    words.text("YIELD_SCORE_AS").map_err(|_| Error::Static("Missing argument value for YIELD_SCORE_AS"))
}

fn unknown(words: &Words<'_>, clause: &str) -> Error {
    Error::Message(format!("Unknown argument `{}` in {clause}", words.shown()))
}

/// Calls `work` with both queries.
fn with_queries<R>(
    cx: &Ctx<'_>,
    index: &SearchIndex,
    request: &Request<'_>,
    keeps: Option<&Keep<'_>>,
    work: impl FnOnce(&Index, &Hybrid<'_>, &SearchOptions<'_>, &Loader<'_>) -> Result<R>,
) -> Result<R> {
    let tail = &request.tail;
    let deadline = current(cx, &tail.common);
    index.note_dialect(tail.common.query_dialect);
    let (engine, definition) = (index.engine(), index.definition());
    let text = tail.common.parse(&engine, tail.query)?;
    if text.has_vectors() {
        return Err(Error::Static("Vector expressions are not allowed in FT.HYBRID SEARCH"));
    }
    let near = request.near.query(&engine, tail, request.window)?;
    let is_over = || deadline.is_over();
    let options = SearchOptions { keeps, ..tail.common.options(cx, &is_over) };
    let hybrid = Hybrid { text: &text, near: &near, fusion: request.fusion, window: request.window };
    let loader = Loader::new(cx, cx.instance(), &definition, tail.common.dialect, deadline);
    work(&engine, &hybrid, &options, &loader)
}

/// Finds the documents of both queries and runs the steps; also returns whether time was up.
fn run(cx: &Ctx<'_>, index: &SearchIndex, request: &Request<'_>) -> Result<(Rows, bool)> {
    with_queries(cx, index, request, None, |engine, hybrid, options, loader| {
        let (documents, is_partial) = engine.fuse(hybrid, options).map_err(|error| failed(&error))?;
        let load = loaded(request, documents.iter().map(|document| &*document.id), loader);
        let fetch = |id: &[u8], name: &str| fetched(&request.tail, loader, id, name);
        let rows = rows(engine, index, request, &documents, (&load, &fetch, loader.lists_values()))?;
        Ok((rows, is_partial))
    })
}

/// This node's part: the documents of both queries, with the properties that steps read.
pub(super) fn part(
    cx: &Ctx<'_>,
    index: &SearchIndex,
    words: Words<'_>,
    keeps: Option<&Keep<'_>>,
    writer: &mut Writer,
) -> Result {
    let request = Request::parse(cx, words)?;
    with_queries(cx, index, &request, keeps, |engine, hybrid, options, loader| {
        let answers = engine.answers(hybrid, options).map_err(|error| failed(&error))?;
        let ids = answers.text.iter().map(|(id, _)| id).chain(answers.near.iter().map(|(id, ..)| id));
        let ids: BTreeSet<Arc<[u8]>> = ids.cloned().collect();
        let load = loaded(&request, ids.iter().map(|id| &**id), loader);
        let steps = all_steps(&request.tail, &load);
        let fetch = |id: &[u8], name: &str| fetched(&request.tail, loader, id, name);
        let fetches_all = loader.lists_values();
        let aggregation =
            Aggregation { steps: &steps, load: &load, fetch: Some(&fetch), fetches_all, ..Aggregation::default() };
        let made = [Some(KEY), Some(request.both_name.unwrap_or(SCORE)), request.text_name, request.near.name];
        let mut columns = aggregation.properties();
        columns.retain(|name| !made.contains(&Some(name)));
        let values = |id: &Arc<[u8]>| columns.iter().map(|name| engine.property(id, name, &aggregation)).collect();
        let rows: Vec<_> = ids.iter().map(|id| (Arc::clone(id), values(id))).collect();
        writer.answers(&answers);
        writer.list(&load, |writer, name| writer.text(name.as_bytes()));
        writer.rows(&columns, &rows);
        Ok(())
    })
}

/// [`run`] over the parts of all nodes.
fn merged(cx: &Ctx<'_>, index: &SearchIndex, request: &Request<'_>, parts: &[Vec<u8>]) -> Result<(Rows, bool)> {
    let (mut answers, mut load, mut values, mut is_partial) = (Vec::new(), Vec::new(), HashMap::new(), false);
    for part in parts {
        if part.is_empty() {
            is_partial = true;
            continue;
        }
        let mut reader = Reader::new(part);
        let own = reader.answers()?;
        is_partial |= own.is_partial;
        answers.push(own);
        for name in reader.list(Reader::name)? {
            if !load.contains(&name) {
                load.push(name);
            }
        }
        let (columns, rows) = reader.rows()?;
        let columns: Arc<[String]> = columns.into();
        values.extend(rows.into_iter().map(|(id, row)| (id, (Arc::clone(&columns), row))));
    }
    let fetch = |id: &[u8], name: &str| {
        let (columns, row) = values.get(id)?;
        row.get(columns.iter().position(|known| known == name)?)?.clone()
    };
    let rows = with_queries(cx, index, request, None, |engine, hybrid, _, loader| {
        let documents = Answers::fuse(answers, hybrid);
        rows(engine, index, request, &documents, (&load, &fetch, loader.lists_values()))
    })?;
    Ok((rows, is_partial))
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::Message(error.to_string())
}

/// The properties that are loaded, the source of values, and whether it has those that the index keeps, too.
type Values<'v> = (&'v [String], &'v Fetch<'v>, bool);

/// Runs documents through the steps.
fn rows(
    engine: &Index,
    index: &SearchIndex,
    request: &Request<'_>,
    documents: &[Fused],
    (load, fetch, fetches_all): Values<'_>,
) -> Result<Rows> {
    let (tail, both) = (&request.tail, request.both_name.unwrap_or(SCORE));
    let steps = all_steps(tail, load);
    let scores = [Some(KEY), Some(both), request.text_name, request.near.name];
    let made = load.iter().map(String::as_str).chain(scores.into_iter().flatten());
    check_names(engine, index.definition().source, tail, made.collect())?;
    let aggregation = Aggregation { steps: &steps, load, fetch: Some(fetch), fetches_all, ..Aggregation::default() };
    let names = ScoreNames { text: request.text_name, vector: request.near.name, both };
    engine.aggregate_fused(documents, &names, &aggregation).map_err(|error| failed(&error))
}

/// The names of properties that rows have before any step: those of LOAD, or the key and the score.
fn loaded<'i>(request: &Request<'_>, ids: impl Iterator<Item = &'i [u8]>, loader: &Loader<'_>) -> Vec<String> {
    let mut names: Vec<String> = request.tail.load.iter().map(|(name, _)| name.clone()).collect();
    if request.tail.loads_all {
        all_names(ids, loader, &mut names);
    } else if names.is_empty() {
        names.push(KEY.to_owned());
        names.extend(request.both_name.is_none().then(|| SCORE.to_owned()));
    }
    names
}

/// Writes the answer: a map, in RESP2 a list of names and values.
fn show(reply: &mut Reply, mut rows: Rows, is_partial: bool, ms: u64) {
    reply.map(4);
    reply.simple("total_results");
    reply.int(rows.all() as i64);
    reply.simple("results");
    let all = rows.read(usize::MAX);
    reply.array(all.len());
    all.iter().for_each(|values| cursor::properties(reply, rows.columns(), values, None));
    reply.simple("warnings");
    let failure = rows.failure().map(ToString::to_string);
    reply.array(usize::from(is_partial) + usize::from(failure.is_some()));
    if is_partial {
        reply.simple("Timeout limit was reached");
    }
    failure.iter().for_each(|why| reply.simple(why));
    reply.simple("execution_time");
    reply.double(ms as f64);
}
