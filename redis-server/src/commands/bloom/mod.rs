//! Bloom filters (<https://redis.io/docs/latest/commands/?group=bf>).

mod transfer;

use crate::command::{Args, Categories, Flags, Result, Weight, read, update, weight, write};
use crate::commands::definition::{Family, cmd};
use crate::exec::core::Ctx;
use crate::keyspace::{Key, Object, Value};
use crate::protocol::Reply;
use crate::protocol::error::{Error, echo};
use crate::types::bloom::{Bloom, DEFAULT_GROWTH, Refused};

/// Parameters of a filter that a command creates without BF.RESERVE.
const DEFAULT_ERROR: f64 = 0.01;
const DEFAULT_CAPACITY: u64 = 100;

/// Bytes of an argument that an error repeats.
const MAX_ECHO: usize = 128;

const NOT_FOUND: Error = Error::Static("ERR not found");

/// How a filter is made.
#[derive(Clone, Copy, Debug)]
struct Options {
    error: f64,
    capacity: u64,
    expansion: Option<u32>,
    is_fixed: bool,
    /// Only a filter that is there gets anything.
    is_there: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { error: DEFAULT_ERROR, capacity: DEFAULT_CAPACITY, expansion: None, is_fixed: false, is_there: false }
    }
}

impl Options {
    fn make(self) -> Result<Bloom> {
        let growth = (!self.is_fixed).then_some(self.expansion.unwrap_or(DEFAULT_GROWTH));
        Bloom::new(self.error, self.capacity, growth).map_err(refused)
    }
}

fn refused(why: Refused) -> Error {
    Error::Message(format!("ERR {why}"))
}

fn error_rate(args: Args<'_>, at: usize) -> Result<f64> {
    let rate = args.float(at).map_err(|_| Error::Static("ERR bad error rate"))?;
    if rate > 0.0 && rate < 1.0 { Ok(rate) } else { Err(Error::Static("ERR (0 < error rate range < 1)")) }
}

fn capacity(args: Args<'_>, at: usize) -> Result<u64> {
    let capacity = args.int(at).map_err(|_| Error::Static("ERR bad capacity"))?;
    let capacity = u64::try_from(capacity).ok().filter(|capacity| *capacity > 0);
    capacity.ok_or(Error::Static("ERR (capacity should be larger than 0)"))
}

fn expansion(args: Args<'_>, at: usize) -> Result<u32> {
    let expansion = args.int(at).map_err(|_| Error::Static("ERR bad expansion"))?;
    let too_small = Error::Static("ERR expansion should be greater or equal to 1");
    match u32::try_from(expansion) {
        Ok(1..) => Ok(expansion as u32),
        Err(_) if expansion > 0 => Err(Error::Static("ERR bad expansion")),
        _ => Err(too_small),
    }
}

/// `BF.RESERVE key error_rate capacity [EXPANSION expansion] [NONSCALING]`
fn reserve(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let mut options = Options { error: error_rate(args, 2)?, capacity: capacity(args, 3)?, ..Options::default() };
    let mut at = 4;
    while at < args.len() {
        match () {
            () if args.is(at, "NONSCALING") => options.is_fixed = true,
            () if args.is(at, "EXPANSION") && at + 1 == args.len() => return Err(Error::Static("ERR no expansion")),
            () if args.is(at, "EXPANSION") => {
                at += 1;
                options.expansion = Some(expansion(args, at)?);
            }
            () => return Err(Error::Syntax),
        }
        at += 1;
    }
    if options.is_fixed && options.expansion.is_some() {
        return Err(Error::Static("ERR nonscaling filters cannot expand"));
    }
    if cx.db.bloom(key)?.is_some() {
        return Err(Error::Static("ERR item exists"));
    }
    store(cx, key, options.make()?);
    cx.reply.ok();
    Ok(())
}

/// Puts a filter where none is, or in the place of one.
fn store(cx: &mut Ctx<'_>, key: &Key<'_>, filter: Bloom) {
    cx.db.set_keep_ttl(key, Value::Object(Object::Bloom(Box::new(filter))));
    changed(cx, key);
}

/// As in RedisBloom nobody is notified.
fn changed(cx: &mut Ctx<'_>, key: &Key<'_>) {
    cx.changed_silently(key);
}

/// Adds elements. Returns the result for each, up to the first that is refused.
fn add_all(cx: &mut Ctx<'_>, key: &Key<'_>, options: Options, elements: Args<'_>) -> Result<Vec<Result<bool>>> {
    let is_new = match cx.db.bloom(key)? {
        Some(_) => false,
        None if options.is_there => return Err(NOT_FOUND),
        None => true,
    };
    if is_new {
        let filter = options.make()?;
        *cx.db.bloom_or_new(key)? = filter;
    }
    let filter = cx.db.bloom_mut(key)?.ok_or(NOT_FOUND)?;
    let mut results = Vec::with_capacity(elements.len());
    for element in elements.iter() {
        let added = filter.add(element).map_err(refused);
        let is_refused = added.is_err();
        results.push(added);
        if is_refused {
            break;
        }
    }
    if is_new || results.iter().any(|added| matches!(added, Ok(true))) {
        changed(cx, key);
    }
    Ok(results)
}

fn answer_each(reply: &mut Reply, results: Vec<Result<bool>>) {
    reply.array(results.len());
    for result in results {
        match result {
            Ok(added) => reply.boolean(added),
            Err(error) => reply.error(&error),
        }
    }
}

/// BF.ADD key item
fn add(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let results = add_all(cx, args.key(0), Options::default(), args.from(2))?;
    for result in results {
        cx.reply.boolean(result?);
    }
    Ok(())
}

