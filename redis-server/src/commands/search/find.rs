//! FT.SEARCH.

use query_engine::{
    DistanceOrder, Expander, Hits, Index, Keep, MAX_WINDOW, Profiler, Query, SearchOptions, SortBy, SortKey,
};

use super::load::{self, Loader, Marking, Returned};
use super::lookup::{Deadline, current};
use super::query::{Common, TIME_IS_OVER, check_time, limit};
use super::show;
use super::words::{MAX_ECHO, Words, bad};
use crate::command::Result;
use crate::exec::core::Ctx;
use crate::protocol::error::{Error, echo};
use crate::search::{SearchIndex, UNLIMITED};
use std::sync::atomic::Ordering::Relaxed;

/// A call.
pub(super) struct Request<'a> {
    query: &'a [u8],
    pub(super) common: Common<'a>,
    pub(super) no_content: bool,
    pub(super) with_scores: bool,
    pub(super) explains: bool,
    pub(super) with_payloads: bool,
    pub(super) with_sort_keys: bool,
    /// Queries in the language, of FILTER and GEOFILTER.
    filters: Vec<String>,
    keys: Option<Vec<&'a [u8]>>,
    fields: Option<Vec<&'a str>>,
    pub(super) returned: Option<Vec<Returned<'a>>>,
    pub(super) marking: Marking<'a>,
    payload: &'a [u8],
    pub(super) sort_by: Option<(&'a str, bool)>,
    pub(super) limit: (usize, usize),
    /// `LIMIT … 0`.
    pub(super) counts_alone: bool,
}

impl<'a> Request<'a> {
    /// Reads the arguments behind the query's.
    pub(super) fn parse(cx: &Ctx<'_>, query: &'a [u8], mut words: Words<'a>) -> Result<Self> {
        let mut request = Self {
            query,
            common: Common::new(cx),
            no_content: false,
            with_scores: false,
            explains: false,
            with_payloads: false,
            with_sort_keys: false,
            filters: Vec::new(),
            keys: None,
            fields: None,
            returned: None,
            marking: Marking::default(),
            payload: &[],
            sort_by: None,
            limit: (0, 10),
            counts_alone: false,
        };
        let most = cx.instance().search.options.max_results.load(Relaxed);
        while !words.is_empty() {
            if !request.common.take(&mut words)? && !request.marking.take(&mut words)? {
                request.take(&mut words, most)?;
            }
        }
        request.common.complete(cx.reply.is_resp3())?;
        if request.explains && !request.with_scores {
            return Err(Error::Static("EXPLAINSCORE must be accompanied with WITHSCORES"));
        }
        // Documents behind MAXSEARCHRESULTS are left out without a word.
        let (offset, count) = request.limit;
        request.counts_alone = count == 0;
        if offset as u64 > most.min(MAX_WINDOW as u64) {
            return Err(Error::Message(format!("OFFSET exceeds maximum of {}", most.min(MAX_WINDOW as u64))));
        }
        request.limit.1 = count.min(usize::try_from(most).unwrap_or(MAX_WINDOW).min(MAX_WINDOW).saturating_sub(offset));
        Ok(request)
    }

