//! Notifications, and nodes that are found.

use std::borrow::ToOwned;

use super::*;

#[test]
fn a_confirmed_notification_is_confirmed_each_time_and_told_once() {
    let mut table = Table::quiet();
    for (tid, wait) in [("00A1", 0), ("00A1", 1), ("00A2", 4)] {
        table.wait(seconds(wait)).comes(NODE, &format!("{tid} 029001 C 74 02 80 01 30 B0 01 64"));
        let sent = table.sent();
        assert_eq!(sent.len(), 1);
        assert!(sent[0].ends_with("C0290017A028000B000"), "{sent:?}");
        assert_eq!(table.tids.last().unwrap(), tid);
    }
    assert_eq!(table.told(), ["192.0.2.7 029001 80=30 B0=64 confirmed"]);
    // Another value, and the first again.
    table.comes(NODE, "00A3 029001 C 74 02 80 01 31 B0 01 64");
    table.comes(NODE, "00A4 029001 C 74 02 80 01 30 B0 01 64");
    assert_eq!(table.told().len(), 2);
    // Objects that are not there confirm nothing.
    table.sent();
    table.comes(NODE, "00A5 029001 029001 74 01 80 01 30");
    assert!(table.sent().is_empty() && table.told().is_empty());
    // The node profile does; and all controllers are one here.
    for (tid, deoj, answer) in [("00A6", "0EF001", "0EF0010290017A018000"), ("00A7", "05FF00", "C0290017A018000")] {
        table.comes(NODE, &format!("{tid} 029001 {deoj} 74 01 80 01 31"));
        assert!(table.sent()[0].ends_with(answer));
    }
}

#[test]
fn a_notification_that_comes_twice_is_told_once() {
    let mut table = Table::quiet();
    let mut comes = |tid: &str, value: &str| {
        table.comes(NODE, &format!("{tid} 029001 0EF001 73 01 80 01 {value}"));
        table.told().len()
    };
    assert_eq!((comes("0A01", "30"), comes("0A02", "31")), (1, 1));
    // A copy of the one before the last.
    assert_eq!((comes("0A01", "30"), comes("0A02", "31"), comes("0A03", "30")), (0, 0, 1));
    // A node whose notifications all have the same identifier.
    assert_eq!((comes("0000", "31"), comes("0000", "30"), comes("0000", "30")), (1, 1, 0));
    assert_eq!((comes("0000", "31"), comes("0000", "30")), (1, 1));
    table.wait(seconds(20));
    table.comes(NODE, "0A01 029001 0EF001 73 01 80 01 30");
    assert_eq!(table.told().len(), 1);
}

/// Answers what the interview asks with the next of some answers.
fn interview(table: &mut Table, answers: &[(&str, &str)]) {
    for (number, (asked, answer)) in answers.iter().enumerate() {
        let sent = table.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert_eq!(sent[0].split_once(" C").unwrap().1, asked.replace(' ', ""), "{number}");
        let tid = table.tids.last().unwrap().clone();
        let (from, seoj, esv) = ("192.0.2.7", &asked[..6], if answer.starts_with("SNA") { "52" } else { "72" });
        table.comes(from, &format!("{tid} {seoj} C {esv} {}", answer.trim_start_matches("SNA ")));
    }
}

