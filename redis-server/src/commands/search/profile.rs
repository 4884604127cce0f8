//! FT.PROFILE: a query with the work of its iterators and its steps.

use std::sync::atomic::Ordering::Relaxed;

use query_engine::{IteratorKind, IteratorProfile, Keep, Profiler, Reducer, Step};

use super::lookup::queried;
use super::wire::{Reader, Writer};
use super::words::Words;
use super::{aggregate, cursor, find, gathered, load, lookup, merge, pipeline, show};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::exec::core::clock::now_us;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::search::{Definition, SearchIndex};

/// `FT.PROFILE index SEARCH|AGGREGATE [LIMITED] QUERY query [option …]`
pub(super) fn profile(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let mut words = Words::new(args, 2);
    let is_search = words.take("SEARCH");
    if !is_search && !words.take("AGGREGATE") {
        return Err(Error::Static("No `SEARCH` or `AGGREGATE` provided"));
    }
    let is_limited = words.take("LIMITED");
    if !words.take("QUERY") {
        return Err(Error::Static("The QUERY keyword is expected"));
    }
    let query = words.need("QUERY")?;
    if let Some(parts) = gathered::parts(cx, args)? {
        return merged(cx, args, is_search, (query, words), &parts);
    }
    let index = queried(cx, args)?;
    let shows_times = cx.instance().search.options.shows_times.load(Relaxed) != 0;
    let max_expansions = cx.instance().search.options.max_expansions.load(Relaxed);
    let mut told = Told { is_limited, shows_times, max_expansions, ..Told::default() };
    let profiler = Profiler::new(now_us);
    let began = now_us();
    let is_map = cx.reply.is_resp3();
    if is_search {
        let request = find::Request::parse(cx, query, words)?;
        let watch = find::Watch { profiler: Some(&profiler), keeps: None };
        let loaded = search(cx, &index, &request, watch, (&mut told, began))?;
        if !is_map {
            cx.reply.array(2);
        }
        show::hits_and(cx, &index, &request, &loaded, usize::from(is_map))?;
    } else {
        aggregation(cx, &index, (query, words), &profiler, &mut told)?;
    }
    told.iterators = profiler.iterators();
    told.total = now_us().saturating_sub(began);
    if is_map {
        cx.reply.simple("profile");
    }
    told.show(cx.reply);
    Ok(())
}

/// This node's part: that of the query, and the work in both protocols.
pub(super) fn part(cx: &Ctx<'_>, args: Args<'_>, keeps: Option<&Keep<'_>>, writer: &mut Writer) -> Result {
    let index = lookup::found(cx, args)?;
    let mut words = Words::new(args, 2);
    let is_search = words.take("SEARCH") || !words.take("AGGREGATE");
    let is_limited = words.take("LIMITED");
    words.take("QUERY");
    let query = words.need("QUERY")?;
    let shows_times = cx.instance().search.options.shows_times.load(Relaxed) != 0;
    let max_expansions = cx.instance().search.options.max_expansions.load(Relaxed);
    let mut told = Told { is_limited, shows_times, max_expansions, ..Told::default() };
    let profiler = Profiler::new(now_us);
    let (began, watch) = (now_us(), find::Watch { profiler: Some(&profiler), keeps });
    if is_search {
        let mut request = find::Request::parse(cx, query, words)?;
        request.become_part(&index.engine())?;
        writer.loaded(&search(cx, &index, &request, watch, (&mut told, began))?);
    } else {
        let request = aggregated(cx, query, words)?;
        let part = aggregate::part(cx, &index, &request, watch)?;
        told.is_partial = part.is_partial;
        told.step("Index", profiler.found(), now_us().saturating_sub(began));
        writer.part(&part);
    }
    told.iterators = profiler.iterators();
    told.total = now_us().saturating_sub(began);
    for is_resp3 in [false, true] {
        let mut reply = Reply::default();
        reply.set_resp3(is_resp3);
        told.show(&mut reply);
        writer.text(&reply.to_vec());
    }
    Ok(())
}

