//! Client-side caching: the keys that clients have read, and the delivery of invalidations to them
//! (<https://redis.io/docs/latest/develop/reference/client-side-caching/>).
//!
//! A key is noted under the lock of the read, and invalidated under that of the write, so that nobody misses a change. An invalidation goes
//! to the mailbox of its client ([`ClientShared::post`]), which is emptied behind the replies that were written before: a client that has
//! read a key learns of the change after it has got the value. The invalidation for a client's own change follows its own reply.
//!
//! Where nobody tracks, writers pay nothing: they have one look for watched keys and trackers
//! ([`crate::keyspace::Database::is_of_interest`]).

mod prefixes;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use bytes::Bytes;

use crate::clients::client::{ClientShared, flag};
use crate::clients::output_limit::post;
use crate::config::{Config, settings};
use crate::protocol::Reply;

pub use prefixes::Overlap;
use prefixes::Prefixes;
use table::Table;

/// Keys that are given up at least when the table is too large, before other work gets its turn.
const EFFORT: usize = 100;
/// The channel on which a client of RESP2 gets invalidations.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// A key that has changed, and the client that has done it, if one has.
pub type ChangedKey = (Box<[u8]>, Option<u64>);

/// How a client tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// `BCAST`: every change below some prefixes.
    pub bcast: bool,
    /// `OPTIN`: only keys that follow CLIENT CACHING YES.
    pub optin: bool,
    /// `OPTOUT`: all but those that follow CLIENT CACHING NO.
    pub optout: bool,
    /// `NOLOOP`: not what the client changes itself.
    pub noloop: bool,
}

/// A client that tracks, as others see it.
#[derive(Debug)]
pub struct Tracker {
    pub(crate) client: Arc<ClientShared>,
    pub(crate) mode: Mode,
    /// The client that gets its invalidations (`REDIRECT`), with its number.
    pub(crate) redirect: Option<(u64, Weak<ClientShared>)>,
}

impl Tracker {
    /// How it tracks.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Number of the client that is told in its place; 0 if that is itself.
    pub fn redirect(&self) -> u64 {
        self.redirect.as_ref().map_or(0, |(id, _)| *id)
    }
}

/// The tracking state that only the client's own connection uses.
#[derive(Debug)]
pub struct Own {
    /// The part that other threads see.
    pub tracker: Arc<Tracker>,
    /// Whether CLIENT CACHING was said: it holds for the command behind it.
    pub caching: bool,
    /// The prefixes of `BCAST`.
    pub prefixes: BTreeSet<Bytes>,
    /// The invalidations that must follow the client's reply.
    pub(crate) pending: Vec<Pending>,
}

impl Own {
    /// The state of a client that has just begun to track.
    pub fn new(tracker: Arc<Tracker>) -> Self {
        Self { tracker, caching: false, prefixes: BTreeSet::new(), pending: Vec::new() }
    }
}

/// Something that is not what the client has seen any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    Key(Box<[u8]>),
    Everything,
}

/// The state of client-side caching in a server.
#[derive(Debug, Default)]
pub struct Tracking {
    table: Table,
    pub(crate) trackers: RwLock<BTreeMap<u64, Arc<Tracker>>>,
    pub(crate) prefixes: RwLock<Prefixes>,
    /// Number of different prefixes: writers look here first.
    pub(crate) prefix_count: AtomicUsize,
    /// Times in a row that the table was too large still after some keys were given up.
    pub(crate) rounds: AtomicUsize,
}

/// Figures for INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Clients that track.
    pub clients: usize,
    /// Keys in the table.
    pub keys: usize,
    /// Pairs of key and client in the table.
    pub items: usize,
    /// Different prefixes of broadcasts.
    pub prefixes: usize,
}

