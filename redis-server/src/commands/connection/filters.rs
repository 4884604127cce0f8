//! Which clients CLIENT LIST and CLIENT KILL mean (<https://valkey.io/commands/client-list/>).

use std::mem::discriminant;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::clients::acl::Account;
use crate::clients::client::{ClientShared, flag};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::exec::run::client_list::flags;
use crate::protocol::error::{Error, shown};
use crate::protocol::number;

/// The letters that flags of a client may have, as Valkey names them.
const FLAGS: &[u8] = b"ABEIMNOPRSTUbcdeirtux";

/// The classes by which clients are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Normal,
    PubSub,
    /// A replica of this server.
    Replica,
    /// The primary of this server.
    Primary,
}

impl Class {
    fn parse(word: &[u8]) -> Result<Self> {
        match word.to_ascii_lowercase().as_slice() {
            b"normal" => Ok(Self::Normal),
            b"pubsub" => Ok(Self::PubSub),
            b"replica" | b"slave" => Ok(Self::Replica),
            b"primary" | b"master" => Ok(Self::Primary),
            _ => Err(Error::Message(format!("ERR Unknown client type '{}'", shown(word)))),
        }
    }

    fn of(client: &ClientShared) -> Self {
        if client.has_flag(flag::REPLICA) {
            Self::Replica
        } else if client.has_flag(flag::PRIMARY) {
            Self::Primary
        } else if client.has_flag(flag::PUBSUB) {
            Self::PubSub
        } else {
            Self::Normal
        }
    }
}

