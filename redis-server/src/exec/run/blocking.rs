//! Commands that wait: parking them, and running them again when a key becomes ready.
//!
//! A waiter is served under the locks of the command that made its key ready, before any other client can see the key.
//! If those locks do not cover all keys of the waiter, it is served right afterwards, under locks of its own.
//!
//! Locks are taken in this order: shards, the parked command's answer, the queues. The thread that takes the sender out of
//! a parked command ends its wait; all later threads find nothing.

use std::collections::VecDeque;
use std::time::Instant;

use tokio::sync::oneshot;

use crate::clients::client::{Client, Unblock};
use crate::exec::core::{Call, Ctx, Ready, Worker};
use crate::exec::gate::Marks;
use crate::exec::run::parked::{Parked, behind};
use crate::exec::run::{invoke, panics, permission, tracking};
use crate::keyspace::{Access, Entry, Key, ValueRef, View};
use crate::protocol::Reply;

/// Serves the clients that wait for keys that the call has made ready, as far as its locks allow. Leaves the other keys
/// in `cx.ready` for [`serve_rest`].
#[inline]
pub fn serve(cx: &mut Ctx<'_>) {
    if !cx.ready.is_empty() {
        serve_ready(cx);
    }
}

/// Serves what became ready, in the order in which it did.
#[cold]
fn serve_ready(cx: &mut Ctx<'_>) {
    // Before others are served in the client's place.
    cx.commit();
    let selected = cx.client.db;
    let mut left = Vec::new();
    let mut ready = VecDeque::new();
    loop {
        // Serving a client may make further keys ready.
        ready.extend(cx.ready.drain(..));
        let Some(mut next) = ready.pop_front() else { break };
        if !serve_key(cx, &mut next) {
            left.push(next);
        }
    }
    if cx.client.db != selected {
        cx.select(selected);
    }
    cx.ready = left;
}

/// Serves keys that [`serve`] has left, each with a view of its own, until no key is ready any more. `begin` is asked
/// before each: `None` leaves it to another thread, anything else lasts until it is served. `view` finds the keys that it
/// needs.
#[cold]
pub fn serve_rest<G>(
    worker: &Worker,
    client: &mut Client,
    ready: Vec<Ready>,
    mut begin: impl FnMut(&Ready) -> Option<G>,
    view: for<'w> fn(&'w Worker, &Ready) -> View<'w>,
) {
    let mut ready = VecDeque::from(ready);
    let selected = client.db;
    // Nothing is answered to the client who made the keys ready: its call is over.
    let mut reply = Reply::default();
    while let Some(next) = ready.pop_front() {
        let Some(_lasting) = begin(&next) else { continue };
        client.db = next.db;
        let mut cx = Ctx::new(worker, view(worker, &next), &mut reply, client);
        cx.ready.push(next);
        serve_ready(&mut cx);
        cx.commit();
        tracking::broadcast(worker);
        ready.extend(cx.ready.drain(..));
    }
    client.db = selected;
}

/// Serves those who wait for one key while it has something for them. False if that needs more locks; they are in
/// `next.needs` then.
fn serve_key(cx: &mut Ctx<'_>, next: &mut Ready) -> bool {
    let database = cx.worker.instance.database(next.db);
    let key = database.key(&next.key);
    if !covers(cx, next.db, &[key]) {
        next.needs.push(key.bytes.into());
        return false;
    }
    let mut last = 0;
    while let Some(parked) = behind(database, &key, last) {
        last = parked.ticket;
        // Valkey leaves an expired key to the command that asks for it.
        let entry = if cx.instance.config.level().is_valkey() {
            cx.db.stored(&key).filter(|entry| !entry.is_expired(cx.db.over_by()))
        } else {
            cx.db.peek(&key)
        };
        let value = entry.map(Entry::value);
        if value.is_none() && cx.instance.group_readers(0) == 0 {
            break;
        }
        if parked.group.is_some() && !matches!(value, Some(ValueRef::Stream(_))) {
            let error = parked.stream_is_gone(key.bytes, value.is_some());
            cx.worker.failed(parked.row, &error);
            parked.fail(&error);
            continue;
        }
        if !value.is_some_and(|value| parked.takes(value)) {
            continue;
        }
        let keys = parked.keys_for(database, key);
        if !covers(cx, next.db, &keys) {
            // Keys that an earlier attempt needed stay. Otherwise two waiters could take turns for ever, each lacking
            // its own locks.
            next.needs.extend(keys.iter().map(|key| key.bytes.into()));
            return false;
        }
        serve_parked(cx, &parked, &keys);
    }
    true
}

