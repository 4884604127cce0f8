//! Packets that chance has damaged: nothing panics, and only members change anything.

use super::super::super::packet::{Extension, Gossip};
use super::super::super::random::Random;
use super::*;

/// The state that a stranger's packet must not change.
fn state(bench: &Bench) -> String {
    bench.machine.saved_text()
}

fn packet(random: &mut Random, kind: Kind) -> Vec<u8> {
    let digits = ['a', 'b', 'c', 'd', 'e', '9'];
    let pick = |random: &mut Random| digits[random.below(6) as usize];
    let mut word = Word::of(['b', 'c', 'd', 'e'][random.below(4) as usize]);
    if random.below(2) == 0 {
        word.sender = id(pick(random));
    }
    if random.below(4) == 0 {
        (word.epoch, word.config_epoch) = (random.below(12), random.below(12));
        word.primary = (random.below(2) == 0).then(|| id(pick(random)));
        word.slots = (0..40).filter(|_| random.below(2) == 0).collect();
    }
    let mut draft = word.draft(kind);
    match kind {
        Kind::Ping | Kind::Pong | Kind::Meet => {
            for _ in 0..random.below(3) {
                let (flags, ip) = (Flags(random.next() as u16), if random.below(9) == 0 { "" } else { "10.0.0.7" });
                let (id, ping_sent, pong_received) = (id(pick(random)), 0, random.next() as u32);
                draft.gossip(&Gossip { id, ping_sent, pong_received, ip, port: 1, bus_port: 2, flags, other_port: 3 });
            }
            for _ in 0..random.below(3) {
                let id = id(pick(random));
                draft.extension(&match random.below(4) {
                    0 => Extension::Hostname("host"),
                    1 => Extension::Nodename("node"),
                    2 => Extension::Forgotten { id, ttl: random.below(100) },
                    _ => Extension::Shard(id),
                });
            }
        }
        Kind::Fail => draft.fail(id(pick(random))),
        Kind::Publish | Kind::PublishShard => draft.publish(b"channel", b"message"),
        Kind::Update => {
            let slots = (0..40).filter(|_| random.below(2) == 0).collect();
            draft.update(random.below(12), id(pick(random)), &slots);
        }
        Kind::AuthRequest | Kind::AuthAck | Kind::ManualFailover | Kind::Module => {}
    }
    draft.finish()
}

/// So many packets to nodes, with time and breaks between them; how many were no member's.
fn bombard(count: u64, seed: u64) -> u64 {
    let mut random = Random::new([seed, 5, 6, 7]);
    let mut strange = 0;
    let mut bench = Bench::new('a');
    for round in 0..count {
        // A node that has been told much nonsense is no good judge any more.
        if round % 500 == 0 {
            bench = Bench::new(['a', 'd', 'e'][random.below(3) as usize]);
        }
        let kind = Kind::ALL[random.below(Kind::ALL.len() as u64) as usize];
        let mut bytes = packet(&mut random, kind);
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next() as u8;
        }
        if random.below(20) == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        let sender = Packet::parse(&bytes).map(|packet| packet.header.sender);
        let is_member = sender.is_some_and(|id| bench.machine.nodes.find(id).is_some());
        let before = (!is_member).then(|| state(&bench));
        // Half come on the node's own connections.
        let links: Vec<Link> = bench.machine.links.keys().copied().collect();
        let link = match links.get(random.below(links.len() as u64 + 1) as usize) {
            Some(link) => *link,
            None => bench.machine.accept("10.0.0.8", "10.0.0.1", bench.now).expect("there is room"),
        };
        let is_answer = !bench.machine.links[&link].is_inbound;
        bench.machine.receive(link, &bytes, bench.now);
        bench.take();
        if let Some(before) = before.filter(|_| !is_answer) {
            strange += 1;
            assert_eq!(state(&bench), before, "seed {seed}, round {round}: {kind:?} of {sender:?}");
        }
        // Half of a packet must not wait for the next one.
        if sender.is_none() {
            bench.machine.closed(link, false, bench.now);
        }
        if random.below(8) == 0 {
            bench.pass(random.below(700));
            for action in bench.take() {
                if let Action::Connect { link, ip, .. } = action {
                    bench.machine.opened(link, &ip, "10.0.0.1", bench.now);
                }
            }
        }
    }
    strange
}

#[test]
fn damaged_packets_of_members_and_strangers() {
    assert!(bombard(4000, 1) > 100, "no stranger has said anything");
}

/// `PACKETS=10000000 cargo test --release -p redis-server --lib machine::tests::mutation -- --ignored --nocapture`
#[test]
#[ignore = "ten million take minutes"]
fn millions_of_damaged_packets() {
    let count: u64 = std::env::var("PACKETS").map_or(1_000_000, |count| count.parse().expect("a number"));
    println!(
        "{count} packets, {} of them of no member and on others' connections: nothing has changed",
        bombard(count, 2)
    );
}
