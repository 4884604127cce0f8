//! The options that queries share, and the parsed query.

use std::sync::atomic::Ordering::Relaxed;

use query_engine::{Dialect, Expander, Index, Language, Level, ParseOptions, Query, Scorer, SearchOptions};

use super::adapt::adapt;
use super::lookup::Deadline;
use super::scope::take_demand;
use super::words::{Words, bad};
use crate::command::Result;
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::search::Source;

/// The first dialect that shows all values of a path.
const EXPAND_DIALECT: u64 = 3;

/// Options of FT.SEARCH, FT.AGGREGATE and FT.EXPLAIN.
pub(super) struct Common<'a> {
    /// How values are shown.
    pub(super) dialect: u64,
    /// How the query is read.
    pub(super) query_dialect: u64,
    /// FORMAT EXPAND.
    pub(super) expands: bool,
    pub(super) verbatim: bool,
    pub(super) expander: Expander,
    pub(super) keep_stop_words: bool,
    pub(super) language: Option<Language>,
    pub(super) scorer: Option<Scorer>,
    level: Level,
    /// The words of valkey-search are options, too.
    pub(super) is_valkey: bool,
    timeout_ms: u64,
    params: Vec<(&'a str, &'a [u8])>,
    pub(super) slop: Option<u32>,
    pub(super) in_order: bool,
    /// The query is explained, not answered.
    pub(super) explains: bool,
}

impl<'a> Common<'a> {
    pub(super) fn new(cx: &Ctx<'_>) -> Self {
        let options = &cx.instance().search.options;
        Self {
            dialect: options.dialect.load(Relaxed),
            query_dialect: options.dialect.load(Relaxed),
            expands: false,
            verbatim: false,
            expander: Expander::All,
            keep_stop_words: false,
            language: None,
            scorer: None,
            level: if cx.config().level().redis_version().starts_with('8') { Level::Redis8 } else { Level::Search210 },
            is_valkey: cx.config().level().is_valkey(),
            timeout_ms: options.timeout_ms.load(Relaxed),
            params: Vec::new(),
            slop: None,
            in_order: false,
            explains: false,
        }
    }

    /// Takes an option; false if the next argument is none of these.
    pub(super) fn take(&mut self, words: &mut Words<'a>) -> Result<bool> {
        match () {
            () if words.take("VERBATIM") => self.verbatim = true,
            () if words.take("NOSTOPWORDS") => self.keep_stop_words = true,
            () if words.take("INORDER") => self.in_order = true,
            () if words.take("SLOP") => {
                let slop: i64 = words.number("SLOP")?;
                // −1 is any.
                self.slop = u32::try_from(slop).ok();
            }
            () if words.take("LANGUAGE") => {
                let language = words.text("LANGUAGE")?.parse();
                self.language = Some(language.map_err(|_| Error::Static("No such language"))?);
            }
            () if words.take("SCORER") => self.scorer = Some(scorer(words.text("SCORER")?)?),
            () if words.take("DIALECT") => {
                if words.is_empty() {
                    return Err(Error::Static("Need an argument for DIALECT"));
                }
                self.dialect = words
                    .number("DIALECT")
                    .ok()
                    .filter(|dialect| (1..=4).contains(dialect))
                    .ok_or(Error::Static("DIALECT requires a non negative integer >=1 and <= 4"))?;
                self.query_dialect = self.dialect;
                // The other order of both is accepted, as by RediSearch.
                if self.expands && self.query_dialect < EXPAND_DIALECT {
                    let why = format!("EXPAND format requires dialect {EXPAND_DIALECT} or greater");
                    return Err(Error::Message(why));
                }
            }
            () if words.take("FORMAT") => self.expands = format(words)?,
            () if words.take("TIMEOUT") => {
                let why = "TIMEOUT requires a non negative integer";
                self.timeout_ms = words.number("TIMEOUT").map_err(|_| Error::Static(why))?;
            }
            () if words.take("PARAMS") => {
                let mut list = words.list("PARAMS")?;
                if list.is_empty() || list.left() % 2 != 0 {
                    return Err(Error::Static("Parameters must be specified in PARAM VALUE pairs"));
                }
                if !self.params.is_empty() {
                    return Err(Error::Static("Multiple PARAMS are not allowed. Parameters can be defined only once"));
                }
                while !list.is_empty() {
                    let name = list.text("PARAMS")?;
                    if self.params.iter().any(|(known, _)| *known == name) {
                        return Err(Error::Message(format!("Duplicate parameter `{name}`")));
                    }
                    self.params.push((name, list.need("PARAMS")?));
                }
            }
            // The nodes that are asked are chosen before the call runs.
            () if self.is_valkey && words.take("LOCALONLY") => {}
            () if self.is_valkey && take_demand(words) => {}
            () => return Ok(false),
        }
        Ok(true)
    }

    /// Behind all options: FORMAT EXPAND shows values as dialect 3 does, also where the query is read by an older one.
    pub(super) fn complete(&mut self, is_resp3: bool) -> Result {
        if self.expands && !is_resp3 {
            return Err(Error::Static("EXPAND format is only supported with RESP3"));
        }
        if self.expands {
            self.dialect = self.dialect.max(EXPAND_DIALECT);
        }
        Ok(())
    }

