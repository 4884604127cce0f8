//! CLIENT LIST, INFO and KILL: the other connections.

use std::sync::Arc;

use crate::clients::acl::{Account, Table};
use crate::clients::client::{ClientShared, flag};
use crate::command::{Args, Result};
use crate::exec::Ctx;
use crate::exec::client_list::describe;
use crate::protocol::error::{Error, shown};

/// The classes by which clients are chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Normal,
    PubSub,
    /// Who follows this server.
    Replica,
    /// Whom this server follows.
    Master,
}

impl Class {
    fn parse(word: &[u8]) -> Result<Self> {
        match word.to_ascii_lowercase().as_slice() {
            b"normal" => Ok(Self::Normal),
            b"pubsub" => Ok(Self::PubSub),
            b"replica" | b"slave" => Ok(Self::Replica),
            b"master" => Ok(Self::Master),
            _ => Err(Error::Message(format!("ERR Unknown client type '{}'", shown(word)))),
        }
    }

    fn of(client: &ClientShared) -> Self {
        if client.has_flag(flag::REPLICA) {
            Self::Replica
        } else if client.has_flag(flag::PRIMARY) {
            Self::Master
        } else if client.has_flag(flag::PUBSUB) {
            Self::PubSub
        } else {
            Self::Normal
        }
    }
}

/// `CLIENT LIST [TYPE type | ID client-id [client-id …]]`
pub(super) fn list(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let clients = match args.len() {
        2 => cx.instance().clients(),
        4 if args.is(2, "type") => {
            let class = Class::parse(args.at(3))?;
            let mut clients = cx.instance().clients();
            clients.retain(|client| Class::of(client) == class);
            clients
        }
        4.. if args.is(2, "id") => {
            let ids: Result<Vec<i64>> = (3..args.len()).map(|at| args.int(at)).collect();
            let ids = ids.map_err(|_| Error::Static("ERR Invalid client ID"))?;
            ids.into_iter().filter_map(|id| cx.instance().client(u64::try_from(id).ok()?)).collect()
        }
        _ => return Err(Error::Syntax),
    };
    let mut text = String::new();
    for client in &clients {
        let asks = Arc::ptr_eq(client, &cx.client.shared).then_some(args);
        text.push_str(&describe(cx.instance(), client, cx.now(), asks));
    }
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// CLIENT INFO
pub(super) fn info(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let text = describe(cx.instance(), &cx.client.shared, cx.now(), Some(args));
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
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
        Filters::parse(&cx.instance().acl, args)?
    };
    let mut killed = 0;
    for client in cx.instance().clients().iter().filter(|client| filters.select(client)) {
        if !Arc::ptr_eq(client, &cx.client.shared) {
            cx.instance().kill_client(client);
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
