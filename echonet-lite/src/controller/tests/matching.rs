//! Answers find their requests, and no others.

use super::*;

#[test]
fn only_what_fits_in_every_respect_is_the_answer() {
    let mut table = Table::quiet();
    table.request(&Request::get(LIGHT, &[0x80, 0xB0]));
    assert_eq!(table.sent(), ["192.0.2.7 0001 C02900162028000B000"]);
    let wrong = [
        ("192.0.2.8", "0001 029001 C 72 02 80 01 30 B0 01 64", "another node"),
        (NODE, "FFFF 029001 C 72 02 80 01 30 B0 01 64", "another identifier"),
        (NODE, "0001 029002 C 72 02 80 01 30 B0 01 64", "another object"),
        (NODE, "0001 029001 05FF02 72 02 80 01 30 B0 01 64", "for another controller"),
        (NODE, "0001 029001 C 71 02 80 00 B0 00", "of another service"),
        (NODE, "0001 029001 C 53 02 80 00 B0 00", "the refusal of another service"),
        (NODE, "0001 029001 C 72 02 80 01 30 B1 01 64", "another property"),
        (NODE, "0001 029001 C 72 03 80 01 30 B0 01 64 B1 01 00", "a property more"),
        (NODE, "0001 029001 C 72 02 80 01 30 80 01 30", "a property twice"),
        (NODE, "0001 029001 C 72 02 30 01 30 B0 01 64", "no property"),
        (NODE, "0001 029001 C 62 02 80 00 B0 00", "a request"),
        (NODE, "0001 029001 C 7A 02 80 00 B0 00", "a confirmation"),
    ];
    for (from, frame, why) in wrong {
        table.comes(from, frame);
        assert!(table.told().is_empty(), "{why}");
    }
    assert_eq!(table.controller.statistics().unmatched, 10);
    // Neither the order of the properties nor the port of the sender matters.
    table.comes(NODE, "0001 029001 C 72 02 B0 01 64 80 01 30");
    assert_eq!(table.told(), ["0 192.0.2.7 029001 B0=64 80=30"]);
    table.comes(NODE, "0001 029001 C 72 02 B0 01 64 80 01 30");
    assert!(table.told().is_empty(), "an answer that comes twice");
}

#[test]
fn link_local_addresses_have_their_scope() {
    let mut table = Table::quiet();
    let request = Request::get(LIGHT, &[0x80]);
    table.controller.request(table.now, node("fe80::7%2"), &request).unwrap();
    assert_eq!(table.sent(), ["fe80::7%2 0001 C02900162018000"]);
    table.comes("fe80::7%3", "0001 029001 C 72 01 80 01 31");
    assert!(table.told().is_empty());
    table.comes("fe80::7%2", "0001 029001 C 72 01 80 01 30");
    assert_eq!(table.told(), ["0 fe80::7%2 029001 80=30"]);
    // Asked without one, it may be anywhere.
    table.controller.request(table.now, node("fe80::9"), &request).unwrap();
    assert_eq!(table.sent(), ["fe80::9 0002 C02900162018000"]);
    table.comes("fe80::9%2", "0002 029001 C 72 01 80 01 30");
    assert_eq!(table.told(), ["0 fe80::9 029001 80=30"]);
}

#[test]
fn a_request_is_sent_again_with_a_fresh_identifier_and_any_of_its_tries_can_be_answered() {
    let mut table = Table::quiet();
    table.request(&Request::get(LIGHT, &[0x80]));
    assert_eq!(table.sent(), ["192.0.2.7 0001 C02900162018000"]);
    assert_eq!(table.wait_for_timeout(), seconds(3));
    assert_eq!(table.sent(), ["192.0.2.7 0002 C02900162018000"]);
    assert_eq!(table.wait_for_timeout(), seconds(6));
    assert_eq!(table.sent(), ["192.0.2.7 0003 C02900162018000"]);
    // To the first try, thirteen seconds late, and still the answer.
    table.wait(seconds(4)).comes(NODE, "0001 029001 C 72 01 80 01 30");
    assert_eq!(table.told(), ["0 192.0.2.7 029001 80=30"]);
    table.request(&Request::get(LIGHT, &[0x80]));
    assert_eq!(table.sent().len(), 0, "it is left alone for a moment");
    assert_eq!(table.wait_for_timeout(), Duration::from_millis(500));
    assert_eq!(table.sent(), ["192.0.2.7 0004 C02900162018000"]);
    // The answers to the other tries are not the answer to this one.
    table.comes(NODE, "0002 029001 C 72 01 80 01 31");
    table.comes(NODE, "0003 029001 C 72 01 80 01 31");
    assert!(table.told().is_empty());
    assert_eq!(table.controller.statistics().late, 2);
    // It takes as long as the node is known to take.
    assert_eq!(table.wait_for_timeout(), seconds(20));
}