    fn take(&mut self, words: &mut Words<'a>, most: u64) -> Result {
        let position = words.at() - 2;
        match () {
            () if words.take("NOCONTENT") => self.no_content = true,
            () if words.take("WITHSCORES") => self.with_scores = true,
            () if words.take("EXPLAINSCORE") => self.explains = true,
            () if words.take("WITHPAYLOADS") => self.with_payloads = true,
            () if words.take("WITHSORTKEYS") => self.with_sort_keys = true,
            () if words.take("LIMIT") => {
                self.limit = limit(words, if most == UNLIMITED { UNLIMITED } else { MAX_WINDOW as u64 })?
            }
            () if words.take("SORTBY") => {
                if self.sort_by.is_some() {
                    return Err(Error::Static("Multiple SORTBY steps are not allowed"));
                }
                let name = words.text("SORTBY").map_err(|_| Error::Static("Bad SORTBY arguments"))?;
                let rises = words.take("ASC") || !words.take("DESC");
                self.sort_by = Some((name.strip_prefix('@').unwrap_or(name), rises));
                if words.take("MAX") {
                    return Err(Error::Static("SORTBY MAX is not supported by FT.SEARCH"));
                }
            }
            // The total is always counted.
            () if words.take("WITHCOUNT") || words.take("WITHOUTCOUNT") => {}
            () if words.take("ADDSCORES") => return Err(Error::Static("ADDSCORES is not supported on FT.SEARCH")),
            () if words.take("INKEYS") => self.keys = Some(words.list("INKEYS")?.rest().collect()),
            () if words.take("INFIELDS") => {
                let names = words.list("INFIELDS")?.rest().map(std::str::from_utf8);
                self.fields =
                    Some(names.collect::<std::result::Result<_, _>>().map_err(|_| bad("INFIELDS", "no UTF-8"))?);
            }
            () if words.take("RETURN") => self.returned = Some(load::returned(words.list("RETURN")?)?),
            () if words.take("PAYLOAD") => self.payload = words.need("PAYLOAD")?,
            () if words.take("EXPANDER") => self.common.expander = expander(words.need("EXPANDER")?),
            () if words.take("FILTER") => self.filters.push(numeric_filter(words)?),
            () if words.take("GEOFILTER") => self.filters.push(geo_filter(words)?),
            () => {
                let unknown = words.shown();
                return Err(Error::Message(format!("Unknown argument `{unknown}` at position {position} for <main>")));
            }
        }
        Ok(())
    }

    /// Becomes the request for one node's part: its best hits, as many as the answer may have. The nearest of all nodes are chosen first, and
    /// sorted then.
    pub(super) fn become_part(&mut self, engine: &Index) -> Result {
        let nearest = self.parsed(engine)?.nearest_count();
        let (offset, count) = self.limit;
        self.limit = (0, if count == 0 { 0 } else { nearest.unwrap_or_else(|| offset.saturating_add(count)) });
        Ok(())
    }

    /// The answer has only ids.
    pub(super) fn wants_no_documents(&self) -> bool {
        self.no_content || self.returned.as_ref().is_some_and(Vec::is_empty)
    }

    pub(super) fn sorts_by(&self, name: &[u8]) -> bool {
        self.sort_by.is_some_and(|(sorted, _)| sorted.as_bytes() == name)
    }

    pub(super) fn parsed(&self, engine: &Index) -> Result<Query> {
        let mut query = self.common.parse(engine, self.query)?;
        if let Some(fields) = &self.fields {
            query.restrict_to_fields(fields.iter().copied(), engine.schema());
        }
        if let Some(keys) = &self.keys {
            query = query.with_ids(keys.iter().map(|key| key.to_vec()));
        }
        for filter in &self.filters {
            query = query.and(self.common.parse(engine, filter.as_bytes())?);
        }
        Ok(query)
    }
}

/// A property's name in the query language.
pub(super) fn escaped(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let name = name.strip_prefix('@').unwrap_or(&name);
    let escape = |c: char| if c.is_alphanumeric() || c == '_' { c.to_string() } else { format!("\\{c}") };
    name.chars().map(escape).collect()
}

/// The expander of a name; an unknown one expands nothing, as in RediSearch.
fn expander(name: &[u8]) -> Expander {
    match name {
        b"DEFAULT" => Expander::All,
        b"SBSTEM" => Expander::Stem,
        b"SYNONYM" => Expander::Synonyms,
        b"PHONETIC" => Expander::Sound,
        _ => Expander::Nothing,
    }
}

/// `field min max`
fn numeric_filter(words: &mut Words<'_>) -> Result<String> {
    if words.left() < 3 {
        return Err(Error::Static("FILTER requires 3 arguments"));
    }
    let field = escaped(words.need("FILTER")?);
    let mut end = |name: &str| {
        let word = words.text("FILTER")?;
        let number = word.strip_prefix('(').unwrap_or(word);
        // Only the upper end may be infinite, only the lower one minus that.
        let infinities: &[&str] = if name == "upper" { &["inf", "+inf"] } else { &["-inf"] };
        let is_number = infinities.iter().any(|infinity| number.eq_ignore_ascii_case(infinity))
            || number.parse::<f64>().is_ok_and(f64::is_finite);
        if is_number {
            Ok(word.to_owned())
        } else {
            Err(Error::Message(format!("Bad {name} range: {}", echo(number.as_bytes(), MAX_ECHO))))
        }
    };
    Ok(format!("@{field}:[{} {}]", end("lower")?, end("upper")?))
}

