//! Effects of packets and of time.

use super::super::super::packet::{Extension, FORCE_VOTE, Gossip, IS_PAUSED};
use super::super::super::{Facts, Failover, PrimaryLink};
use super::*;

fn gossip(digit: char, flags: Flags) -> Gossip<'static> {
    Gossip {
        id: id(digit),
        ping_sent: 0,
        pong_received: 0,
        ip: "10.0.0.9",
        port: 6379,
        bus_port: 16_379,
        flags,
        other_port: 0,
    }
}

fn report(by: char, about: char) -> Vec<u8> {
    let mut draft = Word::of(by).draft(Kind::Ping);
    draft.gossip(&gossip(about, Flags::PRIMARY.and(Flags::MAYBE_FAILED)));
    draft.finish()
}

#[test]
fn a_majority_of_primaries_marks_a_node_failed() {
    let mut bench = Bench::new('a');
    bench.idle('c', 1700);
    let routing = bench.routing();
    assert!(routing.nodes.iter().all(|node| !node.has_failed), "one node's opinion is not enough");
    assert_eq!(bench.machine.count_failure_reports(id('c').as_bytes(), bench.now), Ok(0));
    // A replica has no say, nor who does not answer itself.
    bench.take();
    bench.hear('d', &report('d', 'c'));
    assert_eq!(sent(&bench.take(), Kind::Fail).len(), 0);
    bench.hear('b', &report('b', 'c'));
    let failed = sent(&bench.take(), Kind::Fail);
    assert_eq!(failed.len(), 3, "all are told");
    assert!(matches!(body(&failed[0].1), Body::Fail(failed) if failed == id('c')));
    let routing = bench.routing();
    assert!(routing.nodes.iter().all(|node| node.has_failed == (node.id == id('c'))));
    // It has slots: that it answers does not yet make it good.
    bench.idle(' ', 1000);
    assert!(bench.routing().nodes.iter().any(|node| node.has_failed));
    bench.idle(' ', 1500);
    assert!(bench.routing().nodes.iter().all(|node| !node.has_failed));
}

#[test]
fn clients_are_sent_to_replicas_that_have_something() {
    let check = |bench: &Bench, expected: &[char]| {
        let available: Vec<NodeId> = bench
            .routing()
            .nodes
            .iter()
            .filter(|node| node.is_replica && node.is_available)
            .map(|node| node.id)
            .collect();
        assert_eq!(available, expected.iter().map(|digit| id(*digit)).collect::<Vec<_>>());
    };
    let mut bench = Bench::new('a');
    check(&bench, &[]);
    let mut word = Word::of('d');
    word.offset = 14;
    bench.hear('d', &word.say(Kind::Ping));
    bench.pass(100);
    check(&bench, &['d']);

    let mut bench = Bench::new('e');
    bench.machine.observe(Facts { offset: 14, ..Facts::default() });
    bench.pass(100);
    check(&bench, &['e']);
}

#[test]
fn packets_that_say_nothing_right_are_counted() {
    let mut bench = Bench::new('a');
    let mut draft = Word::of('b').draft(Kind::Meet);
    draft.gossip(&gossip('9', Flags::PRIMARY));
    let mut bytes = draft.finish();
    // It says that it tells of a hundred nodes.
    bytes[14..16].copy_from_slice(&100u16.to_be_bytes());
    bench.hear('b', &bytes);
    assert!(
        bench.machine.info_text().contains("cluster_stats_messages_meet_received:1"),
        "{}",
        bench.machine.info_text()
    );
    assert_eq!(bench.machine.known_nodes(), 5);
}

#[test]
fn a_stranger_hears_the_name_of_the_host_in_the_first_answer() {
    let mut bench = Bench::with('a', Settings { hostname: "a.example".to_owned(), ..settings() });
    let mut stranger = Word::of('d');
    (stranger.sender, stranger.message_flags) = (id('9'), 0);
    bench.hear('d', &stranger.say(Kind::Ping));
    let answers = sent(&bench.take(), Kind::Pong);
    let Body::Ping(ping) = body(&answers[0].1) else { panic!("it is a PONG") };
    assert!(matches!(ping.extensions().collect::<Vec<_>>()[..], [Extension::Hostname("a.example")]));
}

