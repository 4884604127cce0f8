//! CLIENT LIST, INFO and KILL: the other connections.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::clients::acl::{Account, Table};
use crate::clients::client::{ClientShared, count, flag};
use crate::command::{Args, Ctx, Result};
use crate::exec::instance::Instance;
use crate::protocol::error::{Error, shown};

/// The classes by which clients are chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Normal,
    PubSub,
    /// Links of replication, of which there are none.
    Replication,
}

impl Class {
    fn parse(word: &[u8]) -> Result<Self> {
        match word.to_ascii_lowercase().as_slice() {
            b"normal" => Ok(Self::Normal),
            b"pubsub" => Ok(Self::PubSub),
            b"master" | b"replica" | b"slave" => Ok(Self::Replication),
            _ => Err(Error::Message(format!("ERR Unknown client type '{}'", shown(word)))),
        }
    }

    fn of(client: &ClientShared) -> Self {
        if client.has_flag(flag::PUBSUB) { Self::PubSub } else { Self::Normal }
    }
}

/// `CLIENT LIST [TYPE type | ID client-id [client-id …]]`
pub(super) fn list(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let clients = match args.len() {
        2 => cx.instance.clients(),
        4 if args.is(2, "type") => {
            let class = Class::parse(args.at(3))?;
            let mut clients = cx.instance.clients();
            clients.retain(|client| Class::of(client) == class);
            clients
        }
        4.. if args.is(2, "id") => {
            let ids: Result<Vec<i64>> = (3..args.len()).map(|at| args.int(at)).collect();
            let ids = ids.map_err(|_| Error::Static("ERR Invalid client ID"))?;
            ids.into_iter().filter_map(|id| cx.instance.client(u64::try_from(id).ok()?)).collect()
        }
        _ => return Err(Error::Syntax),
    };
    let mut text = String::new();
    for client in &clients {
        let asks = Arc::ptr_eq(client, &cx.client.shared).then_some(args);
        text.push_str(&describe(cx.instance, client, cx.now(), asks));
    }
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// CLIENT INFO
pub(super) fn info(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let text = describe(cx.instance, &cx.client.shared, cx.now(), Some(args));
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// A client's line at `now`, in milliseconds of Unix time; `call` is what it calls, if it is the one that asks.
pub(crate) fn describe(instance: &Instance, client: &ClientShared, now: u64, call: Option<Args<'_>>) -> String {
    let mut text = String::new();
    let count = |which: usize| client.counts[which].load(Relaxed);
    let since = |at: u64| now.saturating_sub(at) / 1000;
    let labels = client.labels().clone();
    let input = client.input.load(Relaxed);
    let output = client.output.load(Relaxed) + client.mail_bytes() as u64;
    let memory = client.queued.load(Relaxed);
    let argv = call.map_or(0, |args| args.iter().map(<[u8]>::len).sum());
    let user =
        labels.account.as_ref().map_or_else(|| "default".into(), |account| String::from_utf8_lossy(account.name()));
    // A String takes any write.
    let _ = writeln!(
        text,
        "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} qbuf={} \
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
        client.last_command(),
        instance.tracking.redirect_of(client.id).map_or(-1, |id| id as i64),
        if client.is_resp3() { 3 } else { 2 },
        labels.lib_name,
        labels.lib_version,
    );
    text
}

fn flags(client: &ClientShared) -> String {
    let bits = client.flags.load(Relaxed);
    let touched = client.watched.is_touched();
    let letters = [
        (bits & flag::PUBSUB != 0, 'P'),
        (bits & flag::MULTI != 0, 'x'),
        (bits & flag::BLOCKED != 0, 'b'),
        (bits & flag::TRACKING != 0, 't'),
        (bits & flag::TRACKING_BROKEN != 0, 'R'),
        (bits & flag::TRACKING_BCAST != 0, 'B'),
        (touched, 'd'),
        (bits & flag::CLOSING != 0, 'c'),
        (bits & flag::UNIX != 0, 'U'),
        (bits & flag::NO_EVICT != 0, 'e'),
        (bits & flag::NO_TOUCH != 0, 'T'),
    ];
    let set: String = letters.iter().filter(|(set, _)| *set).map(|(_, letter)| *letter).collect();
    if set.is_empty() { "N".to_owned() } else { set }
}

/// Which clients CLIENT KILL means: those that every filter lets through.
#[derive(Default)]
struct Filters<'a> {
    id: Option<u64>,
    class: Option<Class>,
    addr: Option<&'a [u8]>,
    laddr: Option<&'a [u8]>,
    user: Option<Arc<Account>>,
    with_me: bool,
}

impl<'a> Filters<'a> {
    fn parse(acl: &Table, args: Args<'a>) -> Result<Self> {
        let mut filters = Self::default();
        let mut at = 2;
        while at < args.len() {
            let value = args.get(at + 1).ok_or(Error::Syntax)?;
            match args.at(at).to_ascii_lowercase().as_slice() {
                b"id" => {
                    let id = args.int(at + 1).ok().and_then(|id| u64::try_from(id).ok()).filter(|&id| id > 0);
                    filters.id = Some(id.ok_or(Error::Static("ERR client-id should be greater than 0"))?);
                }
                b"type" => filters.class = Some(Class::parse(value)?),
                b"addr" => filters.addr = Some(value),
                b"laddr" => filters.laddr = Some(value),
                b"user" => {
                    let unknown = || format!("ERR No such user '{}'", shown(value));
                    filters.user = Some(acl.account(value).ok_or_else(|| Error::Message(unknown()))?);
                }
                b"skipme" => {
                    filters.with_me = match value.to_ascii_lowercase().as_slice() {
                        b"yes" => false,
                        b"no" => true,
                        _ => return Err(Error::Syntax),
                    }
                }
                _ => return Err(Error::Syntax),
            }
            at += 2;
        }
        Ok(filters)
    }

    fn select(&self, client: &ClientShared) -> bool {
        self.id.is_none_or(|id| client.id == id)
            && self.class.is_none_or(|class| Class::of(client) == class)
            && self.addr.is_none_or(|addr| client.addr.as_bytes() == addr)
            && self.laddr.is_none_or(|laddr| client.laddr.as_bytes() == laddr)
            && self.user.as_ref().is_none_or(|user| client.acts_for(user))
    }
}

/// `CLIENT KILL ip:port | filter value [filter value …]`
pub(super) fn kill(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let old_form = args.len() == 3;
    let filters = if old_form {
        Filters { addr: Some(args.at(2)), with_me: true, ..Filters::default() }
    } else {
        Filters::parse(&cx.instance.acl, args)?
    };
    let mut killed = 0;
    for client in cx.instance.clients().iter().filter(|client| filters.select(client)) {
        if !Arc::ptr_eq(client, &cx.client.shared) {
            cx.instance.kill_client(client);
        } else if filters.with_me {
            cx.client.close = true;
        } else {
            continue;
        }
        killed += 1;
    }
    match (old_form, killed) {
        (true, 0) => return Err(Error::Static("ERR No such client")),
        (true, _) => cx.reply.ok(),
        (false, _) => cx.reply.int(killed),
    }
    Ok(())
}
