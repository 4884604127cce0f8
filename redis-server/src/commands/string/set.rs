//! Commands that store whole strings.

use super::expiry::{Options, Unit, deadline};
use super::{new_string, reply_value};
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::protocol::number::IntText;

/// `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT seconds | PXAT milliseconds | KEEPTTL]`
pub(super) fn set(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 3 {
        return set_with_options(cx, args);
    }
    let key = args.key(0);
    cx.db.set(key, new_string(args, 2), None);
    cx.changed(key, Event::SET);
    cx.reply.ok();
    Ok(())
}

fn set_with_options(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = Options::parse(args, 3, true)?;
    let expire_at = options.expire_at(cx.now(), args, "set")?;
    let key = args.key(0);
    if options.get {
        reply_value(cx, key)?;
    }
    if options.if_missing || options.if_present {
        let found = cx.db.peek(key).is_some();
        if found != options.if_present {
            if !options.get {
                cx.reply.null();
            }
            return Ok(());
        }
    }
    if let Some(comparison) = options.compare {
        let value = cx.db.string_mut(key)?.and_then(|entry| entry.string());
        if !comparison.holds(args, value)? {
            if !options.get {
                cx.reply.null();
            }
            return Ok(());
        }
    }
    if options.keep_ttl {
        cx.db.set_keep_ttl(key, new_string(args, 2));
        cx.changed(key, Event::SET);
    } else {
        store(cx, args, 2, expire_at);
    }
    if cx.is_journaled() && options.compare.is_some() && expire_at.is_none() {
        let words: [&[u8]; 4] = [b"SET", key.bytes, args.at(2), b"KEEPTTL"];
        cx.instead(&words[..3 + usize::from(options.keep_ttl)]);
    } else if cx.is_journaled() && options.get && expire_at.is_none() {
        let is_said = |(at, word): &(usize, &[u8])| *at < 3 || !word.eq_ignore_ascii_case(b"GET");
        let words: Vec<&[u8]> = args.iter().enumerate().filter(is_said).map(|(_, word)| word).collect();
        cx.instead(&words);
    }
    if !options.get {
        cx.reply.ok();
    }
    Ok(())
}

/// Stores argument `index` under the first key.
fn store(cx: &mut Ctx<'_>, args: Args<'_>, index: usize, expire_at: Option<u64>) {
    let key = args.key(0);
    cx.db.set(key, new_string(args, index), expire_at);
    cx.changed(key, Event::SET);
    if let Some(at) = expire_at {
        cx.notify(key, Event::EXPIRE);
        cx.instead(&[b"SET", key.bytes, args.at(index), b"PXAT", &IntText::new(at as i64)]);
    }
}

/// SETNX key value
pub(super) fn setnx(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let found = cx.db.peek(args.key(0)).is_some();
    if !found {
        store(cx, args, 2, None);
    }
    cx.reply.int(i64::from(!found));
    Ok(())
}

/// SETEX key seconds value
pub(super) fn setex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let at = deadline(cx.now(), args, Unit::Ex, 2, "setex")?;
    store(cx, args, 3, Some(at));
    cx.reply.ok();
    Ok(())
}

/// PSETEX key milliseconds value
pub(super) fn psetex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let at = deadline(cx.now(), args, Unit::Px, 2, "psetex")?;
    store(cx, args, 3, Some(at));
    cx.reply.ok();
    Ok(())
}

/// GETSET key value
pub(super) fn getset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    reply_value(cx, args.key(0))?;
    store(cx, args, 2, None);
    cx.instead(&[b"SET", args.key(0).bytes, args.at(2)]);
    Ok(())
}

/// `MSET key value [key value …]`
pub(super) fn mset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len().is_multiple_of(2) {
        return Err(Error::WrongArity("mset".into()));
    }
    store_all(cx, args);
    cx.reply.ok();
    Ok(())
}

/// `MSETNX key value [key value …]`
pub(super) fn msetnx(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len().is_multiple_of(2) {
        return Err(Error::WrongArity("msetnx".into()));
    }
    let found = args.keys().iter().any(|key| cx.db.peek(key).is_some());
    if !found {
        store_all(cx, args);
    }
    cx.reply.int(i64::from(!found));
    Ok(())
}

/// `MSETEX numkeys key value [key value …] [NX|XX] [EX seconds|PX milliseconds|EXAT seconds|PXAT milliseconds|KEEPTTL]`
pub(super) fn msetex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let is_valkey = cx.config().level().is_valkey();
    let invalid = if is_valkey { "ERR invalid numkeys value or out of range" } else { "ERR invalid numkeys value" };
    let count = args.int(1).ok().and_then(|count| i32::try_from(count).ok()).filter(|&count| count > 0);
    let first_option = 2 + 2 * count.ok_or(Error::Static(invalid))? as usize;
    if first_option > args.len() {
        let too_few = Error::Static("ERR wrong number of key-value pairs");
        return Err(if is_valkey { Error::Syntax } else { too_few });
    }
    let options = Options::parse(args, first_option, true)?;
    if options.get || options.compare.is_some() {
        return Err(Error::Syntax);
    }
    let expire_at = options.expire_at(cx.now(), args, "msetex")?;
    let mut found = args.keys().iter().map(|key| cx.db.peek(key).is_some());
    if options.if_missing && found.clone().any(|is_there| is_there)
        || options.if_present && !found.all(|is_there| is_there)
    {
        cx.reply.int(0);
        return Ok(());
    }
    for (at, key) in args.keys().iter().enumerate() {
        let value = 3 + 2 * at;
        if options.keep_ttl {
            cx.db.set_keep_ttl(key, new_string(args, value));
        } else {
            cx.db.set(key, new_string(args, value), expire_at);
        }
        cx.changed(key, Event::SET);
        if expire_at.is_some() {
            cx.notify(key, Event::EXPIRE);
        }
        let time = IntText::new(expire_at.unwrap_or(0) as i64);
        let words: [&[u8]; 5] = [b"SET", key.bytes, args.at(value), b"PXAT", &time];
        match expire_at {
            Some(_) => cx.instead(&words),
            None if options.keep_ttl => cx.instead(&[words[0], words[1], words[2], b"KEEPTTL"]),
            None => cx.instead(&words[..3]),
        }
    }
    cx.reply.int(1);
    Ok(())
}

/// Stores every value behind its key.
fn store_all(cx: &mut Ctx<'_>, args: Args<'_>) {
    for (at, key) in args.keys().iter().enumerate() {
        cx.db.set(key, new_string(args, 2 + 2 * at), None);
        cx.changed(key, Event::SET);
    }
}
