//! Periodic work for all connections together: idle ones, slow ones, and their end at shutdown.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use server_runtime::Shutdown;

use crate::clients::client::flag;
use crate::config::settings;
use crate::exec::core::clock::now_ms;
use crate::exec::core::workers::{Asked, Member};
use crate::exec::core::{Instance, Worker};
use crate::observe::memory::{self, Excess, Wanted};

/// Time between two looks at all clients.
const PERIOD: Duration = Duration::from_secs(1);

/// Runs until the server ends.
pub(super) async fn run(instance: Arc<Instance>) {
    let mut excess = Excess::default();
    loop {
        server_runtime::sleep(PERIOD).await;
        match excess.look(memory::used(), memory::resident_anonymous()) {
            Wanted::Nothing => {}
            Wanted::Old => instance.workers.give_back(false),
            Wanted::All => instance.workers.give_back(true),
        }
        look_after(&instance, now_ms());
        instance.peers.close_idle(now_ms());
        instance.links.close_idle();
    }
}

/// Cuts off clients that have been idle for `timeout` seconds, and has those that do not read look at their limits.
fn look_after(instance: &Instance, now: u64) {
    let timeout = instance.config.uint(settings::TIMEOUT);
    for client in instance.clients() {
        let idle = now.saturating_sub(client.active_at.load(Relaxed)) / 1000;
        if timeout > 0
            && idle > timeout
            && !client.has_flag(flag::BLOCKED | flag::PUBSUB | flag::MONITOR | flag::AWAITS)
            && !client.has_flag(flag::REPLICA | flag::PRIMARY)
        {
            tracing::debug!(id = client.id, addr = client.addr, "closing idle client");
            instance.kill_client(&client);
        } else if client.output.load(Relaxed) > 0 {
            client.wake();
        }
    }
}

/// Does what others ask of this worker. Runs until the server ends.
pub(super) async fn turns(instance: Arc<Instance>, member: Arc<Member>) {
    loop {
        match poll_fn(|cx| member.poll(cx.waker())).await {
            Asked::Wake => member.take_woken().iter().for_each(|client| client.wake()),
            Asked::GiveBack { all } => memory::give_back(all),
            Asked::Turn => {
                let round = instance.workers.round();
                // Tasks run in the order in which they became ready, and a task that yields is ready again behind those
                // that the sockets make so.
                server_runtime::yield_now().await;
                instance.workers.turn_taken(round);
            }
        }
    }
}

/// Has the clients end when the server does; the first connection of a worker starts the watch.
pub(super) fn watch_shutdown(worker: &Rc<Worker>, shutdown: &Shutdown) {
    if worker.watches_shutdown.replace(true) {
        return;
    }
    let (instance, shutdown) = (Arc::clone(&worker.instance), shutdown.clone());
    server_runtime::spawn_local(async move {
        shutdown.triggered().await;
        instance.clients().iter().for_each(|client| client.close());
    });
}
