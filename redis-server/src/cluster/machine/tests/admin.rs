//! Subcommands.

use super::super::super::{Failover, SetSlot};
use super::*;
use crate::protocol::error::Error;

/// Errors, in the words of Redis or Valkey.
#[test]
fn refusals() {
    type Act<'a> = &'a dyn Fn(&mut Machine, Millis) -> Result<(), Error>;
    let check = |me: char, act: Act<'_>, expected: &str| {
        let mut bench = Bench::new(me);
        let before = bench.machine.saved_text();
        let now = bench.now;
        let result = act(&mut bench.machine, now).map_err(|error| error.to_string());
        assert_eq!(result, Err(expected.to_owned()));
        assert_eq!(bench.machine.saved_text(), before, "a refusal changes nothing");
    };
    let [a, b, d, nine] = ['a', 'b', 'd', '9'].map(|digit| digit.to_string().repeat(40));
    let [a, b, d, nine] = [&a, &b, &d, &nine].map(|name| name.as_bytes());
    let unknown = format!("ERR Unknown node {}", "9".repeat(40));
    let set = |slot: u16| -> SlotSet { [slot].into_iter().collect() };
    check('a', &|m, now| m.add_slots(&set(9), now), "ERR Slot 9 is already busy");
    check('a', &|m, now| m.add_slots(&set(15), now), "ERR Slot 15 is already busy");
    check('a', &|m, now| m.del_slots(&set(30), now), "ERR Slot 30 is already unassigned");
    check('a', &|m, now| m.flush_slots(true, now), "ERR DB must be empty to perform CLUSTER FLUSHSLOTS.");
    let slot = |m: &mut Machine, slot, what, now| m.set_slot(slot, what, 1, now);
    check('d', &|m, now| slot(m, 1, SetSlot::Stable, now), "ERR Please use SETSLOT only with masters.");
    check('a', &|m, now| slot(m, 10, SetSlot::Migrating(b), now), "ERR I'm not the owner of hash slot 10");
    check('a', &|m, now| slot(m, 1, SetSlot::Importing(b), now), "ERR I'm already the owner of hash slot 1");
    let about = format!("ERR I don't know about node {}", "9".repeat(40));
    check('a', &|m, now| slot(m, 1, SetSlot::Migrating(nine), now), &about);
    check('a', &|m, now| slot(m, 10, SetSlot::Importing(nine), now), &about);
    check('a', &|m, now| slot(m, 1, SetSlot::Migrating(d), now), "ERR Target node is not a master");
    check('a', &|m, now| slot(m, 1, SetSlot::Node(nine), now), &unknown);
    check('a', &|m, now| slot(m, 1, SetSlot::Node(b"x"), now), "ERR Unknown node x");
    let held = "ERR Can't assign hashslot 1 to a different node while I still hold keys for this hash slot.";
    check('a', &|m, now| slot(m, 1, SetSlot::Node(b), now), held);
    check('a', &|m, now| m.forget_node(nine, now), &unknown);
    check('a', &|m, now| m.forget_node(a, now), "ERR I tried hard but I can't forget myself...");
    check('d', &|m, now| m.forget_node(a, now), "ERR Can't forget my master!");
    check('a', &|m, now| m.replicate(nine, false, now), &unknown);
    check('a', &|m, now| m.replicate(a, false, now), "ERR Can't replicate myself");
    check('a', &|m, now| m.replicate(d, false, now), "ERR I can only replicate a master, not a replica.");
    let not_empty = "ERR To set a master the node must be empty and without assigned slots.";
    check('a', &|m, now| m.replicate(b, false, now), not_empty);
    let to_replica = "ERR You should send CLUSTER FAILOVER to a replica";
    check('a', &|m, now| m.failover(Failover::Ask, now), to_replica);
    let with_keys = "ERR CLUSTER RESET can't be called with master nodes containing keys";
    check('a', &|m, now| m.reset(true, true, now), with_keys);
    check('a', &|m, now| m.set_config_epoch(-1, now), "ERR Invalid config epoch specified: -1");
    let alone = "ERR The user can assign a config epoch only when the node does not know any other node.";
    check('a', &|m, now| m.set_config_epoch(9, now), alone);
    check('a', &|m, now| m.meet(b"host", 1, 2, now), "ERR Invalid node address specified: host:1");
    check('a', &|m, now| m.meet(b"1.2.3.4", 0, 2, now), "ERR Invalid node address specified: 1.2.3.4:0");
    check('a', &|m, now| m.count_failure_reports(nine, now).map(|_| ()), &unknown);
    check('a', &|m, _| m.replica_lines(d, false).map(|_| ()), "ERR The specified node is not a master");
}

