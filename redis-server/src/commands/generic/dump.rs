//! DUMP and RESTORE: values in the form of Redis' own files.

use crate::clients::client::flag;
use crate::command::{Args, Result};
use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::Value;
use crate::persistence::rdb::{self, Fork, Limits, Loaded, Refused};
use crate::protocol::error::Error;
use crate::protocol::number::IntText;

/// DUMP key
pub(super) fn dump(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    match cx.db.value(args.key(0)) {
        Some(value) => cx.reply.bulk(&rdb::dump(value, Fork::of(&cx.instance.config))),
        None => cx.reply.null(),
    }
    Ok(())
}

/// The options of RESTORE.
#[derive(Debug, Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle: Option<u64>,
    frequency: Option<u8>,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 4;
        while at < args.len() {
            let more = at + 1 < args.len();
            if args.is(at, "REPLACE") {
                options.replace = true;
            } else if args.is(at, "ABSTTL") {
                options.absolute = true;
            } else if more && args.is(at, "IDLETIME") && options.frequency.is_none() {
                at += 1;
                let idle = u64::try_from(args.int(at)?);
                options.idle = Some(idle.map_err(|_| Error::Static("ERR Invalid IDLETIME value, must be >= 0"))?);
            } else if more && args.is(at, "FREQ") && options.idle.is_none() {
                at += 1;
                let frequency = u8::try_from(args.int(at)?);
                let invalid = Error::Static("ERR Invalid FREQ value, must be >= 0 and <= 255");
                options.frequency = Some(frequency.map_err(|_| invalid)?);
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

/// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
pub(super) fn restore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = Options::parse(args)?;
    let key = args.key(0);
    if !options.replace && cx.db.get_mut(key).is_some() {
        return Err(Error::Static("BUSYKEY Target key name already exists."));
    }
    let ttl = u64::try_from(args.int(2)?).map_err(|_| Error::Static("ERR Invalid TTL value, must be >= 0"))?;
    count_sanitizing(cx, args.at(3));
    let limits = Limits {
        hash: cx.hash_limits(),
        list: cx.list_limits(),
        set: cx.set_limits(),
        sorted_set: cx.sorted_set_limits(),
    };
    let relaxed = cx.config().word(settings::RDB_VERSION_CHECK) == "relaxed";
    let loaded =
        rdb::restore(args.at(3), &limits, cx.instance().snapshots.checks_sums(), relaxed).map_err(|refused| {
            match refused {
                Refused::Footer => Error::Static("ERR DUMP payload version or checksum are wrong"),
                Refused::Content => {
                    let kind = packed_as(args.at(3)).unwrap_or("Value");
                    tracing::warn!("RESTORE: {kind} integrity check failed");
                    Error::Static("ERR Bad data format")
                }
            }
        })?;
    let old = cx.db.remove(key);
    let is_replaced = old.is_some();
    if let Some(old) = old {
        let in_background = cx.config().is_on(settings::LAZYFREE_LAZY_SERVER_DEL);
        cx.discard(old, in_background);
    }
    let now = cx.now();
    let expire_at = match ttl {
        0 => None,
        at if options.absolute => Some(at),
        // A time beyond the largest is one before all others: there the sum wraps.
        ttl => Some(now.checked_add(ttl).filter(|at| i64::try_from(*at).is_ok()).unwrap_or(0)),
    };
    if expire_at.is_some_and(|at| cx.db.is_over(at)) {
        if is_replaced {
            cx.changed(key, Event::DEL);
            cx.instead_deleted(key, settings::LAZYFREE_LAZY_SERVER_DEL);
        }
        cx.reply.ok();
        return Ok(());
    }
    match loaded {
        Loaded::Str(text) => cx.db.set(key, Value::Bytes(&text), None),
        Loaded::Object(object) => drop(cx.db.replace(key, Value::Object(object))),
    }
    if expire_at.is_some() {
        cx.db.expire(key, expire_at);
    }
    remember_use(cx, args, &options);
    cx.changed(key, Event::RESTORE);
    if let Some(at) = expire_at.filter(|_| cx.is_journaled() && !options.absolute) {
        let at = IntText::new(at as i64);
        let mut words: Vec<&[u8]> = args.iter().collect();
        words[2] = &at;
        words.push(b"ABSTTL");
        cx.instead(&words);
    }
    cx.reply.ok();
    Ok(())
}

/// Counts a payload that the genuine server would check in full; all others are checked as well.
fn count_sanitizing(cx: &Ctx<'_>, payload: &[u8]) {
    let is_sanitized = match cx.config().word(settings::SANITIZE_DUMP_PAYLOAD) {
        "yes" => true,
        "clients" => !cx.client.shared.has_flag(flag::PRIMARY) && !cx.client.identity.user().skips_sanitizing(),
        _ => false,
    };
    if is_sanitized && packed_as(payload).is_some() {
        cx.worker.stats.sanitizations.add(1);
    }
}

/// In what a payload says that it is packed.
fn packed_as(payload: &[u8]) -> Option<&'static str> {
    let kind = match payload.first() {
        Some(9) => "Zipmap",
        Some(10 | 14) => "Ziplist",
        Some(11) => "Intset",
        Some(12) => "Zset ziplist",
        Some(13) => "Hash ziplist",
        Some(15 | 19 | 21) => "Stream listpack",
        Some(16 | 17 | 18 | 20) => "Listpack",
        _ => return None,
    };
    Some(kind)
}

/// Notes when the value was used last, or how often, as the policy counts.
fn remember_use(cx: &Ctx<'_>, args: Args<'_>, options: &Options) {
    let Some(entry) = cx.db.peek(args.key(0)) else { return };
    let (usage, now) = (cx.database().usage(), cx.now());
    entry.set_access(match options.frequency {
        Some(frequency) => usage.used(now, frequency),
        None => usage.idle(now, options.idle.unwrap_or(0)),
    });
}
