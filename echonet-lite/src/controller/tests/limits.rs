//! Everything has a limit, and says so.

use std::vec;

use super::*;

#[test]
fn requests_that_cannot_be_made_are_errors_at_once() {
    let mut table = Table::new(Config { max_frame: 64, ..quiet() });
    let value = [0; 256];
    let cases = [
        (Operation::Get(&[]), RequestError::NoProperties),
        (Operation::SetC(&[]), RequestError::NoProperties),
        (Operation::SetGet(&[], &[0x80]), RequestError::NoProperties),
        (Operation::SetGet(&[(0x80, &[0x30])], &[]), RequestError::NoProperties),
        (Operation::Get(&[0x80, 0x81, 0x80]), RequestError::RepeatedProperty { epc: 0x80 }),
        (Operation::Get(&[0x7F]), RequestError::NotAProperty { epc: 0x7F }),
        (Operation::SetI(&[(0x80, &value)]), RequestError::ValueTooLong { epc: 0x80, size: 256 }),
        (Operation::SetC(&[(0x80, &value[..51])]), RequestError::FrameTooLong { size: 66, limit: 64 }),
    ];
    for (operation, error) in cases {
        assert_eq!(table.controller.request(table.now, node(NODE), &Request::new(LIGHT, operation)), Err(error));
    }
    assert_eq!(table.controller.outstanding(), 0);
    assert_eq!(table.controller.nodes().count(), 0);
}

#[test]
fn tables_are_full_some_time() {
    let config = Config { max_requests: 6, max_requests_per_node: 3, max_nodes: 3, ..quiet() };
    let mut table = Table::new(config);
    let request = Request::get(LIGHT, &[0x80]);
    let mut ask = |addr: &str| table.controller.request(Instant::ZERO, node(addr), &request).map(RequestId::index);
    assert_eq!([ask("10.0.0.1"), ask("10.0.0.1"), ask("10.0.0.1")], [Ok(0), Ok(1), Ok(2)]);
    assert_eq!(ask("10.0.0.1"), Err(RequestError::NodeFull));
    assert_eq!([ask("10.0.0.2"), ask("10.0.0.3")], [Ok(3), Ok(4)]);
    assert_eq!(ask("10.0.0.4"), Err(RequestError::TooManyNodes));
    assert_eq!(ask("10.0.0.2"), Ok(5));
    assert_eq!(ask("10.0.0.3"), Err(RequestError::Full));
    // Until the end of one is taken, its place is not free.
    table.sent();
    table.comes("10.0.0.3", "0003 029001 C 72 01 80 01 30");
    let ask = |table: &mut Table, addr: &str| {
        table.controller.request(Instant::ZERO, node(addr), &request).map(RequestId::index)
    };
    assert_eq!(ask(&mut table, "10.0.0.3"), Err(RequestError::Full));
    assert_eq!(table.told(), ["4 10.0.0.3 029001 80=30"]);
    // A node that nothing is asked of makes room for another.
    assert_eq!(ask(&mut table, "10.0.0.4"), Ok(4));
    assert!(table.controller.node(node("10.0.0.3")).is_none());
}

#[test]
fn nodes_that_turn_up_do_not_push_out_those_that_answered() {
    let mut table = Table::new(Config { max_nodes: 2, ..quiet() });
    let announce = |table: &mut Table, addr: &str| table.comes(addr, "0001 0EF001 0EF001 73 01 D5 04 01 029001");
    for addr in ["10.0.0.1", "10.0.0.2"] {
        table.controller.request(table.now, node(addr), &Request::get(LIGHT, &[0x80])).unwrap();
        table.sent();
        let tid = table.tids.last().unwrap().clone();
        table.comes(addr, &format!("{tid} 029001 C 72 01 80 01 30"));
        table.told();
        table.wait(seconds(60));
    }
    announce(&mut table, "10.0.0.3");
    let known = |table: &Table, addr: &str| table.controller.node(node(addr)).is_some();
    assert!(known(&table, "10.0.0.1") && known(&table, "10.0.0.2") && !known(&table, "10.0.0.3"));
    assert_eq!((table.told(), table.controller.statistics().crowded_out), (vec!["crowded out 1".into()], 1));
    table.wait(seconds(3500));
    announce(&mut table, "10.0.0.3");
    assert!(!known(&table, "10.0.0.1") && known(&table, "10.0.0.2") && known(&table, "10.0.0.3"));
    assert!(table.controller.forget(node("10.0.0.3")) && !known(&table, "10.0.0.3"));
    announce(&mut table, "10.0.0.1");
    assert!(known(&table, "10.0.0.1"));
    // A node that has answered nothing gives way at once.
    announce(&mut table, "10.0.0.4");
    assert!(!known(&table, "10.0.0.1") && known(&table, "10.0.0.2") && known(&table, "10.0.0.4"));
}

