//! The options of SET and GETEX, of which most are about expiry.

use super::compare::Comparison;
use super::reply_string;
use crate::command::{Args, Result};
use crate::commands::generic::over;
use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::Key;
use crate::protocol::error::Error;
use crate::protocol::number::IntText;

/// How a time is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds from now.
    Ex,
    /// Milliseconds from now.
    Px,
    /// Seconds of Unix time.
    ExAt,
    /// Milliseconds of Unix time.
    PxAt,
}

const UNITS: [(&str, Unit); 4] = [("EX", Unit::Ex), ("PX", Unit::Px), ("EXAT", Unit::ExAt), ("PXAT", Unit::PxAt)];

/// The options behind SET's value, or GETEX' key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// NX: only if there is no such key.
    pub(super) if_missing: bool,
    /// XX: only if there is one.
    pub(super) if_present: bool,
    /// IFEQ and its kin: only if the value is, or is not, what the argument at this place says.
    pub(super) compare: Option<Comparison>,
    /// GET: answer with the old value.
    pub(super) get: bool,
    /// KEEPTTL: leave the expiry as it is.
    pub(super) keep_ttl: bool,
    /// PERSIST: clear the expiry.
    persist: bool,
    /// The unit, and which argument is the time.
    time: Option<(Unit, usize)>,
}

impl Options {
    /// The options from argument `first` on, of SET or else GETEX.
    ///
    /// # Errors
    /// A syntax error, also for options that exclude each other.
    pub(super) fn parse(args: Args<'_>, first: usize, set: bool) -> Result<Self> {
        let mut options = Self::default();
        let mut at = first;
        while at < args.len() {
            let timeless = options.time.is_none();
            let unequalled = set && options.compare.is_none();
            if unequalled && args.is(at, "NX") && !options.if_present {
                options.if_missing = true;
            } else if unequalled && args.is(at, "XX") && !options.if_missing {
                options.if_present = true;
            } else if unequalled
                && !options.if_missing
                && !options.if_present
                && let Some(comparison) = Comparison::parse(args, at)
            {
                options.compare = Some(comparison);
                at += 1;
            } else if set && args.is(at, "GET") {
                options.get = true;
            } else if set && args.is(at, "KEEPTTL") && timeless {
                options.keep_ttl = true;
            } else if !set && args.is(at, "PERSIST") && timeless {
                options.persist = true;
            } else {
                options.add_time(args, at)?;
                at += 1;
            }
            at += 1;
        }
        Ok(options)
    }

    /// Takes the unit at `at` and the time behind it. The same unit may be repeated: the last time counts.
    fn add_time(&mut self, args: Args<'_>, at: usize) -> Result {
        let unit = unit(args, at).ok_or(Error::Syntax)?;
        let other = self.time.is_some_and(|(before, _)| before != unit);
        if other || self.keep_ttl || self.persist || at + 1 == args.len() {
            return Err(Error::Syntax);
        }
        self.time = Some((unit, at + 1));
        Ok(())
    }

    /// When the key is to expire, in milliseconds of Unix time, if the options say so.
    ///
    /// # Errors
    /// The time is no integer, or `invalid expire time in '<command>' command`.
    pub(super) fn expire_at(&self, now: u64, args: Args<'_>, command: &'static str) -> Result<Option<u64>> {
        self.time.map(|(unit, at)| deadline(now, args, unit, at, command)).transpose()
    }

    /// Whether the time counts from the epoch, so that it may be over already.
    fn is_absolute(&self) -> bool {
        matches!(self.time, Some((Unit::ExAt | Unit::PxAt, _)))
    }
}

/// The unit that argument `index` names.
pub(super) fn unit(args: Args<'_>, index: usize) -> Option<Unit> {
    UNITS.iter().find(|(word, _)| args.is(index, word)).map(|(_, unit)| *unit)
}

/// Argument `index` as a moment in milliseconds of Unix time.
///
/// # Errors
/// The time is no integer, or `invalid expire time in '<command>' command`.
pub(super) fn deadline(now: u64, args: Args<'_>, unit: Unit, index: usize, command: &'static str) -> Result<u64> {
    let time = Some(args.int(index)?).filter(|&time| time > 0);
    let ms = match unit {
        Unit::Px | Unit::PxAt => time,
        Unit::Ex | Unit::ExAt => time.and_then(|seconds| seconds.checked_mul(1000)),
    };
    let at = match unit {
        Unit::ExAt | Unit::PxAt => ms,
        Unit::Ex | Unit::Px => ms.and_then(|ms| ms.checked_add_unsigned(now)),
    };
    at.map(i64::unsigned_abs).ok_or(Error::InvalidExpire(command))
}

/// Removes a string whose new time is over already.
pub(super) fn remove_over(cx: &mut Ctx<'_>, key: &Key<'_>) {
    if let Some(entry) = cx.db.remove(key) {
        cx.discard(entry, false);
        over(cx, key);
        cx.instead_deleted(key, settings::LAZYFREE_LAZY_EXPIRE);
    }
}

/// `GETEX key [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | PERSIST]`
pub(super) fn getex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = Options::parse(args, 2, false)?;
    let key = args.key(0);
    if cx.config().level().is_valkey() {
        options.expire_at(cx.now(), args, "getex")?;
    }
    let Some(value) = cx.db.string(key)? else {
        cx.reply.null();
        return Ok(());
    };
    let expire_at = options.expire_at(cx.now(), args, "getex")?;
    reply_string(cx.reply, value);
    match expire_at {
        Some(at) if options.is_absolute() && cx.db.is_over(at) => {
            remove_over(cx, key);
        }
        Some(at) => {
            cx.db.expire(key, Some(at));
            cx.changed(key, Event::EXPIRE);
            cx.instead(&[b"PEXPIREAT", key.bytes, &IntText::new(at as i64)]);
        }
        None if options.persist && cx.db.peek(key).is_some_and(|entry| entry.expire_at().is_some()) => {
            cx.db.expire(key, None);
            cx.changed(key, Event::PERSIST);
            cx.instead(&[b"PERSIST", key.bytes]);
        }
        None => {}
    }
    Ok(())
}
