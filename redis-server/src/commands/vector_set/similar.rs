//! VSIM.

use super::add::refused;
use super::{Given, INVALID_VECTOR, behind_vector, option, positive, stored};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::keyspace::View;
use crate::protocol::Reply;
use crate::protocol::error::{Error, echo};
use crate::types::vector_set::{Filter, FilterError, Match, Similar, Target, VectorSetError};

/// Elements that are found if nothing else is asked.
const COUNT: usize = 10;
/// Candidates that are kept at least.
const EF: usize = 100;
/// FILTER-EF for each element of COUNT.
const FILTER_EF: usize = 100;

/// Bytes of an expression that an error repeats.
const MAX_ECHO: usize = 128;

/// The options of VSIM.
#[derive(Debug)]
struct Options {
    count: usize,
    ef: Option<usize>,
    epsilon: Option<f64>,
    filter: Option<Filter>,
    filter_ef: Option<usize>,
    with_scores: bool,
    with_attributes: bool,
    is_exact: bool,
}

impl Options {
    fn parse(args: Args<'_>, first: usize) -> Result<Self> {
        let mut options = Self {
            count: COUNT,
            ef: None,
            epsilon: None,
            filter: None,
            filter_ef: None,
            with_scores: false,
            with_attributes: false,
            is_exact: false,
        };
        let mut at = first;
        while at < args.len() {
            at += options.option(args, at)?;
        }
        Ok(options)
    }

    /// Reads the option at argument `at`. Returns how many arguments it has.
    fn option(&mut self, args: Args<'_>, at: usize) -> Result<usize> {
        let invalid = |text: &'static str| positive(args, at + 1).ok_or(Error::Static(text));
        match () {
            () if args.is(at, "WITHSCORES") => self.with_scores = true,
            () if args.is(at, "WITHATTRIBS") => self.with_attributes = true,
            () if args.is(at, "TRUTH") => self.is_exact = true,
            // A search on a large set always has a thread of its own, on a small one none.
            () if args.is(at, "NOTHREAD") => {}
            () if at + 1 == args.len() => return Err(Error::Static("ERR syntax error in VSIM command")),
            () => {
                match () {
                    () if args.is(at, "COUNT") => self.count = invalid("ERR invalid COUNT")?,
                    () if args.is(at, "EF") => self.ef = Some(invalid("ERR invalid EF")?),
                    () if args.is(at, "FILTER-EF") => self.filter_ef = Some(invalid("ERR invalid FILTER-EF")?),
                    () if args.is(at, "EPSILON") => {
                        let epsilon = args.float(at + 1).ok().filter(|epsilon| *epsilon > 0.0);
                        self.epsilon = Some(epsilon.ok_or(Error::Static("ERR invalid EPSILON"))?);
                    }
                    () if args.is(at, "FILTER") => self.filter = Some(filter(args.at(at + 1))?),
                    () => return Err(Error::Static("ERR syntax error in VSIM command")),
                }
                return Ok(2);
            }
        }
        Ok(1)
    }

    fn search(&self) -> Similar<'_> {
        Similar {
            ef: self.ef.unwrap_or(EF),
            epsilon: self.epsilon,
            filter: self.filter.as_ref(),
            filter_ef: self.filter_ef.unwrap_or_else(|| self.count.saturating_mul(FILTER_EF)),
            exact: self.is_exact,
            ..Similar::new(self.count)
        }
    }
}

fn filter(text: &[u8]) -> Result<Filter> {
    let near = |FilterError { offset }| if offset < text.len() { &text[offset..] } else { text };
    let error = |why| format!("ERR syntax error in FILTER expression near: {}", echo(near(why), MAX_ECHO));
    Filter::parse(text).map_err(|why| Error::Message(error(why)))
}

/// `VSIM key (ELE|FP32|VALUES num) (vector|element) [WITHSCORES] [WITHATTRIBS] [COUNT num] [EPSILON delta] [EF
/// search-exploration-factor] [FILTER expression] [FILTER-EF max-filtering-effort] [TRUTH] [NOTHREAD]`
pub(super) fn vsim(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Some(set) = cx.db.vector_set(args.key(0))? else {
        cx.reply.array(0);
        return Ok(());
    };
    let given;
    let (target, end) = if args.is(2, "ELE") {
        if !set.contains(args.at(3)) {
            return Err(refused(VectorSetError::NoElement));
        }
        (Target::Element(args.at(3)), 4)
    } else {
        given = Given::parse(args, 2).ok_or(INVALID_VECTOR)?;
        set.accepts(given.vector.len()).map_err(refused)?;
        (Target::Vector(&given.vector), given.end)
    };
    let options = Options::parse(args, end)?;
    let found = set.similar(target, &options.search()).map_err(refused)?;
    answer(cx.reply, &options, &found);
    Ok(())
}

fn answer(reply: &mut Reply, options: &Options, found: &[Match<'_>]) {
    let properties = usize::from(options.with_scores) + usize::from(options.with_attributes);
    match properties {
        0 => reply.array(found.len()),
        _ if reply.is_resp3() => reply.map(found.len()),
        _ => reply.array(found.len() * (1 + properties)),
    }
    for found in found {
        reply.bulk(found.name);
        if properties == 2 && reply.is_resp3() {
            reply.array(2);
        }
        if options.with_scores {
            reply.double(found.score);
        }
        match found.attributes {
            _ if !options.with_attributes => {}
            [] => reply.null(),
            attributes => reply.bulk(attributes),
        }
    }
}

/// Vectors that are compared, and the projection.
pub(super) fn weight(view: &View<'_>, args: Args<'_>) -> usize {
    let Some(set) = stored(view, args) else { return 0 };
    let from = behind_vector(args, 2);
    let projection = if args.is(2, "ELE") { 0 } else { set.work_of_projection() };
    if (from..args.len()).any(|at| args.is(at, "TRUTH")) {
        return set.work().saturating_add(projection);
    }
    let count = option(args, from, "COUNT").unwrap_or(COUNT);
    let mut ef = option(args, from, "EF").unwrap_or(EF).max(count);
    if (from..args.len()).any(|at| args.is(at, "FILTER")) {
        ef = ef.max(option(args, from, "FILTER-EF").unwrap_or_else(|| count.saturating_mul(FILTER_EF)));
    }
    set.work_of_search(ef).saturating_add(projection)
}
