//! WAIT and WAITAOF (<https://redis.io/docs/latest/commands/waitaof/>): clients wait until their writes are elsewhere, or on disk.

use std::sync::{Arc, PoisonError};

use super::Replication;
use super::state::Wait;
use crate::clients::client::Unblock;
use crate::exec::core::Instance;
use crate::exec::replication::Copies;
use crate::protocol::Reply;

impl Copies {
    /// How many there are: whether it is on this server's disk, and how many replicas have it.
    fn count(&self, instance: &Instance) -> (bool, usize) {
        let replication = &instance.replication;
        match self.on_disk {
            None => (false, replication.acknowledged(self.offset)),
            Some(_) => {
                let is_here = instance.aof.durable().is_some_and(|durable| durable >= self.offset);
                (is_here, replication.durable(self.offset))
            }
        }
    }

    /// Answers with how many there are; false if there are too few, unless it is the `last` chance.
    pub fn answer(&self, instance: &Instance, reply: &mut Reply, last: bool) -> bool {
        let (is_here, replicas) = self.count(instance);
        let is_enough = replicas >= self.replicas && (is_here || self.on_disk != Some(true));
        if !is_enough && !last {
            return false;
        }
        if self.on_disk.is_some() {
            reply.array(2);
            reply.int(is_here.into());
        }
        reply.int(replicas as i64);
        true
    }
}

impl Replication {
    /// Has a parked WAIT answered when there are the copies; asks for them.
    pub fn wait(&self, instance: &Instance, parked: &Arc<dyn Unblock>, copies: Copies) {
        let wait = Wait { parked: Arc::downgrade(parked), copies };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(wait);
        // Some may have said so in between.
        self.serve_waits(instance);
        if copies.replicas > 0 {
            instance.journal.tell_replicas(&[b"REPLCONF", b"GETACK", b"*"]);
        }
    }

    /// Answers those whose wait is over: a replica has said how far it is, or there is more on disk.
    pub fn serve_waits(&self, instance: &Instance) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|wait| {
            // It is gone when its connection has ended the wait.
            let Some(parked) = wait.parked.upgrade() else { return false };
            let mut reply = Reply::default();
            let is_over = wait.copies.answer(instance, &mut reply, false);
            if is_over {
                parked.finish(reply.to_vec());
            }
            !is_over
        });
    }
}