#[test]
fn discovered_nodes_are_interviewed() {
    let mut table = Table::new(Config::new(1));
    let search = table.controller.discover(table.now).unwrap();
    assert_eq!(table.sent(), ["all 0001 C0EF0016202D6008300"]);
    table.comes(NODE, "0001 0EF001 C 52 02 D6 07 02 029001 013001 83 00");
    // The search is repeated; meanwhile the node is asked.
    let profile =
        "05 82 04 010E0100 83 11 FE000077000000000000000000000000AB 8A 03 000077 D3 03 000002 D6 07 02 029001 013001";
    // 18 properties: a bitmap.
    let readable = "01 9F 11 12 0F0B0901010101010101030101030303";
    // The maps come one by one, because the node has shown that it does not answer more at once.
    interview(
        &mut table,
        &[
            ("0EF001 62 05 8200 8300 8A00 D300 D600", profile),
            ("013001 62 03 9D00 9E00 9F00", "SNA 01 9D 02 01 80"),
            ("013001 62 01 9E00", "01 9E 01 00"),
            ("013001 62 01 9F00", "SNA 01 9F 00"),
            ("029001 62 01 9D00", "01 9D 03 02 80 81"),
            ("029001 62 01 9E00", "01 9E 03 02 80 B0"),
            ("029001 62 01 9F00", readable),
            ("0EF001 62 01 9D00", "01 9D 02 01 D5"),
            ("0EF001 62 01 9E00", "01 9E 01 00"),
            ("0EF001 62 01 9F00", "01 9F 03 02 D6 D7"),
        ],
    );
    let told = table.told();
    assert_eq!(
        told,
        [format!("{} one: 192.0.2.7 0EF001 D6=02029001013001 83 refused", search.index()), "ready 192.0.2.7".into()]
    );
    let info = table.controller.node(node(NODE)).unwrap();
    assert!(info.is_ready);
    assert_eq!((info.maker, info.version, info.instance_count), (Some([0, 0, 0x77]), Some([1, 14, 1, 0]), Some(2)));
    assert_eq!(info.objects.iter().map(|object| object.eoj).collect::<Vec<_>>(), [Eoj::new(1, 0x30, 1), LIGHT]);
    let light = info.maps(LIGHT).unwrap();
    assert_eq!(format!("{} / {}", light.announced, light.writable), "80 81 / 80 B0");
    assert!(light.readable.len() >= 16 && light.readable.contains(0x80), "{}", light.readable);
    assert_eq!(info.maps(Eoj::new(1, 0x30, 1)).unwrap().readable.len(), 0);
    assert_eq!(format!("{}", info.profile_maps.unwrap().readable), "D6 D7");
    table.wait(seconds(5));
    let sent = table.sent();
    assert!(sent.iter().all(|sent| sent.starts_with("all")), "{sent:?}");
}

#[test]
fn more_than_84_instances_are_learnt_from_announcements() {
    let mut table = Table::new(Config { interview: Interview::Profile, ..Config::new(1) });
    let list = |from: u8, count: u8| {
        let eojs: String = (from..from + count).map(|instance| format!("0290{instance:02X}")).collect();
        format!("{:02X} {count:02X} {eojs}", 1 + 3 * u32::from(count))
    };
    table.comes(NODE, &format!("0001 0EF001 0EF001 73 01 D5 {}", list(1, 84)));
    interview(
        &mut table,
        &[(
            "0EF001 62 05 8200 8300 8A00 D300 D600",
            &format!(
                "05 82 04 010E0100 83 11 FE000077000000000000000000000000AB 8A 03 000077 D3 03 00006E D6 {}",
                list(1, 84)
            ),
        )],
    );
    assert_eq!(table.controller.node(node(NODE)).unwrap().objects.len(), 84);
    let sent = table.sent();
    assert!(sent[0].ends_with("C0EF0016301D500"), "{sent:?}");
    let tid = table.tids.last().unwrap().clone();
    table.comes(NODE, &format!("{tid} 0EF001 0EF001 73 02 D5 {} D5 {}", list(1, 84), list(85, 26)));
    let info = table.controller.node(node(NODE)).unwrap();
    assert_eq!((info.objects.len(), info.instance_count, info.is_ready), (110, Some(110), true));
    // The usual announcement names the first 84 only: the others are still there.
    table.wait(seconds(60)).comes(NODE, &format!("00F1 0EF001 0EF001 73 01 D5 {}", list(1, 84)));
    assert_eq!(table.controller.node(node(NODE)).unwrap().objects.len(), 110);
    // A shorter list is all there is.
    table.comes(NODE, &format!("00F2 0EF001 0EF001 73 01 D5 {}", list(3, 2)));
    assert_eq!(table.controller.node(node(NODE)).unwrap().objects.len(), 2);
}

