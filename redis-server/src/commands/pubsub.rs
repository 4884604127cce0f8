//! Publish and subscribe (<https://redis.io/docs/latest/commands/?group=pubsub>).

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;

use bytes::Bytes;
use indexmap::IndexSet;

use crate::clients::output_limit::post;
use crate::clients::pubsub::Kind;
use crate::command::{Args, Begin, Categories, Find, Flags, KeySpec, Result, Role, Use, Weight};
use crate::commands::definition::{Definition, Family, cmd, container, sub};
use crate::exec::core::Ctx;
use crate::keyspace::Access;
use crate::protocol::error::Error;

/// `SUBSCRIBE channel [channel …]`
fn subscribe(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    add(cx, args, Kind::Channel, "subscribe")
}

/// `PSUBSCRIBE pattern [pattern …]`
fn psubscribe(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    add(cx, args, Kind::Pattern, "psubscribe")
}

/// `SSUBSCRIBE shardchannel [shardchannel …]`
fn ssubscribe(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    add(cx, args, Kind::Shard, "ssubscribe")
}

/// `UNSUBSCRIBE [channel …]`
fn unsubscribe(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    remove(cx, args, Kind::Channel, "unsubscribe")
}

/// `PUNSUBSCRIBE [pattern …]`
fn punsubscribe(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    remove(cx, args, Kind::Pattern, "punsubscribe")
}

/// `SUNSUBSCRIBE [shardchannel …]`
fn sunsubscribe(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    remove(cx, args, Kind::Shard, "sunsubscribe")
}

fn add(cx: &mut Ctx<'_>, args: Args<'_>, kind: Kind, word: &str) -> Result {
    for name in args.from(1).iter() {
        let name = Bytes::copy_from_slice(name);
        let subscriptions = cx.client.subscriptions.get_or_insert_default();
        if subscriptions.sets[kind as usize].insert(name.clone()) {
            cx.instance().pubsub.subscribe(kind, name.clone(), &cx.client.shared);
        }
        confirm(cx, kind, word, Some(&name));
    }
    cx.client.note_subscriptions();
    recheck(cx, kind);
    Ok(())
}

/// A right that was withdrawn at this very moment was withdrawn before we were among the subscribers.
fn recheck(cx: &mut Ctx<'_>, kind: Kind) {
    fence(SeqCst);
    let (acl, client) = (&cx.instance().acl, &mut *cx.client);
    if client.identity.is_cleared(acl) {
        return;
    }
    client.identity.refresh(acl);
    let names = client.subscriptions.iter().flat_map(|subscriptions| &subscriptions.sets[kind as usize]);
    let user = client.identity.user();
    client.close |= !names.into_iter().all(|name| user.may_listen(name, kind == Kind::Pattern));
}

fn remove(cx: &mut Ctx<'_>, args: Args<'_>, kind: Kind, word: &str) -> Result {
    let names: Vec<Bytes> = match (&cx.client.subscriptions, args.len()) {
        (Some(subscriptions), 1) => subscriptions.sets[kind as usize].iter().cloned().collect(),
        (None, 1) => Vec::new(),
        _ => args.from(1).iter().map(Bytes::copy_from_slice).collect(),
    };
    if names.is_empty() {
        confirm(cx, kind, word, None);
    }
    for name in &names {
        // Of patterns that stay the order does too: it is that in which they are confirmed when all go.
        let keeps_order = kind == Kind::Pattern && args.len() > 1;
        let remove =
            |set: &mut IndexSet<Bytes>| if keeps_order { set.shift_remove(name) } else { set.swap_remove(name) };
        let subscriptions = cx.client.subscriptions.as_mut();
        if subscriptions.is_some_and(|subscriptions| remove(&mut subscriptions.sets[kind as usize])) {
            cx.instance().pubsub.unsubscribe(kind, name, cx.client.shared.id);
            cx.take_messages();
        }
        confirm(cx, kind, word, Some(name));
    }
    cx.client.note_subscriptions();
    Ok(())
}

/// Tells the client of a subscription's change, and how many it has. Shard channels are counted apart.
fn confirm(cx: &mut Ctx<'_>, kind: Kind, word: &str, name: Option<&[u8]>) {
    cx.reply.push(3);
    cx.reply.bulk(word.as_bytes());
    match name {
        Some(name) => cx.reply.bulk(name),
        None => cx.reply.null(),
    }
    let sets = cx.client.subscriptions.as_ref().map(|subscriptions| &subscriptions.sets);
    let count = |kind: Kind| sets.map_or(0, |sets| sets[kind as usize].len());
    cx.reply.count(match kind {
        Kind::Shard => count(Kind::Shard),
        Kind::Channel | Kind::Pattern => count(Kind::Channel) + count(Kind::Pattern),
    });
}

/// PUBLISH channel message
fn publish(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    send(cx, args, Kind::Channel)
}

/// SPUBLISH shardchannel message
fn spublish(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    send(cx, args, Kind::Shard)
}

