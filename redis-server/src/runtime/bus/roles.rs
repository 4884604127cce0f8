//! The thread on which a node becomes a replica or a primary: that may wait for commands that run.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crate::exec::instance::Instance;
use crate::exec::snapshot::empty;
use crate::exec::still::stand_still_to_go_on;

/// What a node becomes.
enum Role {
    Replica(String, u16),
    Primary,
    Empty,
}

/// The way to the thread, which does one after the other.
pub(super) struct Roles(Sender<Role>);

impl Roles {
    pub(super) fn start(instance: &Arc<Instance>) -> io::Result<Self> {
        let (sender, roles) = channel();
        let instance = Arc::clone(instance);
        thread::Builder::new().name("cluster-role".to_owned()).spawn(move || {
            // Until there is its own data, nothing takes the place of that. A load that fails ends the process.
            let _ = instance.loading.wait();
            while let Ok(role) = roles.recv() {
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

    fn send(&self, role: Role) {
        self.0.send(role).expect("the thread ends only with this");
    }
}

fn take(instance: &Arc<Instance>, role: Role) {
    let target = match role {
        Role::Replica(host, port) => Some((host, port)),
        Role::Primary => None,
        Role::Empty => {
            if let Ok(still) = stand_still_to_go_on(instance) {
                empty(instance, &still);
            }
            return;
        }
    };
    instance.replication.end_link(target.as_ref());
    let Ok(still) = stand_still_to_go_on(instance) else { return };
    match &target {
        Some((host, port)) => tracing::info!("Connecting to MASTER {host}:{port} (cluster)"),
        None => tracing::info!("MASTER MODE enabled (cluster)"),
    }
    instance.replication.turn_to(instance, target, &still);
    drop(still);
    // Whom others have sent here meanwhile.
    instance.wake_paused();
}