/// Answers from the parts of all nodes: the profile has one of each.
fn merged<'a>(
    cx: &mut Ctx<'_>,
    args: Args<'_>,
    is_search: bool,
    (query, words): (&'a [u8], Words<'a>),
    parts: &[Vec<u8>],
) -> Result {
    let index = queried(cx, args)?;
    let is_map = cx.reply.is_resp3();
    let mut profiles = Vec::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let mut reader = Reader::new(part);
        if is_search {
            reader.loaded()?;
        } else {
            reader.part()?;
        }
        let [of_resp2, of_resp3] = [reader.text()?, reader.text()?];
        profiles.push(if is_map { of_resp3 } else { of_resp2 });
    }
    let mark = cx.reply.mark();
    if !is_map {
        cx.reply.array(2);
    }
    let answered = if is_search {
        let request = find::Request::parse(cx, query, words)?;
        merge::answer(cx, &index, &request, parts, usize::from(is_map))
    } else {
        let request = aggregated(cx, query, words)?;
        let rows = merge::all_rows(&index, &request, parts);
        rows.map(|mut rows| _ = cursor::show_rows(cx.reply, &mut rows, usize::MAX, usize::from(is_map)))
    };
    if answered.is_err() {
        cx.reply.truncate(mark);
        return answered;
    }
    if is_map {
        cx.reply.simple("profile");
    }
    cx.reply.map(2);
    cx.reply.simple("Shards");
    cx.reply.array(profiles.len());
    profiles.iter().for_each(|profile| cx.reply.raw(profile));
    cx.reply.simple("Coordinator");
    cx.reply.map(0);
    Ok(())
}

fn aggregated<'a>(cx: &Ctx<'_>, query: &'a [u8], words: Words<'a>) -> Result<pipeline::Request<'a>> {
    let request = pipeline::Request::parse(cx, query, words)?;
    if request.cursor.is_some() {
        return Err(Error::Static("FT.PROFILE does not support cursor"));
    }
    Ok(request)
}

/// Runs a search that was parsed since `parsed`, and tells its steps.
fn search(
    cx: &Ctx<'_>,
    index: &SearchIndex,
    request: &find::Request<'_>,
    watch: find::Watch<'_>,
    (told, parsed): (&mut Told, u64),
) -> Result<load::Loaded> {
    told.parsing = now_us().saturating_sub(parsed);
    let deadline = lookup::current(cx, &request.common);
    let began = now_us();
    let hits = find::run(cx, index, request, deadline, watch)?;
    let searched = now_us();
    told.is_partial = hits.is_partial;
    let definition = index.definition();
    let count = hits.hits.len() as u64;
    let loader = load::Loader::new(cx, cx.instance(), &definition, request.common.dialect, deadline);
    let loaded = loader.load(index, request, hits);
    let (search_time, load_time) = (searched.saturating_sub(began), now_us().saturating_sub(searched));
    let found = watch.profiler.map_or(0, Profiler::found);
    // Scores and order are made while documents are found, so their time is a part of that.
    told.step("Index", found, search_time);
    if loaded.hits.hits.iter().any(|hit| !hit.distances.is_empty()) {
        told.step("Metrics Applier", found, 0);
    }
    let scores = request.sort_by.is_none() || request.with_scores;
    if request.limit.1 == 0 {
        // MAXSEARCHRESULTS 0 leaves no documents either.
        if scores && !request.counts_alone {
            told.step("Scorer", found, 0);
        }
        told.step("Counter", 1, 0);
    } else {
        let is_kept = |name: &str| definition.field(name).is_some_and(|field| field.is_sortable);
        match request.sort_by {
            Some((name, _)) if definition.field(name).is_some() && !is_kept(name) => told.step("Loader", found, 0),
            _ => {}
        }
        if scores {
            told.step("Scorer", found, 0);
        }
        told.step("Sorter", count, 0);
        if request.limit.0 > 0 {
            told.step("Pager/Limiter", count, 0);
        }
        if !request.wants_no_documents() {
            told.step("Loader", count, load_time);
            if request.marking.is_on() {
                told.step("Highlighter", count, 0);
            }
        }
    }
    Ok(loaded)
}

