//! The subscribers of channels and patterns, and the delivery of messages to them.
//!
//! A message is encoded once per protocol and shared by all who get it. It is left in each subscriber's mailbox
//! ([`ClientShared::post`]) under the lock of its channel, so that all subscribers of a channel see its messages in the
//! same order.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use bytes::Bytes;
use foldhash::quality::RandomState;

use crate::clients::client::ClientShared;
use crate::protocol::Reply;
use crate::protocol::glob;

/// Parts of a table, each with its own lock, so that different channels rarely meet.
const SHARDS: usize = 64;

/// The kinds of subscriptions. The discriminants are positions in [`crate::clients::client::Subscriptions`] and
/// [`crate::clients::client::count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A channel.
    Channel,
    /// All channels that match a pattern.
    Pattern,
    /// A shard channel.
    Shard,
}

/// The subscribers of one name, by the client's number.
type Subscribers = BTreeMap<u64, Arc<ClientShared>>;

type Names = HashMap<Bytes, Subscribers>;

/// All subscriptions of a server.
#[derive(Debug, Default)]
pub struct PubSub {
    channels: Channels,
    shard_channels: Channels,
    patterns: RwLock<BTreeMap<Bytes, Subscribers>>,
    /// Number of patterns: publishers look here first.
    pattern_count: AtomicUsize,
}

#[derive(Debug)]
struct Channels {
    shards: [Mutex<Names>; SHARDS],
    hasher: RandomState,
}

impl Default for Channels {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()), hasher: RandomState::default() }
    }
}

impl Channels {
    fn shard(&self, name: &[u8]) -> MutexGuard<'_, Names> {
        lock(&self.shards[self.hasher.hash_one(name) as usize % SHARDS])
    }

    fn names(&self, pattern: Option<&[u8]>) -> Vec<Bytes> {
        let wanted = |name: &&Bytes| pattern.is_none_or(|pattern| glob::matches(pattern, name, false));
        self.shards.iter().flat_map(|shard| lock(shard).keys().filter(wanted).cloned().collect::<Vec<_>>()).collect()
    }
}

fn lock(names: &Mutex<Names>) -> MutexGuard<'_, Names> {
    names.lock().expect("no code that holds subscriptions panics")
}

impl PubSub {
    fn channels(&self, kind: Kind) -> &Channels {
        if kind == Kind::Shard { &self.shard_channels } else { &self.channels }
    }

    /// Adds a subscription.
    pub fn subscribe(&self, kind: Kind, name: Bytes, client: &Arc<ClientShared>) {
        if kind != Kind::Pattern {
            self.channels(kind).shard(&name).entry(name).or_default().insert(client.id, Arc::clone(client));
            return;
        }
        let mut patterns = self.patterns.write().expect("no code that holds subscriptions panics");
        patterns.entry(name).or_default().insert(client.id, Arc::clone(client));
        self.pattern_count.store(patterns.len(), Relaxed);
    }

    /// Takes a subscription away: no message is posted for it from now on.
    pub fn unsubscribe(&self, kind: Kind, name: &[u8], client: u64) {
        if kind != Kind::Pattern {
            let mut names = self.channels(kind).shard(name);
            if let Some(subscribers) = names.get_mut(name) {
                subscribers.remove(&client);
                if subscribers.is_empty() {
                    names.remove(name);
                }
            }
            return;
        }
        let mut patterns = self.patterns.write().expect("no code that holds subscriptions panics");
        if let Some(subscribers) = patterns.get_mut(name) {
            subscribers.remove(&client);
            if subscribers.is_empty() {
                patterns.remove(name);
            }
        }
        self.pattern_count.store(patterns.len(), Relaxed);
    }