#[test]
fn reports_grow_old() {
    let mut bench = Bench::new('a');
    bench.hear('b', &report('b', 'c'));
    assert_eq!(bench.machine.count_failure_reports(id('c').as_bytes(), bench.now), Ok(1));
    bench.idle(' ', 2100);
    assert_eq!(bench.machine.count_failure_reports(id('c').as_bytes(), bench.now), Ok(0));
    bench.hear('b', &report('b', 'c'));
    let mut draft = Word::of('b').draft(Kind::Ping);
    draft.gossip(&gossip('c', Flags::PRIMARY));
    bench.hear('b', &draft.finish());
    assert_eq!(bench.machine.count_failure_reports(id('c').as_bytes(), bench.now), Ok(0), "taken back");
}

#[test]
fn a_newer_claim_wins() {
    let mut bench = Bench::new('a');
    let mut word = Word::of('b');
    word.slots.add(20);
    bench.hear('b', &word.say(Kind::Ping));
    assert_eq!(bench.owner(20), Some(id('c')), "epoch 2 is older than 3");
    let updates = sent(&bench.take(), Kind::Update);
    assert_eq!(updates.len(), 1, "who claims it is told");
    assert!(matches!(body(&updates[0].1), Body::Update { config_epoch: 3, id: owner, .. } if owner == id('c')));

    word.config_epoch = 6;
    bench.hear('b', &word.say(Kind::Ping));
    assert_eq!(bench.owner(20), Some(id('b')));
    // And by hearsay.
    let mut draft = Word::of('b').draft(Kind::Update);
    draft.update(9, id('c'), &[21, 10].into_iter().collect());
    bench.hear('b', &draft.finish());
    assert_eq!((bench.owner(10), bench.owner(20), bench.owner(21)), (Some(id('c')), Some(id('b')), Some(id('c'))));
}

#[test]
fn a_slot_that_its_owner_has_let_go_can_be_taken_by_an_older_epoch() {
    let mut bench = Bench::new('a');
    let mut word = Word::of('c');
    word.slots.remove(20);
    bench.hear('c', &word.say(Kind::Ping));
    assert_eq!(bench.owner(20), Some(id('c')), "nobody else has it");
    let mut word = Word::of('b');
    word.slots.add(20);
    bench.hear('b', &word.say(Kind::Ping));
    assert_eq!(bench.owner(20), Some(id('b')));
}

#[test]
fn slot_loss_deletes_keys_or_demotes_the_primary() {
    let mut bench = Bench::new('a');
    let mut word = Word::of('b');
    word.config_epoch = 9;
    word.slots.add(0);
    bench.hear('b', &word.say(Kind::Ping));
    let lost = bench.take().into_iter().find_map(|action| match action {
        Action::SlotsLost { slots, delete_keys } => Some((slots.ranges(), delete_keys)),
        _ => None,
    });
    assert_eq!(lost, Some((vec![0..=0], true)));
    word.slots = (0..20).collect();
    bench.hear('b', &word.say(Kind::Ping));
    let actions = bench.take();
    let follows = actions.iter().any(|action| matches!(action, Action::Follow { ip, .. } if ip == "10.0.0.2"));
    assert!(follows);
    assert_eq!(bench.routing().primary, bench.routing().owners[0]);
}

#[test]
fn one_epoch_has_one_primary() {
    for (other, bumps) in [('b', true), ('0', false)] {
        let mut bench = Bench::new('a');
        if other == '0' {
            let file = file('a').replace(&"b".repeat(40), &"0".repeat(40));
            bench.machine = Machine::new(settings(), [1; 4], Some(&file), START).expect("good");
            bench.links[1].1 = bench.machine.accept("10.0.0.2", "10.0.0.1", START).expect("room");
        }
        let mut word = Word::of('b');
        (word.sender, word.config_epoch) = (id(other), 1);
        bench.hear('b', &word.say(Kind::Ping));
        let is_higher = bench.machine.saved_text().contains("myself,master - 0 0 7 ");
        assert_eq!(is_higher, bumps, "the smaller name takes a new epoch");
    }
}

