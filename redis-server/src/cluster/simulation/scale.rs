//! Clusters from 6 to 1,000 nodes: how much they say to each other, and how long changes take, next to what the rules make one
//! expect.
//!
//! `cargo test --release -p redis-server --lib simulation::scale -- --ignored --nocapture`; `SIZES=6,100` for others, `TIMEOUT=2000`.

use super::world::{Net, World, ip};
use super::{agree, formed};
use crate::cluster::Millis;
use crate::cluster::packet::HEADER;

/// Bytes of an entry of gossip.
const ENTRY: usize = 104;

/// How long the talk of an undisturbed cluster is counted.
const QUIET: Millis = 60_000;

/// How long a change may take.
const LIMIT: Millis = 600_000;

/// What was measured of one size. Times are in milliseconds.
struct Figures {
    /// Bytes that a node sends in a second.
    talk: f64,
    /// Packets that it sends in a second.
    packets: f64,
    /// From a primary's end to all agreeing that its replica has its slots.
    failover: Millis,
    /// From MEET on one node to all knowing the new one.
    join: Millis,
    /// From a partition's end to all agreeing.
    heal: Millis,
}

#[test]
#[ignore = "the large ones take minutes, and a gigabyte"]
fn tables() {
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let timeout: Millis = variable("TIMEOUT", "15000").parse().expect("milliseconds");
    println!("cluster-node-timeout {timeout} ms; half of the nodes are primaries; 1 to 3 ms between two nodes\n");
    println!("| nodes | packets/s | bytes/s | at most, by the rules | failover s | by the rules | join s | heal s |");
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for size in variable("SIZES", "6,12,25,50,100,200").split(',') {
        let nodes: usize = size.parse().expect("a number");
        let figures = measure(nodes, timeout);
        let seconds = |time: Millis| time as f64 / 1000.0;
        let (least, likely) = expected_failover(nodes, figures.packets, timeout);
        println!(
            "| {nodes} | {:.1} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} | {:.2} |",
            figures.packets,
            figures.talk,
            most_talk(nodes, timeout),
            seconds(figures.failover),
            seconds(likely),
            seconds(figures.join),
            seconds(figures.heal),
        );
        assert!(figures.talk <= most_talk(nodes, timeout), "they talk more than the rules say");
        assert!(
            (least..=likely + timeout / 2).contains(&figures.failover),
            "a failover takes another time than the rules say"
        );
    }
}

/// A small one, always.
#[test]
fn a_dozen_keep_to_the_rules() {
    let figures = measure(12, 2000);
    assert!(figures.talk > 0.0 && figures.talk <= most_talk(12, 2000), "{} bytes/s", figures.talk);
    let (least, likely) = expected_failover(12, figures.packets, 2000);
    assert!((least..=likely + 1000).contains(&figures.failover), "{} ms", figures.failover);
}

/// Each node asks one other in a second, and every other one at least twice in a timeout, and is answered; others ask it as much. A packet tells of a tenth of
/// the nodes, and of three at least.
fn most_talk(nodes: usize, timeout: Millis) -> f64 {
    let told = (nodes / 10).max(3);
    let asked = 1.0 + (nodes - 1) as f64 / (timeout as f64 / 2000.0);
    2.0 * asked * (HEADER + ENTRY * told) as f64
}

/// At least: a timeout without an answer, and the election's least delay. Likely: reports come with the packets that a node gets, half of which
/// are primaries', until most primaries have reported; and the election's mean delay.
fn expected_failover(nodes: usize, packets: f64, timeout: Millis) -> (Millis, Millis) {
    let reports = (nodes / 2 / 2) as f64;
    let gathering = 1000.0 * reports / (packets / 2.0);
    (timeout + 500, timeout + gathering as Millis + 750 + 200)
}

fn measure(nodes: usize, timeout: Millis) -> Figures {
    let primaries = nodes / 2;
    // The last one is not there yet.
    let mut world = formed(primaries, nodes - primaries, timeout, Net::GOOD, nodes as u64);
    world.run(2 * timeout);
    assert!(agree(&world), "they do not agree");

    world.sent = (0, 0);
    world.run(QUIET);
    let per_second = |count: u64| count as f64 / nodes as f64 / (QUIET / 1000) as f64;
    let (talk, packets) = (per_second(world.sent.0), per_second(world.sent.1));

    world.crash(0, false);
    let has_taken_over = |world: &World| {
        let sees = |host: &super::world::Host| {
            let routing = &host.routing;
            let owner = routing.node(routing.owners[0]);
            routing.is_ok && owner.is_some_and(|owner| owner.id != super::id_of(0))
        };
        world.hosts.iter().filter(|host| host.machine.is_some()).all(sees)
    };
    let failover = world.wait(LIMIT, 20, has_taken_over).expect("a replica takes over");
    world.start(0);
    world.wait(LIMIT, 500, agree).expect("it becomes a replica");

    let join = join(&mut world, timeout);

    let parts = (0..world.hosts.len()).map(|host| u32::from(host % 5 == 0)).collect();
    world.split(parts);
    world.run(3 * timeout);
    world.split(vec![0; world.hosts.len()]);
    let heal = world.wait(LIMIT, 500, agree).expect("they agree again");
    assert!(world.oaths.broken.is_empty(), "{:?}", world.oaths.broken);
    Figures { talk, packets, failover, join, heal }
}

/// A new node is introduced to one.
fn join(world: &mut World, timeout: Millis) -> Millis {
    let new = world.add_host(timeout);
    world.start(new);
    let introduced = world.tell(1, |machine, now| machine.meet(ip(new).as_bytes(), 6379, 16_379, now));
    introduced.expect("an address");
    let size = world.hosts.len();
    let know = |world: &World| world.hosts.iter().all(|host| host.routing.nodes.len() == size);
    world.wait(LIMIT, 100, know).expect("all know it")
}
