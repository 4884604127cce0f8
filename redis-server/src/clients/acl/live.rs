//! What a change of users does to the clients that are there.

use std::sync::Arc;

use super::table::{Account, Change};
use crate::clients::client::{Client, ClientShared};
use crate::clients::pubsub::Kind;
use crate::exec::instance::Instance;

/// Cuts off the clients of accounts that are gone; the one that asks when its reply is sent.
pub fn disconnect(instance: &Instance, me: &mut Client, gone: &[Arc<Account>]) {
    let is_theirs = |client: &Arc<ClientShared>| gone.iter().any(|account| client.acts_for(account));
    let clients = instance.clients().into_iter().filter(is_theirs);
    clients.for_each(|client| cut_off(instance, me, &client));
}

/// Cuts off subscribers of a user that has lost the right to what they have subscribed to.
pub fn withdraw(instance: &Instance, me: &mut Client, change: &Change) {
    let Change { account, after } = change;
    if after.uses_all_channels() {
        return;
    }
    for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
        let lost = |name: &[u8]| !after.may_listen(name, kind == Kind::Pattern);
        for client in instance.pubsub.subscribers_where(kind, lost) {
            if client.acts_for(account) {
                cut_off(instance, me, &client);
            }
        }
    }
}

fn cut_off(instance: &Instance, me: &mut Client, client: &Arc<ClientShared>) {
    if Arc::ptr_eq(client, &me.shared) {
        me.close = true;
    } else {
        instance.kill_client(client);
    }
}
