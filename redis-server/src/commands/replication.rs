//! Replication (<https://redis.io/docs/latest/operate/oss_and_stack/management/replication/>).

use std::time::Duration;

use crate::clients::client::{Follower, SyncRequest, flag};
use crate::command::{Args, Categories, Flags, Footprint, Result, Role};
use crate::commands::definition::{Family, cmd};
use crate::config::Level;
use crate::exec::core::Ctx;
use crate::exec::replication::{FailoverRequest, FailoverStage, LinkStage, Primary, Stage};
use crate::protocol::error::{Error, shown};
use crate::protocol::split_words;

/// Bytes from which on a replica's address is too long, as in Redis (`NET_HOST_STR_LEN`).
const MAX_HOST: usize = 256;

/// `PSYNC replicationid offset [FAILOVER]`
fn psync(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 3 && args.is(3, "failover") {
        take_over(cx, args.at(1))?;
    }
    let offset = args.int(2).inspect_err(|_| {
        let addr = &cx.client.shared.addr;
        tracing::warn!("Replica {addr} asks for synchronization but with a wrong offset");
    })?;
    ask(cx, SyncRequest::Partial(String::from_utf8_lossy(args.at(1)).into_owned(), offset))
}

/// Where the stream is must not be decided in the middle of a transaction, which may have cut the link itself. With FAILOVER this is a role
/// change.
fn behind_transactions(args: Args<'_>) -> Footprint {
    if args.len() > 3 { Footprint::Still } else { Footprint::Alone }
}

/// The end of a failover may be a role change.
fn ends_failover(args: Args<'_>) -> Footprint {
    if args.len() == 2 && args.is(1, "abort") { Footprint::Still } else { Footprint::Keys }
}

/// The primary that this server follows wants to change places.
fn take_over(cx: &Ctx<'_>, id: &[u8]) -> Result {
    let replication = &cx.instance().replication;
    if !replication.is_replica() {
        return Err(Error::Static("ERR PSYNC FAILOVER can't be sent to a master."));
    }
    if !id.eq_ignore_ascii_case(replication.ids().id.as_bytes()) {
        return Err(Error::Static("ERR PSYNC FAILOVER replid must match my replid."));
    }
    replication.turn_to(cx.instance(), None, cx.still()?);
    tracing::info!("MASTER MODE enabled (failover request from '{}')", cx.client.shared.addr);
    Ok(())
}

/// `FAILOVER [TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]`
fn failover(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if cx.instance.cluster.is_enabled() {
        return Err(Error::Static("ERR FAILOVER not allowed in cluster mode."));
    }
    let (mut request, mut aborts, mut at) = (FailoverRequest::default(), false, 1);
    while at < args.len() {
        let left = args.len() - at - 1;
        if args.is(at, "timeout") && left >= 1 && request.timeout.is_none() {
            let timeout = args.int(at + 1)?;
            let timeout = u64::try_from(timeout).ok().filter(|&timeout| timeout > 0);
            let timeout = timeout.ok_or(Error::Static("ERR FAILOVER timeout must be greater than 0"))?;
            request.timeout = Some(Duration::from_millis(timeout));
            at += 1;
        } else if args.is(at, "abort") && args.len() == 2 {
            aborts = true;
        } else if args.is(at, "to") && left >= 2 && request.target.is_none() {
            let port = u16::try_from(args.int(at + 2)?).map_err(|_| Error::NotInteger)?;
            request.target = Some((String::from_utf8_lossy(args.at(at + 1)).into_owned(), port));
            at += 2;
        } else if args.is(at, "force") && !request.force {
            request.force = true;
        } else {
            return Err(Error::Syntax);
        }
        at += 1;
    }
    let (replication, instance) = (&cx.instance().replication, cx.instance());
    if !aborts {
        replication.begin_failover(instance, request)?;
    } else if !replication.abort_failover(instance, "Failover manually aborted", cx.still()?) {
        return Err(Error::Static("ERR No failover in progress."));
    }
    cx.reply.ok();
    Ok(())
}

/// SYNC
fn sync(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    ask(cx, SyncRequest::Full)
}

/// The connection becomes a replica's when what was said before is sent.
fn ask(cx: &mut Ctx<'_>, request: SyncRequest) -> Result {
    if !cx.may_wait() {
        return Err(Error::Static("ERR Command not allowed inside a transaction"));
    }
    if cx.instance().replication.failover() != FailoverStage::None {
        return Err(Error::Static("NOMASTERLINK Can't SYNC while failing over"));
    }
    if cx.instance().replication.is_replica() && !cx.instance().replication.is_in_sync() {
        return Err(Error::Static("NOMASTERLINK Can't SYNC while not connected with my master"));
    }
    cx.client.shared.set_flag(flag::REPLICA, true);
    cx.client.follower.get_or_insert_default().request = Some(request);
    cx.client.close = true;
    Ok(())
}

/// `REPLCONF option value [option value …]`, of a client that is no replica yet: one that is has left the loop of commands.
fn replconf(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len().is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    let mut follower = cx.client.follower.take().unwrap_or_default();
    let mut said = Ok(Said::Understood);
    for at in (1..args.len()).step_by(2) {
        said = configure(cx.config().level(), &mut follower, args, at);
        if said != Ok(Said::Understood) {
            break;
        }
    }
    cx.client.follower = Some(follower);
    if said? == Said::Understood {
        cx.reply.ok();
    }
    Ok(())
}

/// A parsed option of REPLCONF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// The next option, and OK behind the last.
    Understood,
    /// No reply, and what follows is not looked at: the words of a replica and its primary in the middle of a stream.
    Unanswered,
}