    /// Hashes have nothing that expands.
    pub(super) fn check_source(&self, source: Source) -> Result {
        if self.expands && source != Source::Json {
            return Err(Error::Static("EXPAND format is only supported with JSON"));
        }
        Ok(())
    }

    /// The value of a parameter.
    pub(super) fn param(&self, name: &str) -> Option<&'a [u8]> {
        self.params.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    pub(super) fn deadline(&self) -> Deadline {
        Deadline::after(self.timeout_ms)
    }

    /// Reads a query for an index.
    pub(super) fn parse(&self, index: &Index, text: &[u8]) -> Result<Query> {
        self.parse_with(index, text, if self.query_dialect >= 2 { &self.params } else { &[] })
    }

    /// [`Self::parse`] with these parameters.
    pub(super) fn parse_with(&self, index: &Index, text: &[u8], params: &[(&str, &[u8])]) -> Result<Query> {
        let options = ParseOptions {
            dialect: match self.query_dialect {
                ..=1 => Dialect::One,
                2 => Dialect::Two,
                3 => Dialect::Three,
                _ => Dialect::Four,
            },
            params,
            language: self.language,
            expander: if self.verbatim { Expander::Nothing } else { self.expander },
            keep_stop_words: self.keep_stop_words,
            is_near: self.slop.is_some() || self.in_order,
            explains: self.explains,
            level: self.level,
            checks_kept: self.is_valkey,
            ..ParseOptions::default()
        };
        let adapted = if self.is_valkey && self.query_dialect >= 2 { Some(adapt(text)) } else { None };
        let text = adapted.as_deref().unwrap_or(text);
        Query::parse(text, index.schema(), &options).map_err(|error| Error::Message(error.to_string()))
    }

    /// How matches are found and scored.
    pub(super) fn options<'o>(&self, cx: &Ctx<'_>, is_over: &'o dyn Fn() -> bool) -> SearchOptions<'o> {
        let default = if self.level == Level::Redis8 { Scorer::Bm25Std } else { Scorer::Tfidf };
        SearchOptions {
            scorer: self.scorer.unwrap_or(default),
            level: self.level,
            slop: self.slop,
            in_order: self.in_order,
            limits: cx.instance().search.options.limits(),
            is_over: Some(is_over),
            ..SearchOptions::default()
        }
    }
}

/// `STRING` or `EXPAND`, behind FORMAT; true for the latter.
fn format(words: &mut Words<'_>) -> Result<bool> {
    match () {
        () if words.is_empty() => Err(Error::Static("Need an argument for FORMAT")),
        () if words.take("STRING") => Ok(false),
        () if words.take("EXPAND") => Ok(true),
        () => Err(Error::Message(format!("FORMAT {} is not supported", words.shown()))),
    }
}

/// The error of a query whose time is over.
pub(super) const TIME_IS_OVER: Error = Error::Static("Timeout limit was reached");

/// The error of a query that has found a part, if such queries fail.
pub(super) fn check_time(cx: &Ctx<'_>, is_partial: bool) -> Result {
    let fails = is_partial && cx.instance().search.options.fails_late.load(Relaxed) != 0;
    if fails { Err(TIME_IS_OVER) } else { Ok(()) }
}

/// RediSearch's default of BM25STD_TANH_FACTOR.
const TANH_FACTOR: u32 = 4;

pub(super) fn scorer(name: &str) -> Result<Scorer> {
    Ok(match name {
        "TFIDF" => Scorer::Tfidf,
        "TFIDF.DOCNORM" => Scorer::TfidfDocNorm,
        "BM25" => Scorer::Bm25,
        "BM25STD" => Scorer::Bm25Std,
        "BM25STD.NORM" => Scorer::Bm25StdNorm,
        "BM25STD.TANH" => Scorer::Bm25StdTanh(TANH_FACTOR),
        "DISMAX" => Scorer::DisMax,
        "DOCSCORE" => Scorer::DocScore,
        "HAMMING" => Scorer::Hamming,
        _ => return Err(Error::Message(format!("No such scorer {name}"))),
    })
}

/// `offset count` of LIMIT.
pub(super) fn limit(words: &mut Words<'_>, most: u64) -> Result<(usize, usize)> {
    if words.left() < 2 {
        return Err(Error::Static("LIMIT requires two arguments"));
    }
    let needs = |_| Error::Static("LIMIT needs two numeric arguments");
    let offset: u64 = words.number("LIMIT").map_err(needs)?;
    let count: u64 = words.number("LIMIT").map_err(needs)?;
    if offset > most {
        return Err(Error::Message(format!("OFFSET exceeds maximum of {most}")));
    }
    if count > most {
        return Err(Error::Message(format!("LIMIT exceeds maximum of {most}")));
    }
    Ok((offset as usize, count as usize))
}

/// The name behind `@`.
pub(super) fn property<'a>(word: &'a [u8], option: &str) -> Result<&'a str> {
    let text = std::str::from_utf8(word).map_err(|_| bad(option, "a property is no UTF-8"))?;
    text.strip_prefix('@').ok_or_else(|| bad(option, &format!("Unknown property `{text}`. Did you mean `@{text}`?")))
}
