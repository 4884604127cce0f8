//! Messages that clients get unasked when slots go.

use std::sync::Arc;

use super::redirect::moved;
use crate::clients::client::{ClientShared, flag};
use crate::cluster::{NOBODY, Routing, SlotSet, slot_of};
use crate::exec::core::Instance;
use crate::protocol::error::Error;

/// Ends the wait of those whose keys belong to others.
pub(super) fn redirect_blocked(instance: &Instance) {
    let routing = instance.cluster.routing();
    for client in instance.clients() {
        let Some(blocked) = client.blocked().clone() else { continue };
        let mut told = None;
        blocked.for_each_key(&mut |key| {
            if told.is_none() {
                told = elsewhere(instance, &routing, &client, key);
            }
        });
        if let Some(error) = told {
            // It may have been answered just now.
            let _ = blocked.fail(&error);
        }
    }
}

fn elsewhere(instance: &Instance, routing: &Routing, client: &ClientShared, key: &[u8]) -> Option<Error> {
    if !routing.is_ok {
        return Some(Error::Elsewhere("CLUSTERDOWN The cluster is down".to_owned()));
    }
    let slot = slot_of(key);
    let owner = routing.owners[usize::from(slot)];
    let reads_here = client.has_flag(flag::READONLY) && routing.primary != NOBODY && owner == routing.primary;
    let stays = owner == routing.me || routing.importing.contains_key(&slot) || reads_here;
    (!stays).then(|| moved(instance, client, slot, owner))
}

/// Ends subscriptions to shard channels of slots that have gone.
pub(super) fn end_shard_subscriptions(instance: &Instance, slots: &SlotSet) {
    for (name, subscribers) in instance.pubsub.end_shard_channels(|name| slots.has(slot_of(name))) {
        subscribers.values().for_each(|client: &Arc<ClientShared>| client.lose_channel(name.clone()));
    }
}
