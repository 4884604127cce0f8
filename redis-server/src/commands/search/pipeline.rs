//! The arguments of FT.AGGREGATE: what is loaded, and the steps.

use std::sync::atomic::Ordering::Relaxed;

use query_engine::{Expression, MAX_WINDOW, Reducer, ReducerKind, Step};

use super::query::{Common, limit, property};
use super::words::{MAX_ECHO, Words, bad};
use crate::command::Result;
use crate::exec::core::Ctx;
use crate::protocol::error::{Error, echo};

/// Rows that SORTBY leaves if neither MAX nor LIMIT says.
const DEFAULT_SORTED: usize = 10;
/// Rows of one piece of a cursor if the call does not say.
const DEFAULT_PIECE: usize = 1000;

/// A call.
pub(super) struct Request<'a> {
    pub(super) query: &'a [u8],
    pub(super) common: Common<'a>,
    pub(super) steps: Vec<Step>,
    /// Names of properties, and the fields or paths that they stand for.
    pub(super) load: Vec<(String, Vec<u8>)>,
    pub(super) loads_all: bool,
    pub(super) with_scores: bool,
    /// Answers with the total alone.
    pub(super) no_content: bool,
    pub(super) cursor: Option<CursorOptions>,
}

/// WITHCURSOR.
pub(super) struct CursorOptions {
    pub(super) count: usize,
    pub(super) idle_ms: Option<u64>,
}

impl<'a> Request<'a> {
    /// Reads the arguments behind the query's.
    pub(super) fn parse(cx: &Ctx<'_>, query: &'a [u8], mut words: Words<'a>) -> Result<Self> {
        let mut request = Self::new(cx, query);
        let most = cx.instance().search.options.max_rows.load(Relaxed);
        while !words.is_empty() {
            if !request.common.take(&mut words)? {
                request.take(&mut words, most)?;
            }
        }
        request.complete(cx.reply.is_resp3())?;
        Ok(request)
    }

    /// A call without options.
    pub(super) fn new(cx: &Ctx<'_>, query: &'a [u8]) -> Self {
        Self {
            query,
            common: Common::new(cx),
            steps: Vec::new(),
            load: Vec::new(),
            loads_all: false,
            with_scores: false,
            no_content: false,
            cursor: None,
        }
    }

    /// Behind all options.
    pub(super) fn complete(&mut self, is_resp3: bool) -> Result {
        self.common.complete(is_resp3)?;
        self.bound_sorts();
        Ok(())
    }

    /// Takes an option that FT.SEARCH does not have.
    pub(super) fn take(&mut self, words: &mut Words<'a>, most: u64) -> Result {
        let position = words.at() - 2;
        match () {
            () if words.take("LOAD") => self.take_load(words)?,
            () if words.take("APPLY") => {
                let text = words.need("APPLY")?;
                self.check_expression(text)?;
                let expression = expression(text)?;
                let name = if words.take("AS") { words.text("AS")?.to_owned() } else { lossy(text) };
                self.steps.push(Step::Apply { expression, name });
            }
            () if words.take("FILTER") => {
                let text = words.need("FILTER")?;
                self.check_expression(text)?;
                self.steps.push(Step::Filter(expression(text)?));
            }
            () if words.take("GROUPBY") => {
                let mut list = words.list("GROUPBY")?;
                let mut by = Vec::new();
                while let Some(word) = list.next() {
                    by.push(property(word, "GROUPBY")?.to_owned());
                }
                let mut reducers = Vec::new();
                while words.take("REDUCE") {
                    reducers.push(reducer(words)?);
                }
                self.steps.push(Step::Group { by, reducers });
            }
            () if words.take("SORTBY") => {
                if let Some(Step::Sort { .. }) = self.steps.last() {
                    let why = "Multiple SORTBY steps are not allowed. Sort multiple fields in a single step";
                    return Err(Error::Static(why));
                }
                let by = sort_keys(words.list("SORTBY")?)?;
                let max = if words.take("MAX") { Some(words.number("MAX")?) } else { None };
                self.steps.push(Step::Sort { by, max });
            }
            () if words.take("LIMIT") => {
                let (offset, count) = limit(words, most)?;
                if offset > MAX_WINDOW {
                    return Err(Error::Message(format!("OFFSET exceeds maximum of {MAX_WINDOW}")));
                }
                self.steps.push(Step::Limit { offset, count });
            }
            () if words.take("WITHCURSOR") => self.cursor = Some(cursor(words)?),
            () if words.take("ADDSCORES") => self.with_scores = true,
            () if words.take("NOCONTENT") => self.no_content = true,
            // The pipeline is the same either way.
            () if words.take("WITHCOUNT") || words.take("WITHOUTCOUNT") => {}
            () if words.take("HIGHLIGHT") => return Err(unsupported("HIGHLIGHT")),
            () if words.take("SUMMARIZE") => return Err(unsupported("SUMMARIZE")),
            () if words.take("RETURN") => return Err(unsupported("RETURN")),
            () => {
                let unknown = words.shown();
                return Err(Error::Message(format!("Unknown argument `{unknown}` at position {position} for <main>")));
            }
        }
        Ok(())
    }