#[test]
fn a_slot_moves() {
    let mut bench = Bench::new('a');
    let (b, now) = (id('b'), bench.now);
    let set = |bench: &mut Bench, slot, what, keys| bench.machine.set_slot(slot, what, keys, now);
    set(&mut bench, 1, SetSlot::Migrating(b.as_bytes()), 5).expect("it is ours");
    let routing = bench.routing();
    assert_eq!(routing.migrating.get(&1), Some(&routing.owners[10]));
    assert!(bench.machine.saved_text().contains(&format!(" 0-9 [1->-{b}]")));
    set(&mut bench, 1, SetSlot::Node(b.as_bytes()), 0).expect("it is empty");
    assert_eq!((bench.owner(1), bench.routing().migrating.len()), (Some(b), 0));

    // One comes here: a new epoch makes the others believe it.
    set(&mut bench, 12, SetSlot::Importing(b.as_bytes()), 0).expect("it is another's");
    bench.take();
    set(&mut bench, 12, SetSlot::Node(id('a').as_bytes()), 3).expect("it has come");
    let actions = bench.take();
    assert_eq!(sent(&actions, Kind::Pong).len(), 4, "all are told at once");
    assert!(bench.machine.saved_text().contains("myself,master - 0 0 7 "), "{}", bench.machine.saved_text());
    assert_eq!((bench.owner(12), bench.routing().importing.len()), (Some(id('a')), 0));
    assert_eq!(bench.machine.bump_epoch(now), "STILL 7");
}

#[test]
fn a_forgotten_node_stays_away() {
    let mut bench = Bench::new('a');
    bench.machine.forget_node(id('c').as_bytes(), bench.now).expect("it is known");
    assert_eq!(bench.machine.forget_node(id('c').as_bytes(), bench.now), Ok(()), "as Redis 7.2 says");
    let gossip = |bench: &mut Bench| {
        let mut draft = Word::of('b').draft(Kind::Ping);
        draft.gossip(&super::super::super::packet::Gossip {
            id: id('c'),
            ping_sent: 0,
            pong_received: 0,
            ip: "10.0.0.3",
            port: 6379,
            bus_port: 16_379,
            flags: Flags::PRIMARY,
            other_port: 0,
        });
        bench.hear('b', &draft.finish());
        bench.machine.known_nodes()
    };
    assert_eq!(gossip(&mut bench), 4);
    bench.now += 61_000;
    assert_eq!(gossip(&mut bench), 5);
}

#[test]
fn resets() {
    let mut bench = Bench::new('d');
    bench.machine.reset(false, true, bench.now).expect("replicas may");
    let actions = bench.take();
    assert!(actions.iter().any(|action| matches!(action, Action::DeleteAll)));
    assert!(actions.iter().any(|action| matches!(action, Action::Promote)));
    assert_eq!((bench.machine.known_nodes(), bench.machine.my_id()), (1, id('d')));
    let mut bench = Bench::new('a');
    bench.machine.reset(true, false, bench.now).expect("it has no keys");
    assert!(bench.machine.my_id() != id('a') && bench.routing().owners.iter().all(|owner| *owner == u16::MAX));
    assert!(bench.machine.saved_text().contains("vars currentEpoch 0 lastVoteEpoch 0"));
    bench.machine.set_config_epoch(3, bench.now).expect("it is alone");
    let again = bench.machine.set_config_epoch(4, bench.now).map_err(|error| error.to_string());
    assert_eq!(again, Err("ERR Node config epoch is already non-zero".to_owned()));
}

#[test]
fn connections_can_be_ended() {
    let check = |ours: bool, its: bool| {
        let mut bench = Bench::new('a');
        let links = [(ours, bench.own_link('b')), (its, bench.link('b'))];
        bench.hear('b', &Word::of('b').say(Kind::Ping));
        bench.take();
        bench.machine.kill_links(id('b').as_bytes(), ours, its, bench.now).expect("it is known");
        let actions = bench.take();
        for (is_ended, link) in links {
            let is_closed =
                actions.iter().any(|action| matches!(action, Action::Close { link: closed } if *closed == link));
            assert_eq!(is_closed, is_ended);
        }
    };
    check(true, false);
    check(false, true);
    check(true, true);
    let mut bench = Bench::new('a');
    let unknown = bench.machine.kill_links(b"x", true, true, bench.now).map_err(|error| error.to_string());
    assert_eq!(unknown, Err("ERR Unknown node x".to_owned()));
}

