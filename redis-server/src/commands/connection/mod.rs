//! Commands about the connection (<https://redis.io/docs/latest/commands/?group=connection>).

mod client;
mod hello;

use crate::command::{Args, Categories, Ctx, Family, Flags, Result, cmd, container, sub};
use crate::error::Error;

/// PING [message]
fn ping(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 2 {
        return Err(Error::WrongArity("ping".into()));
    }
    if cx.client.is_subscribed() && !cx.client.resp3 {
        cx.reply.array(2);
        cx.reply.bulk(b"pong");
        cx.reply.bulk(args.get(1).unwrap_or_default());
        return Ok(());
    }
    match args.get(1) {
        Some(message) => cx.reply.bulk(message),
        None => cx.reply.simple("PONG"),
    }
    Ok(())
}

/// ECHO message
fn echo(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    cx.reply.bulk(args.at(1));
    Ok(())
}

/// SELECT index
fn select(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = args.int(1)?;
    let index = usize::try_from(index).ok().filter(|&index| index < cx.instance.databases().len());
    cx.select(index.ok_or(Error::DbIndex)?);
    cx.reply.ok();
    Ok(())
}

/// QUIT
fn quit(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.client.close = true;
    cx.reply.ok();
    Ok(())
}

const FAST: Flags = Flags::FAST;
const ANY_TIME: Flags = Flags::LOADING.and(Flags::STALE);
const FIRST: Flags = Flags::NOSCRIPT.and(ANY_TIME).and(FAST).and(Flags::NO_AUTH).and(Flags::ALLOW_BUSY);
const PING_TIPS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
const OWN: Flags = Flags::NOSCRIPT.and(ANY_TIME);

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "connection", category: Categories::CONNECTION, commands: &[
    cmd("auth",  -2, hello::auth,  FIRST,              &[]),
    container("client", -2, &[
        sub("getname", 2, client::getname, OWN,        &[]),
        sub("id",      2, client::id,      OWN,        &[]),
        sub("setname", 3, client::setname, OWN,        &[]),
    ]),
    cmd("echo",   2, echo,         FAST.and(ANY_TIME), &[]),
    cmd("hello", -1, hello::hello, FIRST,              &[]),
    cmd("ping",  -1, ping,         FAST,               &[]).tips(PING_TIPS),
    cmd("quit",  -1, quit,         FIRST,              &[]),
    cmd("reset",  1, hello::reset, FIRST,              &[]),
    cmd("select", 2, select,       FAST.and(ANY_TIME), &[]),
] };
