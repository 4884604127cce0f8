//! When keys expire.

use crate::command::{Args, Result};
use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Entry, Key};
use crate::protocol::error::{Error, shown};
use crate::protocol::number::IntText;

/// Milliseconds of a second.
const SECOND: i64 = 1000;

/// When the time of a key, or of a field, may be changed.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::commands) struct Condition {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Condition {
    /// The words that `options` are.
    ///
    /// # Errors
    /// Other words, and those that exclude each other.
    pub(in crate::commands) fn parse(options: Args<'_>) -> Result<Self> {
        let mut condition = Self::default();
        for at in 0..options.len() {
            let flag = match () {
                () if options.is(at, "NX") => &mut condition.nx,
                () if options.is(at, "XX") => &mut condition.xx,
                () if options.is(at, "GT") => &mut condition.gt,
                () if options.is(at, "LT") => &mut condition.lt,
                () => {
                    let option = shown(options.at(at));
                    return Err(Error::Message(format!("ERR Unsupported option {option}")));
                }
            };
            *flag = true;
        }
        if condition.nx && (condition.xx || condition.gt || condition.lt) {
            return Err(Error::Static("ERR NX and XX, GT or LT options at the same time are not compatible"));
        }
        if condition.gt && condition.lt {
            return Err(Error::Static("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(condition)
    }

    /// Whether `at` may take the place of `current`; a key without expiry counts as one that lives for ever.
    pub(in crate::commands) fn allows(self, current: Option<u64>, at: i64) -> bool {
        let current = current.map(|current| current as i64);
        !(self.nx && current.is_some()
            || self.xx && current.is_none()
            || self.gt && current.is_none_or(|current| at <= current)
            || self.lt && current.is_some_and(|current| at >= current))
    }
}

/// `EXPIRE key seconds [NX|XX|GT|LT]`
pub(super) fn expire(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    change(cx, args, "expire", SECOND, now)
}

/// `PEXPIRE key milliseconds [NX|XX|GT|LT]`
pub(super) fn pexpire(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    change(cx, args, "pexpire", 1, now)
}

/// `EXPIREAT key unix-time-seconds [NX|XX|GT|LT]`
pub(super) fn expireat(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    change(cx, args, "expireat", SECOND, 0)
}

/// `PEXPIREAT key unix-time-milliseconds [NX|XX|GT|LT]`
pub(super) fn pexpireat(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    change(cx, args, "pexpireat", 1, 0)
}

/// Argument 2, in units of `unit` milliseconds counted from `base`, becomes the key's time.
fn change(cx: &mut Ctx<'_>, args: Args<'_>, name: &'static str, unit: i64, base: u64) -> Result {
    let condition = Condition::parse(args.from(3))?;
    let at = args.int(2)?.checked_mul(unit).and_then(|at| at.checked_add(base as i64));
    let at = at.ok_or(Error::InvalidExpire(name))?;
    let key = args.key(0);
    let lasts = if cx.instance().is_importing() {
        // While importing, the source expires the key.
        Some(u64::try_from(at).unwrap_or_default().max(1))
    } else {
        u64::try_from(at).ok().filter(|&at| !cx.db.is_over(at))
    };
    let slot = cx.db.slot(key);
    let allowed = slot.entry().is_some_and(|entry| condition.allows(entry.expire_at(), at));
    if allowed {
        match lasts {
            Some(at) => {
                slot.expire(Some(at));
                cx.changed(key, Event::EXPIRE);
                cx.instead(&[b"PEXPIREAT", key.bytes, &IntText::new(at as i64)]);
            }
            None => remove(cx, key),
        }
    }
    cx.reply.int(allowed.into());
    Ok(())
}

/// Tells that a key is gone because its new time is over already, which Valkey counts as expired.
pub(in crate::commands) fn over(cx: &mut Ctx<'_>, key: &Key<'_>) {
    if cx.config().level().is_valkey() {
        cx.db.database().count_expired();
        cx.changed(key, Event::EXPIRED);
    } else {
        cx.changed(key, Event::DEL);
    }
}

/// Removes a key whose new time is over already.
fn remove(cx: &mut Ctx<'_>, key: &Key<'_>) {
    let in_background = cx.config().is_on(settings::LAZYFREE_LAZY_EXPIRE);
    if let Some(entry) = cx.db.remove(key) {
        cx.discard(entry, in_background);
        over(cx, key);
        cx.instead_deleted(key, settings::LAZYFREE_LAZY_EXPIRE);
    }
}

/// PERSIST key
pub(super) fn persist(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let slot = cx.db.slot(key);
    let expires = slot.entry().is_some_and(|entry| entry.expire_at().is_some());
    if expires {
        slot.expire(None);
        cx.changed(key, Event::PERSIST);
    }
    cx.reply.int(expires.into());
    Ok(())
}

/// TTL key
pub(super) fn ttl(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    reply_time(cx, args, |at| seconds(at.saturating_sub(now)))
}

/// PTTL key
pub(super) fn pttl(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    reply_time(cx, args, |at| at.saturating_sub(now))
}

/// EXPIRETIME key
pub(super) fn expiretime(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    reply_time(cx, args, seconds)
}

/// PEXPIRETIME key
pub(super) fn pexpiretime(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    reply_time(cx, args, |at| at)
}

/// Milliseconds as seconds, to the nearest.
fn seconds(ms: u64) -> u64 {
    (ms + 500) / 1000
}

/// Answers with what `show` makes of the key's time; -1: it has none, -2: there is no key.
fn reply_time(cx: &mut Ctx<'_>, args: Args<'_>, show: impl Fn(u64) -> u64) -> Result {
    let time = match cx.db.look(args.key(0)).map(Entry::expire_at) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => show(at) as i64,
    };
    cx.reply.int(time);
    Ok(())
}