    /// valkey-search has an error of its own for an expression without text.
    fn check_expression(&self, text: &[u8]) -> Result {
        let is_empty = self.common.is_valkey && text.trim_ascii().is_empty();
        if is_empty { Err(Error::Static("Invalid or missing expression")) } else { Ok(()) }
    }

    /// `LOAD *`, or `LOAD count property [AS name] …`
    fn take_load(&mut self, words: &mut Words<'a>) -> Result {
        if words.take("*") {
            self.loads_all = true;
            return Ok(());
        }
        if self.steps.iter().any(|step| matches!(step, Step::Group { .. })) {
            return Err(Error::Static("LOAD cannot be applied after projectors or reducers"));
        }
        let mut list = words.list("LOAD")?;
        if list.is_empty() {
            return Err(bad("LOAD", "expected at least one property"));
        }
        let mut names = Vec::new();
        while let Some(word) = list.next() {
            let field = word.strip_prefix(b"@").unwrap_or(word);
            let name = if list.take("AS") { alias(&mut list)? } else { lossy(field) };
            names.push(name.clone());
            self.load.push((name, field.to_vec()));
        }
        self.steps.push(Step::Load(names));
        Ok(())
    }

    /// SORTBY leaves what a LIMIT behind it needs, or ten rows. As in RediSearch, a SORTBY and a LIMIT beside it are one step, which sorts
    /// first; of MAX and LIMIT the last one counts.
    fn bound_sorts(&mut self) {
        let mut at = 0;
        while at + 1 < self.steps.len() {
            if let [Step::Limit { count, .. }, Step::Sort { max, .. }] = &self.steps[at..at + 2] {
                if max.is_some() && *count > 0 {
                    self.steps.remove(at);
                } else {
                    self.steps.swap(at, at + 1);
                }
            }
            at += 1;
        }
        let behind: Vec<Option<usize>> = (0..self.steps.len())
            .map(|at| match self.steps.get(at + 1) {
                Some(Step::Limit { offset, count }) => Some(offset.saturating_add(*count)),
                _ => None,
            })
            .collect();
        for (step, limit) in self.steps.iter_mut().zip(behind) {
            if let Step::Sort { max, .. } = step {
                let most = max.take().filter(|max| *max > 0);
                *max = Some(limit.or(most).unwrap_or(DEFAULT_SORTED));
            }
        }
    }
}

/// The name behind AS of LOAD.
fn alias(list: &mut Words<'_>) -> Result<String> {
    match list.next() {
        None => Err(Error::Static("LOAD path AS name - must be accompanied with NAME")),
        Some(name) if name.eq_ignore_ascii_case(b"AS") => Err(Error::Static("Alias for LOAD cannot be `AS`")),
        Some(name) => Ok(lossy(name)),
    }
}