#[test]
fn a_node_at_another_address_is_recognized() {
    let mut table = Table::quiet();
    let tell = |table: &mut Table, addr: &str, number: &str| {
        table.controller.request(table.now, node(addr), &Request::get(Eoj::NODE_PROFILE, &[0x83])).unwrap();
        table.sent();
        let tid = table.tids.last().unwrap().clone();
        table.comes(addr, &format!("{tid} 0EF001 C 72 01 83 11 FE000077{number}"));
        table.told().into_iter().filter(|told| told.starts_with("moved")).collect::<Vec<_>>()
    };
    let number = "00000000000000000000001234";
    assert!(tell(&mut table, "192.0.2.7", number).is_empty());
    assert!(tell(&mut table, "192.0.2.7", number).is_empty(), "it is where it was");
    assert!(tell(&mut table, "2001:db8::7", number).is_empty(), "the address of the other family");
    assert!(tell(&mut table, "192.0.2.8", "00000000000000000000000000").is_empty());
    assert!(tell(&mut table, "192.0.2.9", "00000000000000000000000000").is_empty(), "numbers that were never given");
    assert_eq!(tell(&mut table, "192.0.2.10", number), ["moved 192.0.2.7 192.0.2.10"]);
}

#[test]
fn a_node_that_starts_anew_is_no_copy_of_itself() {
    let mut table = Table::quiet();
    let life = ["0001 0EF001 0EF001 73 01 D5 04 01 029001", "0002 029001 0EF001 73 01 80 01 30"];
    for gap in [seconds(0), seconds(5), seconds(10)] {
        table.wait(gap);
        for said in life {
            table.comes(NODE, said);
            // By the other way around a ring.
            table.wait(Duration::from_millis(20)).comes(NODE, said);
        }
        assert_eq!(table.told().len(), 2, "{gap:?}");
    }
}

/// A dual-stack node's addresses.
const V4: &str = NODE;
const V6: &str = "fe80::7%3";
const NUMBER: &str = "83 11 FE000077000000000000000000000000AB";

#[test]
fn a_node_of_both_families_is_one() {
    let mut table = Table::new(Config { interview: Interview::Profile, ..Config::new(1) });
    let search = table.controller.discover(table.now).unwrap().index();
    table.sent();
    for addr in [V4, V6] {
        table.comes(addr, &format!("0001 0EF001 C 72 02 D6 04 01 029001 {NUMBER}"));
    }
    let told = table.told();
    let found = format!("{search} one: {V4} 0EF001 D6=01029001 83=FE000077000000000000000000000000AB");
    assert_eq!(told, [found, format!("joined {V4} {V6}")]);
    // An announcement comes by both ways.
    let announces = |table: &mut Table, tid: &str, value: &str| {
        for addr in [V6, V4] {
            table.comes(addr, &format!("{tid} 029001 0EF001 73 01 80 01 {value}"));
        }
        table.told()
    };
    assert_eq!(announces(&mut table, "0A01", "30"), [format!("{V4} 029001 80=30")]);
    // One of them is interviewed, and asked by whatever name.
    let sent = table.sent();
    assert_eq!(sent.len(), 1, "{sent:?}");
    let tid = table.tids.last().unwrap().clone();
    table.comes(V4, &format!("{tid} 0EF001 C 72 05 82 04 010E0100 {NUMBER} 8A 03 000077 D3 03 000001 D6 04 01 029001"));
    assert_eq!(table.told(), [format!("ready {V4}")]);
    let nodes: Vec<_> = table.controller.nodes().map(|info| info.addrs.clone()).collect();
    assert_eq!(nodes, [[node(V4), node(V6)]]);
    table.wait(seconds(10)).sent();
    table.told();
    let id = table.controller.request(table.now, node(V6), &Request::get(LIGHT, &[0x80])).unwrap().index();
    let sent = table.sent();
    assert!(sent[0].starts_with(V4), "{sent:?}");
    let tid = table.tids.last().unwrap().clone();
    table.comes(V4, &format!("{tid} 029001 C 72 01 80 01 30"));
    assert_eq!(table.told(), [format!("{id} {V4} 029001 80=30")]);
    // Gone by one family, it is asked by the other; then it is lost.
    let asked = |table: &mut Table| {
        let mut by = Vec::new();
        for _ in 0..8 {
            table.request(&Request::get(LIGHT, &[0x80]));
        }
        loop {
            by.extend(table.sent().into_iter().map(|sent| sent.split(' ').next().unwrap().to_owned()));
            if table.controller.poll_timeout().is_none() {
                return by;
            }
            table.wait_for_timeout();
        }
    };
    let by = asked(&mut table);
    let (first, second) = by.split_at(6);
    assert!(first.iter().all(|by| by == V4) && second.len() == 6 && second.iter().all(|by| by == V6), "{by:?}");
    let told = table.told();
    assert_eq!(told.iter().filter(|told| told.starts_with("lost")).collect::<Vec<_>>(), [&format!("lost {V4}")]);
    assert!(table.controller.node(node(V6)).unwrap().is_lost);
    assert_eq!(announces(&mut table, "0A02", "31"), [format!("returned {V4}"), format!("{V4} 029001 80=31")]);
    assert!(!table.controller.node(node(V4)).unwrap().is_lost);
}

