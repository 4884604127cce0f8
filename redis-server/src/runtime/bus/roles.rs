//! The thread on which a node becomes a replica or a primary, and writes end before another one takes over: that may wait for commands
//! that run, for which the bus must not.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use crate::cluster::Millis;
use crate::exec::core::Instance;
use crate::exec::gate::stand_still;
use crate::exec::snapshot::empty;
use crate::threads::{self, OnPanic};

/// The new role of a node.
enum Role {
    Replica(String, u16),
    Primary,
    Empty,
    /// A primary whose clients write no more.
    Paused {
        number: u64,
        until: Millis,
    },
}

/// The way to the thread, which does one after the other.
pub(super) struct Roles(Sender<Role>);

impl Roles {
    pub(super) fn start(instance: &Arc<Instance>) -> io::Result<Self> {
        let (sender, roles) = channel();
        let instance = Arc::clone(instance);
        // A change of roles that is half done serves nobody.
        threads::spawn("cluster-role", OnPanic::EndProcess, move || {
            // Until there is its own data, nothing takes the place of that. A load that fails ends the process.
            let _ = instance.loading.wait();
            while let Ok(role) = roles.recv() {
                threads::panic_point();
                take(&instance, role);
            }
        })?;
        Ok(Self(sender))
    }

    pub(super) fn follow(&self, host: String, port: u16) {
        self.send(Role::Replica(host, port));
    }

    pub(super) fn promote(&self) {
        self.send(Role::Primary);
    }

    pub(super) fn delete_all(&self) {
        self.send(Role::Empty);
    }

    /// Waits until no write is under way that began before writes were held, and tells the machine where the stream ends.
    pub(super) fn await_writes(&self, number: u64, until: Millis) {
        self.send(Role::Paused { number, until });
    }

    fn send(&self, role: Role) {
        self.0.send(role).expect("the thread ends only with this");
    }
}

fn take(instance: &Arc<Instance>, role: Role) {
    let target = match role {
        Role::Replica(host, port) => Some((host, port)),
        Role::Primary => None,
        Role::Empty => {
            if let Ok(still) = instance.stand_still() {
                empty(instance, &still);
            }
            return;
        }
        Role::Paused { number, until } => return await_writes(instance, number, until),
    };
    instance.replication.end_link(target.as_ref());
    let Ok(still) = instance.stand_still() else { return };
    match &target {
        Some((host, port)) => tracing::info!("Connecting to MASTER {host}:{port} (cluster)"),
        None => tracing::info!("MASTER MODE enabled (cluster)"),
    }
    instance.replication.turn_to(instance, target, &still);
    drop(still);
    // Wakes calls of clients that other nodes have sent here meanwhile.
    instance.wake_paused();
}

fn await_writes(instance: &Arc<Instance>, number: u64, until: Millis) {
    let goes_on = || match instance.cluster.now() < until && !instance.is_ending() {
        true => Ok(()),
        false => Err(io::ErrorKind::TimedOut.into()),
    };
    // The bus lets clients write again when it is too late.
    let Ok(still) = stand_still(&instance.exclusive, goes_on) else { return };
    let offset = instance.journal.offset();
    drop(still);
    instance.cluster.with(instance, |machine, now| machine.writes_paused(number, offset, now));
}
