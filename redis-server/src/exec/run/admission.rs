//! Admission: whether a command may run, and what a client is told if it may not.

use super::permission;
use super::transaction::{discard_transaction, not_inside};
use crate::clients::client::{Client, ReplyMode, flag};
use crate::command::{Args, Flags, Role, Row};
use crate::config::settings;
use crate::exec::core::clock::now_ms;
use crate::exec::core::resolve::{flags_of, lookup, resolve};
use crate::exec::core::{Call, Instance, Worker};
use crate::exec::eviction::{self, Room};
use crate::exec::run::judge::{self, Refused};
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// How long a client waits until it is looked whether this node has become a primary, unless it is told before; in milliseconds.
pub(crate) const TURN_LOOK: u64 = 100;

/// The result of a command's admission.
#[derive(Debug)]
pub enum Admission {
    /// It runs.
    Run(&'static Row),
    /// It joins the transaction.
    Queue(&'static Row),
    /// It is refused; `Some` row counts it.
    Refuse(Error, Option<&'static Row>),
    /// It waits until CLIENT PAUSE is over, in milliseconds of Unix time.
    Wait(u64),
    /// It is a line of an HTTP request: a web page may have made its reader's browser send it (CVE-2016-10517). The
    /// connection ends, and nothing that follows runs.
    Abort,
}

/// Whether [`admit`] lets every command run that it knows, as long as no other than those that
/// [`find_batched`](crate::exec::core::resolve::find_batched) finds have run: nothing needs to be asked of each.
#[inline]
pub(crate) fn is_plain(worker: &Worker, client: &Client) -> bool {
    let instance = &*worker.instance;
    client.identity.is_cleared(&instance.acl)
        && !instance.exclusive.is_busy()
        && !instance.is_short_of_memory()
        && !instance.aof.is_failing()
        && (client.resp3 || !client.is_subscribed())
        && !instance.may_be_paused()
        && !instance.cluster.holds_slots()
        && client.multi.is_none()
        && !client.shared.has_flag(flag::MONITOR)
        && !client.asking.is_on()
        && !instance.has_renamed()
        && !instance.snapshots.has_failed()
        && !instance.replication.limits_writes(&instance.config)
        && !instance.replication.is_replica()
}

/// Decides what becomes of a command in the client's present state.
pub fn admit(worker: &Worker, client: &mut Client, args: Args<'_>) -> Admission {
    let row = match resolve(&worker.instance, args) {
        Ok(row) => row,
        Err(_) if is_http(args.at(0)) => return Admission::Abort,
        Err(error) => return Admission::Refuse(error, lookup(&worker.instance, args.at(0))),
    };
    let command = row.command;
    let flags = command.flags;
    if !client.identity.is_cleared(&worker.instance.acl)
        && let Err(error) = permission::check_command(worker, client, row, args)
    {
        return Admission::Refuse(error, Some(row));
    }
    let held = match judge(worker, client, row, args) {
        Ok(held) => held,
        Err(admission) => return admission,
    };
    if worker.instance.replication.is_replica()
        && let Some(error) = refused_by_replica(&worker.instance, row, client, args)
    {
        return Admission::Refuse(error, Some(row));
    }
    if let Some(error) = worker.instance.refusal(row) {
        return Admission::Refuse(error, Some(row));
    }
    client.out_of_memory = worker.instance.is_short_of_memory() && eviction::make_room(worker) == Room::None;
    if client.out_of_memory && takes_memory(&worker.instance, row, client, args) {
        return Admission::Refuse(Error::OutOfMemory, Some(row));
    }
    if let Some(failure) = disk_failure(&worker.instance)
        && (may_write(&worker.instance, row, client, args) || row.command.role == Role::Ping)
    {
        return Admission::Refuse(failure, Some(row));
    }
    if worker.instance.replication.limits_writes(&worker.instance.config)
        && worker.instance.replication.refuses_writes(&worker.instance.config, now_ms())
        && may_write(&worker.instance, row, client, args)
    {
        return Admission::Refuse(Error::TOO_FEW_REPLICAS, Some(row));
    }
    if client.is_subscribed() && !client.resp3 && !row.command.role.is_allowed_while_subscribed() {
        let text = format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
            row.name()
        );
        return Admission::Refuse(Error::Message(text), Some(row));
    }
    if client.shared.has_flag(flag::MONITOR) && touches_data(&worker.instance, row, client, args) {
        return Admission::Refuse(Error::Static("ERR Replica can't interact with the keyspace"), Some(row));
    }
    if worker.instance.may_be_paused()
        && !client.shared.has_flag(flag::MONITOR)
        && let Some(pause) = worker.instance.paused(now_ms())
        && held_back(&worker.instance, row, client, args, pause.writes_only)
    {
        return Admission::Wait(pause.until);
    }
    if let Some(until) = held {
        return Admission::Wait(until);
    }
    if client.multi.is_some() && !row.command.role.runs_inside_multi() {
        let is_valkey = worker.instance.config.level().is_valkey();
        if flags.has(Flags::NO_MULTI) || is_valkey && row.command.role == Role::ClientReply {
            let of_redis = Error::Static("ERR Command not allowed inside a transaction");
            return Admission::Refuse(if is_valkey { not_inside(&row.name()) } else { of_redis }, Some(row));
        }
        return Admission::Queue(row);
    }
    Admission::Run(row)
}

/// Whether a command's name is how a line of an HTTP request begins that can carry commands in its body.
#[cold]
pub(crate) fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// Whether this node of a cluster runs a command; and until when it waits if nothing else speaks against it, as its slot is about to
/// be another node's.
pub(crate) fn judge(
    worker: &Worker,
    client: &Client,
    row: &'static Row,
    args: Args<'_>,
) -> Result<Option<u64>, Admission> {
    let instance = &worker.instance;
    if !worker.routes {
        return Ok(None);
    }
    let held = match judge::judge_on_admission(instance, client, &Call { row, args }) {
        Ok(()) => None,
        Err(Refused::Because(error)) => return Err(Admission::Refuse(error, Some(row))),
        // A queued call waits with EXEC.
        Err(Refused::Until(until)) => (client.multi.is_none() || row.command.role == Role::Exec).then_some(until),
    };
    let touches = || !row.command.keys.is_empty() || may_write(instance, row, client, args);
    if instance.cluster.is_turning_primary(instance.replication.is_replica()) && touches() {
        return Err(Admission::Wait(now_ms() + TURN_LOOK));
    }
    Ok(held)
}

/// Why nothing may be changed that could not be written to disk.
#[inline]
pub(crate) fn disk_failure(instance: &Instance) -> Option<Error> {
    if let Some(failure) = instance.aof.failure() {
        return Some(Error::Message(format!("MISCONF Errors writing to the AOF file: {failure}")));
    }
    (instance.snapshots.has_failed() && refuses_writes(instance)).then_some(Error::SnapshotsFail)
}

/// Why a server that follows another does not run a command, if it does not.
#[cold]
pub(crate) fn refused_by_replica(instance: &Instance, row: &Row, client: &Client, args: Args<'_>) -> Option<Error> {
    if client.shared.has_flag(flag::REDIRECTS)
        && let Some(error) = redirection(instance, row, client, args)
    {
        return Some(error);
    }
    if instance.replication.is_read_only(&instance.config) && may_write(instance, row, client, args) {
        return Some(Error::READ_ONLY);
    }
    let is_any = |is: &dyn Fn(&Row, Args<'_>) -> bool| match &client.multi {
        Some(multi) if row.command.role == Role::Exec => multi.queue.iter().any(|(row, args)| is(row, args.args())),
        _ => is(row, args),
    };
    if instance.loading.is_aside() && is_any(&|row, _| row.command.flags.has(Flags::NO_ASYNC_LOADING)) {
        return Some(Error::Loading);
    }
    let is_stale = instance.replication.is_stale(&instance.config);
    (is_stale && is_any(&|row, args| !flags_of(instance, row, args).has(Flags::STALE))).then_some(Error::STALE)
}

/// The error for a call that was admitted before this server became a replica. The call's changes would be in the data and not in the
/// stream, which the new primary may go on with. The caller is at work with the data, so the role stays as it is.
#[inline]
pub(crate) fn refused_since(worker: &Worker, client: &Client, call: &Call<'_>) -> Option<Error> {
    if serves_as_replica(worker) { refused_by_new_role(worker, client, call) } else { None }
}

/// Whether [`refused_since`] has anything to judge: a window asks once for all of its calls.
#[inline]
pub(crate) fn serves_as_replica(worker: &Worker) -> bool {
    worker.instance.replication.is_replica() && !worker.loads
}

#[cold]
pub(crate) fn refused_by_new_role(worker: &Worker, client: &Client, call: &Call<'_>) -> Option<Error> {
    let instance = &worker.instance;
    if !instance.replication.is_read_only(&instance.config) || !may_write(instance, call.row, client, call.args) {
        return None;
    }
    match judge(worker, client, call.row, call.args) {
        // A node of a cluster says where the keys are.
        Err(Admission::Refuse(error, _)) => Some(error),
        _ => refused_by_replica(instance, call.row, client, call.args),
    }
}

/// Where a client is sent that wants data of a replica and can be sent elsewhere, unless a replica's are good enough for what
/// it reads (<https://valkey.io/commands/client-capa/>).
pub(crate) fn redirection(instance: &Instance, row: &Row, client: &Client, args: Args<'_>) -> Option<Error> {
    let reads = |row: &Row, args: Args<'_>| flags_of(instance, row, args).has(Flags::READONLY);
    let reads = match &client.multi {
        Some(multi) if row.command.role == Role::Exec => multi.queue.iter().any(|(row, args)| reads(row, args.args())),
        _ => reads(row, args),
    };
    let is_sent = may_write(instance, row, client, args) || reads && !client.reads_from_replicas;
    if !is_sent || instance.cluster.is_enabled() {
        return None;
    }
    instance.replication.primary().map(|primary| Error::redirect(&primary.host, primary.port))
}

/// Whether a command must not run when memory is short. Every call that a transaction queues takes memory.
pub(crate) fn takes_memory(instance: &Instance, row: &Row, client: &Client, args: Args<'_>) -> bool {
    // Valkey's module refuses queries, too.
    let is_query = |row: &Row| matches!(row.command.name, "ft.search" | "ft.aggregate");
    let denied = |row: &Row, args: Args<'_>| {
        flags_of(instance, row, args).has(Flags::DENYOOM) || instance.config.level().is_valkey() && is_query(row)
    };
    match (&client.multi, row.command.role) {
        (Some(multi), Role::Exec) => multi.queue.iter().any(|(row, args)| denied(row, args.args())),
        (Some(_), Role::Discard | Role::Leave) => false,
        (Some(_), _) => true,
        (None, _) => denied(row, args),
    }
}

/// Whether a call may change data.
pub(crate) fn may_write(instance: &Instance, row: &Row, client: &Client, args: Args<'_>) -> bool {
    let writes = |row: &Row, args: Args<'_>| flags_of(instance, row, args).has(Flags::WRITE);
    match (&client.multi, row.command.role) {
        (Some(multi), Role::Exec) => multi.queue.iter().any(|(row, args)| writes(row, args.args())),
        _ => writes(row, args),
    }
}

/// Whether a call reads or changes data. A client that monitors may make none: to Redis it is a kind of replica, which no pause
/// holds back.
pub(crate) fn touches_data(instance: &Instance, row: &Row, client: &Client, args: Args<'_>) -> bool {
    const DATA: Flags = Flags::READONLY.and(Flags::WRITE).and(Flags::MAY_REPLICATE);
    let touches = |row: &Row, args: Args<'_>| flags_of(instance, row, args).0 & DATA.0 != 0;
    match (&client.multi, row.command.role) {
        (Some(multi), Role::Exec) => multi.queue.iter().any(|(row, args)| touches(row, args.args())),
        _ => touches(row, args),
    }
}

/// Whether CLIENT PAUSE stops this command; EXEC is judged by the commands that it will run. A pause of everything holds
/// CLIENT UNPAUSE too, as in the genuine server: it ends by its time alone.
pub(crate) fn held_back(instance: &Instance, row: &Row, client: &Client, args: Args<'_>, writes_only: bool) -> bool {
    let stops = |row: &Row, args: Args<'_>| {
        let flags = flags_of(instance, row, args);
        flags.has(Flags::WRITE) || flags.has(Flags::MAY_REPLICATE)
    };
    match (&client.multi, row.command.role) {
        _ if !writes_only => true,
        (Some(multi), Role::Exec) => multi.queue.iter().any(|(row, args)| stops(row, args.args())),
        _ => stops(row, args),
    }
}

