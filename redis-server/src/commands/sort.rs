//! SORT: the elements of a list, set or sorted set in order, or what other keys hold for them.

use std::cmp::Ordering;

use crate::command::weight::{self, Weight as Work};
use crate::command::{Args, Begin, Categories, Find, Flags, Footprint, KeyPositions, KeySpec, Result, Use, read};
use crate::commands::definition::{Family, cmd};
use crate::commands::store::store;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::exec::run::permission;
use crate::keyspace::{Access, Object, ValueRef, View};
use crate::protocol::error::{Error, c_string};
use crate::protocol::number;
use crate::types::List;

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern …]] [ASC|DESC] [ALPHA] [STORE destination]`
fn sort(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    run(cx, args, true)
}

/// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern …]] [ASC|DESC] [ALPHA]`
fn sort_ro(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    run(cx, args, false)
}

/// The options.
#[derive(Debug, Default)]
struct Options<'a> {
    descending: bool,
    alpha: bool,
    offset: i64,
    /// `None` is all.
    count: Option<i64>,
    by: Option<&'a [u8]>,
    get: Vec<&'a [u8]>,
    /// Whether the result is stored, at the second of the call's keys.
    stores: bool,
    /// Whether numbers have neither blanks in front nor a hexadecimal form, nor are missing, as in Valkey.
    strict: bool,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>, may_store: bool, is_node: bool) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 2;
        while at < args.len() {
            let more = args.len() - at - 1;
            if args.is(at, "ASC") {
                options.descending = false;
            } else if args.is(at, "DESC") {
                options.descending = true;
            } else if args.is(at, "ALPHA") {
                options.alpha = true;
            } else if args.is(at, "LIMIT") && more > 1 {
                options.offset = args.int(at + 1)?;
                options.count = Some(args.int(at + 2)?).filter(|&count| count >= 0);
                at += 2;
            } else if may_store && args.is(at, "STORE") && more > 0 {
                options.stores = true;
                at += 1;
            } else if args.is(at, "BY") && more > 0 {
                if is_node && args.at(at + 1).contains(&b'*') {
                    return Err(Error::Static("ERR BY option of SORT denied in cluster mode."));
                }
                options.by = Some(args.at(at + 1));
                at += 1;
            } else if args.is(at, "GET") && more > 0 {
                if is_node {
                    return Err(Error::Static("ERR GET option of SORT denied in cluster mode."));
                }
                options.get.push(args.at(at + 1));
                at += 1;
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }

    /// Refuses patterns, which may name any key, to a user that may not read all keys. `args` is the call itself.
    fn permitted(&self, cx: &Ctx<'_>, args: Args<'_>) -> Result {
        let looks = self.by.is_some_and(|pattern| pattern.contains(&b'*'));
        if !looks && self.get.is_empty() || permission::reads_all_keys(cx, args) {
            return Ok(());
        }
        Err(Error::Static(match looks {
            true => "ERR BY option of SORT denied due to insufficient ACL permissions.",
            false => "ERR GET option of SORT denied due to insufficient ACL permissions.",
        }))
    }

    /// Whether BY names a constant: then nothing is sorted.
    fn keeps_order(&self) -> bool {
        self.by.is_some_and(|pattern| !pattern.contains(&b'*'))
    }

    /// The places of `len` elements that LIMIT selects.
    fn limits(&self, len: usize) -> std::ops::Range<usize> {
        let start = usize::try_from(self.offset).unwrap_or(0).min(len);
        let count = self.count.map_or(len, |count| usize::try_from(count).unwrap_or(len));
        start..start.saturating_add(count).min(len)
    }
}

/// The keys that the arguments name: the source, and where to store. They are known, and checked, before the options are
/// parsed, and also in a call that is wrong.
fn keys(args: Args<'_>, may_store: bool) -> KeyPositions {
    let (mut at, mut target) = (2, None);
    while at < args.len() {
        if args.is(at, "LIMIT") {
            at += 2;
        } else if args.is(at, "GET") || args.is(at, "BY") {
            at += 1;
        } else if may_store && args.is(at, "STORE") && at + 1 < args.len() {
            at += 1;
            target = Some((at, Access::Write));
        }
        at += 1;
    }
    std::iter::once((1, Access::Read)).chain(target).collect()
}

