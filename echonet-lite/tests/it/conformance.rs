//! Each rule for a device: the request's bytes and the exact bytes of what is sent.

use std::net::SocketAddr;

use echonet_lite::node::{AnswerPort, Arrival, Config, Destination, Instant, Outbox, SetGet};

use crate::support::{Bench, To, config, devices, hex, text};

/// A rule, a request, and all that the node sends for it within a second.
struct Case {
    rule: &'static str,
    arrival: Arrival,
    request: &'static str,
    sent: &'static [(To, &'static str)],
}

const fn unicast(rule: &'static str, request: &'static str, sent: &'static [(To, &'static str)]) -> Case {
    Case { rule, arrival: Arrival::Unicast, request, sent }
}

const fn multicast(rule: &'static str, request: &'static str, sent: &'static [(To, &'static str)]) -> Case {
    Case { rule, arrival: Arrival::Multicast, request, sent }
}

const SILENCE: &[(To, &str)] = &[];

fn check(bench: &mut Bench, case: &Case) {
    let sent = bench.exchange(case.arrival, &hex(case.request));
    let sent: Vec<_> = sent.iter().map(|(to, bytes)| (*to, text(bytes))).collect();
    let expected: Vec<_> = case.sent.iter().map(|(to, bytes)| (*to, text(&hex(bytes)))).collect();
    assert_eq!(sent, expected, "{}: {}", case.rule, case.request);
}

/// Each case has a node of its own.
fn check_all(cases: &[Case]) {
    for case in cases {
        check(&mut Bench::standard(), case);
    }
}

#[test]
fn get() {
    check_all(&[
        unicast(
            "Get of one property",
            "1081 1234 05FF01 029001 62 01 80 00",
            &[(To::Peer, "1081 1234 029001 05FF01 72 01 80 01 30")],
        ),
        unicast(
            "Get keeps order and repeats",
            "1081 1234 05FF01 029001 62 03 C0 00 80 00 C0 00",
            &[(To::Peer, "1081 1234 029001 05FF01 72 03 C0 04 01020304 80 01 30 C0 04 01020304")],
        ),
        unicast(
            "Get of an unknown EPC among known ones: SNA, order kept, PDC 0",
            "1081 1234 05FF01 029001 62 03 80 00 F7 00 C0 00",
            &[(To::Peer, "1081 1234 029001 05FF01 52 03 80 01 30 F7 00 C0 04 01020304")],
        ),
        unicast(
            "Get of a property that can only be set",
            "1081 1234 05FF01 029001 62 01 B1 00",
            &[(To::Peer, "1081 1234 029001 05FF01 52 01 B1 00")],
        ),
        unicast(
            "Get that the object refuses now",
            "1081 1234 05FF01 029001 62 01 E0 00",
            &[(To::Peer, "1081 1234 029001 05FF01 52 01 E0 00")],
        ),
        unicast(
            "Get of an EPC below 80",
            "1081 1234 05FF01 029001 62 01 00 00",
            &[(To::Peer, "1081 1234 029001 05FF01 52 01 00 00")],
        ),
        unicast(
            "SEOJ may be anything",
            "1081 0000 0EF001 029002 62 01 88 00",
            &[(To::Peer, "1081 0000 029002 0EF001 72 01 88 01 42")],
        ),
        unicast(
            "instance 0: one answer for each instance",
            "1081 1234 05FF01 029000 62 01 80 00",
            &[
                (To::Peer, "1081 1234 029001 05FF01 72 01 80 01 30"),
                (To::Peer, "1081 1234 029002 05FF01 72 01 80 01 30"),
            ],
        ),
    ]);
}