/// The error for an option of FT.SEARCH.
fn unsupported(option: &str) -> Error {
    Error::Message(format!("{option} is not supported on FT.AGGREGATE"))
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

fn expression(text: &[u8]) -> Result<Expression> {
    Expression::parse(text).map_err(|error| Error::Message(error.to_string()))
}

/// The most properties of SORTBY, as in RediSearch.
const MAX_SORT_KEYS: usize = 8;

/// `@property [ASC|DESC] …`
fn sort_keys(mut list: Words<'_>) -> Result<Vec<(String, bool)>> {
    let mut by = Vec::new();
    while let Some(word) = list.next() {
        let name = property(word, "SORTBY")?.to_owned();
        by.push((name, list.take("ASC") || !list.take("DESC")));
    }
    match by.len() {
        0 => Err(bad("SORTBY", "expected at least one property")),
        1..=MAX_SORT_KEYS => Ok(by),
        _ => Err(Error::Message(format!("Cannot sort by more than {MAX_SORT_KEYS} fields"))),
    }
}

/// `[COUNT rows] [MAXIDLE milliseconds]`
fn cursor(words: &mut Words<'_>) -> Result<CursorOptions> {
    let mut options = CursorOptions { count: DEFAULT_PIECE, idle_ms: None };
    loop {
        match () {
            () if words.take("COUNT") => {
                options.count = words.number("COUNT")?;
                if options.count == 0 {
                    return Err(bad("COUNT", "Value is outside acceptable bounds"));
                }
            }
            () if words.take("MAXIDLE") => {
                let idle: u64 = words.number("MAXIDLE")?;
                options.idle_ms = Some(idle).filter(|idle| *idle > 0);
            }
            () => return Ok(options),
        }
    }
}

/// `function count argument … [AS name]`
fn reducer(words: &mut Words<'_>) -> Result<Reducer> {
    let function = words.text("REDUCE")?.to_ascii_uppercase();
    let mut list = words.list(&function)?;
    let given: Vec<&[u8]> = list.rest().collect();
    // The sign of a property may lack here.
    let mut argument = || -> Result<String> {
        let word = list.need(&function).map_err(|_| Error::Message(format!("Missing arguments for {function}")))?;
        Ok(lossy(word.strip_prefix(b"@").unwrap_or(word)))
    };
    let kind = match function.as_str() {
        "COUNT" => ReducerKind::Count,
        "COUNT_DISTINCT" | "COUNT_DISTINCTISH" => ReducerKind::CountDistinct(argument()?),
        "SUM" => ReducerKind::Sum(argument()?),
        "MIN" => ReducerKind::Min(argument()?),
        "MAX" => ReducerKind::Max(argument()?),
        "AVG" => ReducerKind::Average(argument()?),
        "STDDEV" => ReducerKind::Deviation(argument()?),
        "TOLIST" => ReducerKind::ToList(argument()?),
        "QUANTILE" => {
            let name = argument()?;
            let part: f64 = list.number("QUANTILE")?;
            if !(0.0..=1.0).contains(&part) {
                return Err(bad("QUANTILE", "Percentage must be between 0.0 and 1.0"));
            }
            ReducerKind::Quantile(name, part)
        }
        "FIRST_VALUE" => {
            let name = argument()?;
            let by = if list.take("BY") {
                let by = property(list.need("BY")?, "BY")?.to_owned();
                Some((by, list.take("ASC") || !list.take("DESC")))
            } else {
                None
            };
            ReducerKind::FirstValue { name, by }
        }
        "RANDOM_SAMPLE" => ReducerKind::RandomSample(argument()?, sample_size(&mut list)?),
        other => return Err(Error::Message(format!("No such reducer: {}", echo(other.as_bytes(), MAX_ECHO)))),
    };
    if !list.is_empty() && kind == ReducerKind::Count {
        return Err(Error::Static("Count accepts 0 values only"));
    }
    if !list.is_empty() {
        return Err(bad(&function, &format!("unknown argument `{}`", list.shown())));
    }
    let name = if words.take("AS") { words.text("AS")?.to_owned() } else { generated(&function, &given) };
    Ok(Reducer { kind, name })
}

/// The most values of a RANDOM_SAMPLE, as in RediSearch.
const MAX_SAMPLE: usize = 1000;

fn sample_size(list: &mut Words<'_>) -> Result<usize> {
    let size = list.number("RANDOM_SAMPLE")?;
    if size > MAX_SAMPLE { Err(bad("RANDOM_SAMPLE", "Sample size too large")) } else { Ok(size) }
}

/// The name of a reducer without AS.
fn generated(function: &str, arguments: &[&[u8]]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|word| lossy(word.strip_prefix(b"@").unwrap_or(word))).collect();
    format!("__generated_alias{function}{}", arguments.join(",")).to_ascii_lowercase()
}
