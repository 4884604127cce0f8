//! Redis Cluster (<https://redis.io/docs/latest/commands/?group=cluster>).

mod admin;
mod keys;
mod moves;
mod views;

use crate::clients::client::{Asking, flag};
use crate::cluster::{Machine, Millis};
use crate::command::{Args, Categories, Flags, Footprint, Reach, Result, Weight};
use crate::commands::definition::{Definition, Family, cmd, container, sub};
use crate::exec::cluster::DISABLED;
use crate::exec::core::Ctx;
use crate::keyspace::Access;

/// ASKING
fn asking(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    enabled(cx)?;
    cx.client.asking = Asking::Said;
    cx.reply.ok();
    Ok(())
}

/// READONLY
fn readonly(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    may_be_redirected(cx)?;
    read_from_replicas(cx, true);
    cx.reply.ok();
    Ok(())
}

/// READWRITE
fn readwrite(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    may_be_redirected(cx)?;
    read_from_replicas(cx, false);
    cx.reply.ok();
    Ok(())
}

/// Whether the client is content with what a replica has.
pub(super) fn read_from_replicas(cx: &mut Ctx<'_>, on: bool) {
    cx.client.reads_from_replicas = on;
    cx.client.shared.set_flag(flag::READONLY, on);
}

/// Whether the client may be told to go to another server: in a cluster, or because it says that it can.
fn may_be_redirected(cx: &Ctx<'_>) -> Result {
    if cx.client.shared.has_flag(flag::REDIRECTS) || cx.config().level().is_valkey() { Ok(()) } else { enabled(cx) }
}

/// Whether this server is a node of a cluster.
fn enabled(cx: &Ctx<'_>) -> Result {
    if cx.instance.cluster.is_enabled() { Ok(()) } else { Err(DISABLED) }
}

/// Asks the node's machine, and waits until the file has what that has changed.
fn ask<R>(cx: &Ctx<'_>, work: impl FnOnce(&mut Machine, Millis) -> R) -> Result<R> {
    cx.instance.cluster.with_file(cx.instance, work).ok_or(DISABLED)
}

/// CLUSTER HELP
fn help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    enabled(cx)?;
    super::help::help(cx, "CLUSTER", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "ADDSLOTS <slot> [<slot> ...]",
    "    Assign slots to current node.",
    "ADDSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Assign slots which are between <start-slot> and <end-slot> to current node.",
    "BUMPEPOCH",
    "    Advance the cluster config epoch.",
    "CANCELSLOTMIGRATIONS",
    "    Cancel all migrations of slots from current node.",
    "COUNT-FAILURE-REPORTS <node-id>",
    "    Return number of failure reports for <node-id>.",
    "COUNTKEYSINSLOT <slot>",
    "    Return the number of keys in <slot>.",
    "DELSLOTS <slot> [<slot> ...]",
    "    Delete slots information from current node.",
    "DELSLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...]",
    "    Delete slots information which are between <start-slot> and <end-slot> from current node.",
    "FAILOVER [FORCE|TAKEOVER]",
    "    Promote current replica node to being a master.",
    "FORGET <node-id>",
    "    Remove a node from the cluster.",
    "GETKEYSINSLOT <slot> <count>",
    "    Return key names stored by current node in a slot.",
    "GETSLOTMIGRATIONS",
    "    Return information about ongoing and recently finished migrations of slots.",
    "FLUSHSLOT <slot> [ASYNC|SYNC]",
    "    Remove all keys of <slot> from current node.",
    "FLUSHSLOTS",
    "    Delete current node own slots information.",
    "INFO",
    "    Return information about the cluster.",
    "KEYSLOT <key>",
    "    Return the hash slot for <key>.",
    "MEET <ip> <port> [<bus-port>]",
    "    Connect nodes into a working cluster.",
    "MIGRATESLOTS SLOTSRANGE <start slot> <end slot> [<start slot> <end slot> ...] NODE <node-id> [SLOTSRANGE ... NODE <node-id> ...]",
    "    Begin to move slots as a whole from current node to <node-id>.",
    "MYID",
    "    Return the node id.",
    "MYSHARDID",
    "    Return the node's shard id.",
    "NODES",
    "    Return cluster configuration seen by node. Output format:",
    "    <id> <ip:port> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...",
    "REPLICATE <node-id>",
    "    Configure current node as replica to <node-id>.",
    "RESET [HARD|SOFT]",
    "    Reset current node (default: soft).",
    "SET-CONFIG-EPOCH <epoch>",
    "    Set config epoch of current node.",
    "SETSLOT <slot> (IMPORTING <node-id>|MIGRATING <node-id>|STABLE|NODE <node-id>)",
    "    Set slot state.",
    "REPLICAS <node-id>",
    "    Return <node-id> replicas.",
    "SAVECONFIG",
    "    Force saving cluster configuration on disk.",
    "SLOTS",
    "    Return information about slots range mappings. Each range is made of:",
    "    start, end, master and replicas IP addresses, ports and ids",
    "SLOT-STATS SLOTSRANGE <start-slot> <end-slot>",
    "SLOT-STATS ORDERBY key-count [LIMIT <limit>] [ASC|DESC]",
    "    Return the number of keys in each of the node's own slots.",
    "SHARDS",
    "    Return information about slot range mappings and the nodes associated with them.",
    "LINKS",
    "    Return information about all network links between this node and its peers.",
    "    Output format is an array where each array element is a map containing attributes of a link",
];

