//! Definitions of the cluster: indexes, aliases, synonyms and dictionaries are the same at each primary.
//!
//! - The owner of the lowest slot is the **leader**. It makes changes one after the other, whichever node a client has asked.
//! - The catalog as a whole has a **version**, which rises with each change. Replicas, snapshots and the append-only file have it too.
//! - The leader sends each change to all primaries. A primary with an older version than the change is for gets the whole catalog.
//! - The leader compares versions with all primaries every second, and they with the leader. So a node that comes, or was down, gets what it has
//!   missed. Where nothing was ever defined, the version is 0, and nodes say nothing.
//! - A leader adopts a higher version before it makes a change: a new leader may have missed something.

use std::io::ErrorKind;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use super::shards::{address, refusal, unreachable};
use crate::cluster::{NOBODY, NodeId, Routing};
use crate::command::Result;
use crate::exec::core::clock::steady_ms;
use crate::exec::core::links::{Address, Answer, Link};
use crate::exec::core::{Instance, RunHere};
use crate::protocol::error::Error;

/// How often a node asks for the leader, and the pause in between: roles change.
const TRIES: usize = 50;
const PAUSE: Duration = Duration::from_millis(100);
/// How long the leader may take for a change, and another node for its part, in milliseconds.
const LEADER: u64 = 30_000;
const MEMBER: u64 = 10_000;
/// The time between two comparisons of versions, in milliseconds.
const PERIOD: u64 = 1000;
/// The bits of a version that name the leader which made it: leaders of two clusters that become one have counted alike.
const ORIGIN: u32 = 20;

const DOWN: Error = Error::Static("CLUSTERDOWN The cluster is down");

/// The node that makes changes.
fn leader(routing: &Routing) -> Option<u16> {
    routing.owners.iter().copied().find(|owner| *owner != NOBODY)
}

/// The other primaries that are there.
fn others(routing: &Routing) -> Vec<u16> {
    let is_other = |at: &u16| {
        let node = &routing.nodes[usize::from(*at)];
        *at != routing.me && !node.is_replica && !node.has_failed
    };
    (0..routing.nodes.len() as u16).filter(is_other).collect()
}

/// Owners of slots that the cluster takes for failed.
fn failed(routing: &Routing) -> impl Iterator<Item = u16> {
    let owns = |node: u16| routing.owners.contains(&node);
    (0..routing.nodes.len() as u16).filter(move |at| routing.nodes[usize::from(*at)].has_failed && owns(*at))
}

fn next_version(routing: &Routing, version: u64) -> u64 {
    let name = routing.node(routing.me).map_or([0; 40], |me| *me.id.as_bytes());
    let origin = name.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    ((version >> ORIGIN) + 1) << ORIGIN | origin & ((1 << ORIGIN) - 1)
}

/// Has the leader change the definitions by a client's call. Returns its reply.
///
/// # Errors
/// There is no leader, or it cannot be reached.
pub(crate) fn change(instance: &Instance, words: &[&[u8]], run_here: &mut RunHere<'_>) -> Result<Vec<Vec<u8>>> {
    for _ in 0..TRIES {
        let routing = instance.cluster.routing();
        let Some(leader) = leader(&routing).filter(|_| routing.is_ok) else { return Err(DOWN) };
        if leader == routing.me {
            return lead(instance, words, run_here);
        }
        let request = [&[b"FT._PROPOSE".as_slice()], words].concat();
        let failed = || unreachable(&routing, leader);
        let address = address(instance, &routing, leader).ok_or_else(failed)?;
        let name = routing.node(leader).ok_or_else(failed)?.id;
        // A connection that was kept may be closed, and a call that may have run is not repeated.
        let mut link = instance.links.fresh(&instance.config, &address).map_err(|_| failed())?;
        link.send(&request).map_err(|_| failed())?;
        match listen(instance, &mut link, name, LEADER).map_err(|_| failed())? {
            Answer::Line(line) if line.starts_with(b"-TRYAGAIN") => thread::sleep(PAUSE),
            answer => return Ok(vec![encoded(answer)]),
        }
        if instance.is_ending() {
            break;
        }
    }
    Err(Error::Static("TRYAGAIN The leader of the cluster changes"))
}