#[test]
fn silence() {
    check_all(&[
        unicast("unknown instance", "1081 0001 05FF01 029003 62 01 80 00", SILENCE),
        unicast("unknown class", "1081 0001 05FF01 028801 62 01 80 00", SILENCE),
        unicast("instance 0 of an unknown class", "1081 0001 05FF01 028800 62 01 80 00", SILENCE),
        unicast("profile of a node that only sends", "1081 0001 05FF01 0EF002 62 01 80 00", SILENCE),
        unicast("unknown ESV", "1081 0001 05FF01 029001 64 01 80 00", SILENCE),
        unicast("ESV 00", "1081 0001 05FF01 029001 00 01 80 00", SILENCE),
        unicast("an answer is not answered", "1081 0001 05FF01 029001 72 01 80 01 30", SILENCE),
        unicast("a notification is not answered", "1081 0001 05FF01 029001 73 01 80 01 30", SILENCE),
        unicast("a refusal is not answered", "1081 0001 05FF01 029001 52 01 80 00", SILENCE),
        unicast("OPC 0", "1081 0001 05FF01 029001 62 00", SILENCE),
        unicast("OPC more than there are", "1081 0001 05FF01 029001 62 02 80 00", SILENCE),
        unicast("OPC fewer than there are", "1081 0001 05FF01 029001 62 01 80 00 81 00", SILENCE),
        unicast("PDC beyond the end", "1081 0001 05FF01 029001 61 01 80 02 30", SILENCE),
        unicast("SetGet without its second list", "1081 0001 05FF01 029001 6E 01 80 01 30", SILENCE),
        unicast("SetGet with an empty second list", "1081 0001 05FF01 029001 6E 01 80 01 30 00", SILENCE),
        unicast("other protocol", "1081 0001", SILENCE),
        unicast("EHD1 of the older protocol", "8081 0001 05FF01 029001 62 01 80 00", SILENCE),
        unicast("EHD2 unknown", "1080 0001 05FF01 029001 62 01 80 00", SILENCE),
        unicast("format 2 is not understood", "1082 0001 05FF01 029001 62 01 80 00", SILENCE),
        multicast("INFC is never multicast", "1081 0001 05FF01 029001 74 01 80 01 30", SILENCE),
    ]);
}

#[test]
fn set() {
    check_all(&[
        unicast(
            "SetC accepted, value as before: nothing to announce",
            "1081 0002 05FF01 029001 61 01 B0 01 32",
            &[(To::Peer, "1081 0002 029001 05FF01 71 01 B0 00")],
        ),
        unicast(
            "SetC accepted: a change of an announced property is announced",
            "1081 0002 05FF01 029001 61 01 B0 01 33",
            &[(To::Peer, "1081 0002 029001 05FF01 71 01 B0 00"), (To::All, "1081 0002 029001 0EF001 73 01 B0 01 33")],
        ),
        unicast(
            "several changes are announced together",
            "1081 0002 05FF01 029001 61 02 B0 01 33 80 01 31",
            &[
                (To::Peer, "1081 0002 029001 05FF01 71 02 B0 00 80 00"),
                (To::All, "1081 0002 029001 0EF001 73 02 80 01 31 B0 01 33"),
            ],
        ),
        unicast(
            "SetC of what is not announced",
            "1081 0002 05FF01 029001 61 01 B1 01 07",
            &[(To::Peer, "1081 0002 029001 05FF01 71 01 B1 00")],
        ),
    ]);
}

