//! BITFIELD: integers of any width at any place of a string.

use smallvec::SmallVec;

use super::{BEYOND_ALL, EMPTY, bit_offset, bits, max_len};
use crate::command::{Args, Result, weight};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::View;
use crate::protocol::error::Error;
use crate::protocol::{Reply, number};

/// An integer's type: `i1` to `i64`, `u1` to `u63`.
#[derive(Clone, Copy, Debug)]
struct Type {
    signed: bool,
    width: u32,
}

/// The result of a sum that the type cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    action: Action,
    kind: Type,
    /// The field's first bit.
    offset: u64,
    overflow: Overflow,
}

type Operations = SmallVec<[Operation; 8]>;

/// The work of BITFIELD.
pub(super) fn bitfield_weight(view: &View<'_>, args: Args<'_>) -> usize {
    weight::filling(view, args, |_| {
        let operations = parse(BEYOND_ALL, args).ok()?;
        operations.iter().filter(|operation| operation.writes()).map(|operation| operation.end_byte() as u64).max()
    })
}

/// `BITFIELD key [GET type offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET type offset value | INCRBY type offset n>] …`
pub(super) fn bitfield(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let operations = parse(max_len(cx), args)?;
    let key = args.key(0);
    // A GET alone makes no key.
    let len = operations.iter().filter(|operation| operation.writes()).map(Operation::end_byte).max();
    let Some(len) = len else { return read_only(cx, args, &operations) };
    let reply = &mut *cx.reply;
    let write = |bytes: &mut [u8]| {
        reply.array(operations.len());
        let changes = operations.iter().map(|operation| operation.run(bytes, reply));
        changes.fold(false, |changed, one| changed | one)
    };
    let (changed, grown) = cx.db.write_string(key, len, write)?;
    if changed || grown {
        cx.changed(key, Event::SETBIT);
    }
    Ok(())
}

/// `BITFIELD_RO key [GET type offset …]`
pub(super) fn bitfield_ro(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let operations = parse(max_len(cx), args)?;
    if operations.iter().any(Operation::writes) {
        return Err(Error::Static("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read_only(cx, args, &operations)
}

fn read_only(cx: &mut Ctx<'_>, args: Args<'_>, operations: &Operations) -> Result {
    let value = cx.db.string(args.key(0))?.unwrap_or(EMPTY);
    cx.reply.array(operations.len());
    value.with(|bytes| {
        for operation in operations {
            cx.reply.int(operation.kind.get(bytes, operation.offset));
        }
    });
    Ok(())
}

fn parse(max_len: u64, args: Args<'_>) -> Result<Operations> {
    let mut operations = Operations::new();
    let mut overflow = Overflow::Wrap;
    let mut at = 2;
    while at < args.len() {
        let left = args.len() - at - 1;
        if args.is(at, "OVERFLOW") && left >= 1 {
            overflow = Overflow::parse(args.at(at + 1))?;
            at += 2;
            continue;
        }
        let words = if args.is(at, "GET") && left >= 2 {
            2
        } else if (args.is(at, "SET") || args.is(at, "INCRBY")) && left >= 3 {
            3
        } else {
            return Err(Error::Syntax);
        };
        let kind = Type::parse(args.at(at + 1))?;
        let offset = bit_offset(max_len, args.at(at + 2), Some(kind.width.into()))?;
        let action = match words {
            2 => Action::Get,
            _ if args.is(at, "SET") => Action::Set(args.int(at + 3)?),
            _ => Action::Add(args.int(at + 3)?),
        };
        operations.push(Operation { action, kind, offset, overflow });
        at += 1 + words;
    }
    Ok(operations)
}

impl Overflow {
    fn parse(word: &[u8]) -> Result<Self> {
        const WORDS: [(&str, Overflow); 3] =
            [("WRAP", Overflow::Wrap), ("SAT", Overflow::Saturate), ("FAIL", Overflow::Fail)];
        let found = WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|(_, overflow)| *overflow).ok_or(Error::Static("ERR Invalid OVERFLOW type specified"))
    }
}

impl Operation {
    fn writes(&self) -> bool {
        !matches!(self.action, Action::Get)
    }

    /// Offset behind the last byte that the field touches.
    fn end_byte(&self) -> usize {
        (self.offset + u64::from(self.kind.width)).div_ceil(8) as usize
    }

    /// Runs on the bytes of a string that is long enough for all that is written, appends the answer, and returns
    /// whether anything has changed.
    fn run(&self, bytes: &mut [u8], reply: &mut Reply) -> bool {
        let old = self.kind.get(bytes, self.offset);
        let (target, answers_old) = match self.action {
            Action::Get => {
                reply.int(old);
                return false;
            }
            // An unsigned field takes the bits of a negative number for a large one.
            Action::Set(value) if !self.kind.signed => (i128::from(value as u64), true),
            Action::Set(value) => (i128::from(value), true),
            Action::Add(increment) => (i128::from(old) + i128::from(increment), false),
        };
        let Some(new) = self.kind.fit(target, self.overflow) else {
            reply.null();
            return false;
        };
        reply.int(if answers_old { old } else { new });
        bits::set(bytes, self.offset, self.kind.width, new as u64);
        new != old
    }
}

impl Type {
    fn parse(word: &[u8]) -> Result<Self> {
        let (signed, digits) = match word {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => (false, &word[..0]),
        };
        let max = if signed { 64 } else { 63 };
        let width = number::parse_i64(digits).filter(|width| (1..=max).contains(width));
        let text = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
        width.map(|width| Self { signed, width: width as u32 }).ok_or(Error::Static(text))
    }

    /// The field at `offset`.
    fn get(self, bytes: &[u8], offset: u64) -> i64 {
        self.interpret(bits::get(bytes, offset, self.width))
    }

    /// The low bits of `bits` as a number of this type.
    fn interpret(self, bits: u64) -> i64 {
        let unused = u64::BITS - self.width;
        if self.signed { (bits << unused) as i64 >> unused } else { (bits << unused >> unused) as i64 }
    }

    /// `value` as this type, if it fits or can be made to.
    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let values = 1i128 << self.width;
        let (min, max) = if self.signed { (-values / 2, values / 2 - 1) } else { (0, values - 1) };
        match overflow {
            _ if (min..=max).contains(&value) => Some(value as i64),
            Overflow::Wrap => Some(self.interpret(value as u64)),
            Overflow::Saturate => Some(value.clamp(min, max) as i64),
            Overflow::Fail => None,
        }
    }
}