/// Answers a call that does not run.
pub(crate) fn refuse(worker: &Worker, client: &mut Client, row: Option<&'static Row>, error: Error, reply: &mut Reply) {
    let error = refused(&worker.instance, client, row, error);
    worker.refused(row, &error);
    quiet_reply(client, || reply.error(&error));
}

/// Fails the transaction that is being put together, because a command was refused. A refused EXEC ends it at once.
/// Returns the error to be sent.
pub(crate) fn refused(instance: &Instance, client: &mut Client, row: Option<&Row>, error: Error) -> Error {
    if row.is_some_and(|row| row.command.role == Role::Exec) {
        discard_transaction(instance, client);
        if matches!(error, Error::Elsewhere(_)) {
            return error;
        }
        let text = error.to_string();
        let text = text.strip_prefix("ERR ").unwrap_or(&text);
        return Error::Message(format!("EXECABORT Transaction discarded because of: {text}"));
    }
    if let Some(multi) = &mut client.multi {
        multi.aborted = true;
    } else if let Some(tracking) = &mut client.tracking {
        // CLIENT CACHING was about this command only.
        tracking.caching = false;
    }
    error
}

/// A reply of admission itself, unless CLIENT REPLY says no.
pub(crate) fn quiet_reply(client: &mut Client, write: impl FnOnce()) {
    if client.reply_mode == ReplyMode::On {
        write();
    } else if client.reply_mode == ReplyMode::Skip {
        client.reply_mode = ReplyMode::On;
    }
}

/// Whether writes are refused, because snapshots cannot be written.
#[cold]
pub fn refuses_writes(instance: &Instance) -> bool {
    instance.snapshots.has_failed()
        && instance.config.is_on(settings::STOP_WRITES_ON_BGSAVE_ERROR)
        && !instance.config.save_points().is_empty()
}
