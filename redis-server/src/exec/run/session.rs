//! A client among those of a server, from its arrival to its leaving.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytes::Bytes;

use crate::clients::acl::Identity;
use crate::clients::client::{Client, ClientShared, flag};
use crate::clients::pubsub::Kind;
use crate::exec::core::Instance;
use crate::exec::gate::Held;
use crate::exec::run::outcome::{Pending, leave};
use crate::exec::run::parked::Waiting;
use crate::protocol::Reply;

/// A client that its server lists. Dropped, it leaves: its wait, its transaction and its subscriptions end.
#[derive(Debug)]
pub struct ConnectedClient {
    client: Client,
    /// A blocking command's wait.
    pub(crate) waiting: Option<Waiting>,
    /// A command that runs elsewhere with the session, a deputy of which stands here meanwhile.
    pub(crate) running: Option<Pending>,
    /// A command that has not run, because it waits for slow calls.
    pub(crate) held: Option<Held>,
    instance: Arc<Instance>,
}

impl ConnectedClient {
    /// A client that has just come.
    pub(crate) fn new(instance: &Arc<Instance>, shared: ClientShared) -> Self {
        let shared = Arc::new(shared);
        instance.add_client(&shared);
        let identity = Identity::newcomer(&instance.acl);
        shared.labels().account = Some(Arc::clone(identity.account()));
        let client = Client::new(shared, identity);
        Self { client, waiting: None, running: None, held: None, instance: Arc::clone(instance) }
    }

    /// Whether a command of its own waits or runs: its answer comes later.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.waiting.is_some() || self.running.is_some() || self.held.is_some()
    }

    /// Takes back what an interrupted command was lent.
    pub(crate) fn take_back(&mut self, mut client: Client) {
        client.close |= self.client.close;
        self.running = None;
        self.client = client;
        self.client.end_asking();
    }

    /// Is told of shard channels whose slots other nodes have now: it has not subscribed to them any more.
    pub(crate) fn lose_channels(&mut self, names: Vec<Bytes>, reply: &mut Reply) {
        reply.set_resp3(self.resp3);
        for name in names {
            let Some(subscriptions) = &mut self.client.subscriptions else { break };
            let set = &mut subscriptions.sets[Kind::Shard as usize];
            if set.swap_remove(&name) {
                reply.push(3);
                reply.bulk(b"sunsubscribe");
                reply.bulk(&name);
                reply.count(set.len());
            }
        }
        self.client.note_subscriptions();
    }

    /// Forgets that CLIENT PAUSE holds it back.
    pub(crate) fn end_pause(&self) {
        if self.shared.has_flag(flag::PAUSED) {
            self.shared.set_flag(flag::PAUSED | flag::BLOCKED, false);
            self.instance.blocked_clients(-1);
        }
    }
}

impl Deref for ConnectedClient {
    type Target = Client;

    #[inline]
    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for ConnectedClient {
    #[inline]
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Drop for ConnectedClient {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.leave(&self.client);
        }
        self.end_pause();
        if let Some(name) = self.client.importing.take() {
            self.instance.cluster.lost_import(&self.instance, *name);
        }
        leave(&self.instance, &mut self.client);
        self.instance.client_left(&self.client.shared);
    }
}