const FAST: Flags = Flags::FAST;
const ANY_TIME: Flags = FAST.and(Flags::LOADING).and(Flags::STALE);
const ASK: Flags = Flags::STALE;
const CHANGE: Flags = Flags::ADMIN.and(Flags::STALE).and(Flags::NO_ASYNC_LOADING);
const FLUSH: Flags = Flags::WRITE.and(Flags::ADMIN).and(Flags::NO_ASYNC_LOADING);
const RESET: Flags = Flags::ADMIN.and(Flags::STALE).and(Flags::NOSCRIPT);
const REPORT: Flags = Flags::ADMIN.and(Flags::STALE);
const VARIES: &[&str] = &["nondeterministic_output"];

#[rustfmt::skip]
const CLUSTER: &[Definition] = &[
    sub("addslots",              -3, admin::add_slots,         CHANGE, &[]),
    sub("addslotsrange",         -4, admin::add_slots_range,   CHANGE, &[]),
    sub("bumpepoch",              2, admin::bump_epoch,        CHANGE, &[]).tips(VARIES),
    sub("cancelslotmigrations",   2, moves::cancel,            CHANGE, &[]).reaches(Reach::All),
    sub("count-failure-reports",  3, views::failure_reports,   REPORT, &[]).tips(VARIES),
    sub("countkeysinslot",        3, keys::count,              ASK,    &[]),
    sub("delslots",              -3, admin::delete_slots,      CHANGE, &[]),
    sub("delslotsrange",         -4, admin::delete_slots_range, CHANGE, &[]),
    sub("failover",              -2, admin::failover,          CHANGE, &[]),
    sub("flushslot",             -3, keys::flush,              FLUSH,  &[]).also(Categories::KEYSPACE).locks(Footprint::Database(Access::Write)).reaches(Reach::All).weighs(Weight::Much),
    sub("flushslots",             2, admin::flush_slots,       CHANGE, &[]),
    sub("forget",                 3, admin::forget,            CHANGE, &[]),
    sub("getkeysinslot",          4, keys::list,               ASK,    &[]).tips(VARIES),
    sub("getslotmigrations",      2, moves::list,              REPORT, &[]).tips(VARIES),
    sub("help",                   2, help,                     Flags::LOADING.and(ASK), &[]),
    sub("info",                   2, views::info,              ASK,    &[]).tips(VARIES),
    sub("keyslot",                3, keys::slot,               ASK,    &[]),
    sub("links",                  2, views::links,             ASK,    &[]).tips(VARIES),
    sub("meet",                  -4, admin::meet,              CHANGE, &[]),
    sub("migrateslots",          -7, moves::migrate,           CHANGE, &[]).reaches(Reach::All),
    sub("myid",                   2, views::my_id,             ASK,    &[]),
    sub("myshardid",              2, views::my_shard_id,       ASK,    &[]).tips(VARIES),
    sub("nodes",                  2, views::nodes,             ASK,    &[]).tips(VARIES),
    sub("replicas",               3, views::replicas,          REPORT, &[]).tips(VARIES),
    sub("replicate",              3, admin::replicate,         CHANGE, &[]),
    sub("reset",                 -2, admin::reset,             RESET,  &[]),
    sub("saveconfig",             2, admin::save_config,       CHANGE, &[]),
    sub("set-config-epoch",       3, admin::set_config_epoch,  CHANGE, &[]),
    sub("setslot",               -4, admin::set_slot,          CHANGE, &[]),
    sub("shards",                 2, views::shards,            ASK,    &[]).tips(VARIES),
    sub("slaves",                 3, views::replicas,          REPORT, &[]).tips(VARIES),
    sub("slot-stats",            -4, keys::stats,              Flags::LOADING.and(ASK), &[]).tips(&["nondeterministic_output", "request_policy:all_shards"]),
    sub("slots",                  2, views::slots,             ASK,    &[]).tips(VARIES),
    sub("syncslots",             -3, moves::sync,              CHANGE, &[]),
];

/// Commands that set the cluster mode of a connection.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "cluster", category: Categories::CONNECTION, commands: &[
    cmd("asking",    1, asking,    FAST,     &[]),
    cmd("readonly",  1, readonly,  ANY_TIME, &[]),
    cmd("readwrite", 1, readwrite, ANY_TIME, &[]),
] };

/// CLUSTER, which asks the node itself.
pub(super) static NODE: Family =
    Family { group: "cluster", category: Categories(0), commands: &[container("cluster", -2, CLUSTER)] };
