//! HELLO, AUTH and CLIENT SETINFO: the client's identity and its protocol version.

use crate::clients::acl::{Context, Entry, Identity, Reason};
use crate::clients::client::{Asking, ReplyMode, flag};
use crate::command::{Args, Result};
use crate::commands::server::loaded_modules;
use crate::config::settings;
use crate::exec::core::Ctx;
use crate::exec::run::client_list::describe;
use crate::exec::run::outcome;
use crate::protocol::error::{Error, c_string, shown};

const WRONG_PASSWORD: Error = Error::Static("WRONGPASS invalid username-password pair or user is disabled.");
const NO_PASSWORD: Error = Error::Static(
    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration \
     is correct?",
);
const HELLO_NEEDS_AUTH: Error = Error::Static(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option \
     can be used to authenticate the client and select the RESP protocol version at the same time",
);
const BAD_NAME: Error = Error::Static("ERR Client names cannot contain spaces, newlines or special characters.");

/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`
pub(super) fn hello(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let resp3 = match args.get(1) {
        None => cx.client.resp3,
        Some(_) => protocol(args)? == 3,
    };
    // Valkey reads all options before it does anything.
    let reads_all = cx.config().level().is_valkey();
    let (mut user, mut name) = (None, None);
    let mut at = 2;
    while at < args.len() {
        let left = args.len() - at - 1;
        if args.is(at, "auth") && left >= 2 {
            user = Some((args.at(at + 1), args.at(at + 2)));
            at += 3;
        } else if args.is(at, "setname") && left >= 1 {
            name = Some(args.at(at + 1));
            if reads_all && name.map(c_string).and_then(label).is_none() {
                return Err(BAD_NAME);
            }
            at += 2;
        } else {
            let option = shown(args.at(at));
            return Err(Error::Message(format!("ERR Syntax error in HELLO option '{option}'")));
        }
        if !reads_all || at == args.len() {
            user.take().map_or(Ok(()), |(user, password)| authenticate(cx, args, user, password))?;
            name.take().map_or(Ok(()), |name| set_name(cx, name))?;
        }
    }
    if !cx.client.identity.may_enter(&cx.instance().acl) {
        return Err(HELLO_NEEDS_AUTH);
    }
    set_protocol(cx, resp3);
    let zone = cx.config().text(settings::AVAILABILITY_ZONE);
    cx.reply.map(7 + usize::from(!zone.is_empty()));
    let level = cx.config().level();
    let as_redis = cx.config().is_on(settings::EXTENDED_REDIS_COMPATIBILITY);
    let (server, version) = if as_redis { ("redis", level.redis_version()) } else { level.server() };
    for (name, value) in [("server", server), ("version", version)] {
        cx.reply.bulk(name.as_bytes());
        cx.reply.bulk(value.as_bytes());
    }
    cx.reply.bulk(b"proto");
    cx.reply.int(if resp3 { 3 } else { 2 });
    cx.reply.bulk(b"id");
    cx.reply.int(cx.client.shared.id as i64);
    let mode = if cx.instance.cluster.is_enabled() { "cluster" } else { "standalone" };
    let role = if cx.instance.replication.is_replica() { "replica" } else { "master" };
    for (name, value) in [("mode", mode), ("role", role)] {
        cx.reply.bulk(name.as_bytes());
        cx.reply.bulk(value.as_bytes());
    }
    cx.reply.bulk(b"modules");
    let level = cx.config().level();
    loaded_modules(cx.reply, level);
    if !zone.is_empty() {
        cx.reply.bulk(b"availability_zone");
        cx.reply.bulk(&zone);
    }
    Ok(())
}

fn protocol(args: Args<'_>) -> Result<i64> {
    match args.int(1) {
        Ok(version @ 2..=3) => Ok(version),
        Ok(_) => Err(Error::Static("NOPROTO unsupported protocol version")),
        Err(_) => Err(Error::Static("ERR Protocol version is not an integer or out of range")),
    }
}

fn set_protocol(cx: &mut Ctx<'_>, resp3: bool) {
    cx.client.resp3 = resp3;
    cx.client.shared.set_flag(flag::RESP3, resp3);
    cx.reply.set_resp3(resp3);
}

/// `AUTH [username] password`
pub(super) fn auth(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    match args.len() {
        2 if cx.instance().acl.default_account().user().has_no_password() => return Err(NO_PASSWORD),
        2 => authenticate(cx, args, b"default", args.at(1))?,
        3 => authenticate(cx, args, args.at(1), args.at(2))?,
        _ => return Err(Error::Syntax),
    }
    cx.reply.ok();
    Ok(())
}

/// Makes the client act for a user, if the password is right; `args` is the call that says so.
fn authenticate(cx: &mut Ctx<'_>, args: Args<'_>, user: &[u8], password: &[u8]) -> Result {
    let acl = &cx.instance().acl;
    let Some(account) = acl.authenticate(user, password) else {
        let entry = Entry {
            reason: Reason::Auth,
            context: if cx.may_wait() { Context::Toplevel } else { Context::Multi },
            object: args.at(0).to_vec(),
            user: user.to_vec(),
            client: describe(cx.instance(), &cx.client.shared, cx.now(), Some(args)),
            count: 1,
            time: cx.now(),
        };
        acl.log(entry, cx.config());
        return Err(WRONG_PASSWORD);
    };
    cx.client.become_user(Identity::new(acl, account, true));
    Ok(())
}

/// Names the connection; an empty name takes its name away.
pub(super) fn set_name(cx: &Ctx<'_>, name: &[u8]) -> Result {
    // Since Redis 7.2 a name ends with a zero byte.
    let name = if cx.config().level().is_72() { c_string(name) } else { name };
    cx.client.shared.labels().name = label(name).ok_or(BAD_NAME)?;
    Ok(())
}

/// A name or version as text, if it has nothing that would break up a line of CLIENT LIST.
pub(super) fn label(text: &[u8]) -> Option<String> {
    let printable = text.iter().all(|byte| byte.is_ascii_graphic());
    printable.then(|| String::from_utf8_lossy(text).into_owned())
}

/// RESET
pub(super) fn reset(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    outcome::leave(cx.instance(), cx.client);
    cx.select(0);
    set_protocol(cx, false);
    let (instance, client) = (cx.instance(), &mut *cx.client);
    client.become_user(Identity::newcomer(&instance.acl));
    client.reply_mode = ReplyMode::On;
    client.no_touch = false;
    client.asking = Asking::No;
    client.reads_from_replicas = false;
    client.shared.set_flag(flag::NO_EVICT | flag::NO_TOUCH | flag::READONLY | flag::REDIRECTS | flag::IMPORTS, false);
    instance.client_memory.look_again();
    client.shared.labels().name.clear();
    cx.reply.simple("RESET");
    Ok(())
}