    /// Hands a message to `deliver` with each subscriber, once for each of its subscriptions that match. Returns their
    /// number.
    pub fn publish(
        &self,
        kind: Kind,
        channel: &[u8],
        text: &[u8],
        mut deliver: impl FnMut(&Arc<ClientShared>, &mut Message<'_>),
    ) -> usize {
        let mut count = 0;
        let names = self.channels(kind).shard(channel);
        if let Some(subscribers) = names.get(channel) {
            let word: &[u8] = if kind == Kind::Shard { b"smessage" } else { b"message" };
            let mut message = Message::new([Some(word), None, Some(channel), Some(text)]);
            subscribers.values().for_each(|subscriber| deliver(subscriber, &mut message));
            count += subscribers.len();
        }
        if kind == Kind::Channel && self.pattern_count.load(Relaxed) != 0 {
            let patterns = self.patterns.read().expect("no code that holds subscriptions panics");
            for (pattern, subscribers) in patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel, false))
            {
                let mut message = Message::new([Some(b"pmessage"), Some(pattern), Some(channel), Some(text)]);
                subscribers.values().for_each(|subscriber| deliver(subscriber, &mut message));
                count += subscribers.len();
            }
        }
        count
    }

    /// Takes away all subscriptions to the shard channels that are `wanted`.
    pub fn end_shard_channels(&self, wanted: impl Fn(&[u8]) -> bool) -> Vec<(Bytes, BTreeMap<u64, Arc<ClientShared>>)> {
        let mut ended = Vec::new();
        for shard in &self.shard_channels.shards {
            ended.extend(lock(shard).extract_if(|name, _| wanted(name)));
        }
        ended
    }

    /// Number of channels that anybody has subscribed to; of patterns, [`PubSub::patterns`] tells.
    pub fn count(&self, kind: Kind) -> usize {
        self.channels(kind).shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// The channels that anybody has subscribed to, or those that match a pattern.
    pub fn names(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Bytes> {
        self.channels(kind).names(pattern)
    }

    /// All who have subscribed to a name of which `wanted` says so.
    pub fn subscribers_where(&self, kind: Kind, wanted: impl Fn(&[u8]) -> bool) -> Vec<Arc<ClientShared>> {
        let mut found = Vec::new();
        let mut add = |name: &Bytes, subscribers: &Subscribers| {
            if wanted(name) {
                found.extend(subscribers.values().cloned());
            }
        };
        if kind == Kind::Pattern {
            let patterns = self.patterns.read().expect("no code that holds subscriptions panics");
            patterns.iter().for_each(|(name, subscribers)| add(name, subscribers));
        } else {
            for shard in &self.channels(kind).shards {
                lock(shard).iter().for_each(|(name, subscribers)| add(name, subscribers));
            }
        }
        found
    }

    /// Number of subscribers of a channel, patterns not counted.
    pub fn subscribers(&self, kind: Kind, name: &[u8]) -> usize {
        self.channels(kind).shard(name).get(name).map_or(0, BTreeMap::len)
    }

    /// Number of different patterns.
    pub fn patterns(&self) -> usize {
        self.pattern_count.load(Relaxed)
    }
}

/// A message on its way, encoded when it is first wanted.
#[derive(Debug)]
pub struct Message<'a> {
    parts: [Option<&'a [u8]>; 4],
    /// In RESP2 and in RESP3.
    encoded: [Option<Bytes>; 2],
}

impl<'a> Message<'a> {
    fn new(parts: [Option<&'a [u8]>; 4]) -> Self {
        Self { parts, encoded: [None, None] }
    }

    /// The message as it is sent.
    pub fn encoded(&mut self, resp3: bool) -> &Bytes {
        let parts = &self.parts;
        self.encoded[usize::from(resp3)].get_or_insert_with(|| {
            let mut reply = Reply::default();
            reply.set_resp3(resp3);
            reply.push(parts.iter().flatten().count());
            parts.iter().flatten().for_each(|part| reply.bulk(part));
            reply.to_vec().into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(id: u64) -> Arc<ClientShared> {
        Arc::new(ClientShared::new(id, String::new(), String::new(), -1, 0))
    }

    #[test]
    fn messages_reach_channels_and_patterns() {
        let pubsub = PubSub::default();
        let (one, two) = (client(1), client(2));
        pubsub.subscribe(Kind::Channel, Bytes::from_static(b"news"), &one);
        pubsub.subscribe(Kind::Pattern, Bytes::from_static(b"n*"), &one);
        pubsub.subscribe(Kind::Pattern, Bytes::from_static(b"x*"), &two);
        pubsub.subscribe(Kind::Shard, Bytes::from_static(b"news"), &two);
        let mut seen = Vec::new();
        let count = pubsub.publish(Kind::Channel, b"news", b"hi", |to, message| {
            seen.push((to.id, message.encoded(to.id == 1).clone()));
        });
        assert_eq!(count, 2);
        let message = Bytes::from_static(b">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
        let by_pattern = Bytes::from_static(b">4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$2\r\nhi\r\n");
        assert_eq!(seen, [(1, message), (1, by_pattern)]);
        assert_eq!((pubsub.patterns(), pubsub.subscribers(Kind::Channel, b"news")), (2, 1));

        for (kind, name) in [(Kind::Channel, "news"), (Kind::Pattern, "n*"), (Kind::Pattern, "nonesuch")] {
            pubsub.unsubscribe(kind, name.as_bytes(), 1);
        }
        assert_eq!(pubsub.publish(Kind::Channel, b"news", b"hi", |_, _| ()), 0);
        assert_eq!(pubsub.names(Kind::Channel, None), Vec::<Bytes>::new());
        assert_eq!(pubsub.names(Kind::Shard, Some(b"n?ws")), ["news"]);
    }
}