/// Whether `keys` of database `db` may be changed: they are locked, and no slow call works on them, or lent. Selects that
/// database if it is another one.
fn covers(cx: &mut Ctx<'_>, db: usize, keys: &[Key<'_>]) -> bool {
    if cx.client.db != db {
        if cx.others.is_empty() {
            return false;
        }
        cx.select(db);
    }
    let is_free = cx.db.is_lent() || !cx.instance.exclusive.is_marked() || {
        let wanted = Marks::keys(db, keys.iter().map(|key| (key.hash(), Access::Write)));
        !cx.instance.exclusive.forbids(&wanted)
    };
    is_free && keys.iter().all(|key| cx.db.is_writable(key))
}

/// A parked client in the place of the client that has made its key ready. The latter is back when this is dropped, by a
/// panic too.
struct Stead<'s, 'a> {
    cx: &'s mut Ctx<'a>,
    /// The client that has made the key ready.
    client: &'s mut Client,
    reply: &'s mut Reply,
    may_block: bool,
    serving: bool,
}

impl<'s, 'a> Stead<'s, 'a> {
    fn take(cx: &'s mut Ctx<'a>, client: &'s mut Client, reply: &'s mut Reply) -> Self {
        std::mem::swap(cx.reply, reply);
        std::mem::swap(cx.client, client);
        let (may_block, serving) =
            (std::mem::replace(&mut cx.may_block, true), std::mem::replace(&mut cx.serving, true));
        Self { cx, client, reply, may_block, serving }
    }
}

impl Drop for Stead<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The log names the one whose command it was.
            panics::leave_call(self.cx);
        }
        self.cx.block = None;
        (self.cx.may_block, self.cx.serving) = (self.may_block, self.serving);
        std::mem::swap(self.cx.client, self.client);
        std::mem::swap(self.cx.reply, self.reply);
    }
}

/// Runs a parked command again, and sends the answer if it has one now.
fn serve_parked(cx: &mut Ctx<'_>, parked: &Parked, keys: &[Key<'_>]) {
    // Held while the command runs: neither deadline nor CLIENT UNBLOCK can answer in between.
    let mut answer = parked.answer();
    // Nothing is taken for a client that has gone.
    if answer.as_ref().is_none_or(oneshot::Sender::is_closed) {
        return;
    }
    let (mut client, mut reply) = parked.session(cx.instance);
    let call = Call { row: parked.row, args: parked.args.args().with_keys(keys) };
    let stead = Stead::take(cx, &mut client, &mut reply);
    let cx = &mut *stead.cx;
    let began = Instant::now();
    // The user may have lost the right meanwhile.
    match permission::serve(cx, call.row, call.args) {
        Ok(()) => invoke::invoke(cx, &call),
        Err(error) => {
            cx.worker.refused(Some(call.row), &error);
            cx.reply.error(&error);
        }
    }
    // Counted when it began to wait; now that it has run to its end, the slow log and MONITOR may want to see it.
    let nanos = began.elapsed().as_nanos() as u64;
    if nanos >= cx.instance.observers.threshold() {
        cx.worker.observe(cx, &call, nanos);
    }
    cx.worker.sized(cx, &call, cx.reply.len());
    // Before the answer can be seen.
    cx.commit();
    drop(stead);
    if !reply.is_empty()
        && let Some(sender) = parked.end(&mut answer)
    {
        let mut reply = reply.to_vec();
        // The invalidations of the command's own changes follow its reply. They reach even a client that wants no
        // replies.
        match tracking::pushes(&mut client) {
            Some(pushes) if parked.muted => _ = parked.client.post(pushes.into()),
            Some(pushes) => reply.extend_from_slice(&pushes),
            None => {}
        }
        // A client that goes at this very moment loses its element, as with the genuine server's last write.
        let _ = sender.send(reply);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::*;
    use crate::config::Config;
    use crate::exec::core::Instance;

    #[test]
    fn a_panic_puts_the_sessions_back() {
        let worker = Worker::new(Arc::new(Instance::new(Arc::new(Config::default()), &crate::commands::TABLE)));
        let (mut pusher, mut parked) = (worker.unconnected_client(), worker.unconnected_client());
        (pusher.db, parked.db) = (1, 2);
        let (mut reply, mut answer) = (Reply::default(), Reply::default());
        let db = worker.instance.database(1).lock_none(0);
        let mut cx = Ctx::new(&worker, db, &mut reply, &mut pusher);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let stead = Stead::take(&mut cx, &mut parked, &mut answer);
            assert_eq!((stead.cx.client.db, stead.cx.serving), (2, true));
            stead.cx.reply.simple("half");
            std::panic::resume_unwind(Box::new("as asked"));
        }));
        assert!(panicked.is_err());
        assert_eq!((cx.client.db, cx.serving, cx.reply.is_empty()), (1, false, true));
        drop(cx);
        assert_eq!(parked.db, 2);
    }
}