fn send(cx: &mut Ctx<'_>, args: Args<'_>, kind: Kind) -> Result {
    if cx.client.is_subscribed() {
        cx.take_messages();
    }
    if cx.instance().cluster.is_enabled() {
        let is_sharded = kind == Kind::Shard;
        cx.instance()
            .cluster
            .with(cx.instance(), |machine, now| machine.publish(args.at(1), args.at(2), is_sharded, now));
    } else {
        cx.instance().replication.tell(cx.instance(), args);
    }
    let (resp3, alone) = (cx.client.resp3, cx.may_wait());
    let (instance, me, reply) = (cx.instance(), &cx.client.shared, &mut *cx.reply);
    // One's own message comes before the reply in Redis 7.0, behind it since 7.2: behind that of a transaction or script, too.
    let behind = instance.config.level().is_72();
    let mut own = Vec::new();
    let receivers = instance.pubsub.publish(kind, args.at(1), args.at(2), |to, message| {
        if !Arc::ptr_eq(to, me) || behind && !alone {
            post(&instance.config, to, message.encoded(to.is_resp3()).clone());
        } else if behind {
            own.push(message.encoded(resp3).clone());
        } else {
            reply.encoded(message.encoded(resp3));
        }
    });
    cx.reply.count(receivers);
    own.iter().for_each(|message| cx.reply.encoded(message));
    Ok(())
}

/// The kind that a subcommand of PUBSUB is about: the name says so when it is shard channels.
fn asked_kind(args: Args<'_>) -> Kind {
    let is_shard = args.at(1).get(..5).is_some_and(|head| head.eq_ignore_ascii_case(b"shard"));
    if is_shard { Kind::Shard } else { Kind::Channel }
}

/// `PUBSUB CHANNELS [pattern]`, `PUBSUB SHARDCHANNELS [pattern]`
fn channels(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 3 {
        return Err(Error::subcommand_syntax(args));
    }
    let names = cx.instance().pubsub.names(asked_kind(args), args.get(2));
    cx.reply.array(names.len());
    names.iter().for_each(|name| cx.reply.bulk(name));
    Ok(())
}

/// `PUBSUB NUMSUB [channel …]`, `PUBSUB SHARDNUMSUB [shardchannel …]`
fn numsub(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (kind, names) = (asked_kind(args), args.from(2));
    cx.reply.array(names.len() * 2);
    for name in names.iter() {
        cx.reply.bulk(name);
        cx.reply.count(cx.instance().pubsub.subscribers(kind, name));
    }
    Ok(())
}

/// PUBSUB NUMPAT
fn numpat(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.reply.count(cx.instance().pubsub.patterns());
    Ok(())
}

/// PUBSUB HELP
fn help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    super::help::help(cx, "PUBSUB", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "CHANNELS [<pattern>]",
    "    Return the currently active channels matching a <pattern> (default: '*').",
    "NUMPAT",
    "    Return number of subscriptions to patterns.",
    "NUMSUB [<channel> ...]",
    "    Return the number of subscribers for the specified channels, excluding",
    "    pattern subscriptions(default: no channels).",
    "SHARDCHANNELS [<pattern>]",
    "    Return the currently active shard level channels matching a <pattern> (default: '*').",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Return the number of subscribers for the specified shard level channel(s)",
];

const ANY_TIME: Flags = Flags::LOADING.and(Flags::STALE);
const PUBSUB: Flags = Flags::PUBSUB.and(ANY_TIME);
const SUBSCRIBE: Flags = PUBSUB.and(Flags::NOSCRIPT);
const PUBLISH: Flags = PUBSUB.and(Flags::FAST).and(Flags::MAY_REPLICATE);

/// Channels that a cluster treats like keys.
const fn shard_channels(last: i8) -> KeySpec {
    let find = Find::Range { last, step: 1, limit: 0 };
    KeySpec { begin: Begin::Index(1), find, usage: Use { access: Access::Read, flags: "not_key" } }
}

#[rustfmt::skip]
const PUBSUB_SUBCOMMANDS: &[Definition] = &[
    sub("channels",      -2, channels,      PUBSUB,   &[]).weighs(Weight::Channels),
    sub("help",           2, help,          ANY_TIME, &[]),
    sub("numpat",         2, numpat,        PUBSUB,   &[]),
    sub("numsub",        -2, numsub,        PUBSUB,   &[]),
    sub("shardchannels", -2, channels,      PUBSUB,   &[]).weighs(Weight::Channels),
    sub("shardnumsub",   -2, numsub,        PUBSUB,   &[]),
];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "pubsub", category: Categories(0), commands: &[
    cmd("psubscribe",   -2, psubscribe,   SUBSCRIBE, &[]).role(Role::Subscribe),
    cmd("publish",       3, publish,      PUBLISH,   &[]).role(Role::Publish),
    container("pubsub", -2, PUBSUB_SUBCOMMANDS),
    cmd("punsubscribe", -1, punsubscribe, SUBSCRIBE, &[]).role(Role::Subscribe),
    cmd("spublish",      3, spublish,     PUBLISH,   &[shard_channels(0)]).role(Role::Publish),
    cmd("ssubscribe",   -2, ssubscribe,   SUBSCRIBE, &[shard_channels(-1)]).role(Role::Subscribe),
    cmd("subscribe",    -2, subscribe,    SUBSCRIBE, &[]).role(Role::Subscribe),
    cmd("sunsubscribe", -1, sunsubscribe, SUBSCRIBE, &[shard_channels(-1)]).role(Role::Subscribe),
    cmd("unsubscribe",  -1, unsubscribe,  SUBSCRIBE, &[]).role(Role::Subscribe),
] };
