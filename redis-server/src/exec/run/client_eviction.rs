//! Memory of all clients together, and eviction of clients above `maxmemory-clients`
//! (<https://redis.io/docs/latest/develop/reference/clients/#client-eviction>).
//!
//! While there is a limit, each connection reports its memory after every batch, and the sum follows. When the limit is
//! reached, the server disconnects the largest clients, those first whose size has the most binary digits. Their memory is
//! freed when their connections are next served. Until then it counts as free, and no key is evicted in its place.

use std::cmp::Reverse;
use std::sync::atomic::Ordering::Relaxed;

use crate::clients::client::{ClientShared, flag};
use crate::exec::core::Instance;
use crate::exec::core::client_memory::limit;

/// Milliseconds after which it is looked again for clients to be cut off, when there was none.
const PATIENCE: u64 = 100;

/// Takes note of the sizes of a client's buffers, for input and for output, before others see them, and cuts off whom the
/// limit no longer bears; `now` in milliseconds of Unix time.
#[inline]
pub fn note(instance: &Instance, client: &ClientShared, buffers: [u64; 2], now: u64) {
    let limit = limit(&instance.config);
    if limit != 0 {
        instance.client_memory.count(client, client.memory_with(buffers));
        keep(instance, limit, now);
    }
}

/// Counts all clients anew: the limit has changed.
pub fn recount(instance: &Instance, now: u64) {
    let limit = limit(&instance.config);
    if limit != 0 {
        instance.client_memory.look_again();
        instance.clients().iter().for_each(|client| instance.client_memory.count(client, client.memory()));
        keep(instance, limit, now);
    }
}

/// Cuts off the largest clients until the limit is kept.
fn keep(instance: &Instance, limit: u64, now: u64) {
    let client_memory = &instance.client_memory;
    if !client_memory.is_over(limit) || now < client_memory.spared_until.load(Relaxed) {
        return;
    }
    // One thread at a time does it for all.
    let Ok(_turn) = client_memory.turn.try_lock() else { return };
    let mut clients = instance.clients();
    clients.retain(|client| !client.has_flag(flag::NO_EVICT));
    clients.sort_by_key(|client| Reverse(client.counted.load(Relaxed).checked_ilog2()));
    for client in clients {
        if !client_memory.is_over(limit) {
            return;
        }
        let bytes = client.counted.load(Relaxed);
        if bytes > 0 {
            client_memory.evicted.fetch_add(1, Relaxed);
            instance.kill_client(&client);
            tracing::info!(id = client.id, addr = client.addr, bytes, "closing client: maxmemory-clients is reached");
        }
    }
    if client_memory.is_over(limit) {
        client_memory.spared_until.store(now + PATIENCE, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Caller;
    use crate::config::Config;

    fn instance(settings: &[(&str, &str)]) -> Instance {
        let config = Config::default();
        config.set(settings, Caller::Local).expect("valid settings");
        Instance::new(Arc::new(config), &crate::commands::TABLE)
    }

    /// A client whose transaction has so many bytes.
    fn client(instance: &Instance, bytes: u64) -> Arc<ClientShared> {
        let id = instance.next_client_id();
        let client = Arc::new(ClientShared::new(id, String::new(), String::new(), -1, 0));
        client.queued.store(bytes, Relaxed);
        instance.add_client(&client);
        client
    }

    fn alive(instance: &Instance) -> Vec<u64> {
        instance.clients().iter().map(|client| client.queued.load(Relaxed)).collect()
    }

    #[test]
    fn the_largest_go_until_the_limit_is_kept() {
        let instance = instance(&[("maxmemory-clients", "1000000")]);
        let sizes = [100_000, 400_000, 100_000, 50_000, 200_000];
        let clients: Vec<_> = sizes.iter().map(|&bytes| client(&instance, bytes)).collect();
        clients.iter().for_each(|client| note(&instance, client, [0, 0], 1));
        assert_eq!(alive(&instance), sizes);
        clients[3].queued.store(300_000, Relaxed);
        note(&instance, &clients[3], [0, 0], 2);
        // 300,000 and 400,000 have 19 digits: the older one goes, and that is enough.
        assert_eq!((alive(&instance), instance.client_memory.evicted()), (vec![100_000, 100_000, 300_000, 200_000], 1));
        // Their bytes are on their way until the connection has ended.
        let leaving = instance.client_memory.leaving();
        assert!((400_000..410_000).contains(&leaving), "{leaving}");
        instance.kill_client(&clients[1]);
        assert_eq!(instance.client_memory.leaving(), leaving, "it was cut off already");
        instance.client_left(&clients[1]);
        assert_eq!(instance.client_memory.leaving(), 0);
        // A client that was cut off does not come back into the sum.
        note(&instance, &clients[1], [0, 0], 3);
        assert_eq!(alive(&instance).len(), 4);
        assert!(instance.client_memory.sum.load(Relaxed) < 750_000);
    }

    #[test]
    fn the_protected_stay() {
        let instance = instance(&[("maxmemory-clients", "100000")]);
        let protected = client(&instance, 200_000);
        protected.set_flag(flag::NO_EVICT, true);
        let small = client(&instance, 10);
        note(&instance, &protected, [0, 0], 1);
        note(&instance, &small, [0, 0], 2);
        assert_eq!(alive(&instance), [200_000, 10], "small had told nothing yet when it was looked for");
        note(&instance, &small, [0, 0], 1 + PATIENCE);
        assert_eq!(alive(&instance), [200_000]);
        protected.set_flag(flag::NO_EVICT, false);
        instance.client_memory.look_again();
        note(&instance, &protected, [0, 0], 2 + PATIENCE);
        assert_eq!((alive(&instance), instance.client_memory.evicted()), (vec![], 2));
    }

    #[test]
    fn a_limit_may_come_late_and_be_a_share_of_maxmemory() {
        let instance = instance(&[("maxmemory", "1000000")]);
        let sizes = [30_000, 60_000];
        let clients: Vec<_> = sizes.iter().map(|&bytes| client(&instance, bytes)).collect();
        clients.iter().for_each(|client| note(&instance, client, [0, 0], 1));
        instance.config.set(&[("maxmemory-clients", "5%")], Caller::Local).expect("a percentage");
        assert_eq!(limit(&instance.config), 50_000);
        recount(&instance, 2);
        assert_eq!(alive(&instance), [30_000]);
        instance.client_left(&clients[0]);
        assert_eq!(instance.client_memory.sum.load(Relaxed), 0);
    }
}
