//! When what is sent.

use std::vec;

use super::*;
use crate::wire::PropertySet;

#[test]
fn requests_to_one_node_follow_each_other_and_nodes_do_not_wait_for_each_other() {
    let mut table = Table::quiet();
    let request = Request::get(LIGHT, &[0x80]);
    for addr in ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.1"] {
        table.controller.request(table.now, node(addr), &request).unwrap();
    }
    assert_eq!(table.sent(), ["192.0.2.1 0001 C02900162018000", "192.0.2.2 0002 C02900162018000"]);
    table.comes("192.0.2.1", "0001 029001 C 72 01 80 01 30");
    assert_eq!(table.sent(), ["192.0.2.1 0003 C02900162018000"]);
    table.comes("192.0.2.1", "0003 029001 C 52 01 80 00");
    assert_eq!(table.sent(), ["192.0.2.1 0004 C02900162018000"]);
    assert_eq!(table.told().len(), 2);
}

#[test]
fn a_window_lets_several_be_outstanding() {
    let mut table = Table::new(Config { window: 3, ..quiet() });
    table.requests(5);
    assert_eq!(table.sent().len(), 3);
    table.comes(NODE, "0002 029001 C 72 01 80 01 30");
    assert_eq!(table.sent(), ["192.0.2.7 0004 C02900162018000"]);
    table.comes(NODE, "0004 029001 C 72 01 80 01 31");
    assert_eq!(table.sent(), ["192.0.2.7 0005 C02900162018000"]);
    assert_eq!(table.told(), ["1 192.0.2.7 029001 80=30", "3 192.0.2.7 029001 80=31"]);
    // Three that are missed at the same moment count as one miss.
    let mut table = Table::new(Config { window: 3, ..quiet() });
    table.requests(3);
    assert_eq!((table.sent().len(), table.wait_for_timeout()), (3, seconds(3)));
    assert_eq!((table.sent().len(), table.wait_for_timeout()), (3, seconds(6)));
}

#[test]
fn requests_are_spaced() {
    let gap = Duration::from_millis(100);
    let mut table = Table::new(Config { spacing: Spacing::Fixed(gap), ..quiet() });
    table.requests(2);
    assert_eq!(table.sent().len(), 1);
    table.wait(Duration::from_millis(1)).comes(NODE, "0001 029001 C 72 01 80 01 30");
    assert_eq!(table.sent().len(), 0);
    assert_eq!(table.wait_for_timeout(), gap);
    assert_eq!(table.sent().len(), 1);
}

#[test]
fn slow_classes_get_their_time() {
    let meter = Eoj::new(0x02, 0x88, 1);
    let cases = [
        (Request::get(meter, &[0xE7]), 20),
        (Request::get(meter, &[0xE0, 0xE7]), 60),
        (Request::get(meter, &[0xE2]), 60),
        (Request::get(Eoj::new(0x01, 0x30, 1), &[0x80, 0xB0]), 20),
        (Request::get(LIGHT, &[0x80, 0xB0]), 3),
    ];
    for (request, patience) in cases {
        let mut table = Table::quiet();
        table.request(&request);
        table.sent();
        assert_eq!(table.wait_for_timeout(), seconds(patience), "{request:?}");
    }
}

#[test]
fn requests_to_a_silent_node_fail_early() {
    let mut table = Table::quiet();
    let ids: Vec<_> = (0..5).map(|_| table.request(&Request::get(LIGHT, &[0x80])).index()).collect();
    let start = table.now;
    table.sent();
    while table.controller.poll_timeout().is_some() {
        table.wait_for_timeout();
        table.sent();
    }
    assert!(table.now.since(start) < seconds(90));
    let told = table.told();
    assert_eq!(told.len(), ids.len());
    assert!(told[2..].iter().all(|told| told.ends_with("the node answers nothing")), "{told:?}");
    // From now on it gets one try, until it is heard.
    table.request(&Request::get(LIGHT, &[0x80]));
    assert_eq!(table.sent().len(), 1);
    table.wait_for_timeout();
    assert_eq!((table.sent().len(), table.told().len()), (0, 1));
    table.comes(NODE, "0001 0EF001 0EF001 73 01 D5 04 01 029001");
    table.request(&Request::get(LIGHT, &[0x80]));
    for _ in 0..3 {
        assert_eq!(table.sent().len(), 1);
        table.wait_for_timeout();
    }
}

#[test]
fn a_silent_node_that_has_become_slow_is_found_again() {
    let mut table = Table::quiet();
    table.request(&Request::get(LIGHT, &[0x80]));
    table.sent();
    table.comes(NODE, "0001 029001 C 72 01 80 01 30");
    // Nothing comes for six tries, and the next one gets eight times the usual time.
    table.requests(3);
    table.sent();
    while table.controller.poll_timeout().is_some() {
        table.wait_for_timeout();
        table.sent();
    }
    let told = table.told();
    assert!(told.contains(&"lost 192.0.2.7".into()), "{told:?}");
    table.request(&Request::get(LIGHT, &[0x80]).tries(1));
    let [sent] = &table.sent()[..] else { panic!("one request") };
    let tid: String = sent.split(' ').nth(1).unwrap().into();
    assert_eq!(table.wait_for_timeout(), seconds(4));
    table.sent();
    table.told();
    // Its answers take ten seconds now. One that comes too late says that the node is there, so the next request has three tries.
    table.wait(seconds(6)).comes(NODE, &format!("{tid} 029001 C 72 01 80 01 30"));
    assert_eq!(table.told(), ["returned 192.0.2.7"]);
    let mut waits = Vec::new();
    table.request(&Request::get(LIGHT, &[0x80]).tries(6));
    table.sent();
    while table.controller.poll_timeout().is_some() {
        waits.push(table.wait_for_timeout());
        table.sent();
    }
    let tenths: Vec<_> = waits.iter().map(|wait| wait.as_millis() / 100).collect();
    assert_eq!(tenths, [5, 10, 20, 40, 80, 160]);
}

#[test]
fn writes_are_sent_once_unless_twice_does_no_harm() {
    let writes: [Write<'_>; 2] = [(0x80, &[0x30]), (0xB0, &[0x64])];
    let repeatable = vec![(LIGHT.class_code(), PropertySet::of(&[0x80]))];
    let cases = [
        (Request::set(LIGHT, &writes), 1),
        (Request::set(LIGHT, &writes[..1]), 3),
        (Request::set(LIGHT, &writes[1..]), 1),
        (Request::set(Eoj::new(0x02, 0x91, 1), &writes[..1]), 1),
        (Request::set(LIGHT, &writes[1..]).tries(2), 2),
        (Request::new(LIGHT, Operation::SetGet(&writes, &[0xB0])), 1),
        (Request::new(LIGHT, Operation::SetGet(&writes[..1], &[0xB0])), 3),
        (Request::get(LIGHT, &[0xB0]), 3),
    ];
    for (request, expected) in cases {
        let mut table = Table::new(Config { repeatable_writes: repeatable.clone(), ..quiet() });
        table.request(&request);
        let mut sent = table.sent().len();
        while table.controller.poll_timeout().is_some() {
            table.wait_for_timeout();
            sent += table.sent().len();
        }
        assert_eq!(sent, expected, "{request:?}");
    }
}