#[test]
fn nodes_that_may_be_two_are_not_joined() {
    let cases = [
        // Other objects; another number; a number that several have.
        (&[(V4, "029001", "AB"), (V6, "029002", "AB")][..], 2),
        (&[(V4, "029001", "AB"), (V6, "029001", "AC")], 2),
        (&[(V4, "029001", "AB"), ("192.0.2.8", "029001", "AB"), (V6, "029001", "AB")], 3),
        (&[(V4, "029001", "AB"), (V6, "029001", "AB"), ("192.0.2.8", "029001", "AB")], 2),
    ];
    for (nodes, expected) in cases {
        let mut table = Table::quiet();
        table.controller.discover(table.now).unwrap();
        table.sent();
        for (addr, object, number) in nodes {
            let number = format!("83 11 FE000077000000000000000000000000{number}");
            table.comes(addr, &format!("0001 0EF001 C 72 02 D6 04 01 {object} {number}"));
        }
        assert_eq!(table.controller.nodes().count(), expected, "{nodes:?}");
    }
}

/// scottyphillips/pychonet 88: the search does not reach a node, and its notifications arrive.
#[test]
fn a_node_that_is_first_heard_by_a_notification_is_interviewed() {
    let profile =
        "05 82 04 010E0100 83 11 FE000077000000000000000000000000AB 8A 03 000077 D3 03 000001 D6 04 01 013001";
    for (esv, deoj) in [("73", "0EF001"), ("74", "C")] {
        let mut table = Table::new(Config { interview: Interview::Profile, ..Config::new(1) });
        table.comes(NODE, &format!("F003 013001 {deoj} {esv} 01 A0 01 32"));
        let sent = table.sent();
        // A notification that wants a confirmation gets it, too.
        assert!(sent.iter().any(|sent| sent.ends_with("C0EF0016205820083008A00D300D600")), "{esv}: {sent:?}");
        let tid = table.tids.last().unwrap().clone();
        table.comes(NODE, &format!("{tid} 0EF001 C 72 {profile}"));
        assert!(table.controller.node(node(NODE)).unwrap().is_ready, "{esv}");
        assert!(table.told().contains(&format!("ready {NODE}")), "{esv}");
    }
}

/// A node that notifies and answers nothing is asked anew every ten seconds at most, however often it notifies.
#[test]
fn notifications_begin_an_interview_now_and_then() {
    let mut peer = peer::Peer::new(node(NODE));
    let begins = [0, 1, 9, 10, 11, 19, 20].map(|at| peer.is_prompted(Instant::ZERO + seconds(at)));
    assert_eq!(begins, [true, false, false, true, false, false, true]);
    peer.info.is_ready = true;
    assert!(!peer.is_prompted(Instant::ZERO + seconds(60)));
}