/// A vote is refused for each of its reasons, and given once.
#[test]
fn votes() {
    let ask = |bench: &mut Bench, change: &dyn Fn(&mut Word)| {
        let mut word = Word::of('e');
        word.epoch = 6;
        change(&mut word);
        bench.take();
        bench.hear('e', &word.say(Kind::AuthRequest));
        let actions = bench.take();
        let vote = actions.iter().position(|action| matches!(action, Action::Send { .. }));
        let saved = actions.iter().position(|action| matches!(action, Action::Save { sync: true, .. }));
        let votes = sent(&actions, Kind::AuthAck);
        assert!(votes.is_empty() || saved < vote && saved.is_some(), "a vote is on disk before it leaves");
        votes.len()
    };
    let mut bench = Bench::new('a');
    assert_eq!(ask(&mut bench, &|_| {}), 0, "its primary is there");
    let mut failed = Word::of('c').draft(Kind::Fail);
    failed.fail(id('b'));
    bench.hear('c', &failed.finish());
    bench.take();
    assert_eq!(ask(&mut bench, &|word| word.epoch = 4), 0, "an old epoch");
    assert_eq!(ask(&mut bench, &|word| word.config_epoch = 0), 0, "its slots are known of a newer one");
    assert_eq!(ask(&mut bench, &|word| (word.sender, word.primary) = (id('c'), None)), 0, "a primary");
    assert_eq!(ask(&mut bench, &|word| word.sender = id('9')), 0, "a stranger");
    assert_eq!(ask(&mut bench, &|_| {}), 1);
    assert_eq!(ask(&mut bench, &|_| {}), 0, "once in an epoch");
    assert_eq!(ask(&mut bench, &|word| word.epoch = 7), 0, "once in two timeouts");
    bench.idle('b', 2100);
    assert_eq!(ask(&mut bench, &|word| word.epoch = 8), 1);

    let mut bench = Bench::new('a');
    assert_eq!(ask(&mut bench, &|word| word.message_flags |= FORCE_VOTE), 1, "an operator's wish");
    let mut replica = Bench::new('d');
    assert_eq!(ask(&mut replica, &|word| word.message_flags |= FORCE_VOTE), 0, "replicas have no vote");
}

/// The replica `e` of `b`, whose primary fails.
#[test]
fn a_replica_takes_over() {
    let mut bench = Bench::new('e');
    bench.machine.observe(Facts {
        offset: 7,
        primary_link: PrimaryLink::Down { since: bench.now },
        ..Facts::default()
    });
    let mut failed = Word::of('c').draft(Kind::Fail);
    failed.fail(id('b'));
    bench.hear('c', &failed.finish());
    bench.idle('b', 1100);
    let actions = bench.take();
    let requests = sent(&actions, Kind::AuthRequest);
    assert_eq!(requests.len(), 4);
    let header = Packet::parse(&requests[0].1).expect("a packet").header;
    assert_eq!((header.current_epoch, header.config_epoch, header.offset), (6, 2, 7));
    let saved = actions.iter().position(|action| matches!(action, Action::Save { sync: true, .. }));
    assert!(saved.is_some(), "the epoch is on disk");

    let vote = |digit: char, epoch: u64| {
        let mut word = Word::of(digit);
        word.epoch = epoch;
        word.say(Kind::AuthAck)
    };
    for (digit, epoch) in [('a', 5), ('d', 6), ('a', 6), ('a', 6)] {
        bench.hear(digit, &vote(digit, epoch));
        assert!(!bench.take().iter().any(|action| matches!(action, Action::Promote)), "{digit} in {epoch}");
    }
    bench.hear('c', &vote('c', 6));
    let actions = bench.take();
    let place = |is: &dyn Fn(&Action) -> bool| actions.iter().position(is).expect("it is there");
    let saved = place(&|action| matches!(action, Action::Save { sync: true, .. }));
    let promoted = place(&|action| matches!(action, Action::Promote));
    let routed = place(&|action| matches!(action, Action::Route(_)));
    let told = place(&|action| matches!(action, Action::Send { .. }));
    assert!(saved < promoted && promoted < routed && routed < told);
    assert_eq!((bench.owner(10), sent(&actions, Kind::Pong).len()), (Some(id('e')), 3));
}