#[test]
fn set_refused() {
    check_all(&[
        unicast(
            "SetC in part: accepted PDC 0, refused the value",
            "1081 0002 05FF01 029001 61 03 B1 01 07 B0 01 65 B1 01 08",
            &[(To::Peer, "1081 0002 029001 05FF01 51 03 B1 00 B0 01 65 B1 00")],
        ),
        unicast(
            "SetC of a property that can only be read",
            "1081 0002 05FF01 029001 61 01 C0 04 00000000",
            &[(To::Peer, "1081 0002 029001 05FF01 51 01 C0 04 00000000")],
        ),
        unicast(
            "SetC of an unknown property",
            "1081 0002 05FF01 029001 61 01 F7 02 ABCD",
            &[(To::Peer, "1081 0002 029001 05FF01 51 01 F7 02 ABCD")],
        ),
        unicast(
            "SetC of a property map",
            "1081 0002 05FF01 029001 61 01 9D 01 00",
            &[(To::Peer, "1081 0002 029001 05FF01 51 01 9D 01 00")],
        ),
        unicast(
            "wrong size of EDT: too long",
            "1081 0002 05FF01 029001 61 01 B0 02 0033",
            &[(To::Peer, "1081 0002 029001 05FF01 51 01 B0 02 0033")],
        ),
        unicast(
            "wrong size of EDT: empty",
            "1081 0002 05FF01 029001 61 01 80 00",
            &[(To::Peer, "1081 0002 029001 05FF01 51 01 80 00")],
        ),
        unicast("SetI accepted: silence", "1081 0002 05FF01 029001 60 01 B1 01 07", SILENCE),
        unicast(
            "SetI accepted and changed: announced only",
            "1081 0002 05FF01 029001 60 01 80 01 31",
            &[(To::All, "1081 0002 029001 0EF001 73 01 80 01 31")],
        ),
        unicast(
            "SetI refused: SNA",
            "1081 0002 05FF01 029001 60 02 B1 01 07 B0 01 FF",
            &[(To::Peer, "1081 0002 029001 05FF01 50 02 B1 00 B0 01 FF")],
        ),
        unicast(
            "SetC to instance 0: each its answer",
            "1081 0002 05FF01 029000 61 01 B1 01 07",
            &[(To::Peer, "1081 0002 029001 05FF01 71 01 B1 00"), (To::Peer, "1081 0002 029002 05FF01 71 01 B1 00")],
        ),
        unicast(
            "the node profile has nothing to write",
            "1081 0002 05FF01 0EF001 61 01 80 01 30",
            &[(To::Peer, "1081 0002 0EF001 05FF01 51 01 80 01 30")],
        ),
    ]);
}

#[test]
fn set_and_get() {
    check_all(&[
        unicast(
            "SetGet: written, then read",
            "1081 0003 05FF01 013001 6E 01 B0 01 0A 02 B0 00 C0 00",
            &[
                (To::Peer, "1081 0003 013001 05FF01 7E 01 B0 00 02 B0 01 0A C0 04 01020304"),
                (To::All, "1081 0002 013001 0EF001 73 01 B0 01 0A"),
            ],
        ),
        unicast(
            "SetGet with a refused write: what can be read is read",
            "1081 0003 05FF01 013001 6E 01 B0 01 FF 01 B0 00",
            &[(To::Peer, "1081 0003 013001 05FF01 5E 01 B0 01 FF 01 B0 01 32")],
        ),
        unicast(
            "SetGet with a refused read: what can be written is written",
            "1081 0003 05FF01 029001 6E 01 B1 01 05 02 B1 00 B0 00",
            &[(To::Peer, "1081 0003 029001 05FF01 5E 01 B1 00 02 B1 00 B0 01 32")],
        ),
    ]);
    let mut refusing = Bench::new(Config { set_get: SetGet::Refused, ..config() }, devices());
    check(
        &mut refusing,
        &unicast(
            "SetGet not supported: two empty lists, nothing written",
            "1081 0003 05FF01 029001 6E 01 B0 01 0A 01 B0 00",
            &[(To::Peer, "1081 0003 029001 05FF01 5E 00 00")],
        ),
    );
    assert_eq!(refusing.node.objects()[0].level, 50);
}

