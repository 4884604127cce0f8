//! Whether this node runs a call, and what the client is told if it does not, in the genuine server's order.

use crate::clients::client::Client;
use crate::cluster::{NOBODY, Routing};
use crate::command::{Flags, Role};
use crate::config::settings;
use crate::exec::cluster::redirect;
use crate::exec::core::resolve::flags_of;
use crate::exec::core::{Call, Instance};
use crate::exec::run::invoke::{self, queue_of};
use crate::keyspace::{Access, Key, View};
use crate::protocol::error::Error;

/// The error for a write to a slot which has been let go, before its new owner is known.
pub(crate) const HELD: &str = "TRYAGAIN The slot is about to be another node's";

/// Why a node does not run a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    CrossSlot,
    Unbound,
    Down,
    DownForWrites,
    Unstable,
    /// The slot takes no writes until then, in milliseconds of Unix time, and maybe not before it is another node's.
    Held(u64),
    Ask(u16, u16),
    Moved(u16, u16),
}

/// The consequence for a call that a node does not run, or not now.
#[derive(Clone, Debug)]
pub(crate) enum Refused {
    /// The client is told this.
    Because(Error),
    /// It waits until then, in milliseconds of Unix time: its slot is about to be another node's.
    Until(u64),
}

/// The facts about a call, or a transaction, that decide.
struct Question {
    asking: bool,
    reads_from_replicas: bool,
    /// Whether the row itself writes; EXEC's does not.
    writes: bool,
    /// Whether anything in it writes.
    changes: bool,
    /// Whether anything in it may, scripts included.
    may_change: bool,
    is_shard_pubsub: bool,
    is_migrate: bool,
}

impl Question {
    fn new(instance: &Instance, client: &Client, call: &Call<'_>) -> Self {
        let flags = flags_of(instance, call.row, call.args);
        let writes = flags.has(Flags::WRITE);
        let queue = queue_of(std::slice::from_ref(call), client);
        let any_of_queue = |is: &dyn Fn(Flags) -> bool| {
            queue.is_some_and(|multi| multi.queue.iter().any(|(row, args)| is(flags_of(instance, row, args.args()))))
        };
        let may_change = |flags: Flags| flags.has(Flags::WRITE) || flags.has(Flags::MAY_REPLICATE);
        let any_writes = any_of_queue(&|flags| flags.has(Flags::WRITE));
        Self {
            asking: client.asking.is_on() || flags.has(Flags::ASKING),
            reads_from_replicas: client.reads_from_replicas,
            writes,
            changes: writes || any_writes,
            may_change: may_change(flags) || any_of_queue(&may_change),
            is_shard_pubsub: matches!(call.row.command.role, Role::Subscribe | Role::Publish),
            is_migrate: call.row.command.role == Role::Migrate,
        }
    }
}

/// Judges a call on admission, before it has any lock.
///
/// # Errors
/// Where else the client has to go, or why nobody serves it.
#[cold]
pub(crate) fn judge_on_admission(instance: &Instance, client: &Client, call: &Call<'_>) -> Result<(), Refused> {
    let database = instance.database(0);
    // A key that is locked just now is decided under the locks.
    let judged = judge(instance, client, call, |key| database.holds_now(key).unwrap_or(true));
    judged.map(drop).map_err(|refusal| refused(instance, client, refusal))
}

fn refused(instance: &Instance, client: &Client, refusal: Refusal) -> Refused {
    match refusal {
        Refusal::Held(until) if instance.cluster.now() < until => Refused::Until(until),
        _ => Refused::Because(told(instance, client, refusal)),
    }
}