/// On the primary: the end of its stream is told when nobody writes any more, and not before.
#[test]
fn a_primary_stands_aside() {
    let mut bench = Bench::new('a');
    bench.hear('d', &Word::of('d').say(Kind::ManualFailover));
    bench.pass(300);
    let actions = bench.take();
    assert!(actions.iter().any(|action| matches!(action, Action::PauseWrites { .. })));
    let is_paused = |actions: &[Action]| {
        let pings = sent(actions, Kind::Ping);
        let offset = |bytes: &Bytes| {
            let header = Packet::parse(bytes).expect("a packet").header;
            (header.message_flags & IS_PAUSED != 0).then_some(header.offset)
        };
        pings.iter().find_map(|(_, bytes)| offset(bytes))
    };
    assert_eq!(is_paused(&actions), None);
    bench.machine.writes_paused(0, 66, bench.now);
    assert_eq!(is_paused(&bench.take()), None, "that was an earlier pause");
    bench.machine.writes_paused(1, 77, bench.now);
    assert_eq!(is_paused(&bench.take()), Some(77));
    bench.idle(' ', 5200);
    let actions = bench.take();
    assert!(actions.iter().any(|action| matches!(action, Action::ResumeWrites)), "it takes too long");
    bench.hear('e', &Word::of('e').say(Kind::ManualFailover));
    assert!(!bench.take().iter().any(|action| matches!(action, Action::PauseWrites { .. })), "no replica of ours");
}

/// On the replica: it waits until it has all.
#[test]
fn a_replica_waits_for_the_end_of_the_stream() {
    let mut bench = Bench::new('d');
    bench.machine.failover(Failover::Ask, bench.now).expect("it is a replica");
    let actions = bench.take();
    assert_eq!(sent(&actions, Kind::ManualFailover).len(), 1);
    let mut word = Word::of('a');
    (word.offset, word.message_flags) = (100, HAS_EXTENSIONS | IS_PAUSED);
    bench.hear('a', &word.say(Kind::Ping));
    let asks = |bench: &mut Bench, offset: u64| {
        bench.machine.observe(Facts { offset, ..Facts::default() });
        bench.pass(50);
        let requests = sent(&bench.take(), Kind::AuthRequest);
        let is_forced = |bytes: &Bytes| Packet::parse(bytes).expect("a packet").header.message_flags & FORCE_VOTE != 0;
        assert!(requests.iter().all(|(_, bytes)| is_forced(bytes)));
        !requests.is_empty()
    };
    assert!(!asks(&mut bench, 99));
    assert!(asks(&mut bench, 100));
}

#[test]
fn strangers_are_answered_and_change_nothing() {
    let mut bench = Bench::new('a');
    let before = (bench.machine.saved_text(), bench.machine.known_nodes());
    let mut word = Word::of('b');
    (word.sender, word.epoch, word.config_epoch) = (id('9'), 99, 99);
    word.slots = SlotSet::ALL;
    for kind in Kind::ALL {
        let mut draft = word.draft(kind);
        match kind {
            Kind::Ping | Kind::Pong | Kind::Meet => draft.gossip(&gossip('8', Flags::PRIMARY)),
            Kind::Fail => draft.fail(id('b')),
            Kind::Publish | Kind::PublishShard => draft.publish(b"channel", b"message"),
            Kind::Update => draft.update(99, id('b'), &SlotSet::ALL),
            Kind::AuthRequest | Kind::AuthAck | Kind::ManualFailover | Kind::Module => {}
        }
        bench.hear('b', &draft.finish());
        let actions = bench.take();
        let asks = matches!(kind, Kind::Ping | Kind::Meet);
        let is_told = actions.iter().any(|action| matches!(action, Action::Publish { .. } | Action::Save { .. }));
        assert_eq!((sent(&actions, Kind::Pong).len(), is_told), (usize::from(asks), false), "{kind:?}");
    }
    assert_eq!(bench.machine.saved_text(), before.0);
    assert_eq!(bench.machine.known_nodes(), before.1 + 1, "MEET is a hello, and no more");
    bench.idle(' ', 1500);
    assert_eq!(bench.machine.known_nodes(), before.1, "who does not say its name is forgotten");
}

#[test]
fn bus_packets_links_and_handshakes_are_limited() {
    let mut bench = Bench::new('a');
    let is_closed = |bench: &mut Bench, prefix: &[u8]| {
        let link = bench.machine.accept("10.9.9.9", "10.0.0.1", bench.now).expect("there is room");
        bench.machine.receive(link, prefix, bench.now);
        bench.take().iter().any(|action| matches!(action, Action::Close { link: closed } if *closed == link))
    };
    let mut long = Word::of('b').say(Kind::Publish);
    for (length, sender, closes) in
        [(60_000_u32, '9', false), (70_000, '9', true), (70_000, 'b', false), (u32::MAX, 'b', true)]
    {
        long[4..8].copy_from_slice(&length.to_be_bytes());
        long[40..80].copy_from_slice(id(sender).as_bytes());
        assert_eq!(is_closed(&mut bench, &long[..2000]), closes, "{length} of {sender}");
    }
    assert!(is_closed(&mut bench, b"GET / HTTP/1.1\r\n"));
    let mut open = 0_usize;
    for _ in 0..5000 {
        open += usize::from(bench.machine.accept("10.9.9.9", "10.0.0.1", bench.now).is_some());
        open -= bench.take().iter().filter(|action| matches!(action, Action::Close { .. })).count();
    }
    assert!((4000..=4096).contains(&open), "{open} strangers");
    let mut word = Word::of('b');
    word.sender = id('9');
    for _ in 0..5000 {
        bench.hear('c', &word.say(Kind::Meet));
    }
    assert_eq!(bench.machine.known_nodes(), 5 + 4096);
}

