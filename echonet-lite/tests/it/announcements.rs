//! Messages that a node sends of its own accord, and their times.

use core::{net::SocketAddr, time::Duration};

use echonet_lite::node::{Arrival, Config, Destination, Handled, Instant, ManyInstances, Node, NotifyError, Profile};
use echonet_lite::wire::Eoj;

use crate::support::{Bench, Device, To, config, devices, hex, peer, text};

#[test]
fn announcement_at_start_and_when_an_address_changes() {
    let config = config();
    let mut node = Node::new(config, devices());
    let mut buffer = [0; 512];
    let mut announcement = |node: &mut Node<Vec<Device>>, tid: &str| {
        assert_eq!(node.poll_timeout(), Some(Instant::ZERO));
        let (to, length) = node.poll_transmit(Instant::ZERO, &mut buffer).expect("an announcement");
        assert_eq!(to, Destination::Multicast);
        let expected = hex(&format!("1081 {tid} 0EF001 0EF001 73 01 D5 0A 03 029001 029002 013001"));
        assert_eq!(text(&buffer[..length]), text(&expected));
        assert_eq!(node.poll_transmit(Instant::ZERO, &mut buffer), None);
        assert_eq!(node.poll_timeout(), None);
    };
    announcement(&mut node, "0001");
    node.address_changed();
    announcement(&mut node, "0002");
    node.objects_mut().truncate(0);
    node.address_changed();
    let (_, length) = node.poll_transmit(Instant::ZERO, &mut buffer).expect("an announcement");
    assert_eq!(text(&buffer[..length]), text(&hex("1081 0003 0EF001 0EF001 73 01 D5 01 00")));
}

#[test]
fn a_node_that_only_sends() {
    let config = Config { profile: Profile::SendOnly, ..config() };
    let mut node = Node::new(config, devices());
    let mut buffer = [0; 512];
    let (_, length) = node.poll_transmit(Instant::ZERO, &mut buffer).expect("an announcement");
    let expected = hex("1081 0001 0EF002 0EF001 73 01 D5 0A 03 029001 029002 013001");
    assert_eq!(text(&buffer[..length]), text(&expected));
    let mut bench = Bench::new(config, devices());
    for request in ["1081 0001 05FF01 0EF002 62 01 80 00", "1081 0001 05FF01 029001 62 01 80 00"] {
        assert!(bench.exchange(Arrival::Unicast, &hex(request)).is_empty());
    }
}

#[test]
fn more_than_84_instances() {
    let lights = || (1..=100).map(|instance| Device::new(Eoj::new(2, 0x90, instance))).collect::<Vec<_>>();
    let list = |range: core::ops::RangeInclusive<u8>| {
        let eojs = range.clone().flat_map(|instance| [2, 0x90, instance]);
        std::iter::once(range.count() as u8).chain(eojs).collect::<Vec<u8>>()
    };
    let mut bench = Bench::new(config(), lights());
    bench.node.address_changed();
    let first_84 = [hex("1081 0002 0EF001 0EF001 73 01 D5 FD"), list(1..=84)].concat();
    assert_eq!(bench.poll(), [(To::All, first_84)]);
    let sent = bench.exchange(Arrival::Unicast, &hex("1081 0001 05FF01 0EF001 62 03 D3 00 D4 00 D6 00"));
    let answer = [hex("1081 0001 0EF001 05FF01 72 03 D3 03 000064 D4 02 0002 D6 FD"), list(1..=84)].concat();
    assert_eq!(sent, [(To::Peer, answer)]);

    let repeated = Config { many_instances: ManyInstances::RepeatedD5, ..config() };
    let mut bench = Bench::new(repeated, lights());
    bench.node.address_changed();
    let all = [hex("1081 0002 0EF001 0EF001 73 02 D5 FD"), list(1..=84), hex("D5 31"), list(85..=100)].concat();
    assert_eq!(bench.poll(), [(To::All, all)]);
    assert_eq!(bench.exchange(Arrival::Unicast, &hex("1081 0001 05FF01 029000 62 01 80 00")).len(), 100);
}

#[test]
fn more_than_8_classes() {
    let devices = (0..12).map(|class| Device::new(Eoj::new(3, 0xA0 + class, 1))).collect();
    let mut bench = Bench::new(config(), devices);
    let sent = bench.exchange(Arrival::Unicast, &hex("1081 0001 05FF01 0EF001 62 02 D4 00 D7 00"));
    let answer = "1081 0001 0EF001 05FF01 72 02 D4 02 000D D7 11 08 03A0 03A1 03A2 03A3 03A4 03A5 03A6 03A7";
    assert_eq!(sent, [(To::Peer, hex(answer))]);
}