/// Judges a call whose keys are locked, or borrowed, or which is alone with the data.
///
/// # Errors
/// As [`judge_on_admission`].
#[inline]
pub(crate) fn judge_locked(
    instance: &Instance,
    client: &Client,
    call: &Call<'_>,
    db: &View<'_>,
    keys: &[(Key<'_>, Access)],
) -> Result<(), Refused> {
    if keys.len() == 1 && instance.cluster.served(client, keys) == 1 {
        return Ok(());
    }
    if keys.is_empty() && call.row.command.role != Role::Exec {
        return Ok(());
    }
    judge(instance, client, call, |key| holds(db, key)).map(drop).map_err(|refusal| refused(instance, client, refusal))
}

/// Judges a script, or a transaction with one, which is alone with the data.
///
/// # Errors
/// As [`judge_on_admission`].
pub(crate) fn judge_alone(instance: &Instance, client: &Client, call: &Call<'_>) -> Result<(), Error> {
    let db = instance.database(0).lock_none(0);
    judge(instance, client, call, |key| holds(&db, key)).map(drop).map_err(|refusal| told(instance, client, refusal))
}

/// Judges what a script calls, whose keys have been `slot`'s so far; the slot of its keys is returned.
///
/// # Errors
/// The genuine server's texts for scripts.
pub(crate) fn judge_script_call(
    instance: &Instance,
    client: &Client,
    call: &Call<'_>,
    slot: Option<u16>,
    may_cross: bool,
) -> Result<Option<u16>, Error> {
    let database = instance.database(0);
    let found =
        judge(instance, client, call, |key| holds(&database.lock_none(0), key)).map_err(|refusal| match refusal {
            Refusal::DownForWrites => {
                Error::Static("ERR Script attempted to execute a write command while the cluster is down and readonly")
            }
            Refusal::Down => Error::Static("ERR Script attempted to execute a command while the cluster is down"),
            Refusal::CrossSlot
            | Refusal::Unbound
            | Refusal::Unstable
            | Refusal::Held(_)
            | Refusal::Ask(..)
            | Refusal::Moved(..) => Error::Static("ERR Script attempted to access a non local key in a cluster node"),
        })?;
    match (slot, found) {
        (Some(before), Some(now)) if before != now && !may_cross => {
            Err(Error::Static("ERR Script attempted to access keys that do not hash to the same slot"))
        }
        _ => Ok(found.or(slot)),
    }
}

/// Whether there is a live entry.
fn holds(db: &View<'_>, key: &Key<'_>) -> bool {
    if db.is_locked(key) || db.is_lent() {
        return db.holds_live(key);
    }
    let database = db.database();
    database.lock([(key.shard(), Access::Read)].into_iter(), db.now()).holds_live(key)
}

/// The slot of the call's keys, if it has any and this node serves it.
fn judge(
    instance: &Instance,
    client: &Client,
    call: &Call<'_>,
    holds: impl Fn(&Key<'_>) -> bool,
) -> Result<Option<u16>, Refusal> {
    let keys = invoke::declared_keys(instance.database(0), client, call);
    let Some((first, _)) = keys.first() else { return Ok(None) };
    let cluster = &instance.cluster;
    let question = Question::new(instance, client, call);
    let routing = cluster.routing();
    let slot = first.shard() as u16;
    let owner = routing.owners[usize::from(slot)];
    if owner == NOBODY {
        return Err(Refusal::Unbound);
    }
    if keys.iter().any(|(key, _)| key.shard() as u16 != slot) {
        return Err(Refusal::CrossSlot);
    }
    question.down(instance, &routing)?;
    let migrating = routing.migrating.get(&slot).filter(|_| owner == routing.me);
    let is_importing = migrating.is_none() && routing.importing.contains_key(&slot);
    if migrating.is_some() || is_importing {
        if question.is_migrate {
            return Ok(Some(slot));
        }
        let is_looked_for = !question.is_shard_pubsub;
        let missing = || keys.iter().filter(|(key, _)| is_looked_for && !holds(key)).count();
        if let Some(&target) = migrating {
            match missing() {
                0 => {}
                all if all == keys.len() => return Err(Refusal::Ask(slot, target)),
                _ => return Err(Refusal::Unstable),
            }
        } else if question.asking {
            let has_several = keys.iter().any(|(key, _)| key.bytes != first.bytes);
            return if has_several && missing() > 0 { Err(Refusal::Unstable) } else { Ok(Some(slot)) };
        }
    }
    if owner == routing.me && question.may_change && routing.held.has(slot) {
        return Err(Refusal::Held(routing.held_until));
    }
    let reads_here = question.reads_from_replicas || question.is_shard_pubsub;
    if owner == routing.me || reads_here && owner == routing.primary && !question.changes {
        return Ok(Some(slot));
    }
    Err(Refusal::Moved(slot, owner))
}

impl Question {
    /// Whether it has to wait until the cluster serves its slots again.
    fn down(&self, instance: &Instance, routing: &Routing) -> Result<(), Refusal> {
        let is_on = |setting| instance.config.is_on(setting);
        if routing.is_ok {
            return Ok(());
        }
        if self.is_shard_pubsub {
            let allowed = is_on(settings::CLUSTER_ALLOW_PUBSUBSHARD_WHEN_DOWN);
            return if allowed { Ok(()) } else { Err(Refusal::Down) };
        }
        match is_on(settings::CLUSTER_ALLOW_READS_WHEN_DOWN) {
            false => Err(Refusal::Down),
            true if self.writes => Err(Refusal::DownForWrites),
            true => Ok(()),
        }
    }
}

/// The error for the client.
#[cold]
fn told(instance: &Instance, client: &Client, refusal: Refusal) -> Error {
    let text = match refusal {
        Refusal::CrossSlot => "CROSSSLOT Keys in request don't hash to the same slot",
        Refusal::Unbound => "CLUSTERDOWN Hash slot not served",
        Refusal::Down => "CLUSTERDOWN The cluster is down",
        Refusal::DownForWrites => "CLUSTERDOWN The cluster is down and only accepts read commands",
        Refusal::Unstable => "TRYAGAIN Multiple keys request during rehashing of slot",
        Refusal::Held(_) => HELD,
        Refusal::Ask(slot, node) => return redirect(instance, &client.shared, "ASK", slot, node),
        Refusal::Moved(slot, node) => return redirect(instance, &client.shared, "MOVED", slot, node),
    };
    Error::Elsewhere(text.to_owned())
}