impl Tracking {
    pub(crate) fn trackers(&self) -> RwLockReadGuard<'_, BTreeMap<u64, Arc<Tracker>>> {
        self.trackers.read().expect("no code that holds the trackers panics")
    }

    pub(crate) fn trackers_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<u64, Arc<Tracker>>> {
        self.trackers.write().expect("no code that holds the trackers panics")
    }

    pub(crate) fn prefixes(&self) -> RwLockReadGuard<'_, Prefixes> {
        self.prefixes.read().expect("no code that holds the prefixes panics")
    }

    pub(crate) fn change_prefixes(&self, change: impl FnOnce(&mut Prefixes)) {
        let mut prefixes = self.prefixes.write().expect("no code that holds the prefixes panics");
        change(&mut prefixes);
        self.prefix_count.store(prefixes.len(), Relaxed);
    }

    /// Figures for INFO.
    pub fn figures(&self) -> Figures {
        Figures {
            clients: self.trackers().len(),
            keys: self.table.keys(),
            items: self.table.items(),
            prefixes: self.prefix_count.load(Relaxed),
        }
    }

    /// Number of the client that gets the invalidations of client `id`: 0 if it does itself, `None` if there are none.
    pub fn redirect_of(&self, id: u64) -> Option<u64> {
        self.trackers().get(&id).map(|tracker| tracker.redirect())
    }

    /// A client has read a key, which is locked.
    pub(crate) fn remember(&self, key: &[u8], reader: u64) {
        self.table.add(key, reader, |id| self.trackers().contains_key(&id));
    }

    /// A key has changed, or is gone; its shard is locked. Returns whether client `by`, which has changed it, has to be
    /// told behind its reply.
    pub(crate) fn invalidate(&self, config: &Config, key: &[u8], by: Option<u64>) -> bool {
        let Some(readers) = self.table.take(key) else { return false };
        let trackers = self.trackers();
        let mut message = Message::of_key(key);
        let mut tell_itself = false;
        for tracker in readers.iter().filter_map(|id| trackers.get(id)).filter(|tracker| !tracker.mode.bcast) {
            let is_own = by == Some(tracker.client.id);
            if is_own && tracker.mode.noloop {
                continue;
            }
            if is_own && tracker.redirect.is_none() {
                tell_itself = true;
            } else {
                tell(config, tracker, &mut message);
            }
        }
        tell_itself
    }

    /// Keys have changed, each by this client or by none: told to those who track by prefix, once for each prefix.
    pub(crate) fn broadcast(&self, config: &Config, changes: &[ChangedKey]) {
        let prefixes = self.prefixes();
        for group in prefixes.concerned(changes.iter().map(|(key, _)| &**key)) {
            // Of several changes of one key the last one counts, as in the genuine server.
            let changed: BTreeMap<&[u8], Option<u64>> = changes
                .iter()
                .filter(|(key, _)| key.starts_with(group.prefix))
                .map(|(key, by)| (&**key, *by))
                .collect();
            let mut for_all = Message::of_keys(changed.keys().copied().collect());
            let trackers = self.trackers();
            for tracker in group.clients.iter().filter_map(|id| trackers.get(id)) {
                let own = Some(tracker.client.id);
                if !tracker.mode.noloop || changed.values().all(|by| *by != own) {
                    tell(config, tracker, &mut for_all);
                    continue;
                }
                let others: Vec<&[u8]> = changed.iter().filter(|(_, by)| **by != own).map(|(key, _)| *key).collect();
                if !others.is_empty() {
                    tell(config, tracker, &mut Message::of_keys(others));
                }
            }
        }
    }

    /// A key has gone without a client's doing: it has expired, or was evicted. Its shard is locked.
    pub fn gone(&self, config: &Config, key: &[u8]) {
        self.invalidate(config, key, None);
        if self.prefix_count.load(Relaxed) != 0 {
            self.broadcast(config, &[(key.into(), None)]);
        }
    }

    /// Everything in some database has gone. Keys are tracked whatever their database, so that all clients are told to
    /// forget all. Returns whether client `by` has to be told behind its reply.
    pub(crate) fn forget_all(&self, config: &Config, by: u64) -> bool {
        // Also without trackers: a former tracker may track again, and has not read these keys since.
        if self.table.keys() != 0 {
            self.table.clear();
        }
        let trackers = self.trackers();
        let mut message = Message { keys: None, encoded: [None, None] };
        for tracker in trackers.values() {
            if tracker.client.id != by || tracker.redirect.is_some() {
                tell(config, tracker, &mut message);
            }
        }
        trackers.get(&by).is_some_and(|tracker| tracker.redirect.is_none())
    }

    /// Gives up keys while there are more than `tracking-table-max-keys`: their readers are told to forget them. The
    /// more often it has to be called in a row the more it does, as in the genuine server.
    pub fn limit(&self, config: &Config) {
        let most = config.size(settings::TRACKING_TABLE_MAX_KEYS);
        let is_within = || most == 0 || self.table.keys() <= most;
        if is_within() {
            self.rounds.store(0, Relaxed);
            return;
        }
        let effort = EFFORT * (self.rounds.fetch_add(1, Relaxed) + 1);
        for _ in 0..effort {
            let Some((key, readers)) = self.table.take_any() else { return };
            let trackers = self.trackers();
            let mut message = Message::of_key(&key);
            let concerned = readers.iter().filter_map(|id| trackers.get(id)).filter(|tracker| !tracker.mode.bcast);
            concerned.for_each(|tracker| tell(config, tracker, &mut message));
            if is_within() {
                self.rounds.store(0, Relaxed);
                return;
            }
        }
    }
}