fn sort_keys(args: Args<'_>) -> KeyPositions {
    keys(args, true)
}

fn sort_ro_keys(args: Args<'_>) -> KeyPositions {
    keys(args, false)
}

/// The lock footprint: with patterns, the whole database, because any key may be read. A key that is called like an option makes it more.
fn footprint(args: Args<'_>) -> Footprint {
    let is_pattern = |at: usize| (args.is(at - 1, "BY") || args.is(at - 1, "GET")) && args.at(at).contains(&b'*');
    let stores = (2..args.len()).any(|at| args.is(at, "STORE"));
    match (3..args.len()).any(is_pattern) {
        true => Footprint::Database(if stores { Access::Write } else { Access::Read }),
        false => Footprint::Keys,
    }
}

fn run(cx: &mut Ctx<'_>, args: Args<'_>, may_store: bool) -> Result {
    let mut options = Options::parse(args, may_store, cx.instance.cluster.is_enabled())?;
    options.strict = cx.config().level().is_valkey();
    options.permitted(cx, args)?;
    let source = cx.db.value(args.key(0));
    let must_be_certain = options.stores || cx.is_in_script();
    if must_be_certain && options.keeps_order() && matches!(source, Some(ValueRef::Set(_))) {
        // A set has no order to keep, so a result that is stored, or given to a script, is sorted.
        options.by = None;
        options.alpha = true;
    }
    // Its own order has no other end to begin at.
    options.descending &= !(options.keeps_order() && matches!(source, Some(ValueRef::Set(_))));
    let sorted = ordered(&cx.db, &options, elements(source)?)?;
    let chosen = &sorted[options.limits(sorted.len())];
    let Some(target) = args.keys().get(1).filter(|_| options.stores) else {
        cx.reply.array(chosen.len() * options.get.len().max(1));
        for element in chosen {
            if options.get.is_empty() {
                cx.reply.bulk(element);
            }
            for pattern in &options.get {
                match look_up(&cx.db, pattern, element) {
                    Some(value) => cx.reply.bulk(&value),
                    None => cx.reply.null(),
                }
            }
        }
        return Ok(());
    };
    let limits = cx.list_limits();
    let mut list = List::default();
    for element in chosen {
        if options.get.is_empty() {
            list.push_back(element, limits);
        }
        for pattern in &options.get {
            list.push_back(&look_up(&cx.db, pattern, element).unwrap_or_default(), limits);
        }
    }
    store(cx, target, list.len(), Object::List(Box::new(list)), Event::SORTSTORE);
    Ok(())
}

/// The elements of what is to be sorted, in its own order.
fn elements(source: Option<ValueRef<'_>>) -> Result<Vec<Vec<u8>>> {
    Ok(match source {
        None => Vec::new(),
        Some(ValueRef::List(list)) => list.iter().map(|element| element.to_vec()).collect(),
        Some(ValueRef::Set(set)) => set.iter().map(|member| member.to_vec()).collect(),
        Some(ValueRef::SortedSet(set)) => set.iter().map(|(member, _)| member.to_vec()).collect(),
        Some(
            ValueRef::Str(_)
            | ValueRef::Hash(_)
            | ValueRef::Stream(_)
            | ValueRef::Json(_)
            | ValueRef::Bloom(_)
            | ValueRef::VectorSet(_),
        ) => return Err(Error::WrongType),
    })
}

/// The sort weight of an element.
#[derive(Debug)]
enum Weight {
    /// The element itself.
    Own,
    Number(f64),
    /// The value of another key, or `None` if it is missing.
    Text(Option<Vec<u8>>),
}

