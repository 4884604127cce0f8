use super::*;
use crate::cluster::MAX_NODES;

/// Where Redis has its fields, written down apart from the code that reads them.
fn with_fields(length: usize, fields: &[(usize, &str)]) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for (at, hex) in fields {
        let digits = hex.as_bytes().as_chunks::<2>().0;
        for (at, pair) in (*at..).zip(digits) {
            bytes[at] = u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        }
    }
    bytes
}

/// A MEET as Redis 7.0.15 sends it, with slots 0-7 and 100-200, epoch 5 and a host's name.
fn genuine_meet() -> Vec<u8> {
    with_fields(
        2280,
        &[
            (0, "52436d62000008e800011efb0002"),
            (23, "05"),
            (31, "05"),
            (40, "34636231623362633435626362623664386163326131633130336466393539363461633937383635ff"),
            (92, "f0ffffffffffffffffffffffff01"),
            (2215, "01"),
            (2248, "460b00110104"),
            (2259, "18"),
            (2264, "686f73742e6578616d706c65"),
        ],
    )
}

#[test]
fn a_genuine_packet() {
    let bytes = genuine_meet();
    let packet = Packet::parse(&bytes).expect("it is one");
    let header = &packet.header;
    assert_eq!((header.kind, header.sender.as_str()), (Kind::Meet, "4cb1b3bc45bcbb6d8ac2a1c103df95964ac97865"));
    assert_eq!((header.current_epoch, header.config_epoch, header.offset), (5, 5, 0));
    assert_eq!(SlotSet::from_bitmap(header.slots).ranges(), [0..=7, 100..=200]);
    assert_eq!((header.port, header.other_port, header.bus_port), (7931, 0, 17931));
    assert_eq!((header.primary, header.ip, header.flags), (None, None, Flags::MYSELF.and(Flags::PRIMARY)));
    assert!(header.is_down && header.has_extensions());
    let Body::Ping(ping) = packet.body else { panic!("a MEET is a PING") };
    assert_eq!(ping.gossip().count(), 0);
    assert_eq!(ping.extensions().collect::<Vec<_>>(), [Extension::Hostname("host.example")]);

    let mut draft = Draft::new(header);
    draft.extension(&Extension::Hostname("host.example"));
    assert_eq!(draft.finish(), bytes, "we would say the same");
}

fn id(digit: char) -> NodeId {
    NodeId::parse(digit.to_string().repeat(ID).as_bytes()).unwrap()
}

fn header(kind: Kind, slots: &[u8; BITMAP]) -> Header<'_> {
    Header {
        kind,
        sender: id('a'),
        current_epoch: 0x0102_0304_0506_0708,
        config_epoch: 7,
        offset: 8,
        slots,
        primary: Some(id('b')),
        ip: Some("2001:db8::1"),
        port: 1,
        other_port: 2,
        bus_port: 3,
        flags: Flags::REPLICA.and(Flags::MYSELF),
        is_down: false,
        message_flags: HAS_EXTENSIONS | FORCE_VOTE,
        count: 0,
        extensions: 0,
    }
}

/// A packet of each kind, and what must be in it.
fn of_each_kind() -> Vec<(Kind, Vec<u8>)> {
    let slots: SlotSet = (5..900).collect();
    let gossip = Gossip {
        id: id('c'),
        ping_sent: 11,
        pong_received: 12,
        ip: "10.0.0.1",
        port: 13,
        bus_port: 14,
        flags: Flags::MAYBE_FAILED.and(Flags::PRIMARY),
        other_port: 15,
    };
    let build = |kind: Kind| {
        let mut draft = Draft::new(&header(kind, slots.bitmap()));
        match kind {
            Kind::Ping | Kind::Pong | Kind::Meet => {
                draft.gossip(&gossip);
                draft.gossip(&gossip);
                draft.extension(&Extension::Nodename("a.name"));
                draft.extension(&Extension::Forgotten { id: id('d'), ttl: 60 });
                draft.extension(&Extension::Shard(id('e')));
            }
            Kind::Fail => draft.fail(id('f')),
            Kind::Publish | Kind::PublishShard => draft.publish(b"channel", b"message"),
            Kind::Update => draft.update(9, id('0'), &slots),
            Kind::AuthRequest | Kind::AuthAck | Kind::ManualFailover | Kind::Module => {}
        }
        (kind, draft.finish())
    };
    Kind::ALL.map(build).into()
}

