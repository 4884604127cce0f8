//! Slow calls: they run on threads of their own, so that no worker's clients wait for them.
//!
//! A call whose [weight](Weight) is above [`LIMIT`] takes its session with it, as a script does that is interrupted. The
//! connection waits for the answer, and so do the commands behind the call. [`Exclusive`](crate::exec::gate::Exclusive) says how slow calls, windows and
//! threads that want to be alone keep out of each other's way.

pub(crate) mod call;

use std::panic::{AssertUnwindSafe, catch_unwind};

use smallvec::SmallVec;

use crate::clients::client::Client;
use crate::clients::pubsub::Kind;
use crate::command::{Args, Row, STRING_UNIT, Weight};
use crate::exec::core::{Call, Ready, Worker};
use crate::exec::gate::{self, Held, Marks};
use crate::exec::run::{blocking, invoke};
use crate::keyspace::{Access, Database, Key, View};

/// Elements, or arguments, above which a call is slow: some 100 µs of work, several times what the way to another thread
/// and back costs.
pub const LIMIT: usize = 2048;
/// Elements that take as long as a client's line of CLIENT LIST.
const CLIENT_UNIT: usize = 32;

/// True if a call is slow by its command, or by the number or the size of its arguments.
pub fn is_slow(worker: &Worker, client: &Client, call: &Call<'_>) -> bool {
    let is_much = |weight: Weight, args: Args<'_>| match weight {
        Weight::Much => true,
        Weight::MuchIf(is_much) => is_much(args),
        Weight::Clients => lists_many(worker, worker.instance.clients_len() * CLIENT_UNIT),
        Weight::Channels => {
            let pubsub = &worker.instance.pubsub;
            lists_many(worker, pubsub.count(Kind::Channel).max(pubsub.count(Kind::Shard)))
        }
        Weight::Little | Weight::Of(_) => false,
    };
    let queued = invoke::queue_of(std::slice::from_ref(call), client);
    size(call.row, call.args) > LIMIT
        || gathers(worker, call)
        || is_much(call.row.command.weight, call.args)
        || queued.is_some_and(|multi| {
            let args: usize = multi.queue.iter().map(|(row, args)| size(row, args.args())).sum();
            args > LIMIT || multi.queue.iter().any(|(row, args)| is_much(row.command.weight, args.args()))
        })
}

/// True if a list of so many elements is slow. While data is loaded, no slow call runs, and workers answer lists.
fn lists_many(worker: &Worker, elements: usize) -> bool {
    elements > LIMIT && !worker.instance.exclusive.is_loading()
}

/// Arguments to be read, and the bytes of them to be copied, in elements.
#[inline]
fn size(row: &Row, args: Args<'_>) -> usize {
    let extent = args.extent();
    args.len() + if extent < STRING_UNIT { 0 } else { copied(row, args, extent) / STRING_UNIT }
}

/// Bytes of arguments that a call copies, of `extent` bytes: all, but for a value that is taken over as it came.
fn copied(row: &Row, args: Args<'_>, extent: usize) -> usize {
    let may_matter = row.command.takes_over && extent / STRING_UNIT > LIMIT;
    let largest = if may_matter { args.iter().map(<[u8]>::len).max().unwrap_or(0) } else { 0 };
    if args.takes_over(largest) { extent - largest } else { extent }
}

/// Returns true if other nodes of the cluster do a part of a call.
pub fn gathers(worker: &Worker, call: &Call<'_>) -> bool {
    call.row.command.gathers && worker.routes && worker.instance.cluster.has_others()
}

/// Whether a call is slow, as its keys are: `call` has them, and they are locked.
#[inline]
pub fn meets_much(view: &View<'_>, client: &Client, call: &Call<'_>) -> bool {
    if let Weight::Of(weight) = call.row.command.weight {
        return weight(view, call.args) > LIMIT;
    }
    client.multi.is_some() && queue_meets_much(view, client, call)
}