/// Puts elements in order.
fn ordered(db: &View<'_>, options: &Options<'_>, mut elements: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    if options.keeps_order() {
        if options.descending {
            elements.reverse();
        }
        return Ok(elements);
    }
    let weighed: Result<Vec<(Weight, Vec<u8>)>> =
        elements.into_iter().map(|element| Ok((weight(db, options, &element)?, element))).collect();
    let mut weighed = weighed?;
    weighed.sort_by(|one, other| {
        let order = compare(one, other);
        if options.descending { order.reverse() } else { order }
    });
    Ok(weighed.into_iter().map(|(_, element)| element).collect())
}

fn weight(db: &View<'_>, options: &Options<'_>, element: &[u8]) -> Result<Weight> {
    let Some(pattern) = options.by else {
        return if options.alpha { Ok(Weight::Own) } else { number(element, options.strict).map(Weight::Number) };
    };
    let value = look_up(db, pattern, element);
    if options.alpha {
        return Ok(Weight::Text(value));
    }
    // A missing value weighs 0.
    value.map_or(Ok(Weight::Number(0.0)), |value| number(&value, options.strict).map(Weight::Number))
}

/// A number as C's `strtod` reads a whole string, which ends at a zero byte.
fn number(text: &[u8], strict: bool) -> Result<f64> {
    let text = c_string(text);
    if text.is_empty() && !strict {
        return Ok(0.0);
    }
    let number = match strict {
        true => number::parse_decimal(text),
        false => number::parse_f64(text.trim_ascii_start()),
    };
    number.ok_or(Error::Static("ERR One or more scores can't be converted into double"))
}

fn compare(one: &(Weight, Vec<u8>), other: &(Weight, Vec<u8>)) -> Ordering {
    match (&one.0, &other.0) {
        // Equal numbers leave it to the elements, so that the result is always the same.
        (Weight::Number(a), Weight::Number(b)) => {
            a.partial_cmp(b).unwrap_or(Ordering::Equal).then_with(|| one.1.cmp(&other.1))
        }
        // A missing value (`None`) sorts first.
        (Weight::Text(a), Weight::Text(b)) => a.cmp(b),
        _ => one.1.cmp(&other.1),
    }
}

/// The value that a pattern names for an element: the element itself for `#`, otherwise the value of the key with the element in place of
/// the first `*`. With `->field` behind it, the value is that field of a hash.
fn look_up(db: &View<'_>, pattern: &[u8], element: &[u8]) -> Option<Vec<u8>> {
    if pattern == b"#" {
        return Some(element.to_vec());
    }
    let star = memchr::memchr(b'*', pattern)?;
    let (before, behind) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = memchr::memmem::find(behind, b"->").filter(|at| at + 2 < behind.len());
    let name = [before, element, &behind[..arrow.unwrap_or(behind.len())]].concat();
    match (db.value(&db.key(&name))?, arrow) {
        (ValueRef::Hash(hash), Some(at)) => hash.at(db.over_by()).get(&behind[at + 2..]).map(|value| value.to_vec()),
        (ValueRef::Str(string), None) => Some(string.to_vec()),
        _ => None,
    }
}

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);

/// Keys that the contents of others name, or that can stand anywhere.
const fn unknown(access: Access, flags: &'static str) -> KeySpec {
    KeySpec { begin: Begin::Unknown, find: Find::Unknown, usage: Use { access, flags } }
}

const PATTERNS: KeySpec = unknown(Access::Read, "RO access");
const CATEGORIES: Categories =
    Categories::SET.and(Categories::SORTEDSET).and(Categories::LIST).and(Categories::DANGEROUS);

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "generic", category: CATEGORIES, commands: &[
    cmd("sort",    -2, sort,    WRITE, &[read(1), PATTERNS, unknown(Access::Write, "OW update")]).finder(sort_keys).locks(Footprint::Depends(footprint)).weighs(Work::Of(weight::values)),
    cmd("sort_ro", -2, sort_ro, READ,  &[read(1), PATTERNS]).finder(sort_ro_keys).locks(Footprint::Depends(footprint)).weighs(Work::Of(weight::values)),
] };
