//! INCREX: counting within bounds, with an expiry, in one step (<https://redis.io/docs/latest/commands/increx/>).

use std::cmp::Ordering;

use super::expiry::{Unit, deadline, remove_over, unit};
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{StrRef, Value};
use crate::protocol::error::Error;
use crate::protocol::number::{Extended, IntText, parse_i64};

/// `INCREX key [BYFLOAT increment | BYINT increment] [LBOUND lowerbound] [UBOUND upperbound] [SATURATE]
/// [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | PERSIST] [ENX]`
pub(super) fn increx(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = Options::parse(args)?;
    let increment = options.increment(args)?;
    let bounds = options.bounds(args, increment)?;
    let at = options.time.map(|(unit, at)| deadline(cx.now(), args, unit, at, "increx")).transpose()?;
    let key = args.key(0);
    let (old, expires) = match cx.db.string_mut(key)? {
        Some(entry) => (increment.like(entry.string())?, entry.expire_at().is_some()),
        None => (increment.like(None)?, false),
    };
    let Some(new) = bounds.sum(old, increment, options.saturate)? else {
        cx.reply.array(2);
        old.answer(cx);
        increment.zero().answer(cx);
        return Ok(());
    };
    let applied = new.minus(old)?;
    // With ENX a time that there is stays.
    let at = at.filter(|_| !(options.only_new && expires));
    match at {
        Some(at) if options.is_absolute() && cx.db.is_over(at) => remove_over(cx, key),
        _ => store(cx, args, new, at, options.persist && expires),
    }
    cx.reply.array(2);
    new.answer(cx);
    applied.answer(cx);
    Ok(())
}

/// Stores a number under the key, and its time if it is given one, or loses it.
fn store(cx: &mut Ctx<'_>, args: Args<'_>, new: Number, at: Option<u64>, persist: bool) {
    let key = args.key(0);
    let text = new.text();
    match new {
        Number::Int(int) => cx.db.set_keep_ttl(key, Value::Int(int)),
        Number::Float(_) => cx.db.set_keep_ttl(key, Value::Text(text.as_bytes())),
    }
    cx.changed(key, new.event());
    if let Some(at) = at {
        cx.db.expire(key, Some(at));
        cx.notify(key, Event::EXPIRE);
        cx.instead(&[b"SET", key.bytes, text.as_bytes(), b"PXAT", &IntText::new(at as i64)]);
    } else if persist {
        cx.db.expire(key, None);
        cx.notify(key, Event::PERSIST);
        cx.instead(&[b"SET", key.bytes, text.as_bytes()]);
    } else {
        cx.instead(&[b"SET", key.bytes, text.as_bytes(), b"KEEPTTL"]);
    }
}

/// A number of one of the two kinds that are counted in.
#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Float(Extended),
}

impl Number {
    /// The number that a text holds, of the same kind.
    fn read(self, text: &[u8]) -> Option<Self> {
        match self {
            Self::Int(_) => parse_i64(text).map(Self::Int),
            Self::Float(_) => Extended::parse(text).map(Self::Float),
        }
    }

    /// Nothing, of the same kind.
    fn zero(self) -> Self {
        match self {
            Self::Int(_) => Self::Int(0),
            Self::Float(_) => Self::Float(Extended::ZERO),
        }
    }

    /// The value of a key as a number of the same kind; nothing where there is none.
    fn like(self, value: Option<StrRef<'_>>) -> Result<Self> {
        let Some(value) = value else { return Ok(self.zero()) };
        match self {
            Self::Int(_) => value.as_int().map(Self::Int).ok_or(Error::NotInteger),
            Self::Float(_) => {
                let float = value.with(Extended::parse).ok_or(Error::NotFloat)?;
                if !float.is_finite() {
                    return Err(Error::Static("ERR value cannot be Infinity"));
                }
                Ok(Self::Float(float))
            }
        }
    }

    /// The sum, if it is in the range of its kind.
    fn plus(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => one.checked_add(other).map(Self::Int),
            (Self::Float(one), Self::Float(other)) => Some(one + other).filter(|sum| sum.is_finite()).map(Self::Float),
            (Self::Int(_), Self::Float(_)) | (Self::Float(_), Self::Int(_)) => None,
        }
    }

    fn minus(self, other: Self) -> Result<Self> {
        let difference = match (self, other) {
            (Self::Int(one), Self::Int(other)) => one.checked_sub(other).map(Self::Int),
            (one, Self::Float(other)) => one.plus(Self::Float(other.negated())),
            (Self::Float(_), Self::Int(_)) => None,
        };
        difference.ok_or(Error::Static("ERR applied increment would overflow"))
    }

    fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => one.cmp(&other),
            (Self::Float(one), Self::Float(other)) => one.compare(other),
            (Self::Int(_), Self::Float(_)) | (Self::Float(_), Self::Int(_)) => Ordering::Equal,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Int(int) => int.to_string(),
            Self::Float(float) => float.to_string(),
        }
    }

    fn event(self) -> Event {
        match self {
            Self::Int(_) => Event::INCRBY,
            Self::Float(_) => Event::INCRBYFLOAT,
        }
    }

    fn answer(self, cx: &mut Ctx<'_>) {
        match self {
            Self::Int(int) => cx.reply.int(int),
            Self::Float(float) => cx.reply.decimal(&float.to_string()),
        }
    }
}