#[cold]
fn queue_meets_much(view: &View<'_>, client: &Client, call: &Call<'_>) -> bool {
    let Some(multi) = invoke::queue_of(std::slice::from_ref(call), client) else { return false };
    let weight = multi.queue.iter().map(|(row, args)| match row.command.weight {
        Weight::Of(weight) => {
            let positions = row.command.key_positions(args.args());
            let keys: Vec<_> = positions.iter().map(|(at, _)| view.key(args.args().at(*at))).collect();
            // Behind a SELECT they are keys of another database, and their shards may be of no use here.
            let is_here = keys.iter().all(|key| view.is_locked(key));
            if is_here { weight(view, args.args().with_keys(&keys)) } else { 0 }
        }
        Weight::Little | Weight::Much | Weight::MuchIf(_) | Weight::Clients | Weight::Channels => 0,
    });
    weight.fold(0, usize::saturating_add) > LIMIT
}

/// How many of the calls want nothing that slow calls have marked; and if not all do, the wait of the others.
#[cold]
pub fn unmarked(worker: &Worker, client: &Client, calls: &[Call<'_>]) -> (usize, Option<Held>) {
    let exclusive = &worker.instance.exclusive;
    loop {
        let seen = exclusive.ended();
        let forbidden = |call: &Call<'_>| exclusive.forbids(&invoke::marks(worker, client, call, true));
        let Some(clear) = calls.iter().position(forbidden) else { return (calls.len(), None) };
        if let Some(held) = worker.instance.exclusive.hold(&client.shared, seen, false) {
            return (clear, Some(held));
        }
    }
}

/// Serves those who wait for keys that a window has made ready, on this thread or, where slow calls have marked what that
/// needs, on one of theirs.
pub fn serve(worker: &Worker, client: &mut Client, ready: Vec<Ready>) {
    let exclusive = &worker.instance.exclusive;
    let is_free = |next: &Ready| {
        let is_free = worker.is_alone() || !exclusive.is_marked() || !exclusive.forbids(&marks_of(worker, next));
        if !is_free {
            let next = next.clone();
            worker.instance.slow.run(&worker.instance, Box::new(|worker| serve_later(worker, next)));
        }
        is_free.then_some(())
    };
    blocking::serve_rest(worker, client, ready, is_free, |worker, next| {
        let (database, keys) = needs(worker, next);
        database.lock(keys.iter().map(|(key, access)| (key.shard(), *access)), worker.now_ms())
    });
}

/// Runs the commands again that wait for keys which are due ([`Later`](crate::exec::core::later::Later)).
pub fn serve_due(worker: &Worker) {
    let instance = &worker.instance;
    if instance.later.is_empty() {
        return;
    }
    worker.tick();
    if instance.holds_back(worker.now_ms()) {
        return;
    }
    // While a thread is alone with the data, the keys stay due.
    let Some(_inside) = instance.exclusive.try_enter(&worker.activity) else { return };
    let due = instance.later.due(worker.now_ms());
    if !due.is_empty() {
        serve(worker, &mut worker.unconnected_client(), due);
    }
}

/// [`serve`], as the job of a thread of slow calls.
fn serve_later(worker: &Worker, ready: Ready) {
    let mut client = worker.unconnected_client();
    let serve = || serve_slowly(worker, &mut client, vec![ready]);
    if catch_unwind(AssertUnwindSafe(serve)).is_err() {
        tracing::error!("a command that had waited panicked");
    }
}

/// [`serve`] on a thread of slow calls.
fn serve_slowly(worker: &Worker, client: &mut Client, ready: Vec<Ready>) {
    let begin = |next: &Ready| worker.instance.exclusive.enter_slow(marks_of(worker, next), true).ok();
    blocking::serve_rest(worker, client, ready, begin, |worker, next| {
        let (database, keys) = needs(worker, next);
        let mut view = database.lock_none(worker.now_ms());
        gate::lend(&mut view, &keys);
        view
    });
}

/// The keys without which a ready one cannot be served.
fn needs<'w, 'k>(worker: &'w Worker, ready: &'k Ready) -> (&'w Database, SmallVec<[(Key<'k>, Access); 4]>) {
    let database = worker.instance.database(ready.db);
    (database, ready.needs.iter().map(|key| (database.key(key), Access::Write)).collect())
}

fn marks_of(worker: &Worker, ready: &Ready) -> Marks {
    Marks::keys(ready.db, needs(worker, ready).1.iter().map(|(key, access)| (key.hash(), *access)))
}