fn aggregation<'a>(
    cx: &mut Ctx<'_>,
    index: &SearchIndex,
    (query, words): (&'a [u8], Words<'a>),
    profiler: &Profiler,
    told: &mut Told,
) -> Result {
    let began = now_us();
    let request = aggregated(cx, query, words)?;
    told.parsing = now_us().saturating_sub(began);
    let began = now_us();
    let mut rows = aggregate::run(cx, index, &request, Some(profiler))?;
    let ran = now_us().saturating_sub(began);
    told.is_partial = rows.is_partial();
    let measured = profiler.steps();
    let in_steps: u64 = measured.iter().map(|step| step.micros).sum();
    told.step("Index", profiler.found(), ran.saturating_sub(in_steps));
    if request.with_scores {
        told.step("Scorer", profiler.found(), 0);
    }
    // MAXAGGREGATERESULTS 0 leaves no rows.
    if cx.instance().search.options.max_rows.load(Relaxed) == 0 {
        told.step("Counter", 1, 0);
    } else {
        steps(told, &index.definition(), &aggregate::all_steps(&request, &[]), profiler);
    }
    let is_map = cx.reply.is_resp3();
    if !is_map {
        cx.reply.array(2);
    }
    cursor::show_rows(cx.reply, &mut rows, usize::MAX, usize::from(is_map));
    Ok(())
}

/// Tells the steps of an aggregation.
fn steps(told: &mut Told, definition: &Definition, steps: &[Step], profiler: &Profiler) {
    let (mut loaded, mut before, mut is_grouped) = (Vec::<&str>::new(), profiler.found(), false);
    for (at, (step, done)) in steps.iter().zip(profiler.steps()).enumerate() {
        // Groups and orders load what neither the index keeps nor a step before has loaded.
        let needs = |name: &&str| definition.field(name).is_some_and(|field| !field.is_sortable);
        let read: Vec<&str> = match step {
            _ if is_grouped => Vec::new(),
            Step::Group { by, reducers } => {
                by.iter().map(String::as_str).chain(reducers.iter().flat_map(Reducer::reads)).collect()
            }
            Step::Sort { by, .. } => by.iter().map(|(name, _)| name.as_str()).collect(),
            Step::Apply { .. } | Step::Filter(_) | Step::Load(_) | Step::Limit { .. } => Vec::new(),
        };
        if read.iter().filter(|name| needs(name)).any(|name| !loaded.contains(name)) {
            told.step("Loader", before, 0);
        }
        loaded.extend(&read);
        if let Step::Load(names) = step {
            loaded.extend(names.iter().map(String::as_str));
        }
        is_grouped |= matches!(step, Step::Group { .. });
        before = done.rows;
        let name = match step {
            Step::Load(_) => "Loader".to_owned(),
            Step::Apply { expression, .. } => format!("Projector - {}", expression.summary()),
            Step::Filter(expression) => format!("Filter - {}", expression.summary()),
            Step::Group { .. } => "Grouper".to_owned(),
            Step::Sort { .. } => "Sorter".to_owned(),
            // The order before it has taken care of it.
            Step::Limit { offset: 0, .. } if at > 0 && matches!(steps[at - 1], Step::Sort { .. }) => continue,
            Step::Limit { .. } => "Pager/Limiter".to_owned(),
        };
        told.step(&name, done.rows, done.micros);
    }
}

/// The part of the reply besides the query's own. Times are in microseconds.
#[derive(Default)]
struct Told {
    is_limited: bool,
    shows_times: bool,
    /// The most words of a pattern.
    max_expansions: u64,
    is_partial: bool,
    total: u64,
    parsing: u64,
    iterators: Option<IteratorProfile>,
    /// Steps by name, with their rows and times.
    steps: Vec<(String, u64, u64)>,
}

impl Told {
    fn step(&mut self, name: &str, rows: u64, micros: u64) {
        self.steps.push((name.to_owned(), rows, micros));
    }

    fn show(&self, reply: &mut Reply) {
        let is_map = reply.is_resp3();
        let times = [("Total profile time", self.total), ("Parsing time", self.parsing), ("Pipeline creation time", 0)];
        if is_map {
            reply.map(3 + if self.shows_times { times.len() } else { 0 });
        } else {
            reply.array(3 + times.len());
        }
        for (name, micros) in times.iter().filter(|_| self.shows_times || !is_map) {
            if !is_map {
                reply.array(1 + usize::from(self.shows_times));
            }
            reply.simple(name);
            if self.shows_times {
                reply.double(ms(*micros));
            }
        }
        match (is_map, self.is_partial) {
            (true, is_partial) => {
                reply.simple("Warning");
                reply.simple(if is_partial { LATE } else { "None" });
            }
            (false, is_partial) => {
                reply.array(1 + usize::from(is_partial));
                reply.simple("Warning");
                if is_partial {
                    reply.simple(LATE);
                }
            }
        }
        self.head(reply, "Iterators profile", 1);
        match &self.iterators {
            Some(root) => self.iterator(reply, root),
            None => self.iterator(reply, &NOTHING),
        }
        self.head(reply, "Result processors profile", self.steps.len());
        for (name, rows, micros) in &self.steps {
            reply.map(2 + usize::from(self.shows_times));
            reply.simple("Type");
            reply.simple(name);
            self.time(reply, *micros);
            reply.simple("Counter");
            reply.int(*rows as i64);
        }
    }

