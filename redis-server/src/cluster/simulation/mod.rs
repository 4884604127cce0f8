//! Clusters in virtual time: connections that are slow, break, and cut and repeat what they carry; partitions; servers that stall,
//! crash, and start again from their files. A seed makes the same run again.

mod faults;
mod moves;
mod oaths;
mod scale;
mod world;

use super::random::Random;
use super::{Millis, NodeId, SLOTS, Settings, SlotSet};
use faults::{Counts, Fault};
use world::{Net, World, ip};

/// A short timeout makes a short run.
const TIMEOUT: Millis = 1000;

/// How long it may take until all agree when nothing disturbs them any more.
const LIMIT: Millis = 60_000;

fn settings(timeout: Millis) -> Settings {
    Settings { node_timeout: timeout, ..Settings::default() }
}

fn id_of(host: usize) -> NodeId {
    let mut random = Random::new([host as u64, 9, 9, 9]);
    NodeId::from_random(|| random.next())
}

/// The first hosts are primaries, and the others are their replicas in turn; all know each other.
fn formed(primaries: usize, replicas: usize, timeout: Millis, net: Net, seed: u64) -> World {
    let mut world = prepared(primaries, replicas, timeout, net, seed);
    for host in 0..primaries + replicas {
        world.start(host);
    }
    world
}

/// The same, not started yet.
fn prepared(primaries: usize, replicas: usize, timeout: Millis, net: Net, seed: u64) -> World {
    let hosts = primaries + replicas;
    let mut world = World::new(hosts, &settings(timeout), net, seed);
    let line = |host: usize| {
        let (id, address) = (id_of(host), ip(host));
        if host >= primaries {
            let primary = id_of(host % primaries);
            return format!("{id} {address}:6379@16379 slave {primary} 0 0 0 connected\n");
        }
        let (first, last) = (host * SLOTS / primaries, (host + 1) * SLOTS / primaries - 1);
        format!("{id} {address}:6379@16379 master - 0 0 {} connected {first}-{last}\n", host + 1)
    };
    let lines: Vec<String> = (0..hosts).map(line).collect();
    for host in 0..hosts {
        let mut text = String::new();
        for (at, line) in lines.iter().enumerate() {
            let mine = if at == host { line.replacen(" master", " myself,master", 1) } else { line.clone() };
            text.push_str(&if at == host { mine.replacen(" slave", " myself,slave", 1) } else { mine });
        }
        text.push_str(&format!("vars currentEpoch {primaries} lastVoteEpoch 0\n"));
        world.write_disk(host, &text);
    }
    world
}

/// Whether all running nodes agree on the nodes, their primaries and the owners of slots, and report a healthy cluster.
fn agree(world: &World) -> bool {
    let mut first: Option<Vec<(NodeId, bool, Option<NodeId>)>> = None;
    let mut owners: Option<Vec<(usize, Option<NodeId>)>> = None;
    for host in world.hosts.iter().filter(|host| host.machine.is_some()) {
        let routing = &host.routing;
        if !routing.is_ok
            || routing.nodes.len() != world.hosts.len()
            || routing.nodes.iter().any(|node| node.has_failed)
        {
            return false;
        }
        let name = |at: u16| routing.node(at).map(|node| node.id);
        let mut nodes: Vec<_> =
            routing.nodes.iter().map(|node| (node.id, node.is_replica, name(node.primary))).collect();
        nodes.sort_unstable();
        if *first.get_or_insert_with(|| nodes.clone()) != nodes {
            return false;
        }
        let mut seen = vec![(0, name(routing.owners[0]))];
        let changes = routing.owners.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]);
        seen.extend(changes.map(|(at, pair)| (at + 1, name(pair[1]))));
        if *owners.get_or_insert_with(|| seen.clone()) != seen {
            return false;
        }
    }
    true
}