#[test]
fn notifications() {
    let mut bench = Bench::standard();
    let light = Eoj::new(2, 0x90, 1);
    assert_eq!(bench.node.notify(light, 0x80), Ok(()));
    assert_eq!(bench.node.notify(Eoj::new(2, 0x90, 2), 0xC0), Ok(()));
    assert_eq!(bench.node.notify(light, 0xB0), Ok(()));
    bench.node.objects_mut()[0].level = 7;
    let sent = bench.poll();
    let expected = [
        (To::All, hex("1081 0002 029001 0EF001 73 02 80 01 30 B0 01 07")),
        (To::All, hex("1081 0003 029002 0EF001 73 01 C0 04 01020304")),
    ];
    assert_eq!(sent, expected, "of one object together, with the value at the time of sending");
    assert_eq!(bench.node.notify(light, 0xB1), Err(NotifyError::NoSuchProperty));
    assert_eq!(bench.node.notify(Eoj::new(2, 0x90, 9), 0x80), Err(NotifyError::NoSuchObject));
    assert_eq!(bench.node.notify(light.with_instance(0), 0x80), Err(NotifyError::NoSuchObject));

    bench.size = 270;
    for epc in [0x80, 0xC0, 0xD0] {
        bench.node.notify(light, epc).expect("room");
    }
    let sent = bench.poll();
    assert_eq!(sent.len(), 2, "what does not fit into one datagram follows in the next");
    assert_eq!(sent[0].1, hex("1081 0004 029001 0EF001 73 02 80 01 30 C0 04 01020304"));
    assert_eq!(sent[1].1.len(), 12 + 2 + 250);
}

#[test]
fn confirmed_notifications_are_repeated_until_confirmed() {
    let mut bench = Bench::standard();
    let light = Eoj::new(2, 0x90, 1);
    let to = SocketAddr::new(peer().ip(), 3610);
    let attempt = |tid: &str| (To::Peer, hex(&format!("1081 {tid} 029001 05FF01 74 01 80 01 30")));
    bench.node.notify_confirmed(to, Eoj::CONTROLLER, light, 0x80).expect("room");
    assert_eq!(bench.poll(), [attempt("0002")]);
    assert_eq!(bench.settle(), []);
    bench.now += Duration::from_secs(5);
    assert_eq!(bench.poll(), [attempt("0003")], "with a fresh TID");
    let confirm = |tid: &str| hex(&format!("1081 {tid} 05FF01 029001 7A 01 80 00"));
    assert_eq!(bench.handle(Arrival::Unicast, &confirm("0007")).0, Handled::NotARequest);
    assert_eq!(bench.handle(Arrival::Unicast, &confirm("0003")), (Handled::Done, vec![]));
    bench.now += Duration::from_secs(60);
    assert_eq!(bench.poll(), []);
    assert_eq!(bench.node.statistics().unconfirmed, 0);

    bench.node.notify_confirmed(to, Eoj::CONTROLLER, light, 0x80).expect("room");
    let mut attempts = 0;
    while let Some(due) = bench.node.poll_timeout() {
        bench.now = due.max(bench.now);
        attempts += bench.poll().len();
    }
    assert_eq!((attempts, bench.node.statistics().unconfirmed), (3, 1));
}

#[test]
fn multicast_is_answered_after_a_random_moment() {
    let request = hex("1081 000A 05FF01 0EF001 62 01 D6 00");
    let mut delays = Vec::new();
    for seed in 0..40 {
        let mut bench = Bench::new(Config { seed, ..config() }, devices());
        let asked = bench.now;
        assert_eq!(bench.handle(Arrival::Multicast, &request), (Handled::Done, vec![]));
        let due = bench.node.poll_timeout().expect("an answer is due");
        assert!(due.since(asked) <= Duration::from_millis(500));
        if due > asked {
            bench.now = Instant::from_micros(due.as_micros() - 1);
            assert_eq!(bench.poll(), []);
        }
        bench.now = due;
        assert_eq!(bench.poll().len(), 1);
        delays.push(due.since(asked));
    }
    delays.sort();
    assert!(delays[0] < Duration::from_millis(60) && delays[39] > Duration::from_millis(440), "{delays:?}");
    delays.dedup();
    assert!(delays.len() > 35, "nodes with different seeds answer at different moments");
}

#[test]
fn a_multicast_write_is_done_at_once_and_answered_later() {
    let mut bench = Bench::standard();
    let request = hex("1081 000B 05FF01 029000 61 01 B0 01 05");
    assert_eq!(bench.handle(Arrival::Multicast, &request), (Handled::Done, vec![]));
    assert!(bench.node.objects()[..2].iter().all(|light| light.level == 5));
    let mut sent = bench.settle();
    sent.sort_by_key(|(to, bytes)| (*to != To::Peer, bytes[6]));
    let expected = [
        (To::Peer, hex("1081 000B 029001 05FF01 71 01 B0 00")),
        (To::Peer, hex("1081 000B 029002 05FF01 71 01 B0 00")),
        (To::All, hex("1081 0002 029001 0EF001 73 01 B0 01 05")),
        (To::All, hex("1081 0003 029002 0EF001 73 01 B0 01 05")),
    ];
    assert_eq!(sent, expected);
}