/// A property that a client must have.
#[derive(Clone, Debug)]
enum Trait<'a> {
    Id(Vec<i64>),
    Class(Class),
    Addr(&'a [u8]),
    Laddr(&'a [u8]),
    Ip(&'a [u8]),
    User(Arc<Account>),
    Name(&'a [u8]),
    LibName(&'a [u8]),
    LibVersion(&'a [u8]),
    /// All of these.
    Flags(&'a [u8]),
    Db(u32),
    /// It can be redirected.
    Capable,
    /// Seconds since it came, at least.
    Age(u64),
    /// Seconds since it has said something, at least.
    Idle(u64),
}

impl Trait<'_> {
    fn is_of(&self, client: &ClientShared, now: u64) -> bool {
        let seconds_since = |at: u64| now.saturating_sub(at) / 1000;
        match self {
            Self::Id(ids) => ids.iter().any(|&id| u64::try_from(id) == Ok(client.id)),
            Self::Class(class) => Class::of(client) == *class,
            Self::Addr(addr) => client.addr.as_bytes() == *addr,
            Self::Laddr(addr) => client.laddr.as_bytes() == *addr,
            Self::Ip(ip) => {
                let host = client.addr.rsplit_once(':').map(|(host, _)| host.trim_matches(['[', ']']));
                host.is_some_and(|host| host.as_bytes() == *ip)
            }
            Self::User(user) => client.acts_for(user),
            Self::Name(name) => client.labels().name.as_bytes() == *name,
            Self::LibName(name) => client.labels().lib_name.as_bytes() == *name,
            Self::LibVersion(version) => client.labels().lib_version.as_bytes() == *version,
            Self::Flags(letters) => {
                let has = flags(client);
                letters.iter().all(|letter| has.as_bytes().contains(letter))
            }
            Self::Db(db) => client.db.load(Relaxed) == *db,
            Self::Capable => client.has_flag(flag::REDIRECTS),
            Self::Age(age) => seconds_since(client.connected_at) >= *age,
            Self::Idle(idle) => seconds_since(client.active_at.load(Relaxed)) >= *idle,
        }
    }
}

/// Clients that every filter lets through.
#[derive(Debug, Default)]
pub(super) struct Filters<'a> {
    /// Each with whether it must be so.
    all: Vec<(Trait<'a>, bool)>,
    /// The argument of SKIPME.
    pub(super) skip_me: Option<bool>,
}

impl<'a> Filters<'a> {
    /// Of one address.
    pub(super) fn of_addr(addr: &'a [u8]) -> Self {
        Self { all: vec![(Trait::Addr(addr), true)], skip_me: Some(false) }
    }

    /// Reads `filter value [filter value …]` from argument `at` on; `id` says what is wrong with an id.
    pub(super) fn parse(cx: &Ctx<'_>, args: Args<'a>, mut at: usize, id: &IdRule) -> Result<Self> {
        let mut filters = Self::default();
        while at < args.len() {
            let value = args.get(at + 1).ok_or(Error::Syntax)?;
            let word = args.at(at).to_ascii_lowercase();
            if word == b"skipme" {
                filters.skip_me = Some(match value.to_ascii_lowercase().as_slice() {
                    b"yes" => true,
                    b"no" => false,
                    _ => return Err(Error::Syntax),
                });
                at += 2;
                continue;
            }
            let (name, wanted) = word.strip_prefix(b"not-").map_or((&word[..], true), |name| (name, false));
            let (found, next) = match name {
                b"id" => id.list(args, at + 1)?,
                _ => (one(cx, args, at, name, wanted)?, at + 2),
            };
            if cx.config().level().is_valkey() && wanted && filters.add_ids(&found) {
                at = next;
                continue;
            }
            // The last of a kind counts.
            filters.all.retain(|(other, was)| (discriminant(other), *was) != (discriminant(&found), wanted));
            filters.all.push((found, wanted));
            at = next;
        }
        Ok(filters)
    }

    /// Adds ids to those that are wanted already; false if there are none, or it is something else.
    fn add_ids(&mut self, found: &Trait<'_>) -> bool {
        let Trait::Id(more) = found else { return false };
        let before = self.all.iter_mut().find_map(|(it, wanted)| {
            let Trait::Id(ids) = it else { return None };
            wanted.then_some(ids)
        });
        before.map(|ids| ids.extend_from_slice(more)).is_some()
    }

    /// The ids by which clients are to be looked up, in their order, if they are all that is said.
    pub(super) fn only_ids(&self) -> Option<&[i64]> {
        match &self.all[..] {
            [(Trait::Id(ids), true)] => Some(ids),
            _ => None,
        }
    }

    pub(super) fn select(&self, client: &ClientShared, now: u64) -> bool {
        self.all.iter().all(|(it, wanted)| it.is_of(client, now) == *wanted)
    }
}

/// Which ids a command takes.
#[derive(Debug)]
pub(super) struct IdRule {
    /// The smallest.
    pub(super) least: i64,
    /// The error for a smaller id.
    pub(super) error: Error,
    /// The error for a single word behind the ids.
    pub(super) behind: Error,
}

impl IdRule {
    /// The ids from argument `at` on, and where they end: at the next word that is no number.
    fn list<'a>(&self, args: Args<'a>, at: usize) -> Result<(Trait<'a>, usize)> {
        let ids: Vec<i64> = args.from(at).iter().map_while(number::parse_i64).collect();
        let next = at + ids.len();
        if ids.is_empty() || ids.iter().any(|&id| id < self.least) {
            return Err(self.error.clone());
        }
        if next + 1 == args.len() {
            return Err(self.behind.clone());
        }
        Ok((Trait::Id(ids), next))
    }
}

/// The filter `name` at argument `at`, with its value behind it.
fn one<'a>(cx: &Ctx<'_>, args: Args<'a>, at: usize, name: &[u8], wanted: bool) -> Result<Trait<'a>> {
    let value = args.at(at + 1);
    let upper = || String::from_utf8_lossy(args.at(at)).to_ascii_uppercase();
    let seconds = |what: &str| {
        let out_of_range = || Error::Message(format!("ERR {what} is not an integer or out of range"));
        let seconds = args.int(at + 1).map_err(|_| out_of_range())?;
        let seconds = u64::try_from(seconds).ok().filter(|&seconds| seconds > 0);
        seconds.ok_or_else(|| Error::Message(format!("ERR {what} should be greater than 0")))
    };
    let unknown = |what: &str| {
        let place = if wanted { "provided filter".to_owned() } else { format!("{} filter", upper()) };
        Error::Message(format!("ERR Unknown {what} found in the {place}: {}", shown(value)))
    };
    Ok(match name {
        b"type" => Trait::Class(Class::parse(value)?),
        b"addr" => Trait::Addr(value),
        b"laddr" => Trait::Laddr(value),
        b"ip" => Trait::Ip(value),
        b"user" => {
            let nobody = || format!("ERR No such user '{}'", shown(value));
            Trait::User(cx.instance().acl.account(value).ok_or_else(|| Error::Message(nobody()))?)
        }
        b"name" => Trait::Name(value),
        b"lib-name" => Trait::LibName(value),
        b"lib-ver" => Trait::LibVersion(value),
        b"flags" if value.iter().all(|letter| FLAGS.contains(letter)) => Trait::Flags(value),
        b"flags" => return Err(unknown("flags")),
        b"db" => {
            let out_of_range = || Error::Message(format!("ERR {} is not an integer or out of range", upper()));
            let db = args.int(at + 1).map_err(|_| out_of_range())?;
            let count = cx.instance().databases().len();
            let db = u32::try_from(db).ok().filter(|&db| (db as usize) < count);
            let text = || format!("ERR DB number should be between 0 and {}", count - 1);
            Trait::Db(db.ok_or_else(|| Error::Message(text()))?)
        }
        b"capa" if value.iter().all(|&letter| letter == b'r') => Trait::Capable,
        b"capa" => return Err(unknown("capa")),
        b"maxage" if wanted => Trait::Age(seconds("maxage")?),
        b"idle" if wanted => Trait::Idle(seconds("idle")?),
        _ => return Err(Error::Syntax),
    })
}
