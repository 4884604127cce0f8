//! The timing loop: one for all protocols.
//!
//! Each thread has its own event loop over its share of the connections (`worker`). In a turn it reads every socket that
//! has something, then gives each connection that has room its next requests, by one write. The caller's thread watches:
//! it collects the threads' accounts, cuts the run into seconds, samples the server's process, and asks `watch` whether to
//! go on.

mod cpu;
mod link;
mod sampler;
mod shared;
mod stalls;
mod watcher;
mod worker;

use std::thread;

use crate::clock::{Clock, nanos};
use crate::codec::Protocol;
use crate::load::Load;
use crate::record::Outcome;
use crate::watch::{Progress, Watch};

use self::shared::Shared;
use self::watcher::{Kind, Watcher};
use self::worker::Worker;

/// Runs a load of a protocol to its end, and calls `watch` about ten times a second.
///
/// In any case there is an outcome: the figures until the end, and how it ended.
pub fn run<P: Protocol>(protocol: &P, load: &Load, watch: &mut dyn FnMut(&Progress<'_>) -> Watch) -> Outcome {
    let threads = load.threads.clamp(1, load.connections.max(1));
    protocol.rewind();
    let operations = protocol.operations();
    let shared = Shared::new(Clock::new(), load, threads, operations.len());
    let patience = protocol.patience(nanos(load.timeout));
    let kind = Kind { is_routed: P::ROUTED, delivers: P::TOGETHER, patience };
    let mut watcher = Watcher::new(&shared, load, operations, kind);
    thread::scope(|scope| {
        for index in 0..threads {
            let shared = &shared;
            let spawned = thread::Builder::new()
                .name(format!("load-{index}"))
                .spawn_scoped(scope, move || Worker::new(protocol, load, shared, index).run());
            if let Err(error) = spawned {
                shared.give_up(format!("a thread for load cannot be started: {error}"));
                break;
            }
        }
        watcher.watch(watch);
    });
    watcher.outcome()
}
