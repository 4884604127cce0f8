//! A client's line in CLIENT LIST (<https://redis.io/docs/latest/commands/client-list/>).

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use crate::clients::client::{ClientShared, Traffic, count, flag};
use crate::command::Args;
use crate::config::Level;
use crate::exec::core::Instance;

/// A client's line at `now`, in milliseconds of Unix time; `call` is what it calls, if it is the one that asks.
pub(crate) fn describe(instance: &Instance, client: &ClientShared, now: u64, call: Option<Args<'_>>) -> String {
    let mut text = String::new();
    let count = |which: usize| client.counts[which].load(Relaxed);
    let since = |at: u64| now.saturating_sub(at) / 1000;
    let labels = client.labels().clone();
    let level = instance.config.level();
    // The call itself waits no longer, which Redis tells all the same.
    let input = if call.is_some() && level.is_valkey() { 0 } else { client.input.load(Relaxed) };
    let output = client.output.load(Relaxed) + client.mail_bytes() as u64;
    let memory = client.queued.load(Relaxed);
    let argv = call.map_or(0, |args| args.iter().map(<[u8]>::len).sum());
    let user =
        labels.account.as_ref().map_or_else(|| "default".into(), |account| String::from_utf8_lossy(account.name()));
    let watch = if level >= Level::Redis80 { format!(" watch={}", count(count::WATCHED)) } else { String::new() };
    // A String takes any write.
    let _ = write!(
        text,
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={}{} db={} sub={} psub={} ssub={} multi={}{watch} qbuf={} \
         qbuf-free={} argv-mem={argv} multi-mem={memory} rbs=0 rbp=0 obl=0 oll={} omem={output} tot-mem={} events={} \
         cmd={} user={user} redir={} resp={} lib-name={} lib-ver={}",
        client.id,
        client.addr,
        client.laddr,
        client.fd,
        labels.name,
        since(client.connected_at),
        if call.is_some() { 0 } else { since(client.active_at.load(Relaxed)) },
        flags(client),
        capabilities(instance, client),
        client.db.load(Relaxed),
        count(count::CHANNELS),
        count(count::PATTERNS),
        count(count::SHARD_CHANNELS),
        i64::from(count(count::MULTI)) - 1,
        input,
        client.input_room.load(Relaxed).saturating_sub(input),
        u8::from(output > 0),
        client.memory() + argv as u64,
        if output > 0 { "rw" } else { "r" },
        last_command(instance, client),
        instance.tracking.redirect_of(client.id).map_or(-1, |id| id as i64),
        if client.is_resp3() { 3 } else { 2 },
        labels.lib_name,
        labels.lib_version,
    );
    if level == Level::Redis80 {
        text.push_str(" io-thread=0");
    }
    if level.is_valkey() {
        let Traffic { received, sent, commands } = &client.traffic;
        let (received, sent, commands) = (received.get(), sent.get(), commands.get());
        let _ = write!(text, " tot-net-in={received} tot-net-out={sent} tot-cmds={commands}");
    }
    text.push('\n');
    text
}

/// Capabilities that a client has declared, as Valkey lists them.
fn capabilities(instance: &Instance, client: &ClientShared) -> &'static str {
    match (instance.config.level().is_valkey(), client.has_flag(flag::REDIRECTS)) {
        (true, true) => " capa=r",
        (true, false) => " capa=",
        (false, _) => "",
    }
}

/// The letters of what a client is; `N` if it is nothing of that.
pub(crate) fn flags(client: &ClientShared) -> String {
    let bits = client.flags.load(Relaxed);
    let touched = client.watched.is_touched();
    let letters = [
        (bits & flag::REPLICA != 0, 'S'),
        (bits & flag::MONITOR != 0, 'O'),
        (bits & flag::PRIMARY != 0, 'M'),
        (bits & flag::PUBSUB != 0, 'P'),
        (bits & flag::MULTI != 0, 'x'),
        (bits & flag::BLOCKED != 0, 'b'),
        (bits & flag::TRACKING != 0, 't'),
        (bits & flag::TRACKING_BROKEN != 0, 'R'),
        (bits & flag::TRACKING_BCAST != 0, 'B'),
        (touched, 'd'),
        (bits & flag::CLOSING != 0, 'c'),
        (bits & flag::UNIX != 0, 'U'),
        (bits & flag::READONLY != 0, 'r'),
        (bits & flag::NO_EVICT != 0, 'e'),
        (bits & flag::NO_TOUCH != 0, 'T'),
        (bits & flag::IMPORTS != 0, 'I'),
    ];
    let set: String = letters.iter().filter(|(set, _)| *set).map(|(_, letter)| *letter).collect();
    if set.is_empty() { "N".to_owned() } else { set }
}

/// Full name of a client's last command, `NULL` before the first.
pub(crate) fn last_command(instance: &Instance, client: &ClientShared) -> String {
    client.last_command().map_or_else(|| "NULL".to_owned(), |id| instance.registry.rows()[id].name())
}