#[test]
fn forged_source_addresses_do_not_suppress_notifications() {
    for interview in [Interview::Nothing, Interview::Everything] {
        let mut table = Table::new(Config { interview, ..Config::new(1) });
        table.controller.request(table.now, node(NODE), &Request::get(LIGHT, &[0x80])).unwrap();
        table.sent();
        table.comes(NODE, "0001 029001 C 72 01 80 01 30");
        for forged in 0..5000 {
            let addr = format!("10.0.{}.{}", forged / 250, forged % 250);
            table.comes(&addr, "0001 0EF001 0EF001 73 01 D5 04 01 029001");
            // Such a notification begins an interview, too.
            table.comes(&format!("10.1.{}.{}", forged / 250, forged % 250), "0001 029001 0EF001 73 01 80 01 30");
            if forged % 100 == 0 {
                table.tids.clear();
                table.sent();
            }
        }
        table.told();
        for (addr, tid) in [("10.9.9.9", "0005"), (NODE, "0006")] {
            table.comes(addr, &format!("{tid} 029001 0EF001 73 01 B0 01 64"));
            assert_eq!(table.told(), [format!("{addr} 029001 B0=64")], "{interview:?}");
        }
        assert_eq!(table.controller.statistics().crowded_out, 0);
        assert!(table.controller.nodes().count() <= 1024);
    }
}

#[test]
fn the_oldest_unread_events_are_dropped_and_counted() {
    let mut table = Table::new(Config { max_events: 3, ..quiet() });
    table.comes(NODE, "0001 0EF001 0EF001 73 01 D5 04 01 029001");
    table.told();
    for number in 10..20 {
        table.comes(NODE, &format!("00{number} 029001 0EF001 73 01 B0 01 {number}"));
    }
    let told = table.told();
    assert_eq!(told, ["missed 7", "192.0.2.7 029001 B0=17", "192.0.2.7 029001 B0=18", "192.0.2.7 029001 B0=19"]);
}

#[test]
fn controller_memory_stays_bounded_under_random_messages() {
    let config = Config { max_nodes: 16, max_requests: 16, max_objects: 16, max_events: 16, ..Config::new(1) };
    let mut table = Table::new(config);
    let mut random = 1u64;
    let mut next = move |end: u64| {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (random >> 33) % end
    };
    let mut most = 0;
    for turn in 0..20_000 {
        table.now += Duration::from_millis(next(500));
        let from = format!("10.0.{}.{}", next(2), next(250));
        let (tid, object, epc, value) = (next(0x10000), next(250) + 1, next(128) + 128, next(250));
        let frame = match next(5) {
            0 => format!("{tid:04X} 0EF001 0EF001 73 01 D5 07 02 0290{object:02X} 0130{object:02X}"),
            1 => format!("{tid:04X} 0290{object:02X} C 74 01 {epc:02X} 01 {value:02X}"),
            2 => format!("{tid:04X} 0290{object:02X} 0EF001 73 01 {epc:02X} 01 {value:02X}"),
            3 => format!("{tid:04X} 0290{object:02X} C 52 01 {epc:02X} 00"),
            _ => format!(
                "{tid:04X} 0EF001 C 72 01 83 11 FE00007700000000000000000000{object:02X}{object:02X}{value:02X}"
            ),
        };
        table.comes(&from, &frame);
        let epcs = [epc as u8];
        let requested = Request::get(LIGHT, &epcs);
        let _full_or_not = table.controller.request(table.now, node(&from), &requested);
        if turn % 7 == 0 {
            table.tids.clear();
            table.sent();
        }
        if turn % 13 == 0 {
            table.told();
        }
        most = most.max(table.controller.footprint());
    }
    assert!(most < 1 << 20, "{most} bytes");
    assert!(table.controller.nodes().count() <= 16);
}

#[test]
fn identifiers_are_never_missing() {
    // As many requests as there can be, all sent at once, to nodes that answer nothing.
    let (requests, window) = (32_512, 32);
    let config = Config { max_requests: requests, max_nodes: 2048, window, tries: 9, ..quiet() };
    let mut table = Table::new(config);
    for number in 0..requests {
        let addr = format!("10.0.{}.{}", number / 32 / 250, number / 32 % 250);
        table.controller.request(table.now, node(&addr), &Request::get(LIGHT, &[0x80])).unwrap();
    }
    let (mut buffer, mut sent, mut ended) = ([0; 64], 0, 0);
    loop {
        while table.controller.poll_transmit(table.now, &mut buffer).is_some() {
            sent += 1;
        }
        while table.controller.poll_event().is_some() {
            ended += 1;
        }
        if table.controller.poll_timeout().is_none() {
            break;
        }
        table.wait_for_timeout();
    }
    assert_eq!(ended, requests);
    assert!(sent > 4 * requests, "{sent}");
}
