//! Client-side caching before, during and behind the calls of clients.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use crate::clients::client::{Client, ClientShared, count, flag};
use crate::clients::tracking::{Message, Mode, Own, Tracker};
use crate::command::{Args, Flags, Role};
use crate::exec::core::{Call, Ctx, Instance, Worker};
use crate::protocol::Reply;

/// Begins to track, or goes on in another way.
pub fn start(
    instance: &Instance,
    client: &mut Client,
    mode: Mode,
    redirect: Option<&Arc<ClientShared>>,
    prefixes: Vec<Bytes>,
) {
    let tracking = &instance.tracking;
    let redirect = redirect.map(|target| (target.id, Arc::downgrade(target)));
    let tracker = Arc::new(Tracker { client: Arc::clone(&client.shared), mode, redirect });
    let id = client.shared.id;
    tracking.trackers_mut().insert(id, Arc::clone(&tracker));
    client.shared.set_flag(flag::TRACKING_ALL, false);
    client.shared.set_flag(flag::TRACKING | if mode.bcast { flag::TRACKING_BCAST } else { 0 }, true);
    match &mut client.tracking {
        Some(own) => own.tracker = tracker,
        None => {
            // From here on writers look who has read what; the locks that a read takes make them see it.
            instance.databases().iter().for_each(|database| database.count_tracker(true));
            client.tracking = Some(Box::new(Own::new(tracker)));
        }
    }
    let Some(own) = client.tracking.as_mut().filter(|_| mode.bcast) else { return };
    let prefixes = if prefixes.is_empty() { vec![Bytes::new()] } else { prefixes };
    tracking.change_prefixes(|all| prefixes.iter().for_each(|prefix| all.add(prefix.clone(), id)));
    own.prefixes.extend(prefixes);
    client.shared.counts[count::PREFIXES].store(own.prefixes.len() as u32, Relaxed);
}

/// Ends the tracking of a client, if it tracks. The keys that it has read stay noted. If it tracks again by then, it
/// gets their invalidations.
pub fn stop(instance: &Instance, client: &mut Client) {
    let Some(own) = client.tracking.take() else { return };
    let (tracking, id) = (&instance.tracking, client.shared.id);
    tracking.trackers_mut().remove(&id);
    instance.databases().iter().for_each(|database| database.count_tracker(false));
    if !own.prefixes.is_empty() {
        tracking.change_prefixes(|all| own.prefixes.iter().for_each(|prefix| all.remove(prefix, id)));
    }
    client.shared.set_flag(flag::TRACKING_ALL, false);
    client.shared.counts[count::PREFIXES].store(0, Relaxed);
}

/// Before a call of a client that tracks: messages that others have left for it come before the reply.
#[cold]
pub fn deliver(client: &Client, reply: &mut Reply) {
    if client.shared.has_mail() {
        client.shared.take_messages().iter().for_each(|message| reply.encoded(message));
    }
}

/// After a call of a client that tracks, under its locks: the keys that it has read are noted. Behind a call that is not
/// part of another, what the client has changed itself is told to it.
#[cold]
pub fn after_call(cx: &mut Ctx<'_>, call: &Call<'_>) {
    let row = call.row;
    // Until Redis 7.2, what a script reads counts as read by its caller when it has ended.
    let counts = !cx.worker.is_script() || cx.config().level().is_72();
    if row.command.flags.has(Flags::READONLY) && !cx.serving && counts {
        remember(cx, call.args);
    }
    if !cx.may_block || cx.serving {
        return;
    }
    let Some(own) = &mut cx.client.tracking else { return };
    // CLIENT CACHING holds for the next command that is none of CLIENT's, or for a whole transaction.
    if cx.client.multi.is_none() && row.parent.is_none_or(|parent| parent.role != Role::Client) {
        own.caching = false;
    }
    if let Some(pushes) = pushes(cx.client) {
        cx.reply.raw(&pushes);
    }
}

/// A script has called a command that reads: of what its caller has declared in `args` everything counts as read, as in
/// Redis 7.0; later servers take what the commands read. To be called while the script holds its locks.
pub fn read_by_script(cx: &Ctx<'_>, args: Args<'_>) {
    if cx.client.tracking.is_some() && !cx.config().level().is_72() {
        remember(cx, args);
    }
}

/// Notes the keys of a call that has read them.
fn remember(cx: &Ctx<'_>, args: Args<'_>) {
    let Some(own) = &cx.client.tracking else { return };
    let mode = own.tracker.mode();
    if mode.bcast || mode.optin && !own.caching || mode.optout && own.caching {
        return;
    }
    let tracking = &cx.instance.tracking;
    for key in args.keys() {
        tracking.remember(key.bytes, cx.client.shared.id);
    }
    tracking.limit(&cx.instance.config);
}

/// The invalidations of the client's own changes, if there are any, as they are sent.
pub fn pushes(client: &mut Client) -> Option<Vec<u8>> {
    let pending = std::mem::take(&mut client.tracking.as_mut()?.pending);
    if pending.is_empty() || !client.resp3 {
        return None;
    }
    Some(pending.iter().flat_map(|pending| Message::of_pending(pending).encoded(true).to_vec()).collect())
}

/// At the end of a window, under its locks: tells clients that track by prefix of the changes by its calls.
#[inline]
pub fn broadcast(worker: &Worker) {
    if !worker.changed_keys.borrow().is_empty() {
        let changes = worker.changed_keys.take();
        worker.instance.tracking.broadcast(&worker.instance.config, &changes);
    }
}