#[test]
fn written_packets_parse_to_the_same_fields() {
    for (kind, bytes) in of_each_kind() {
        let packet = Packet::parse(&bytes).unwrap_or_else(|| panic!("{kind:?} is no packet"));
        assert_eq!(length(bytes.first_chunk().unwrap()), Some(bytes.len()));
        let header = &packet.header;
        assert_eq!((header.kind, header.primary, header.ip), (kind, Some(id('b')), Some("2001:db8::1")));
        assert_eq!(header.current_epoch, 0x0102_0304_0506_0708);
        assert_eq!(bytes[16..24], [1, 2, 3, 4, 5, 6, 7, 8]);
        match packet.body {
            Body::Ping(ping) => {
                let gossip: Vec<_> = ping.gossip().collect();
                assert_eq!((gossip.len(), gossip[0], gossip[1].ip), (2, gossip[1], "10.0.0.1"));
                assert_eq!((gossip[0].ping_sent, gossip[0].pong_received, gossip[0].other_port), (11, 12, 15));
                let expected = [
                    Extension::Nodename("a.name"),
                    Extension::Forgotten { id: id('d'), ttl: 60 },
                    Extension::Shard(id('e')),
                ];
                assert!(ping.extensions().eq(expected));
                assert_eq!(bytes.len(), HEADER + 2 * 104 + 16 + 56 + 48);
            }
            Body::Fail(failed) => assert_eq!((failed, bytes.len()), (id('f'), HEADER + 40)),
            Body::Publish { channel, message } => {
                assert_eq!((channel, message, bytes.len()), (&b"channel"[..], &b"message"[..], HEADER + 8 + 14));
            }
            Body::Update { config_epoch, id: owner, slots } => {
                assert_eq!((config_epoch, owner, slots[1], bytes.len()), (9, id('0'), 255, HEADER + 48 + 2048));
            }
            Body::Plain => assert_eq!(bytes.len(), HEADER),
        }
    }
}

#[test]
fn a_wrong_length_is_no_packet() {
    for (kind, bytes) in of_each_kind() {
        for len in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
            assert!(Packet::parse(&bytes[..len]).is_none(), "{kind:?} cut at {len}");
            // Nor if it says that this is its length, but for modules, whose packets nobody reads.
            let mut cut = bytes[..len].to_vec();
            if len >= PREFIX {
                cut[4..8].copy_from_slice(&(len as u32).to_be_bytes());
                let is_allowed = kind == Kind::Module && len == HEADER;
                assert!(is_allowed || Packet::parse(&cut).is_none(), "{kind:?} of {len} bytes");
            }
        }
        let mut longer = [&bytes[..], &[0; 8]].concat();
        let len = longer.len() as u32;
        longer[4..8].copy_from_slice(&len.to_be_bytes());
        assert!(kind == Kind::Module || Packet::parse(&longer).is_none(), "{kind:?} with more behind it");
    }
}

#[test]
fn malformed_packets_are_refused() {
    let check = |at: usize, value: &[u8]| {
        let mut bytes = genuine_meet();
        bytes[at..at + value.len()].copy_from_slice(value);
        assert!(Packet::parse(&bytes).is_none(), "{value:?} at {at}");
    };
    check(0, b"RCmc");
    check(8, &[0, 2]);
    check(12, &[0, 11]);
    check(14, &[255, 255]);
    check(40, b"X");
    check(40, &[0; ID]);
    check(2128, b"0");
    check(2168, b"10.0.0.1 ");
    check(2214, &[255, 255]);
    check(2214, &[0, 0]);
    check(2253, &[0]);
    for extension in [0_u32, 7, 8, 16, 23, 25, 32, u32::MAX] {
        check(2256, &extension.to_be_bytes());
    }
    let wrong: [[u8; PREFIX]; 3] = [*b"RCmb\0\0\x08\xcf", *b"RCmB\0\0\x08\xd0", [0; 8]];
    for prefix in wrong {
        assert_eq!(length(&prefix), None);
    }
}

/// Bits that fall over by chance: nothing panics, and what is still a packet can be read to its end.
#[test]
fn damaged_packets() {
    let mut random = crate::cluster::random::Random::new([1, 2, 3, 4]);
    let packets = of_each_kind();
    for round in 0..5000 {
        let mut bytes = packets[round % packets.len()].1.clone();
        for _ in 0..1 + random.below(4) {
            // Slots may be anything; the rest is more interesting.
            let at = random.below(bytes.len() as u64) as usize;
            let at = if (100..2100).contains(&at) { at % 80 } else { at };
            bytes[at] = random.next() as u8;
        }
        if let Some(Packet { body: Body::Ping(ping), .. }) = Packet::parse(&bytes) {
            assert!(ping.gossip().count() <= MAX_NODES && ping.extensions().count() <= 3);
        }
    }
}