/// All tries of an interview can be lost on their way.
#[test]
fn an_interview_that_was_broken_off_begins_again() {
    let mut table = Table::new(Config { interview: Interview::Profile, ..Config::new(1) });
    let (mut asked_at, begun) = (Vec::new(), table.now);
    table.comes(NODE, "0A01 0EF001 0EF001 73 01 D5 04 01 013001");
    let ask = |table: &mut Table, asked_at: &mut Vec<u64>| {
        let seconds = table.now.since(begun).as_secs();
        let sent = table.sent();
        asked_at.extend(sent.iter().map(|_| seconds));
        sent
    };
    ask(&mut table, &mut asked_at);
    while table.controller.poll_timeout().is_some() {
        table.wait_for_timeout();
        ask(&mut table, &mut asked_at);
    }
    // Three tries, ten seconds, three tries; then it counts as silent.
    assert_eq!(asked_at, [0, 3, 9, 31, 51, 71]);
    assert!(!table.controller.node(node(NODE)).unwrap().is_ready);
    // A node that answers other requests only is asked ever more seldom.
    table.comes(NODE, "0A02 0EF001 0EF001 73 01 D5 04 01 013001");
    asked_at.clear();
    let begun = table.now;
    while table.now.since(begun) < seconds(3600) {
        for sent in table.sent() {
            if sent.contains("C029001") {
                let tid = table.tids.last().unwrap().clone();
                table.comes(NODE, &format!("{tid} 029001 C 72 01 80 01 30"));
            } else {
                asked_at.push(table.now.since(begun).as_secs());
            }
        }
        table.request(&Request::get(LIGHT, &[0x80]));
        table.wait(seconds(1));
    }
    assert!(asked_at.len() < 40, "{asked_at:?}");
    assert!(asked_at.last().unwrap() - asked_at[asked_at.len() - 4] > 600, "{asked_at:?}");
}

/// scottyphillips/echonetlite_homeassistant 46: an adapter that is up before its appliance refuses the maps.
#[test]
fn refused_property_maps_are_asked_for_again_when_the_node_announces_itself() {
    const PROFILE: &str = "0EF001 62 05 8200 8300 8A00 D300 D600";
    const TOLD: &str =
        "05 82 04 010E0100 83 11 FE000077000000000000000000000000AB 8A 03 000077 D3 03 000001 D6 04 01 013001";
    const MAPS: &str = "013001 62 03 9D00 9E00 9F00";
    const MAPS_OF_PROFILE: &str = "0EF001 62 03 9D00 9E00 9F00";
    let conditioner = Eoj::new(0x01, 0x30, 1);
    let mut table = Table::new(Config::new(1));
    let readable = |table: &Table| table.controller.node(node(NODE)).unwrap().maps(conditioner).unwrap().readable.len();
    table.comes(NODE, "0A01 0EF001 0EF001 73 01 D5 04 01 013001");
    interview(
        &mut table,
        &[
            (PROFILE, TOLD),
            (MAPS, "SNA 03 9D 00 9E 00 9F 00"),
            (MAPS_OF_PROFILE, "03 9D 02 01 D5 9E 01 00 9F 03 02 D6 D7"),
        ],
    );
    assert_eq!(readable(&table), 0);
    assert!(table.told().contains(&format!("ready {NODE}")));
    table.wait(seconds(60)).comes(NODE, "0A02 0EF001 0EF001 73 01 D5 04 01 013001");
    interview(&mut table, &[(PROFILE, TOLD), (MAPS, "03 9D 02 01 80 9E 02 01 80 9F 03 02 80 B0")]);
    assert_eq!(readable(&table), 2);
    assert!(table.told().contains(&format!("ready {NODE}")), "those that know the node hear of it");
    // Known ones are not asked for again.
    table.wait(seconds(60)).comes(NODE, "0A03 0EF001 0EF001 73 01 D5 04 01 013001");
    interview(&mut table, &[(PROFILE, TOLD)]);
    assert!(table.sent().is_empty());
}
