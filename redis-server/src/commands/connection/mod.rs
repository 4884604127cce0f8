//! Commands about the connection (<https://redis.io/docs/latest/commands/?group=connection>).

mod client;
mod clients;
mod filters;
mod hello;
mod tracking;

use crate::command::{Args, Categories, DatabasePositions, Flags, Reach, Result, Role, Weight};
use crate::commands::definition::{Definition, Family, cmd, container, sub};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;

/// `PING [message]`
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
    let index = i32::try_from(args.int(1)?).map_err(|_| Error::NotInt32)?;
    if index != 0 && cx.instance().cluster.is_enabled() {
        return Err(Error::Static("ERR SELECT is not allowed in cluster mode"));
    }
    let index = usize::try_from(index).ok().filter(|&index| index < cx.instance().databases().len());
    cx.select(index.ok_or(Error::DbIndex)?);
    cx.reply.ok();
    Ok(())
}

/// Where SELECT names a database.
fn selected(_: Args<'_>) -> DatabasePositions {
    DatabasePositions::from_slice(&[1])
}

/// QUIT. Its reply is the last that the client is sent: messages that have come before stand in front of it.
fn quit(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.take_messages();
    cx.client.end_with_reply();
    cx.reply.ok();
    Ok(())
}

const FAST: Flags = Flags::FAST;
const ANY_TIME: Flags = Flags::LOADING.and(Flags::STALE);
const FIRST: Flags = Flags::NOSCRIPT.and(ANY_TIME).and(FAST).and(Flags::NO_AUTH).and(Flags::ALLOW_BUSY);
const PING_TIPS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
const VARIES: &[&str] = &["nondeterministic_output"];
const ADMIN: Flags = OWN.and(Flags::ADMIN);
const OWN: Flags = Flags::NOSCRIPT.and(ANY_TIME);

#[rustfmt::skip]
const CLIENT: &[Definition] = &[
    sub("caching",      3, tracking::caching,    OWN,      &[]),
    sub("capa",        -3, client::capa,         OWN.and(Flags::ALLOW_BUSY), &[]),
    sub("getname",      2, client::getname,      OWN,      &[]),
    sub("getredir",     2, tracking::getredir,   OWN,      &[]),
    sub("help",         2, client::help,         ANY_TIME, &[]),
    sub("id",           2, client::id,           OWN,      &[]),
    sub("import-source", 3, client::import_source, OWN,    &[]),
    sub("info",         2, clients::info,        OWN,      &[]).tips(VARIES),
    sub("kill",        -3, clients::kill,        ADMIN,    &[]),
    sub("list",        -2, clients::list,        ADMIN,    &[]).tips(VARIES).weighs(Weight::Clients),
    sub("no-evict",     3, client::no_evict,     ADMIN,    &[]),
    sub("no-touch",     3, client::no_touch,     OWN,      &[]),
    sub("pause",       -3, client::pause,        ADMIN,    &[]),
    sub("reply",        3, client::reply,        OWN,      &[]).role(Role::ClientReply),
    sub("setinfo",      4, client::setinfo,      OWN,      &[]),
    sub("setname",      3, client::setname,      OWN,      &[]),
    sub("tracking",    -3, tracking::tracking,   OWN,      &[]),
    sub("trackinginfo", 2, tracking::trackinginfo, OWN,    &[]),
    sub("unblock",     -3, client::unblock,      ADMIN,    &[]),
    sub("unpause",      2, client::unpause,      ADMIN,    &[]),
];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "connection", category: Categories::CONNECTION, commands: &[
    cmd("auth",  -2, hello::auth,  FIRST,              &[]).role(Role::Auth),
    container("client", -2, CLIENT).role(Role::Client),
    cmd("echo",   2, echo,         FAST.and(ANY_TIME), &[]),
    cmd("hello", -1, hello::hello, FIRST,              &[]).role(Role::Hello),
    cmd("ping",  -1, ping,         FAST,               &[]).role(Role::Ping).tips(PING_TIPS),
    cmd("quit",  -1, quit,         FIRST,              &[]).role(Role::Leave),
    cmd("reset",  1, hello::reset, FIRST,              &[]).role(Role::Leave),
    cmd("select", 2, select,       FAST.and(ANY_TIME), &[]).role(Role::Select).reaches(Reach::Named(selected)),
] };
