//! Commands about the connection (<https://redis.io/docs/latest/commands/?group=connection>).

use crate::command::{Args, Categories, Ctx, Family, Flags, Result, cmd};
use crate::error::Error;

/// PING [message]
fn ping(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 2 {
        return Err(Error::WrongArity("ping".into()));
    }
    if cx.client.subscriptions() > 0 && !cx.client.resp3 {
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

const FAST: Flags = Flags::FAST;
const ANY_TIME: Flags = Flags::LOADING.and(Flags::STALE);

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "connection", category: Categories::CONNECTION, commands: &[
    cmd("echo",   2, echo,   FAST.and(ANY_TIME),              &[]),
    cmd("ping",  -1, ping,   FAST,                            &[]).tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    cmd("select", 2, select, FAST.and(ANY_TIME),              &[]),
] };