#[test]
fn a_full_store_answers_at_once() {
    let mut bench = Bench::standard();
    let request = hex("1081 000C 05FF01 0EF001 62 01 82 00");
    let at_once: usize = (0..100).map(|_| bench.handle(Arrival::Multicast, &request).1.len()).sum();
    let later = bench.settle().len();
    assert!(later >= 10, "{later}");
    assert_eq!(at_once + later, 100, "every request has its answer");
    assert_eq!(bench.node.statistics().undelayed as usize, at_once);
    // The node's own share of the store is still there.
    (0..100).for_each(|_| drop(bench.handle(Arrival::Multicast, &request)));
    assert_eq!(bench.node.notify(Eoj::new(2, 0x90, 1), 0x80), Ok(()));
}

/// A node of so many lights with the store that nodes usually have, which has announced itself.
fn lights(count: u8) -> Node<Vec<Device>> {
    let mut node = Node::new(config(), (1..=count).map(|instance| Device::new(Eoj::new(2, 0x90, instance))).collect());
    assert_eq!(told(&mut node, Instant::ZERO).len(), 1);
    node
}

/// The objects that announce something now, and their properties.
fn told(node: &mut Node<Vec<Device>>, now: Instant) -> Vec<(Eoj, Vec<u8>)> {
    let (mut buffer, mut told) = ([0; 512], Vec::new());
    while let Some((to, length)) = node.poll_transmit(now, &mut buffer) {
        if to == Destination::Multicast {
            told.push((Eoj::new(buffer[4], buffer[5], buffer[6]), buffer[12..length].to_vec()));
        }
    }
    told
}

fn handle(node: &mut Node<Vec<Device>>, request: &str) -> usize {
    let (mut buffer, mut answers) = ([0; 512], 0);
    let mut out = echonet_lite::node::Outbox::new(&mut buffer, |_, _: &[u8]| answers += 1);
    node.handle(Instant::ZERO, peer(), Arrival::Unicast, &hex(request), &mut out);
    answers
}

#[test]
fn no_announcement_is_lost_however_many_objects_change() {
    for count in [2, 20, 40, 127] {
        let all: Vec<_> = (1..=count).map(|instance| (Eoj::new(2, 0x90, instance), vec![0xB0, 1, 5])).collect();
        let mut node = lights(count);
        assert_eq!(handle(&mut node, "1081 000B 05FF01 029000 61 01 B0 01 05"), usize::from(count));
        assert_eq!(told(&mut node, Instant::ZERO), all, "one write to all");
        // One after the other, from the last to the first.
        for instance in (1..=count).rev() {
            assert_eq!(handle(&mut node, &format!("1081 000B 05FF01 0290{instance:02X} 61 01 B0 01 06")), 1);
        }
        let mut single = told(&mut node, Instant::ZERO);
        single.sort();
        assert_eq!(single.len(), all.len());
        assert!(single.iter().zip(&all).all(|(one, other)| one.0 == other.0 && one.1 == [0xB0, 1, 6]), "{count}");
        assert_eq!(node.poll_timeout(), None);
    }
}

#[test]
fn pending_confirmations_do_not_delay_announcements() {
    let mut node = lights(40);
    let light = Eoj::new(2, 0x90, 1);
    let mut confirmed = 0;
    while node.notify_confirmed(peer(), Eoj::CONTROLLER, light, 0x80).is_ok() {
        confirmed += 1;
    }
    assert!(confirmed >= 10, "{confirmed}");
    told(&mut node, Instant::ZERO);
    // The store stays full until 15 s have passed without a confirmation. Changes are announced at once all the same.
    for (instance, epc) in [(7, 0xB0), (3, 0x80), (7, 0x80), (5, 0xC0)] {
        assert_eq!(node.notify(Eoj::new(2, 0x90, instance), epc), Ok(()));
    }
    node.address_changed();
    assert_eq!(node.poll_timeout(), Some(Instant::ZERO));
    let said = told(&mut node, Instant::ZERO);
    let tells = |eoj: Eoj, epc| said.iter().any(|(of, list)| *of == eoj && list.contains(&epc));
    assert!([(7, 0xB0), (3, 0x80), (7, 0x80), (5, 0xC0)].iter().all(|&(i, epc)| tells(Eoj::new(2, 0x90, i), epc)));
    assert!(tells(Eoj::NODE_PROFILE, 0xD5), "{said:?}");
    assert!(node.poll_timeout() > Some(Instant::ZERO));
}
