//! A slow call, from the worker to its thread and back.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::clients::client::{Client, Part};
use crate::command::{OwnedArgs, Row};
use crate::exec::core::{Call, Worker};
use crate::exec::gate::Busy;
use crate::exec::run::outcome::{self, Answer, Finished, Passed};
use crate::exec::run::slow::{gathers, serve_slowly};
use crate::exec::run::{admission, invoke, panics, window};
use crate::protocol::Reply;
use crate::threads;

/// Hands a call over to a thread of slow calls; `client` is a deputy until it has ended.
pub(crate) fn send(worker: &Worker, client: &mut Client, call: Call<'_>) -> Passed {
    let deputy = Client::new(Arc::clone(&client.shared), client.identity.clone());
    let client = mem::replace(client, deputy);
    let (answer, pending) = outcome::lend();
    let (row, args) = (call.row, call.args.to_owned());
    let job = move |worker: &Worker| run_call(worker, client, row, args, answer);
    let threads = if gathers(worker, &call) { &worker.instance.gathering } else { &worker.instance.slow };
    threads.run(&worker.instance, Box::new(job));
    Passed::Lent(pending)
}

fn run_call(worker: &Worker, mut client: Client, row: &'static Row, args: OwnedArgs, answer: Answer) {
    let mut reply = Reply::default();
    reply.set_resp3(client.resp3);
    let call = Call { row, args: args.args() };
    let run = || {
        threads::panic_point();
        if gathers(worker, &call) {
            client.part = gather(worker, &mut client, &call);
        }
        run_marked(worker, &mut client, call, &mut reply)
    };
    let Ok(waiting) = catch_unwind(AssertUnwindSafe(run)) else {
        // Its connection learns of it from the sender that is dropped.
        let (id, addr, command) = (client.shared.id, &client.shared.addr, panics::command(worker, &client.shared));
        tracing::error!(id, addr, command, "closing client: its command panicked");
        return crate::exec::run::outcome::leave(&worker.instance, &mut client);
    };
    answer.send(&worker.instance, Finished { client, reply, waiting });
}

/// Has the nodes of the cluster do their parts of a call. This one does its part in the gate; the wait for the others is outside.
fn gather(worker: &Worker, client: &mut Client, call: &Call<'_>) -> Part {
    let (instance, identity) = (&worker.instance, client.identity.clone());
    let mut run_here = |words: &[&[u8]]| {
        let mut reply = Reply::default();
        let args = words.iter().copied().collect::<OwnedArgs>();
        let Some(row) = instance.registry.lookup(words[0]) else { return Vec::new() };
        let mut own = worker.unconnected_client();
        own.identity = identity.clone();
        own.part = Part::Own;
        run_marked(worker, &mut own, Call { row, args: args.args() }, &mut reply);
        reply.to_vec()
    };
    Part::Gathered((instance.gather)(worker, client, call, &mut run_here))
}

/// Runs a call among the workers; returns what it waits for.
fn run_marked(
    worker: &Worker,
    client: &mut Client,
    call: Call<'_>,
    reply: &mut Reply,
) -> Option<crate::exec::run::parked::Waiting> {
    let marks = invoke::marks(worker, client, &call, false);
    let slow = match worker.instance.exclusive.enter_slow(marks, false) {
        Ok(slow) => slow,
        Err(Busy) => {
            admission::refuse(worker, client, Some(call.row), worker.instance.busy_error(), reply);
            return None;
        }
    };
    if let Some(error) = admission::refused_since(worker, client, &call) {
        admission::refuse(worker, client, Some(call.row), error, reply);
        return None;
    }
    let silent = worker.instance.reaper.silent();
    let window = window::run_window(worker, client, &[call], reply);
    drop(slow);
    worker.instance.reaper.settle(silent);
    if !window.ready.is_empty() {
        serve_slowly(worker, client, window.ready);
    }
    window.waiting
}