/// Between which numbers the sum is to be.
struct Bounds {
    lower: Option<Number>,
    upper: Option<Number>,
}

impl Bounds {
    /// The sum; if it is out of bounds, or of the range of its kind, the limit that it passes, or nothing unless it
    /// `saturates`.
    fn sum(&self, old: Number, increment: Number, saturates: bool) -> Result<Option<Number>> {
        let sum = old.plus(increment);
        let bounded = match sum {
            Some(sum) => self.nearest(sum),
            None => self.limit(increment)?,
        };
        let is_inside = sum.is_some_and(|sum| sum.compare(bounded) == Ordering::Equal);
        Ok((is_inside || saturates).then_some(bounded))
    }

    /// The nearest number within the bounds.
    fn nearest(&self, number: Number) -> Number {
        match (self.lower, self.upper) {
            (Some(lower), _) if number.compare(lower) == Ordering::Less => lower,
            (_, Some(upper)) if number.compare(upper) == Ordering::Greater => upper,
            _ => number,
        }
    }

    /// Where a sum ends that leaves the range of its kind.
    fn limit(&self, increment: Number) -> Result<Number> {
        let falls = increment.compare(increment.zero()) == Ordering::Less;
        let bound = if falls { self.lower } else { self.upper };
        match (bound, increment) {
            (_, Number::Int(_)) => Ok(self.nearest(Number::Int(if falls { i64::MIN } else { i64::MAX }))),
            (Some(bound), Number::Float(_)) => Ok(bound),
            (None, Number::Float(_)) => Err(Error::NanOrInfinity),
        }
    }
}

/// The options, by the places of their arguments.
#[derive(Default)]
struct Options {
    by_int: Option<usize>,
    by_float: Option<usize>,
    lower: Option<usize>,
    upper: Option<usize>,
    saturate: bool,
    time: Option<(Unit, usize)>,
    persist: bool,
    /// ENX: a key that has a time keeps it.
    only_new: bool,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 2;
        while at < args.len() {
            let flag = [
                ("SATURATE", &mut options.saturate),
                ("PERSIST", &mut options.persist),
                ("ENX", &mut options.only_new),
            ]
            .into_iter()
            .find(|(word, _)| args.is(at, word));
            if let Some((_, flag)) = flag {
                if std::mem::replace(flag, true) {
                    return Err(Error::Syntax);
                }
                at += 1;
                continue;
            }
            options.take_value(args, at)?;
            at += 2;
        }
        let times = usize::from(options.time.is_some()) + usize::from(options.persist);
        let kinds = usize::from(options.by_int.is_some()) + usize::from(options.by_float.is_some());
        if times > 1 || kinds > 1 || options.persist && options.only_new {
            return Err(Error::Syntax);
        }
        if options.only_new && options.time.is_none() {
            return Err(Error::Static("ERR ENX flag requires an expiration (EX, PX, EXAT or PXAT)"));
        }
        Ok(options)
    }

    /// Takes an option that has a value, once.
    fn take_value(&mut self, args: Args<'_>, at: usize) -> Result {
        if at + 1 == args.len() {
            return Err(Error::Syntax);
        }
        if let Some(unit) = unit(args, at) {
            return self.time.replace((unit, at + 1)).map_or(Ok(()), |_| Err(Error::Syntax));
        }
        let place = if args.is(at, "BYINT") {
            &mut self.by_int
        } else if args.is(at, "BYFLOAT") {
            &mut self.by_float
        } else if args.is(at, "LBOUND") {
            &mut self.lower
        } else if args.is(at, "UBOUND") {
            &mut self.upper
        } else {
            return Err(Error::Syntax);
        };
        place.replace(at + 1).map_or(Ok(()), |_| Err(Error::Syntax))
    }

    fn increment(&self, args: Args<'_>) -> Result<Number> {
        let Some(at) = self.by_float else {
            let Some(at) = self.by_int else { return Ok(Number::Int(1)) };
            let refused = Error::Static("ERR Increment is not an integer or out of range");
            return args.int(at).map(Number::Int).map_err(|_| refused);
        };
        match Extended::parse(args.at(at)) {
            Some(float) if float.is_finite() => Ok(Number::Float(float)),
            Some(_) => Err(Error::Static("ERR BYFLOAT increment cannot be Infinity")),
            None => Err(Error::Static("ERR Increment is not a valid float")),
        }
    }

    fn bounds(&self, args: Args<'_>, increment: Number) -> Result<Bounds> {
        let bound = |at: Option<usize>| {
            let refused = match increment {
                Number::Int(_) => Error::NotInteger,
                Number::Float(_) => Error::NotFloat,
            };
            at.map(|at| increment.read(args.at(at)).ok_or(refused)).transpose()
        };
        let bounds = Bounds { lower: bound(self.lower)?, upper: bound(self.upper)? };
        match (bounds.lower, bounds.upper) {
            (Some(lower), Some(upper)) if lower.compare(upper) == Ordering::Greater => {
                Err(Error::Static("ERR LBOUND can't be greater than UBOUND"))
            }
            _ => Ok(bounds),
        }
    }

    /// Whether the time counts from the epoch, so that it may be over already.
    fn is_absolute(&self) -> bool {
        matches!(self.time, Some((Unit::ExAt | Unit::PxAt, _)))
    }
}
