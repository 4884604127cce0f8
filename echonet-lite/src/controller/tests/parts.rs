//! Answers in parts, refusals, and the memory of them.

use super::*;

#[test]
fn requests_are_split_to_fit_a_nodes_limit() {
    let mut table = Table::quiet();
    table.request(&Request::get(LIGHT, &[0x80, 0x81, 0x82, 0x83, 0xB0]));
    assert_eq!(table.sent(), ["192.0.2.7 0001 C02900162058000810082008300B000"]);
    table.comes(NODE, "0001 029001 C 52 02 80 01 30 81 01 08");
    assert_eq!(table.sent(), ["192.0.2.7 0002 C029001620282008300"]);
    table.comes(NODE, "0002 029001 C 72 02 82 04 00005201 83 01 FE");
    assert_eq!(table.sent(), ["192.0.2.7 0003 C0290016201B000"]);
    assert!(table.told().is_empty());
    table.comes(NODE, "0003 029001 C 52 01 B0 00");
    assert_eq!(table.told(), ["0 192.0.2.7 029001 80=30 81=08 82=00005201 83=FE B0 refused"]);
    // It is known from now on; a restart can have changed it.
    table.request(&Request::get(LIGHT, &[0x80, 0x81, 0x82]));
    assert_eq!(table.sent(), ["192.0.2.7 0004 C029001620280008100"]);
    assert_eq!(table.controller.node(node(NODE)).unwrap().properties_at_once, Some(2));
    table.comes(NODE, "0001 0EF001 0EF001 73 01 D5 04 01 029001");
    assert_eq!(table.controller.node(node(NODE)).unwrap().properties_at_once, None);
}

#[test]
fn writes_in_parts_are_written_once_each() {
    let mut table = Table::quiet();
    table.request(&Request::set(LIGHT, &[(0x80, &[0x30]), (0xB0, &[0x64]), (0xB1, &[0x41])]));
    table.sent();
    table.comes(NODE, "0001 029001 C 51 01 80 00");
    assert_eq!(table.sent(), ["192.0.2.7 0002 C0290016101B00164"]);
    table.comes(NODE, "0002 029001 C 71 01 B0 00");
    assert_eq!(table.sent(), ["192.0.2.7 0003 C0290016101B10141"]);
    table.comes(NODE, "0003 029001 C 51 01 B1 01 41");
    assert_eq!(table.told(), ["0 192.0.2.7 029001 80 written B0 written B1 refused"]);
}

#[test]
fn repetitions_ask_for_less() {
    let mut table = Table::quiet();
    table.request(&Request::get(LIGHT, &[0x80, 0x81, 0x82, 0x83]).tries(4));
    let counts: Vec<_> = (0..4)
        .map(|_| {
            let sent = table.sent();
            table.wait_for_timeout();
            (sent[0].len() - "192.0.2.7 0001 C0290016201".len()) / 4
        })
        .collect();
    assert_eq!(counts, [4, 4, 2, 1]);
}