/// `BF.MADD key item [item …]`
fn madd(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let results = add_all(cx, args.key(0), Options::default(), args.from(2))?;
    answer_each(cx.reply, results);
    Ok(())
}

/// `BF.INSERT key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING] ITEMS item [item …]`
fn insert(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let mut options = Options::default();
    let mut at = 2;
    loop {
        let has_value = at + 1 < args.len();
        match () {
            () if at >= args.len() => return Err(Error::WrongArity("bf.insert".into())),
            () if args.is(at, "ITEMS") => break,
            () if args.is(at, "NOCREATE") => options.is_there = true,
            () if args.is(at, "NONSCALING") => options.is_fixed = true,
            () if !has_value => return Err(Error::Syntax),
            () if args.is(at, "CAPACITY") => options.capacity = capacity(args, at + 1)?,
            () if args.is(at, "ERROR") => options.error = error_rate(args, at + 1)?,
            () if args.is(at, "EXPANSION") => options.expansion = Some(expansion(args, at + 1)?),
            () => {
                let found = echo(args.at(at), MAX_ECHO);
                return Err(Error::Message(format!("ERR unknown argument '{found}'")));
            }
        }
        let is_word = args.is(at, "NOCREATE") || args.is(at, "NONSCALING");
        at += if is_word { 1 } else { 2 };
    }
    let items = args.from(at + 1);
    if items.is_empty() {
        return Err(Error::WrongArity("bf.insert".into()));
    }
    let results = add_all(cx, args.key(0), options, items)?;
    answer_each(cx.reply, results);
    Ok(())
}

/// BF.EXISTS key item
fn exists(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let is_there = cx.db.bloom(args.key(0))?.is_some_and(|filter| filter.contains(args.at(2)));
    cx.reply.boolean(is_there);
    Ok(())
}

/// `BF.MEXISTS key item [item …]`
fn mexists(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let filter = cx.db.bloom(args.key(0))?;
    let items = args.from(2);
    cx.reply.array(items.len());
    for item in items.iter() {
        cx.reply.boolean(filter.is_some_and(|filter| filter.contains(item)));
    }
    Ok(())
}

/// BF.CARD key
fn card(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let items = cx.db.bloom(args.key(0))?.map_or(0, Bloom::items);
    cx.reply.int(items as i64);
    Ok(())
}

/// `BF.INFO key [CAPACITY|SIZE|FILTERS|ITEMS|EXPANSION]`
fn info(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 3 {
        return Err(Error::WrongArity("bf.info".into()));
    }
    let filter = cx.db.bloom(args.key(0))?.ok_or(NOT_FOUND)?;
    let all: [(&str, &str, Option<u64>); 5] = [
        ("CAPACITY", "Capacity", Some(filter.capacity())),
        ("SIZE", "Size", Some(filter.memory() as u64)),
        ("FILTERS", "Number of filters", Some(filter.filters() as u64)),
        ("ITEMS", "Number of items inserted", Some(filter.items())),
        ("EXPANSION", "Expansion rate", filter.growth().map(u64::from)),
    ];
    let number = |reply: &mut Reply, number: Option<u64>| match number {
        Some(number) => reply.int(number as i64),
        None => reply.null(),
    };
    if args.len() == 3 {
        let found = all.into_iter().find(|(word, ..)| args.is(2, word));
        let (_, name, value) = found.ok_or(Error::Static("ERR invalid information value"))?;
        if cx.reply.is_resp3() {
            cx.reply.map(1);
            cx.reply.simple(name);
        } else {
            cx.reply.array(1);
        }
        number(cx.reply, value);
        return Ok(());
    }
    cx.reply.map(all.len());
    for (_, name, value) in all {
        cx.reply.simple(name);
        number(cx.reply, value);
    }
    Ok(())
}

/// BF.DEBUG key
fn debug(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let filter = cx.db.bloom(args.key(0))?.ok_or(NOT_FOUND)?;
    cx.reply.array(1 + filter.filters());
    cx.reply.bulk(format!("size:{}", filter.items()).as_bytes());
    filter.lines().for_each(|line| cx.reply.bulk(line.as_bytes()));
    Ok(())
}

const READ_FAST: Flags = Flags::READONLY.and(Flags::FAST);
const GROW: Flags = Flags::WRITE.and(Flags::DENYOOM);

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "bf", category: Categories::BLOOM, commands: &[
    cmd("bf.add",       3, add,       GROW,      &[update(1)]).batched(),
    cmd("bf.card",      2, card,      READ_FAST, &[read(1).flags("RO")]),
    cmd("bf.debug",     2, debug,     READ_FAST, &[read(1)]),
    cmd("bf.exists",    3, exists,    READ_FAST, &[read(1).flags("RO")]),
    cmd("bf.info",     -2, info,      READ_FAST, &[read(1)]),
    cmd("bf.insert",   -4, insert,    GROW,      &[update(1)]),
    cmd("bf.loadchunk", 4, transfer::loadchunk, GROW, &[write(1).flags("RW update")]).weighs(Weight::Of(weight::payload)),
    cmd("bf.madd",     -3, madd,      GROW,      &[update(1)]),
    cmd("bf.mexists",  -3, mexists,   READ_FAST, &[read(1).flags("RO")]),
    cmd("bf.reserve",  -4, reserve,   GROW,      &[write(1).flags("RW insert")]),
    cmd("bf.scandump",  3, transfer::scandump, Flags::READONLY, &[read(1)]).weighs(Weight::Of(weight::values)),
] };