/// As many sockets as there may be strangers, which say nothing: a node that comes behind them is served, and they are cut off in time.
#[test]
fn idle_strangers_shut_no_node_out() {
    fn closed(bench: &mut Bench) -> Vec<Link> {
        let links = bench.take().into_iter().filter_map(|action| match action {
            Action::Close { link } => Some(link),
            _ => None,
        });
        links.collect()
    }
    let mut bench = Bench::new('a');
    let idle: Vec<Link> = (0..4096)
        .map(|_| {
            bench.now += 1;
            bench.machine.accept("10.9.9.9", "10.0.0.1", bench.now).expect("there is room")
        })
        .collect();
    let mut stranger = Word::of('d');
    stranger.sender = id('9');
    // The first has just said something, so the second is the one that has been silent longest.
    bench.machine.receive(idle[0], &stranger.say(Kind::Ping), bench.now);
    bench.take();
    let newcomer = bench.machine.accept("10.0.0.9", "10.0.0.1", bench.now).expect("idle sockets do not shut it out");
    assert_eq!(closed(&mut bench), [idle[1]]);
    bench.machine.receive(newcomer, &stranger.say(Kind::Meet), bench.now);
    assert_eq!(sent(&bench.take(), Kind::Pong).len(), 1, "it is answered");
    assert_eq!(bench.machine.known_nodes(), 6);
    // A stranger that keeps sending stays connected. A member may be silent, as failure detection handles it.
    let mut gone = Vec::new();
    for _ in 0..15 {
        bench.pass(100);
        gone.extend(closed(&mut bench));
        for link in [idle[0], newcomer] {
            bench.machine.receive(link, &stranger.say(Kind::Ping), bench.now);
        }
    }
    gone.retain(|link| {
        idle.contains(link) || *link == newcomer || bench.links.iter().any(|(_, member)| member == link)
    });
    assert_eq!(gone.len(), 4094, "all that were silent for the time of a handshake");
    assert!(!gone.contains(&idle[0]) && !gone.contains(&newcomer));
}

#[test]
fn messages_go_to_the_nodes_of_their_channel() {
    let mut bench = Bench::new('a');
    for (is_sharded, kind, receivers) in [(false, Kind::Publish, "bcde"), (true, Kind::PublishShard, "d")] {
        bench.machine.publish(b"news", b"text", is_sharded, bench.now);
        let packets = sent(&bench.take(), kind);
        let links: Vec<Link> = receivers.chars().map(|digit| bench.own_link(digit)).collect();
        assert_eq!(packets.iter().map(|(link, _)| *link).collect::<Vec<_>>(), links);
        let mut draft = Word::of('d').draft(kind);
        draft.publish(b"news", b"text");
        bench.hear('d', &draft.finish());
        let arrived = bench.take().into_iter().find_map(|action| match action {
            Action::Publish { channel, message, is_sharded } => Some((channel, message, is_sharded)),
            _ => None,
        });
        assert_eq!(arrived, Some((Bytes::from("news"), Bytes::from("text"), is_sharded)));
    }
}

/// The primary of this replica has become somebody's replica, without slots that would say so.
#[test]
fn a_replica_follows_its_primarys_new_primary() {
    let mut bench = Bench::new('d');
    let mut word = Word::of('a');
    (word.primary, word.slots, word.flags) = (Some(id('c')), SlotSet::EMPTY, Flags::REPLICA);
    bench.hear('a', &word.say(Kind::Ping));
    bench.idle('a', 200);
    let follows = |action: &Action| matches!(action, Action::Follow { ip, .. } if ip == "10.0.0.3");
    assert!(bench.take().iter().any(follows));
}
