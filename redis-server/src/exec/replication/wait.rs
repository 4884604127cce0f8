//! WAIT (<https://redis.io/docs/latest/commands/wait/>): who waits until replicas have what was written.

use std::sync::{Arc, PoisonError, Weak};

use super::Replication;
use crate::exec::blocking::Parked;
use crate::protocol::Reply;

#[derive(Debug)]
pub(super) struct Wait {
    parked: Weak<Parked>,
    offset: u64,
    wanted: usize,
}

pub(super) fn join(replication: &Replication, parked: &Arc<Parked>, offset: u64, wanted: usize) {
    let wait = Wait { parked: Arc::downgrade(parked), offset, wanted };
    replication.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(wait);
    // Some may have said so in between.
    serve(replication);
}

/// Answers those whose wait is over.
pub(super) fn serve(replication: &Replication) {
    let mut waiting = replication.waiting.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.retain(|wait| {
        // It is gone when its connection has ended the wait.
        let Some(parked) = wait.parked.upgrade() else { return false };
        let count = replication.acknowledged(wait.offset);
        if count < wait.wanted {
            return true;
        }
        let mut reply = Reply::default();
        reply.int(count as i64);
        parked.finish(reply.to_vec());
        false
    });
}