#[test]
fn notification_on_request() {
    check_all(&[
        unicast(
            "INF_REQ: the answer is multicast",
            "1081 0004 05FF01 029001 63 02 80 00 C0 00",
            &[(To::All, "1081 0004 029001 05FF01 73 02 80 01 30 C0 04 01020304")],
        ),
        unicast(
            "INF_REQ refused: the answer is unicast",
            "1081 0004 05FF01 029001 63 02 80 00 B1 00",
            &[(To::Peer, "1081 0004 029001 05FF01 53 02 80 01 30 B1 00")],
        ),
        unicast(
            "INF_REQ of the instance list, which cannot be read",
            "1081 0004 05FF01 0EF001 63 01 D5 00",
            &[(To::All, "1081 0004 0EF001 05FF01 73 01 D5 0A 03 029001 029002 013001")],
        ),
        unicast(
            "Get of the instance list that is only announced",
            "1081 0004 05FF01 0EF001 62 01 D5 00",
            &[(To::Peer, "1081 0004 0EF001 05FF01 52 01 D5 00")],
        ),
        multicast(
            "INF_REQ by multicast",
            "1081 0004 05FF01 029000 63 01 80 00",
            &[(To::All, "1081 0004 029001 05FF01 73 01 80 01 30"), (To::All, "1081 0004 029002 05FF01 73 01 80 01 30")],
        ),
        unicast(
            "INFC is confirmed by the object that it is for",
            "1081 0005 028801 029001 74 02 E7 02 0001 E8 00",
            &[(To::Peer, "1081 0005 029001 028801 7A 02 E7 00 E8 00")],
        ),
        unicast(
            "INFC to the node profile",
            "1081 0005 0EF001 0EF001 74 01 D5 04 01 028801",
            &[(To::Peer, "1081 0005 0EF001 0EF001 7A 01 D5 00")],
        ),
        unicast("INFC to an unknown object", "1081 0005 028801 05FF01 74 01 E7 00", SILENCE),
    ]);
}

#[test]
fn node_profile() {
    check_all(&[
        unicast(
            "80 on, 82 version 1.14 with format 1, 8A maker",
            "1081 0006 05FF01 0EF001 62 03 80 00 82 00 8A 00",
            &[(To::Peer, "1081 0006 0EF001 05FF01 72 03 80 01 30 82 04 010E0100 8A 03 000077")],
        ),
        unicast(
            "83: FE, maker, 13 bytes",
            "1081 0006 05FF01 0EF001 62 01 83 00",
            &[(To::Peer, "1081 0006 0EF001 05FF01 72 01 83 11 FE 000077 00000000000000000001020304")],
        ),
        unicast(
            "9D, 9E, 9F",
            "1081 0006 05FF01 0EF001 62 03 9D 00 9E 00 9F 00",
            &[(
                To::Peer,
                "1081 0006 0EF001 05FF01 72 03 9D 03 02 80D5 9E 01 00 9F 0C 0B 80 82 83 8A 9D 9E 9F D3 D4 D6 D7",
            )],
        ),
        unicast(
            "D3 does not count the profile, D4 does",
            "1081 0006 05FF01 0EF001 62 02 D3 00 D4 00",
            &[(To::Peer, "1081 0006 0EF001 05FF01 72 02 D3 03 000003 D4 02 0003")],
        ),
        unicast(
            "D6 instances, D7 classes, without the profile",
            "1081 0006 05FF01 0EF001 62 02 D6 00 D7 00",
            &[(To::Peer, "1081 0006 0EF001 05FF01 72 02 D6 0A 03 029001 029002 013001 D7 05 02 0290 0130")],
        ),
        unicast(
            "instance 0 of the profile",
            "1081 0006 05FF01 0EF000 62 01 D3 00",
            &[(To::Peer, "1081 0006 0EF001 05FF01 72 01 D3 03 000003")],
        ),
        multicast(
            "discovery",
            "1081 0006 05FF01 0EF001 62 01 D6 00",
            &[(To::Peer, "1081 0006 0EF001 05FF01 72 01 D6 0A 03 029001 029002 013001")],
        ),
    ]);
}