/// Waits for a node's answer, as long as the node is there.
fn listen(instance: &Instance, link: &mut Link, node: NodeId, time: u64) -> std::io::Result<Answer> {
    let began = steady_ms();
    let is_there = || instance.cluster.routing().nodes.iter().any(|known| known.id == node && !known.has_failed);
    link.answer(&|| steady_ms().saturating_sub(began) < time && !instance.is_ending() && is_there())
}

fn encoded(answer: Answer) -> Vec<u8> {
    match answer {
        Answer::Line(line) => [&line, b"\r\n".as_slice()].concat(),
        Answer::Bulk(bytes) => [format!("${}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat(),
    }
}

/// Makes a change as the leader.
///
/// # Errors
/// This node is not the leader.
pub(crate) fn lead(instance: &Instance, words: &[&[u8]], run_here: &mut RunHere<'_>) -> Result<Vec<Vec<u8>>> {
    let routing = instance.cluster.routing();
    if leader(&routing) != Some(routing.me) || !routing.is_ok {
        return Err(Error::Static("TRYAGAIN This node does not lead the cluster"));
    }
    let search = &instance.search;
    let _turn = search.changes();
    let others = others(&routing);
    // A node that cannot be reached asks when it can.
    let versions = ask_each(instance, &routing, &others, &[b"FT._CATALOG", b"VERSION"]);
    let (there, away): (Vec<_>, Vec<_>) = versions.into_iter().partition(|(_, answer)| answer.is_ok());
    let there = there.into_iter().map(|(node, answer)| (answer.ok().as_ref().and_then(version_of), node));
    let there: Vec<(Option<u64>, u16)> = there.collect();
    if let Some((Some(version), node)) = there.iter().max().copied()
        && version > search.version()
    {
        adopt(instance, &routing, node, run_here)?;
    }
    let (from, to) = (search.version(), next_version(&routing, search.version()));
    let (from, to) = (from.to_string(), to.to_string());
    let head: [&[u8]; 4] = [b"FT._DEFINE", b"APPLY", from.as_bytes(), to.as_bytes()];
    let request = [&head, words].concat();
    let reply = run_here(&request);
    if reply.starts_with(b"-") {
        return Ok(vec![reply]);
    }
    let there: Vec<u16> = there.into_iter().map(|(_, node)| node).collect();
    let answers = ask_each(instance, &routing, &there, &request);
    let mut missed: Vec<u16> = away.into_iter().map(|(node, _)| node).chain(failed(&routing)).collect();
    for (node, answer) in answers {
        match answer {
            Ok(answer) if !is_error(&answer) => {}
            // Its catalog is another one.
            Ok(_) => {
                if let Err(error) = send_all(instance, &routing, node, run_here) {
                    tracing::warn!("definitions of indexes for another node: {error}");
                    missed.push(node);
                }
            }
            Err(_) => missed.push(node),
        }
    }
    match missed.first() {
        Some(node) if words.last().is_some_and(|word| word.eq_ignore_ascii_case(b"DD")) => {
            let name = routing.node(*node).map_or_else(String::new, |node| node.id.to_string());
            let why = format!("The index is gone, but node {name} cannot be reached and keeps its documents");
            Err(Error::Message(why))
        }
        _ => Ok(vec![reply]),
    }
}

/// Sends a call to some nodes at the same time.
fn ask_each(
    instance: &Instance,
    routing: &Routing,
    nodes: &[u16],
    request: &[&[u8]],
) -> Vec<(u16, std::io::Result<Answer>)> {
    let send = |node: u16| {
        let address = address(instance, routing, node).ok_or(ErrorKind::NotFound)?;
        let mut link = instance.links.take(&instance.config, &address)?;
        if link.send(request).is_err() {
            link = instance.links.renew(&instance.config, &address)?;
            link.send(request)?;
        }
        Ok((address, link))
    };
    let links: Vec<(u16, std::io::Result<(Address, Link)>)> = nodes.iter().map(|node| (*node, send(*node))).collect();
    let read = |node: u16, (address, mut link): (Address, Link)| {
        let name = routing.node(node).ok_or(ErrorKind::NotFound)?.id;
        let mut answer = listen(instance, &mut link, name, MEMBER);
        let is_closed = matches!(&answer, Err(error) if error.kind() != ErrorKind::TimedOut);
        if is_closed && link.was_kept {
            link = instance.links.renew(&instance.config, &address)?;
            link.send(request)?;
            answer = listen(instance, &mut link, name, MEMBER);
        }
        let answer = answer?;
        instance.links.put(address, link);
        Ok(answer)
    };
    links.into_iter().map(|(node, link)| (node, link.and_then(|link| read(node, link)))).collect()
}

fn is_error(answer: &Answer) -> bool {
    matches!(answer, Answer::Line(line) if line.starts_with(b"-"))
}

fn version_of(answer: &Answer) -> Option<u64> {
    let Answer::Line(line) = answer else { return None };
    std::str::from_utf8(line.strip_prefix(b":")?).ok()?.parse().ok()
}

/// Takes the catalog of another node over.
fn adopt(instance: &Instance, routing: &Routing, node: u16, run_here: &mut RunHere<'_>) -> Result {
    let answers = ask_each(instance, routing, &[node], &[b"FT._CATALOG", b"ALL"]);
    let answer = answers.into_iter().next().and_then(|(_, answer)| answer.ok());
    match answer.ok_or_else(|| unreachable(routing, node))? {
        Answer::Bulk(catalog) => {
            let reply = run_here(&[b"FT._DEFINE", b"ALL", &catalog]);
            if reply.starts_with(b"-") { Err(refusal(reply.trim_ascii_end())) } else { Ok(()) }
        }
        Answer::Line(line) => Err(refusal(&line)),
    }
}

/// Gives another node the catalog of this one.
fn send_all(instance: &Instance, routing: &Routing, node: u16, run_here: &mut RunHere<'_>) -> Result {
    let Ok(Answer::Bulk(catalog)) = Answer::parse(&run_here(&[b"FT._CATALOG", b"ALL"])) else {
        return Err(unreachable(routing, node));
    };
    let answers = ask_each(instance, routing, &[node], &[b"FT._DEFINE", b"ALL", &catalog]);
    match answers.into_iter().next() {
        Some((_, Ok(Answer::Line(line)))) if line.starts_with(b"-") => Err(refusal(&line)),
        Some((_, Ok(_))) => Ok(()),
        _ => Err(unreachable(routing, node)),
    }
}

/// A node that was alone has changed its definitions: they are newer than those of nodes that join.
pub(crate) fn count(instance: &Instance) {
    let (routing, search) = (instance.cluster.routing(), &instance.search);
    search.set_version(next_version(&routing, search.version()));
}

/// Returns true if it is time to compare versions. Nodes without definitions say nothing to each other.
pub(crate) fn is_due(instance: &Instance) -> bool {
    let search = &instance.search;
    if !instance.cluster.has_others() || instance.replication.is_replica() {
        return false;
    }
    // Definitions of a file of a server that was no node are older than those of any cluster.
    if search.version() == 0 && search.has_indexes() {
        search.set_version((next_version(&instance.cluster.routing(), 0) & ((1 << ORIGIN) - 1)).max(1));
    }
    if search.version() == 0 {
        return false;
    }
    let (now, due) = (steady_ms(), &instance.search.look_at);
    let at = due.load(Relaxed);
    now >= at && due.compare_exchange(at, now + PERIOD, Relaxed, Relaxed).is_ok()
}

/// Compares versions: the leader with all other primaries, another primary with the leader. The catalog with the highest version goes to those that
/// have older ones.
///
/// # Errors
/// Another node refuses, or cannot be reached.
pub(crate) fn compare(instance: &Instance, run_here: &mut RunHere<'_>) -> Result<Vec<Vec<u8>>> {
    let routing = instance.cluster.routing();
    let others = others(&routing);
    let Some(leader) = leader(&routing) else { return Ok(Vec::new()) };
    let asked: Vec<u16> = others.into_iter().filter(|node| leader == routing.me || *node == leader).collect();
    let _turn = instance.search.changes();
    let answers = ask_each(instance, &routing, &asked, &[b"FT._CATALOG", b"VERSION"]);
    let version = |(node, answer): (u16, std::io::Result<Answer>)| Some((version_of(&answer.ok()?)?, node));
    let versions: Vec<(u64, u16)> = answers.into_iter().filter_map(version).collect();
    if let Some((newest, node)) = versions.iter().max().copied()
        && newest > instance.search.version()
    {
        adopt(instance, &routing, node, run_here)?;
    }
    let own = instance.search.version();
    let older = versions.into_iter().filter(|(version, _)| *version < own);
    older.map(|(_, node)| send_all(instance, &routing, node, run_here)).collect::<Result<Vec<()>>>()?;
    Ok(Vec::new())
}