/// `field longitude latitude radius unit`
fn geo_filter(words: &mut Words<'_>) -> Result<String> {
    if words.left() < 5 {
        return Err(Error::Static("GEOFILTER requires 5 arguments"));
    }
    let field = escaped(words.need("GEOFILTER")?);
    let (longitude, latitude): (f64, f64) = (words.number("<lon>")?, words.number("<lat>")?);
    let radius: f64 = words.number("<radius>")?;
    let unit = words.text("GEOFILTER")?;
    if !["m", "km", "ft", "mi"].iter().any(|known| known.eq_ignore_ascii_case(unit)) {
        return Err(Error::Message(format!("Unknown distance unit {}", echo(unit.as_bytes(), MAX_ECHO))));
    }
    Ok(format!("@{field}:[{longitude} {latitude} {radius} {unit}]"))
}

/// Runs a query and writes its answer.
pub(super) fn answer(cx: &mut Ctx<'_>, index: &SearchIndex, request: &Request<'_>) -> Result {
    let deadline = current(cx, &request.common);
    let hits = run(cx, index, request, deadline, Watch::default())?;
    let definition = index.definition();
    let loader = Loader::new(cx, cx.instance(), &definition, request.common.dialect, deadline);
    show::hits(cx, index, request, &loader.load(index, request, hits))
}

/// Watches a query, and says of which documents it is.
#[derive(Clone, Copy, Default)]
pub(super) struct Watch<'w> {
    pub(super) profiler: Option<&'w Profiler>,
    pub(super) keeps: Option<&'w Keep<'w>>,
}

/// Finds the hits of a query. One that is watched by a profiler does not fail at the end of its time.
pub(super) fn run(
    cx: &Ctx<'_>,
    index: &SearchIndex,
    request: &Request<'_>,
    deadline: Deadline,
    Watch { profiler, keeps }: Watch<'_>,
) -> Result<Hits> {
    index.note_dialect(request.common.query_dialect);
    let (engine, definition) = (index.engine(), index.definition());
    request.common.check_source(definition.source)?;
    if request.marking.is_on() && definition.options.contains(&"NOHL") {
        return Err(Error::Static("Cannot use highlight/summarize because NOOFSETS was specified at index level"));
    }
    request.marking.check(&definition, request)?;
    let query = request.parsed(&engine)?;
    let is_over = || deadline.is_over();
    let loader = Loader::new(cx, cx.instance(), &definition, request.common.dialect, deadline);
    let by_distance = request.sort_by.filter(|(name, _)| query.distance_names().contains(name));
    let sort_field = request.sort_by.filter(|_| by_distance.is_none()).map(|(name, rises)| {
        let field = engine.schema().find(name.as_bytes());
        field.map(|field| (field, rises)).ok_or_else(|| not_loaded(name))
    });
    let sort_field = sort_field.transpose()?;
    let load = |id: &[u8]| match sort_field {
        Some((field, _)) => loader.sort_key(id, &definition.fields[field]),
        None => SortKey::Missing,
    };
    let (offset, limit) = request.limit;
    let options = SearchOptions {
        offset,
        limit,
        explain: request.explains,
        payload: request.payload,
        sort_by: sort_field.map(|(field, ascending)| SortBy { field, ascending, load: Some(&load) }),
        sort_by_distance: by_distance.map(|(name, ascending)| DistanceOrder { name, ascending }),
        with_scores: request.with_scores,
        with_words: request.marking.is_on(),
        profiler,
        keeps,
        ..request.common.options(cx, &is_over)
    };
    let hits = engine.search(&query, &options).map_err(|error| Error::Message(error.to_string()))?;
    if profiler.is_some() {
        return Ok(hits);
    }
    // A part of a count is worth nothing, and no answer says that it is one.
    if hits.is_partial && request.counts_alone {
        return Err(TIME_IS_OVER);
    }
    check_time(cx, hits.is_partial)?;
    Ok(hits)
}

/// The error for a property that no step has.
pub(super) fn not_loaded(name: &str) -> Error {
    Error::Message(format!("Property `{name}` not loaded nor in schema"))
}