#[test]
fn keys_of_slots_that_are_not_ours() {
    let mut bench = Bench::new('a');
    bench.machine.data_loaded(&[1, 15, 16_000].into_iter().collect(), bench.now);
    let routing = bench.routing();
    assert_eq!((bench.owner(16_000), routing.importing.get(&15)), (Some(id('a')), Some(&routing.owners[15])));
}

#[test]
fn reports() {
    let bench = Bench::new('a');
    let (a, b) = (id('a'), id('b'));
    let nodes = bench.machine.nodes_text(false);
    assert!(nodes.starts_with(&format!("{a} 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-9\n")), "{nodes}");
    let lines = bench.machine.replica_lines(b.as_bytes(), false).expect("it is a primary");
    assert!(lines.len() == 1 && lines[0].contains(&format!(" slave {b} ")), "{lines:?}");
    let info = bench.machine.info_text();
    let first = "cluster_state:ok\r\ncluster_slots_assigned:30\r\ncluster_slots_ok:30\r\ncluster_slots_pfail:0\r\n\
        cluster_slots_fail:0\r\ncluster_known_nodes:5\r\ncluster_size:3\r\ncluster_current_epoch:5\r\ncluster_my_epoch:1\r\n\
        cluster_stats_messages_ping_sent:";
    assert!(info.starts_with(first), "{info}");
    let shards = bench.machine.shards();
    let sizes: Vec<_> = shards.iter().map(|shard| (shard.slots.clone(), shard.nodes.len())).collect();
    assert_eq!(sizes, [(vec![0..=9], 2), (vec![10..=19], 2), (vec![20..=29], 1)]);
    assert_eq!(bench.machine.links().iter().filter(|link| link.is_outbound && link.node == b).count(), 1);
}

/// The former owner may forget that it released a slot; the new owner must not forget that it has it.
#[test]
fn slots_are_on_disk_before_they_are_confirmed() {
    let mut bench = Bench::new('a');
    let (a, b) = ("a".repeat(40), "b".repeat(40));
    let mut check = |act: &dyn Fn(&mut Machine, Millis), slots: &str| {
        bench.take();
        act(&mut bench.machine, bench.now);
        let saved = bench.take().into_iter().find_map(|action| match action {
            Action::Save { text, sync } => Some((text, sync)),
            _ => None,
        });
        let (text, sync) = saved.expect("something is saved at once");
        assert!(sync && text.contains(&format!("connected {slots}\n")), "{sync}: {text}");
    };
    check(&|m, now| m.add_slots(&[100].into_iter().collect(), now).expect("nobody has it"), "0-9 100");
    // The first one that comes brings a new epoch, the second one none.
    for (slot, slots) in [(19, "0-9 19 100"), (18, "0-9 18-19 100")] {
        let import = |m: &mut Machine, now| {
            m.set_slot(slot, SetSlot::Importing(b.as_bytes()), 0, now).expect("it is b's");
            m.set_slot(slot, SetSlot::Node(a.as_bytes()), 0, now).expect("it is here");
        };
        check(&import, slots);
    }
}

/// The epoch that it would take alone may be that of an election among the others.
#[test]
fn a_partitioned_node_takes_over_no_slots() {
    let mut bench = Bench::new('a');
    let (a, b) = ("a".repeat(40), "b".repeat(40));
    bench.machine.set_slot(19, SetSlot::Importing(b.as_bytes()), 0, bench.now).expect("it is b's");
    // No node answers.
    bench.pass(3000);
    let taken = bench.machine.set_slot(19, SetSlot::Node(a.as_bytes()), 0, bench.now);
    let refused = "ERR Can't take a slot over while most masters are out of reach".to_owned();
    assert_eq!(taken.map_err(|error| error.to_string()), Err(refused));
    assert_eq!(bench.owner(19), Some(id('b')));
    bench.pass(200);
    bench.reconnect(' ');
    bench.idle(' ', 1000);
    bench.machine.set_slot(19, SetSlot::Node(a.as_bytes()), 0, bench.now).expect("the others are there");
    assert_eq!(bench.owner(19), Some(id('a')));
}