/// Leaves an invalidation for a tracker, or for whom it has named.
fn tell(config: &Config, tracker: &Tracker, message: &mut Message<'_>) {
    let Some((id, redirect)) = &tracker.redirect else {
        if tracker.client.is_resp3() {
            post(config, &tracker.client, message.encoded(true).clone());
        }
        return;
    };
    let Some(target) = redirect.upgrade().filter(|target| !target.has_flag(flag::GONE)) else {
        tracker.client.set_flag(flag::TRACKING_BROKEN, true);
        if tracker.client.is_resp3() {
            let mut reply = Reply::default();
            reply.set_resp3(true);
            reply.push(2);
            reply.bulk(b"tracking-redir-broken");
            reply.int(*id as i64);
            post(config, &tracker.client, reply.to_vec().into());
        }
        return;
    };
    // RESP2 has no pushes: there an invalidation is a message for a subscriber.
    if target.is_resp3() || target.has_flag(flag::PUBSUB) {
        post(config, &target, message.encoded(target.is_resp3()).clone());
    }
}

/// An invalidation on its way, encoded when it is first wanted.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    /// `None`: everything.
    keys: Option<Vec<&'a [u8]>>,
    /// In RESP2 and in RESP3.
    encoded: [Option<Bytes>; 2],
}

impl<'a> Message<'a> {
    pub(crate) fn of_keys(keys: Vec<&'a [u8]>) -> Self {
        Self { keys: Some(keys), encoded: [None, None] }
    }

    pub(crate) fn of_key(key: &'a [u8]) -> Self {
        Self::of_keys(vec![key])
    }

    pub(crate) fn of_pending(pending: &'a Pending) -> Self {
        match pending {
            Pending::Key(key) => Self::of_key(key),
            Pending::Everything => Self { keys: None, encoded: [None, None] },
        }
    }

    /// The message as it is sent.
    pub(crate) fn encoded(&mut self, resp3: bool) -> &Bytes {
        let keys = &self.keys;
        self.encoded[usize::from(resp3)].get_or_insert_with(|| {
            let mut reply = Reply::default();
            reply.set_resp3(resp3);
            if resp3 {
                reply.push(2);
                reply.bulk(b"invalidate");
            } else {
                reply.array(3);
                reply.bulk(b"message");
                reply.bulk(CHANNEL);
            }
            match keys {
                None => reply.null(),
                Some(keys) => {
                    reply.array(keys.len());
                    keys.iter().for_each(|key| reply.bulk(key));
                }
            }
            reply.to_vec().into()
        })
    }
}