/// One run: a cluster, what befalls it, and peace.
fn run(seed: u64, counts: &mut Counts) -> Result<(), String> {
    let mut random = Random::new([seed, 1, 1, 1]);
    let hosts = 3 + random.below(10) as usize;
    let primaries = (hosts / 2).clamp(1, hosts).max(3).min(hosts);
    let mut world = formed(primaries, hosts - primaries, TIMEOUT, Net::GOOD, seed);
    world.oaths.keeps_lines = counts.keeps_lines;
    world.run(4000);
    if !agree(&world) {
        return Err("they do not even agree to begin with".to_owned());
    }
    for _ in 0..1 + random.below(4) {
        let fault = Fault::draw(&mut random);
        counts.note(fault);
        fault.befall(&mut world, &mut random);
    }
    faults::make_peace(&mut world);
    let took = world.wait(LIMIT, 250, agree);
    counts.votes += world.oaths.votes_given;
    counts.longest = counts.longest.max(took.unwrap_or(LIMIT));
    if counts.keeps_lines {
        for (at, host, line) in &world.oaths.lines {
            println!("{:>8} {host:>2} {line}", at - world::START);
        }
        for host in &world.hosts {
            println!("{}", host.machine.as_ref().expect("all are up").saved_text());
        }
    }
    if let Some(broken) = world.oaths.broken.first() {
        return Err(broken.clone());
    }
    took.map(|_| ()).ok_or_else(|| "they do not agree".to_owned())
}

/// Runs seeds, and shows the first that fails.
fn check(seeds: std::ops::Range<u64>) -> Counts {
    let mut counts = Counts::default();
    for seed in seeds {
        if let Err(why) = run(seed, &mut counts) {
            let _ = run(seed, &mut Counts { keeps_lines: true, ..Counts::default() });
            panic!("seed {seed}: {why}");
        }
    }
    counts
}

#[test]
fn clusters_of_3_to_12_survive() {
    let counts = check(0..60);
    println!("{counts}");
    assert!(counts.is_complete(), "some fault has not befallen anybody: {counts}");
}

/// `cargo test --release -p redis-server --lib simulation::ten_thousand -- --ignored --nocapture`; `SEEDS=from..to` for others.
#[test]
#[ignore = "takes a minute when optimized, and long otherwise"]
fn ten_thousand_clusters_survive() {
    let range = std::env::var("SEEDS").unwrap_or_else(|_| "0..10000".to_owned());
    let (from, to) = range.split_once("..").expect("a range");
    println!("{}", check(from.parse().expect("a number")..to.parse().expect("a number")));
}

/// The search finds a rule that is broken: voters that forget whom they have voted for.
#[test]
fn a_broken_rule_is_found() {
    let mut found = 0;
    for seed in 0..20 {
        let net = Net { delay: (50, 150), ..Net::GOOD };
        let mut world = formed(3, 9, TIMEOUT, net, seed);
        world.forgets_votes = true;
        world.run(4000);
        world.crash(0, false);
        world.run(20_000);
        found += usize::from(!world.oaths.broken.is_empty());
    }
    assert!(found > 0, "nobody has noticed");
}

/// Nodes that only one of them is told of find each other, get slots and replicas.
#[test]
fn strangers_become_a_cluster() {
    let mut world = World::new(6, &settings(TIMEOUT), Net::GOOD, 5);
    for host in 0..6 {
        world.start(host);
        let slots: SlotSet = (0..SLOTS as u16).filter(|slot| usize::from(*slot) % 3 == host).collect();
        if host < 3 {
            world.tell(host, |machine, now| machine.set_config_epoch(host as i64 + 1, now)).expect("it is alone");
            world.tell(host, |machine, now| machine.add_slots(&slots, now)).expect("nobody has them");
        }
    }
    for host in 1..6 {
        world.tell(0, |machine, now| machine.meet(ip(host).as_bytes(), 6379, 16_379, now)).expect("an address");
    }
    let know = |world: &World| world.hosts.iter().all(|host| host.routing.nodes.len() == 6 && host.routing.is_ok);
    assert!(world.wait(20_000, 100, know).is_some(), "they have not met");
    for host in 3..6 {
        let primary = world.hosts[host - 3].machine.as_ref().expect("it is up").my_id();
        world.tell(host, |machine, now| machine.replicate(primary.as_bytes(), false, now)).expect("it has nothing");
    }
    world.run(1000);
    assert!(world.wait(20_000, 100, agree).is_some(), "they do not agree");
    assert!(world.oaths.broken.is_empty(), "{:?}", world.oaths.broken);
    let replicas = world.hosts[0].routing.nodes.iter().filter(|node| node.is_replica).count();
    assert_eq!(replicas, 3);
}