    /// A name before so many items: in RESP2 they stand in one list with it.
    fn head(&self, reply: &mut Reply, name: &str, items: usize) {
        if reply.is_resp3() {
            reply.simple(name);
            reply.array(items);
        } else {
            reply.array(1 + items);
            reply.simple(name);
        }
    }

    fn time(&self, reply: &mut Reply, micros: u64) {
        if self.shows_times {
            reply.simple("Time");
            reply.double(ms(micros));
        }
    }

    /// An iterator with its children. Trees are at most as deep as the parser's stack, so this may call itself.
    fn iterator(&self, reply: &mut Reply, profile: &IteratorProfile) {
        let (kind, between): (&str, Vec<(&str, &str)>) = match &profile.kind {
            IteratorKind::Empty => ("EMPTY", vec![]),
            IteratorKind::All => ("WILDCARD", vec![]),
            IteratorKind::Ids => ("ID-LIST", vec![]),
            IteratorKind::Not => ("NOT", vec![]),
            IteratorKind::Optional => ("OPTIONAL", vec![]),
            IteratorKind::Intersection => ("INTERSECT", vec![]),
            IteratorKind::Union(name) => ("UNION", vec![("Query type", name)]),
            IteratorKind::Reader { kind, term, .. } => (kind, vec![("Term", term)]),
            IteratorKind::Nearest => ("VECTOR", vec![]),
            IteratorKind::Within => ("METRIC - VECTOR DISTANCE", vec![]),
        };
        let size = if let IteratorKind::Reader { size, .. } = profile.kind { Some(size) } else { None };
        let has_many = matches!(profile.kind, IteratorKind::Intersection | IteratorKind::Union(_));
        // A limited profile shows the words of a pattern by their number.
        let children = profile.children.len();
        let is_pattern = matches!(&profile.kind, IteratorKind::Union(name) if name != "UNION");
        let (is_cut, is_full) = (self.is_limited && is_pattern, is_pattern && children as u64 == self.max_expansions);
        let (is_map, has_children) = (reply.is_resp3(), has_many || children > 0);
        let pairs = 2 + between.len() + [self.shows_times, size.is_some(), is_full].iter().filter(|is| **is).count();
        if is_map {
            reply.map(pairs + usize::from(has_children));
        } else {
            let shown = if is_cut { 1 } else { children };
            reply.array(2 * pairs + if has_children { 1 + shown } else { 0 });
        }
        reply.simple("Type");
        reply.simple(kind);
        for (name, value) in between {
            reply.simple(name);
            reply.simple(value);
        }
        self.time(reply, profile.micros);
        reply.simple("Counter");
        reply.int(profile.count as i64);
        if let Some(size) = size {
            reply.simple("Size");
            reply.int(size as i64);
        }
        if is_full {
            reply.simple("Warning");
            reply.simple("Max prefix expansion reached");
        }
        if !has_children {
            return;
        }
        reply.simple(if has_many { "Child iterators" } else { "Child iterator" });
        if is_cut {
            return reply.simple(&format!("The number of iterators in the union is {children}"));
        }
        if is_map && has_many {
            reply.array(children);
        }
        for child in &profile.children {
            // RediSearch has no iterator where a part of an intersection finds nothing.
            if profile.kind == IteratorKind::Intersection && child.kind == IteratorKind::Empty {
                reply.null();
            } else {
                self.iterator(reply, child);
            }
        }
    }
}

/// The warning of a query whose time was over.
const LATE: &str = "Timeout limit was reached";

/// The iterator of a query that was over before it began.
const NOTHING: IteratorProfile =
    IteratorProfile { kind: IteratorKind::Empty, count: 0, micros: 0, children: Vec::new() };

/// Milliseconds, as RediSearch tells them.
fn ms(micros: u64) -> f64 {
    micros as f64 / 1000.0
}