fn configure(level: Level, follower: &mut Follower, args: Args<'_>, at: usize) -> Result<Said> {
    let (name, value) = (args.at(at).to_ascii_lowercase(), at + 1);
    match name.as_slice() {
        // A number that is no port is none to connect to.
        b"listening-port" => follower.port = u16::try_from(args.int(value)?).unwrap_or(0),
        b"ip-address" => {
            let address = String::from_utf8_lossy(args.at(value)).into_owned();
            if address.len() >= MAX_HOST {
                return Err(Error::Message(format!(
                    "ERR REPLCONF ip-address provided by replica instance is too long: {} bytes",
                    address.len()
                )));
            }
            follower.address = Some(address).filter(|address| !address.is_empty());
        }
        b"capa" if args.is(value, "eof") => follower.takes_snapshots_of_unknown_length = true,
        b"capa" if args.is(value, "psync2") => follower.knows_second_ids = true,
        // Other capabilities of a replica have no effect.
        b"capa" => {}
        b"version" if level.is_valkey() => {}
        b"ack" | b"getack" => return Ok(Said::Unanswered),
        b"rdb-only" => match args.int(value)? {
            only @ 0..=1 => follower.wants_snapshot_only = only == 1,
            _ => return Err(Error::Static("ERR value is out of range, value must between 0 and 1")),
        },
        b"rdb-filter-only" => {
            let filters = split_words(args.at(value)).ok_or(Error::Static("ERR Missing rdb-filter-only values"))?;
            if let Some(unknown) = filters.iter().find(|filter| !filter.eq_ignore_ascii_case(b"functions")) {
                let unknown = shown(unknown);
                return Err(Error::Message(format!("ERR Unsupported rdb-filter-only option: {unknown}")));
            }
            follower.wants_functions_only = true;
        }
        _ => return Err(Error::Message(format!("ERR Unrecognized REPLCONF option: {}", shown(args.at(at))))),
    }
    Ok(Said::Understood)
}

/// `REPLICAOF host port`, `REPLICAOF NO ONE`
fn replicaof(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if cx.instance.cluster.is_enabled() {
        return Err(Error::Static("ERR REPLICAOF not allowed in cluster mode."));
    }
    let target = if args.is(1, "no") && args.is(2, "one") {
        None
    } else {
        let port = args.int(2).ok().and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or(Error::Static("ERR Invalid master port"))?;
        Some((String::from_utf8_lossy(args.at(1)).into_owned(), port))
    };
    let replication = &cx.instance().replication;
    let follows = |primary: &Primary| target.as_ref() == Some(&(primary.host.clone(), primary.port));
    if replication.primary().as_ref().is_some_and(follows) {
        cx.reply.simple("OK Already connected to specified master");
        return Ok(());
    }
    if replication.failover() != FailoverStage::None {
        return Err(Error::Static("ERR REPLICAOF not allowed while failing over."));
    }
    let still = cx.still()?;
    let (caller, client) = (&cx.client.shared.addr, cx.client.shared.id);
    replication.turn_to(cx.instance(), target.clone(), still);
    match target {
        Some((host, port)) => tracing::info!(client, caller, "REPLICAOF {host}:{port} enabled (user request)"),
        None => tracing::info!(client, caller, "MASTER MODE enabled (user request)"),
    }
    cx.reply.ok();
    Ok(())
}

/// ROLE
fn role(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    if let Some(Primary { host, port, stage, .. }) = cx.instance().replication.primary() {
        cx.reply.array(5);
        cx.reply.bulk(b"slave");
        cx.reply.bulk(host.as_bytes());
        cx.reply.int(port.into());
        cx.reply.bulk(stage.name().as_bytes());
        let offset = if stage == LinkStage::Connected { cx.instance().journal.offset() as i64 } else { -1 };
        cx.reply.int(offset);
        return Ok(());
    }
    let mut replicas = cx.instance().replication.replicas();
    replicas.retain(|replica| replica.stage() == Stage::Online);
    cx.reply.array(3);
    cx.reply.bulk(b"master");
    cx.reply.int(cx.instance().journal.offset() as i64);
    cx.reply.array(replicas.len());
    for replica in replicas {
        cx.reply.array(3);
        cx.reply.bulk(replica.address().as_bytes());
        cx.reply.bulk(replica.follower.port.to_string().as_bytes());
        cx.reply.bulk(replica.acknowledged().to_string().as_bytes());
    }
    Ok(())
}

/// ACL categories of what tells about the server's place among others.
const ADMINISTRATIVE: Categories = Categories::ADMIN.and(Categories::DANGEROUS);
const LINK: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::NO_ASYNC_LOADING).and(Flags::NO_MULTI);
const FOLLOW: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::STALE).and(Flags::NO_ASYNC_LOADING);
const ANY_TIME: Flags = Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE);

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "server", category: Categories(0), commands: &[
    cmd("failover", -1, failover, Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::STALE), &[]).locks(Footprint::Depends(ends_failover)),
    cmd("psync",    -3, psync,    LINK, &[]).locks(Footprint::Depends(behind_transactions)),
    cmd("replicaof", 3, replicaof, FOLLOW, &[]).locks(Footprint::Still),
    cmd("slaveof",   3, replicaof, FOLLOW, &[]).locks(Footprint::Still),
    cmd("replconf", -1, replconf, ANY_TIME.and(Flags::ADMIN).and(Flags::ALLOW_BUSY), &[]).role(Role::Replica),
    cmd("role",      1, role,     ANY_TIME.and(Flags::FAST), &[]).also(ADMINISTRATIVE),
    cmd("sync",      1, sync,     LINK, &[]).locks(Footprint::Alone),
] };
