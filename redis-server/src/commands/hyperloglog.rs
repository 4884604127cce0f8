//! HyperLogLog (<https://redis.io/docs/latest/commands/?group=hyperloglog>).

use crate::command::{Args, Categories, Flags, KeyPositions, Result, Weight, reads, update, weight, writes};
use crate::commands::definition::{Family, cmd};
use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Access, Key, StrRef, Value};
use crate::protocol::error::{Error, echo};
use crate::types::hyperloglog::{self, Encoding};

const NOT_ONE: Error = Error::Static("WRONGTYPE Key is not a valid HyperLogLog string value.");
const CORRUPT: Error = Error::Static("INVALIDOBJ Corrupted HLL object detected");

/// Elements that PFSELFTEST counts.
const SELF_TEST: u64 = 100_000;
/// Longest part of an unknown subcommand that the error repeats, in bytes.
const MAX_NAME: usize = 512;

/// Longest string that OBJECT ENCODING says to be `embstr`, in bytes.
const EMBEDDED_MAX: usize = 44;

/// Calls `look` with the HyperLogLog at `key`.
fn with<R>(cx: &Ctx<'_>, key: &Key<'_>, look: impl FnOnce(&[u8], Encoding) -> R) -> Result<Option<R>> {
    let Some(string) = cx.db.string(key)? else { return Ok(None) };
    parsed(string, look)
}

/// [`with`] for a command that changes it: it is not counted as read.
fn with_own<R>(cx: &mut Ctx<'_>, key: &Key<'_>, look: impl FnOnce(&[u8], Encoding) -> R) -> Result<Option<R>> {
    let Some(string) = cx.db.string_mut(key)?.and_then(|entry| entry.string()) else { return Ok(None) };
    parsed(string, look)
}

fn parsed<R>(string: StrRef<'_>, look: impl FnOnce(&[u8], Encoding) -> R) -> Result<Option<R>> {
    string.with(|bytes| Ok(Some(look(bytes, hyperloglog::encoding(bytes).ok_or(NOT_ONE)?))))
}

/// Stores a HyperLogLog in the place of what there was.
fn store(cx: &mut Ctx<'_>, key: &Key<'_>, bytes: Vec<u8>, encoding: Encoding) {
    // A dense value changes in place from now on. A short one needs an encoding other than that of SET.
    let value = if encoding == Encoding::Dense || bytes.len() <= EMBEDDED_MAX {
        Value::written(bytes)
    } else {
        Value::Raw(&bytes)
    };
    cx.db.set_keep_ttl(key, value);
}

/// `PFADD key [element …]`
fn pfadd(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let elements = args.from(2);
    let max_sparse = cx.config().size(settings::HLL_SPARSE_MAX_BYTES);
    let found = with_own(cx, key, |bytes, encoding| (encoding == Encoding::Sparse).then(|| bytes.to_vec()))?;
    let is_new = found.is_none();
    let changed = match found {
        Some(None) => {
            let (changed, _) = cx.db.write_string(key, hyperloglog::DENSE_LEN, |bytes| {
                let changed = elements.iter().filter(|element| hyperloglog::add_dense(bytes, element)).count();
                if changed > 0 {
                    hyperloglog::set_cached(bytes, None);
                }
                changed
            })?;
            changed
        }
        found => {
            let mut bytes = found.flatten().unwrap_or_else(hyperloglog::empty);
            let mut changed = usize::from(is_new);
            for element in elements.iter() {
                let raised = hyperloglog::add(&mut bytes, element, max_sparse);
                changed += usize::from(raised.map_err(|_| CORRUPT)?);
            }
            if changed > 0 {
                hyperloglog::set_cached(&mut bytes, None);
            }
            if changed > 0 || bytes.len() <= EMBEDDED_MAX {
                let encoding = hyperloglog::encoding(&bytes).ok_or(CORRUPT)?;
                store(cx, key, bytes, encoding);
            }
            changed
        }
    };
    if changed > 0 {
        cx.changed(key, Event::PFADD);
        cx.count_changes(changed as u64 - 1);
    }
    cx.reply.int((changed > 0).into());
    Ok(())
}

/// `PFCOUNT key [key …]`
fn pfcount(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.keys().len() > 1 {
        let registers = union(cx, args)?.0;
        cx.reply.int(hyperloglog::count_registers(&registers) as i64);
        return Ok(());
    }
    let key = args.key(0);
    let counted = with(cx, key, |bytes, _| match hyperloglog::cached(bytes) {
        Some(count) => Ok((count, bytes.len(), false)),
        None => hyperloglog::count(bytes).map(|count| (count, bytes.len(), true)),
    })?;
    let (count, len, is_new) = counted.transpose().map_err(|_| CORRUPT)?.unwrap_or((0, 0, false));
    if is_new {
        cx.db.write_string(key, len, |bytes| hyperloglog::set_cached(bytes, Some(count)))?;
        cx.touched(key);
        cx.count_changes(1);
    }
    cx.reply.int(count as i64);
    Ok(())
}

/// The greatest of all keys' registers, and whether one of them is dense.
fn union(cx: &Ctx<'_>, args: Args<'_>) -> Result<(Box<[u8; hyperloglog::REGISTERS]>, bool)> {
    let mut registers = Box::new([0; hyperloglog::REGISTERS]);
    let mut dense = false;
    for key in args.keys() {
        let merged = with(cx, key, |bytes, encoding| {
            dense |= encoding == Encoding::Dense;
            hyperloglog::merge(&mut registers, bytes)
        })?;
        merged.transpose().map_err(|_| CORRUPT)?;
    }
    Ok((registers, dense))
}