#[test]
fn a_request_without_an_answer_times_out() {
    let mut table = Table::quiet();
    table.request(&Request::get(LIGHT, &[0x80]));
    for _ in 0..3 {
        assert_eq!(table.sent().len(), 1);
        assert!(table.told().is_empty());
        table.wait_for_timeout();
    }
    assert!(table.sent().is_empty());
    assert_eq!(table.told(), ["0 no answer to 3 tries within 21000 ms"]);
    for late in ["0001", "0002", "0003"] {
        table.comes(NODE, &format!("{late} 029001 C 72 01 80 01 30"));
    }
    assert!(table.told().is_empty());
    assert_eq!(table.controller.statistics().late, 3);
    assert_eq!(table.controller.poll_timeout(), None);
}

#[test]
fn requests_can_be_limited_in_time_and_cancelled() {
    let mut table = Table::quiet();
    let first = table.request(&Request::get(LIGHT, &[0x80]).tries(1));
    let waiting = table.request(&Request::get(LIGHT, &[0x81]).timeout(seconds(2)));
    let cancelled = table.request(&Request::get(LIGHT, &[0x82]));
    assert_eq!(table.sent(), ["192.0.2.7 0001 C02900162018000"]);
    assert!(table.controller.cancel(table.now, cancelled));
    assert!(!table.controller.cancel(table.now, cancelled));
    assert_eq!(table.wait_for_timeout(), seconds(2));
    assert!(table.sent().is_empty());
    assert_eq!(table.told(), [format!("{} not sent within 2000 ms", waiting.index())]);
    // One that is outstanding makes room at once.
    let next = table.request(&Request::get(LIGHT, &[0x83]));
    assert!(table.sent().is_empty());
    assert!(table.controller.cancel(table.now, first));
    assert_eq!(table.sent(), ["192.0.2.7 0002 C02900162018300"]);
    table.comes(NODE, "0001 029001 C 72 01 80 01 30");
    table.comes(NODE, "0002 029001 C 72 01 83 01 00");
    // One that is done, and was not taken yet.
    assert!(table.controller.cancel(table.now, next));
    assert!(!table.controller.cancel(table.now, next));
    assert!(table.told().is_empty());
    assert_eq!(table.controller.outstanding(), 0);
    assert!(!table.controller.cancel(table.now, next));
}

#[test]
fn writes_are_confirmed_or_refused() {
    let cases = [
        ("0001 029001 C 71 02 80 00 B0 00", "80 written B0 written"),
        ("0001 029001 C 51 02 80 00 B0 01 65", "80 written B0 refused"),
        ("0001 029001 C 51 02 80 01 30 B0 01 65", "80 refused B0 refused"),
        // It refuses, and does not say what.
        ("0001 029001 C 51 02 80 00 B0 00", "80 refused B0 refused"),
    ];
    for (answer, outcome) in cases {
        let mut table = Table::quiet();
        table.request(&Request::set(LIGHT, &[(0x80, &[0x30]), (0xB0, &[0x65])]));
        assert_eq!(table.sent(), ["192.0.2.7 0001 C0290016102800130B00165"]);
        table.comes(NODE, answer);
        assert_eq!(table.told(), [format!("0 192.0.2.7 029001 {outcome}")]);
    }
}

