//! Clusters from 6 to 1,000 nodes: how much they say to each other, and how long changes take, next to what the rules make one
//! expect.
//!
//! `cargo xtask clusters --record` keeps and draws them. By themselves, a line of JSON for each size:
//! `SIZES=6,100 TIMEOUT=2000 cargo test --release -p redis-server --lib simulation::scale -- --ignored --nocapture`

use super::world::{Net, World, ip};
use super::{agree, prepared};
use crate::cluster::Millis;
use crate::cluster::packet::HEADER;

/// Bytes of an entry of gossip.
const ENTRY: usize = 104;

/// How long a change may take.
const LIMIT: Millis = 600_000;

/// How often it is seen whether a change is over.
const STEP: Millis = 20;

/// The same where that means to compare all views.
const LONG_STEP: Millis = 250;

/// A packet in a thousand is lost and sent again, one in a million breaks its connection.
const NET: Net = Net { losses: 1000, resets: 1, ..Net::GOOD };

/// The figures of one size, measured or predicted by the rules. Times are in milliseconds.
#[derive(Clone, Copy, Debug)]
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
#[ignore = "the large ones take many minutes, and gigabytes"]
fn rows() {
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let timeout: Millis = variable("TIMEOUT", "15000").parse().expect("milliseconds");
    for size in variable("SIZES", "6,12,25,50,100,200").split(',') {
        let nodes: usize = size.parse().expect("a number");
        let seen = Figures::median(nodes, timeout);
        let rules = Figures::by_rules(nodes, timeout, seen.packets);
        println!("{{\"nodes\":{nodes},\"timeout\":{timeout},\"seen\":{},\"rules\":{}}}", seen.json(), rules.json());
        seen.check(&rules, timeout);
    }
}

/// A small one, always.
#[test]
fn a_dozen_keep_to_the_rules() {
    let seen = measure(12, 2000, 12);
    seen.check(&Figures::by_rules(12, 2000, seen.packets), 2000);
}

impl Figures {
    /// Each figure's median of some runs; of large clusters one run says enough.
    fn median(nodes: usize, timeout: Millis) -> Self {
        let runs = (600 / nodes as u64).clamp(1, 25) | 1;
        let runs: Vec<Self> = (0..runs).map(|seed| measure(nodes, timeout, seed)).collect();
        let middle = |of: &dyn Fn(&Self) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self {
            talk: middle(&|run| run.talk),
            packets: middle(&|run| run.packets),
            failover: middle(&|run| run.failover as f64) as Millis,
            join: middle(&|run| run.join as f64) as Millis,
            heal: middle(&|run| run.heal as f64) as Millis,
        }
    }

    /// The prediction of the rules for a cluster whose nodes send `packets` packets per second.
    ///
    /// - `talk`, `packets`: at most. A node asks one other in a second, and each other one twice in a timeout, and is answered;
    ///   others ask it as much. A packet tells of a tenth of the nodes, and of three at least.
    /// - `failover`: the timeout without an answer passes first. Then reports arrive with the packets that a node gets, half of them from
    ///   primaries, until most primaries have reported. The election's mean delay of 750 ms and two periods of 100 ms end it.
    /// - `join`: a rumour that each who knows tells others at `rate` grows as the logistic curve does; each meets the new one in its next period.
    /// - `heal`: a node that was cut off serves again when it has seen most primaries for a timeout, for half a second to five.
    fn by_rules(nodes: usize, timeout: Millis, packets: f64) -> Self {
        let told = (nodes / 10).max(3);
        let asked = 1.0 + (nodes - 1) as f64 / (timeout as f64 / 2000.0);
        let reports = (nodes / 2 / 2) as f64;
        let gathering = 1000.0 * reports / (packets / 2.0);
        let rate = packets * (told as f64 / (nodes - 2) as f64).min(1.0);
        let spreading = 1000.0 * 2.0 * (nodes as f64).ln() / rate;
        Self {
            talk: 2.0 * asked * (HEADER + ENTRY * told) as f64,
            packets: 2.0 * asked,
            failover: timeout + gathering as Millis + 750 + 200,
            join: spreading as Millis + 200,
            heal: timeout.clamp(500, 5000) + 200,
        }
    }

    /// Chance may add half a timeout to a time, and double the time that a rumour takes.
    #[track_caller]
    fn check(&self, rules: &Self, timeout: Millis) {
        assert!(self.talk > 0.0 && self.talk <= rules.talk, "they talk more than the rules say: {self:?}, {rules:?}");
        let (least, most) = (timeout + 500, rules.failover + timeout / 2);
        assert!((least..=most).contains(&self.failover), "failover: {self:?}, {rules:?}");
        assert!(self.join <= 2 * rules.join + timeout / 2, "join: {self:?}, {rules:?}");
        assert!(self.heal <= rules.heal + timeout / 2 + 2 * LONG_STEP, "heal: {self:?}, {rules:?}");
    }

    fn json(&self) -> String {
        let Self { talk, packets, failover, join, heal } = self;
        format!(
            "{{\"talk\":{talk:.0},\"packets\":{packets:.1},\"failover\":{failover},\"join\":{join},\"heal\":{heal}}}"
        )
    }
}

fn measure(nodes: usize, timeout: Millis, seed: u64) -> Figures {
    let primaries = nodes / 2;
    let mut world = prepared(primaries, nodes - primaries, timeout, NET, seed);
    // Those that are started together ask each other together ever after.
    for host in 0..nodes {
        world.start(host);
        world.run((timeout / 2 / nodes as Millis).max(1));
    }
    world.run(2 * timeout);
    world.wait(LIMIT, LONG_STEP, agree).expect("they agree to begin with");

    // Each asks every other one four times.
    world.sent = (0, 0);
    let quiet = 2 * timeout;
    world.run(quiet);
    let per_second = |count: u64| count as f64 * 1000.0 / nodes as f64 / quiet as f64;
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
    let failover = world.wait(LIMIT, STEP, has_taken_over).expect("a replica takes over");
    world.start(0);
    world.wait(LIMIT, LONG_STEP, agree).expect("it becomes a replica");

    let join = join(&mut world, timeout);
    world.wait(LIMIT, LONG_STEP, agree).expect("they agree with the new one");

    // A primary that has failed is let in again two timeouts later at the earliest: they have passed when the partition ends.
    let parts = (0..world.hosts.len()).map(|host| u32::from(host % 5 == 0)).collect();
    world.split(parts);
    world.run(4 * timeout);
    world.split(vec![0; world.hosts.len()]);
    let heal = world.wait(LIMIT, LONG_STEP, agree).expect("they agree again");
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
    world.wait(LIMIT, STEP, know).expect("all know it")
}