#[test]
fn property_maps() {
    check_all(&[
        unicast(
            "fewer than 16: a list; 16 and more: a bitmap with all of C0-FF",
            "1081 0007 05FF01 029001 62 03 9D 00 9E 00 9F 00",
            &[(
                To::Peer,
                "1081 0007 029001 05FF01 72 03 9D 05 04 80 81 88 B0 9E 05 04 80 81 B0 B1 \
                 9F 0D 0C 80 81 82 88 8A 9D 9E 9F B0 C0 D0 E0",
            )],
        ),
        unicast(
            "announce 5, set 19, get 22",
            "1081 0007 05FF01 013001 62 03 9D 00 9E 00 9F 00",
            &[(
                To::Peer,
                // Set: 80 81 93 A0 A1 A3 A4 A5 B0 B1 C1 CF D1 D2 E3 F0 F1 FE FF.
                // Get: 80 81 82 84 85 86 88 8A 9D 9E 9F A0 A1 B0 BB C0 C1 CF D0 E0 F0 FF.
                "1081 0007 013001 05FF01 72 03 9D 06 05 80 81 88 B0 FF \
                 9E 11 13 8D BD 20 46 04 04 00 00 00 00 00 00 00 00 80 90 \
                 9F 11 16 FD 15 01 00 01 01 01 00 01 00 01 08 00 02 02 92",
            )],
        ),
    ]);
}

#[test]
fn answers_that_do_not_fit() {
    let mut bench = Bench::standard();
    bench.size = 300;
    let sent = bench.exchange(Arrival::Unicast, &hex("1081 0008 05FF01 029001 62 04 80 00 C0 00 D0 00 D0 00"));
    let first_three = [hex("1081 0008 029001 05FF01 52 03 80 01 30 C0 04 01020304 D0 FA"), vec![0xDD; 250]].concat();
    assert_eq!(sent, [(To::Peer, first_three)], "SNA with as many of the first properties as fit");
    bench.size = 14;
    let sent = bench.exchange(Arrival::Unicast, &hex("1081 0008 05FF01 029001 62 02 D0 00 80 00"));
    assert_eq!(sent, [(To::Peer, hex("1081 0008 029001 05FF01 52 01 D0 00"))], "not even the first fits");
    let sent = bench.exchange(Arrival::Unicast, &hex("1081 0008 05FF01 029001 61 02 B1 01 01 B1 01 02"));
    assert!(sent.is_empty(), "nothing can be said, so nothing is written: {sent:02X?}");
    assert_eq!(bench.node.objects()[0].hidden, 0);
    bench.size = 11;
    assert!(bench.exchange(Arrival::Unicast, &hex("1081 0008 05FF01 029001 62 01 80 00")).is_empty());
}

#[test]
fn ports() {
    let request = hex("1081 0009 05FF01 029001 62 01 80 00");
    let answer = hex("1081 0009 029001 05FF01 72 01 80 01 30");
    let source = || Bench::new(Config { answer_port: AnswerPort::Source, ..config() }, devices());
    for (mut bench, arrival, to) in [
        (Bench::standard(), Arrival::Unicast, To::Peer),
        (Bench::standard(), Arrival::Multicast, To::Peer),
        (Bench::standard(), Arrival::Connection, To::PeerPort),
        (source(), Arrival::Unicast, To::PeerPort),
        (source(), Arrival::Multicast, To::PeerPort),
    ] {
        assert_eq!(bench.exchange(arrival, &request), [(to, answer.clone())], "{arrival:?}");
    }
    let mut node = Bench::standard().node;
    let from: SocketAddr = "[fe80::1%7]:50000".parse().expect("an address with scope");
    let mut sent = Vec::new();
    let mut buffer = [0; 64];
    let mut out = Outbox::new(&mut buffer, |to, _: &[u8]| sent.push(to));
    node.handle(Instant::ZERO, from, Arrival::Unicast, &request, &mut out);
    let back = "[fe80::1%7]:3610".parse().expect("an address with scope");
    assert_eq!(sent, [Destination::Unicast(back)], "an answer keeps the scope");
}
