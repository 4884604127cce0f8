//! Commands that store whole strings.

use super::expiry::{Options, Unit, deadline};
use super::{new_string, reply_value};
use crate::command::{Args, Result};
use crate::exec::{Ctx, Event};
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
    if options.keep_ttl {
        cx.db.set_keep_ttl(key, new_string(args, 2));
        cx.changed(key, Event::SET);
    } else {
        store(cx, args, 2, expire_at);
    }
    if cx.is_journaled() && options.get && expire_at.is_none() {
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

/// Stores every value behind its key.
fn store_all(cx: &mut Ctx<'_>, args: Args<'_>) {
    for (at, key) in args.keys().iter().enumerate() {
        cx.db.set(key, new_string(args, 2 + 2 * at), None);
        cx.changed(key, Event::SET);
    }
}