#[test]
fn writes_without_confirmation_end_well_unless_refused() {
    let mut table = Table::quiet();
    let write = Request::new(LIGHT, Operation::SetI(&[(0x80, &[0x30]), (0xB0, &[0x65])]));
    table.request(&write);
    table.request(&write);
    // The second does not wait for what may never come.
    assert_eq!(table.sent(), ["192.0.2.7 0001 C0290016002800130B00165", "192.0.2.7 0002 C0290016002800130B00165"]);
    table.comes(NODE, "0002 029001 C 50 02 80 00 B0 01 65");
    assert_eq!(table.told(), ["1 192.0.2.7 029001 80 written B0 refused"]);
    assert_eq!(table.wait_for_timeout(), seconds(3));
    assert!(table.sent().is_empty());
    assert_eq!(table.told(), ["0 192.0.2.7 029001 80 written B0 written"]);
}

#[test]
fn writing_and_reading_in_one() {
    let cases = [
        ("0001 029001 C 7E 01 80 00 02 B0 01 64 B1 01 41", "80 written B0=64 B1=41"),
        ("0001 029001 C 5E 01 80 01 30 02 B0 01 64 B1 00", "80 refused B0=64 B1 refused"),
        ("0001 029001 C 5E 00 00", "80 refused B0 refused B1 refused"),
    ];
    let request = Request::new(LIGHT, Operation::SetGet(&[(0x80, &[0x30])], &[0xB0, 0xB1]));
    for (answer, outcome) in cases {
        let mut table = Table::quiet();
        table.request(&request);
        assert_eq!(table.sent(), ["192.0.2.7 0001 C0290016E0180013002B000B100"]);
        table.comes(NODE, answer);
        assert_eq!(table.told(), [format!("0 192.0.2.7 029001 {outcome}")]);
    }
    // The values that did not fit into the answer of a SetGet are read by a Get.
    let mut table = Table::quiet();
    table.request(&request);
    table.sent();
    table.comes(NODE, "0001 029001 C 5E 01 80 00 01 B0 01 64");
    assert_eq!(table.sent(), ["192.0.2.7 0002 C0290016201B100"]);
    table.comes(NODE, "0002 029001 C 72 01 B1 01 41");
    assert_eq!(table.told(), ["0 192.0.2.7 029001 80 written B0=64 B1=41"]);
}

#[test]
fn an_announcement_that_was_asked_for_is_news_and_answer() {
    let mut table = Table::quiet();
    table.request(&Request::new(LIGHT, Operation::InfReq(&[0x80])));
    assert_eq!(table.sent(), ["192.0.2.7 0001 C02900163018000"]);
    table.comes(NODE, "0001 029001 0EF001 73 01 80 01 30");
    assert_eq!(table.told(), ["192.0.2.7 029001 80=30", "0 192.0.2.7 029001 80=30"]);
    table.request(&Request::new(LIGHT, Operation::InfReq(&[0x80])));
    table.sent();
    table.comes(NODE, "0002 029001 C 53 01 80 00");
    assert_eq!(table.told(), ["0 192.0.2.7 029001 80 refused"]);
}

#[test]
fn all_instances_answer_one_by_one() {
    let mut table = Table::quiet();
    table.request(&Request::get(LIGHT.with_instance(0), &[0x80]));
    assert_eq!(table.sent(), ["192.0.2.7 0001 C02900062018000"]);
    table.comes(NODE, "0001 029002 C 72 01 80 01 31");
    table.comes(NODE, "0001 029001 C 72 01 80 01 30");
    table.comes(NODE, "0001 029001 C 72 01 80 01 30");
    table.comes("192.0.2.8", "0001 029003 C 72 01 80 01 30");
    table.comes(NODE, "0001 029101 C 72 01 80 01 30");
    assert_eq!(table.told(), ["0 one: 192.0.2.7 029002 80=31", "0 one: 192.0.2.7 029001 80=30"]);
    table.wait(seconds(5));
    while table.controller.poll_timeout().is_some() {
        table.wait_for_timeout();
        table.sent();
    }
    assert_eq!(table.told(), ["0 all: 2"]);
}
