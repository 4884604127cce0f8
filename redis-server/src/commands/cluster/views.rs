//! CLUSTER: subcommands that show the node's state.

use super::{ask, enabled};
use crate::clients::client::flag;
use crate::cluster::{Endpoint, NOBODY, Routing, SLOTS, ShardNode};
use crate::command::{Args, Result};
use crate::config::settings;
use crate::exec::cluster::{port_for, preferred};
use crate::exec::core::Ctx;

/// CLUSTER INFO
pub(super) fn info(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let text = ask(cx, |machine, _| machine.info_text())?;
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// CLUSTER NODES
pub(super) fn nodes(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let is_tls = is_tls(cx);
    let text = ask(cx, |machine, _| machine.nodes_text(is_tls))?;
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// Whether the client has come by TLS, and is told the ports of that.
fn is_tls(cx: &Ctx<'_>) -> bool {
    cx.client.shared.has_flag(flag::TLS)
}

/// CLUSTER MYID
pub(super) fn my_id(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let id = ask(cx, |machine, _| machine.my_id())?;
    cx.reply.bulk(id.as_bytes());
    Ok(())
}

/// CLUSTER MYSHARDID
pub(super) fn my_shard_id(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let id = ask(cx, |machine, _| machine.my_shard_id())?;
    cx.reply.bulk(id.as_bytes());
    Ok(())
}

/// `CLUSTER REPLICAS id`
pub(super) fn replicas(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let is_tls = is_tls(cx);
    let lines = ask(cx, |machine, _| machine.replica_lines(args.at(2), is_tls))??;
    cx.reply.array(lines.len());
    lines.iter().for_each(|line| cx.reply.bulk(line.as_bytes()));
    Ok(())
}

/// `CLUSTER COUNT-FAILURE-REPORTS id`
pub(super) fn failure_reports(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let count = ask(cx, |machine, now| machine.count_failure_reports(args.at(2), now))??;
    cx.reply.count(count);
    Ok(())
}

/// CLUSTER LINKS
pub(super) fn links(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let links = ask(cx, |machine, _| machine.links())?;
    cx.reply.array(links.len());
    for link in links {
        cx.reply.map(6);
        cx.reply.bulk(b"direction");
        cx.reply.bulk(if link.is_outbound { b"to" } else { b"from" });
        cx.reply.bulk(b"node");
        cx.reply.bulk(link.node.as_bytes());
        cx.reply.bulk(b"create-time");
        cx.reply.int(link.created as i64);
        let unsent = cx.instance.cluster.unsent(link.link);
        cx.reply.bulk(b"events");
        cx.reply.bulk(if unsent > 0 { b"rw" } else { b"r" });
        for name in ["send-buffer-allocated", "send-buffer-used"] {
            cx.reply.bulk(name.as_bytes());
            cx.reply.int(unsent as i64);
        }
    }
    Ok(())
}

/// CLUSTER SLOTS
pub(super) fn slots(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    enabled(cx)?;
    let routing = cx.instance.cluster.routing();
    let ranges = ranges(&routing);
    cx.reply.array(ranges.len());
    for (first, last, owner) in ranges {
        let follows = |node: &&Endpoint| node.is_replica && node.primary == owner && node.is_available;
        let replicas: Vec<&Endpoint> = routing.nodes.iter().filter(follows).collect();
        cx.reply.array(3 + replicas.len());
        cx.reply.int(first.into());
        cx.reply.int(last.into());
        let nodes = routing.node(owner).into_iter().chain(replicas);
        nodes.for_each(|node| slots_node(cx, node));
    }
    Ok(())
}

/// Slots that follow each other and have the same owner.
fn ranges(routing: &Routing) -> Vec<(u16, u16, u16)> {
    let mut ranges: Vec<(u16, u16, u16)> = Vec::new();
    for slot in 0..SLOTS as u16 {
        let owner = routing.owners[usize::from(slot)];
        match ranges.last_mut() {
            _ if owner == NOBODY => {}
            Some((_, last, before)) if *before == owner && *last + 1 == slot => *last = slot,
            _ => ranges.push((slot, slot, owner)),
        }
    }
    ranges
}

/// A node of CLUSTER SLOTS: where to go, and what else is known of where it is.
fn slots_node(cx: &mut Ctx<'_>, node: &Endpoint) {
    cx.reply.array(4);
    let kind = cx.instance.config.word(settings::CLUSTER_PREFERRED_ENDPOINT_TYPE);
    match kind {
        "unknown-endpoint" => cx.reply.null(),
        _ => cx.reply.bulk(preferred(cx.instance, node).as_bytes()),
    }
    cx.reply.int(port_for(&cx.client.shared, node).into());
    cx.reply.bulk(node.id.as_bytes());
    let ip = (kind != "ip").then_some(("ip", &node.ip));
    let hostname = (kind != "hostname" && !node.hostname.is_empty()).then_some(("hostname", &node.hostname));
    let known = [ip, hostname];
    cx.reply.map(known.iter().flatten().count());
    for (name, value) in known.into_iter().flatten() {
        cx.reply.bulk(name.as_bytes());
        cx.reply.bulk(value.as_bytes());
    }
}

/// CLUSTER SHARDS
pub(super) fn shards(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let shards = ask(cx, |machine, _| machine.shards())?;
    cx.reply.array(shards.len());
    for shard in shards {
        cx.reply.map(2);
        cx.reply.bulk(b"slots");
        cx.reply.array(2 * shard.slots.len());
        for range in &shard.slots {
            cx.reply.int((*range.start()).into());
            cx.reply.int((*range.end()).into());
        }
        cx.reply.bulk(b"nodes");
        cx.reply.array(shard.nodes.len());
        shard.nodes.iter().for_each(|node| shards_node(cx, node));
    }
    Ok(())
}

/// A node of CLUSTER SHARDS.
fn shards_node(cx: &mut Ctx<'_>, node: &ShardNode) {
    let kind = cx.instance.config.word(settings::CLUSTER_PREFERRED_ENDPOINT_TYPE);
    let ports = [("port", node.port), ("tls-port", node.tls_port)];
    let ports = ports.iter().filter(|(_, port)| *port != 0);
    cx.reply.map(6 + ports.clone().count() + usize::from(!node.hostname.is_empty()));
    let text = |cx: &mut Ctx<'_>, name: &str, value: &str| {
        cx.reply.bulk(name.as_bytes());
        cx.reply.bulk(value.as_bytes());
    };
    text(cx, "id", node.id.as_str());
    for (name, port) in ports {
        cx.reply.bulk(name.as_bytes());
        cx.reply.int((*port).into());
    }
    text(cx, "ip", &node.ip);
    match kind {
        "ip" => text(cx, "endpoint", &node.ip),
        "hostname" if node.hostname.is_empty() => text(cx, "endpoint", "?"),
        "hostname" => text(cx, "endpoint", &node.hostname),
        // CLUSTER SLOTS has a null here.
        _ => text(cx, "endpoint", ""),
    }
    if !node.hostname.is_empty() {
        text(cx, "hostname", &node.hostname);
    }
    text(cx, "role", if node.is_replica { "replica" } else { "master" });
    cx.reply.bulk(b"replication-offset");
    cx.reply.int(node.offset as i64);
    text(cx, "health", node.health);
}