/// The keys of PFMERGE: the destination, which may be the only one.
fn pfmerge_keys(args: Args<'_>) -> KeyPositions {
    (1..args.len()).map(|at| (at, if at == 1 { Access::Write } else { Access::Read })).collect()
}

/// `PFMERGE destkey [sourcekey …]`
fn pfmerge(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let max_sparse = cx.config().size(settings::HLL_SPARSE_MAX_BYTES);
    let (registers, dense) = union(cx, args)?;
    let mut bytes = with_own(cx, key, |bytes, _| bytes.to_vec())?.unwrap_or_else(hyperloglog::empty);
    if dense {
        hyperloglog::make_dense(&mut bytes).map_err(|_| CORRUPT)?;
    }
    for (index, &count) in registers.iter().enumerate().filter(|(_, count)| **count > 0) {
        hyperloglog::raise(&mut bytes, index, count, max_sparse).map_err(|_| CORRUPT)?;
    }
    hyperloglog::set_cached(&mut bytes, None);
    let encoding = hyperloglog::encoding(&bytes).ok_or(CORRUPT)?;
    store(cx, key, bytes, encoding);
    cx.changed(key, Event::PFADD);
    cx.reply.ok();
    Ok(())
}

/// PFDEBUG subcommand key
fn pfdebug(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let missing = Error::Static("ERR The specified key does not exist");
    let (bytes, encoding) = with(cx, key, |bytes, encoding| (bytes.to_vec(), encoding))?.ok_or(missing)?;
    // Redis makes the string a raw one for every subcommand; OBJECT ENCODING shows it.
    store(cx, key, bytes.clone(), encoding);
    if args.is(1, "GETREG") {
        let dense = to_dense(cx, key, bytes, encoding)?;
        cx.reply.array(hyperloglog::REGISTERS);
        hyperloglog::dense_registers(&dense).for_each(|register| cx.reply.int(register.into()));
    } else if args.is(1, "DECODE") {
        if encoding == Encoding::Dense {
            return Err(Error::Static("ERR HLL encoding is not sparse"));
        }
        cx.reply.bulk(hyperloglog::describe(&bytes).as_bytes());
    } else if args.is(1, "ENCODING") {
        cx.reply.simple(if encoding == Encoding::Dense { "dense" } else { "sparse" });
    } else if args.is(1, "TODENSE") {
        to_dense(cx, key, bytes, encoding)?;
        cx.reply.int((encoding == Encoding::Sparse).into());
    } else {
        let name = echo(args.at(1), MAX_NAME);
        return Err(Error::Message(format!("ERR Unknown PFDEBUG subcommand '{name}'")));
    }
    Ok(())
}

/// Stores the dense form of what `key` holds, and returns it.
fn to_dense(cx: &mut Ctx<'_>, key: &Key<'_>, mut bytes: Vec<u8>, encoding: Encoding) -> Result<Vec<u8>> {
    if encoding == Encoding::Sparse {
        hyperloglog::make_dense(&mut bytes).map_err(|_| CORRUPT)?;
        store(cx, key, bytes.clone(), Encoding::Dense);
        cx.count_changes(1);
    }
    Ok(bytes)
}

/// PFSELFTEST: whether both forms agree, and estimate as well as they should.
fn pfselftest(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let max_sparse = cx.config().size(settings::HLL_SPARSE_MAX_BYTES);
    let (mut sparse, mut dense) = (hyperloglog::empty(), hyperloglog::empty());
    hyperloglog::make_dense(&mut dense).map_err(|_| CORRUPT)?;
    let seed = cx.random().number();
    let mut check_at = 1;
    for added in 1..=SELF_TEST {
        let element = (added ^ seed).to_le_bytes();
        hyperloglog::add_dense(&mut dense, &element);
        hyperloglog::add(&mut sparse, &element, max_sparse).map_err(|_| CORRUPT)?;
        if added < check_at {
            continue;
        }
        check_at *= 10;
        let count = hyperloglog::count(&dense).map_err(|_| CORRUPT)?;
        if hyperloglog::count(&sparse) != Ok(count) {
            return Err(Error::Static("TESTFAILED dense/sparse disagree"));
        }
        // Six times the standard error, 1.04 / sqrt(16384): a run that is unlucky must not fail.
        let error = count.abs_diff(added);
        if error as f64 > (added as f64 * 6.0 * 1.04 / 128.0).ceil() {
            return Err(Error::Message(format!("TESTFAILED Too big error. card:{added} abserr:{error}")));
        }
    }
    cx.reply.ok();
    Ok(())
}

const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const COUNT: Flags = Flags::READONLY.and(Flags::MAY_REPLICATE);
const MERGE: &[crate::command::KeySpec] = &[update(1).flags("RW access insert"), reads(2, -1, 1)];

/// The table. PFCOUNT keeps what it has counted, so it locks its keys for writing.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "hyperloglog", category: Categories::HYPERLOGLOG, commands: &[
    cmd("pfadd",      -2, pfadd,      WRITE.and(Flags::FAST),  &[update(1).flags("RW insert")]),
    cmd("pfcount",    -2, pfcount,    COUNT,                   &[writes(1, -1, 1).flags("RW access")]).weighs(Weight::Of(weight::values)),
    cmd("pfdebug",     3, pfdebug,    WRITE.and(Flags::ADMIN), &[update(2).flags("RW access")]),
    cmd("pfmerge",    -2, pfmerge,    WRITE,                   MERGE).finder(pfmerge_keys),
    cmd("pfselftest",  1, pfselftest, Flags::ADMIN,            &[]),
] };