#[test]
fn refused_properties_are_skipped_for_ten_minutes() {
    let mut table = Table::quiet();
    let request = Request::get(LIGHT, &[0x80, 0xB5]);
    let refuse = |table: &mut Table, request: &Request<'_>, tid: &str| {
        table.request(request);
        let sent = table.sent();
        assert_eq!(sent, [format!("192.0.2.7 {tid} C02900162028000B500")]);
        table.comes(NODE, &format!("{tid} 029001 C 52 02 80 01 30 B5 00"));
        assert_eq!(table.told(), ["0 192.0.2.7 029001 80=30 B5 refused"]);
    };
    refuse(&mut table, &request, "0001");
    table.request(&request);
    assert_eq!(table.sent(), ["192.0.2.7 0002 C02900162018000"]);
    table.comes(NODE, "0002 029001 C 72 01 80 01 30");
    assert_eq!(table.told(), ["0 192.0.2.7 029001 B5 refused earlier 80=30"]);
    // Nothing is left to ask.
    table.request(&Request::get(LIGHT, &[0xB5]));
    assert!(table.sent().is_empty());
    assert_eq!(table.told(), ["0 192.0.2.7 029001 B5 refused earlier"]);
    // Of another object nothing is known; a fresh request asks; so does any request after ten minutes, or when told to.
    table.request(&Request::get(LIGHT.with_instance(2), &[0xB5]));
    assert_eq!(table.sent(), ["192.0.2.7 0003 C0290026201B500"]);
    table.comes(NODE, "0003 029002 C 72 01 B5 01 41");
    table.told();
    refuse(&mut table, &request.fresh(), "0004");
    table.wait(seconds(600));
    refuse(&mut table, &request, "0005");
    table.controller.forget_refusals(node(NODE));
    refuse(&mut table, &request, "0006");
    table.comes(NODE, "0001 0EF001 0EF001 73 01 D5 04 01 029001");
    table.told();
    refuse(&mut table, &request, "0007");
}

#[test]
fn refusals_of_everything_or_against_the_map_are_not_remembered() {
    let mut table = Table::quiet();
    table.request(&Request::get(LIGHT, &[0x80, 0xB5]));
    table.sent();
    table.comes(NODE, "0001 029001 C 52 02 80 00 B5 00");
    table.request(&Request::get(LIGHT, &[0x80, 0xB5]));
    assert_eq!(table.sent(), ["192.0.2.7 0002 C02900162028000B500"]);
    // Busy: the map lists it.
    table.comes(NODE, "00AA 0EF001 0EF001 73 01 D5 04 01 029001");
    table.comes(NODE, "0002 029001 C 52 02 80 01 30 B5 00");
    table.controller.forget_refusals(node(NODE));
    table.request(&Request::get(LIGHT, &[0x9D, 0x9E, 0x9F]));
    assert_eq!(table.sent(), ["192.0.2.7 0003 C02900162039D009E009F00"]);
    table.comes(NODE, "0003 029001 C 72 03 9D 01 00 9E 02 01 B5 9F 03 02 80 B5");
    table.request(&Request::get(LIGHT, &[0xB5]));
    table.sent();
    table.comes(NODE, "0004 029001 C 52 01 B5 00");
    table.request(&Request::get(LIGHT, &[0xB5]));
    assert_eq!(table.sent(), ["192.0.2.7 0005 C0290016201B500"]);
}

/// scottyphillips/echonetlite_homeassistant 250, sayurin/hems_echonet_lite 105: a board answers nothing to a list with B3 and others.
#[test]
fn a_property_that_silences_its_whole_list_is_read_alone_in_the_end() {
    const BOARD: Eoj = Eoj::new(0x02, 0x87, 1);
    let mut table = Table::quiet();
    table.request(&Request::get(BOARD, &[0x80, 0xB1, 0xB3, 0xC6]));
    for _ in 0..64 {
        let sent = table.sent();
        let Some(frame) = sent.first() else {
            if table.controller.outstanding() == 0 {
                break;
            }
            table.wait_for_timeout();
            continue;
        };
        let list = frame.split("62").last().unwrap();
        let epcs: Vec<_> = list.as_bytes()[2..].chunks(4).map(|epc| std::str::from_utf8(&epc[..2]).unwrap()).collect();
        if epcs.len() > 1 && epcs.contains(&"B3") {
            table.wait_for_timeout();
            continue;
        }
        let values: String = epcs.iter().map(|epc| format!("{epc} 01 30 ")).collect();
        let tid = table.tids.last().unwrap().clone();
        table.comes(NODE, &format!("{tid} 028701 C 72 {:02X} {}", epcs.len(), values.trim_end()));
    }
    let told = table.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(["80=30", "B1=30", "B3=30", "C6=30"].iter().all(|value| told[0].contains(value)), "{told:?}");
}
