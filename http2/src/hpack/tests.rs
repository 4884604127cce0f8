use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use super::table::Table;
use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn texts(fields: &Fields) -> Vec<String> {
    fields.iter().map(|(name, value)| format!("{}: {}", name.escape_ascii(), value.escape_ascii())).collect()
}

/// Blocks of one connection, and the fields of each.
fn check(blocks: &[(&str, &[&str])]) {
    let (mut decoder, mut fields) = (Decoder::new(4096), Fields::new());
    for (block, expected) in blocks {
        decoder.decode(&bytes(block), 10_000, &mut fields).unwrap();
        assert_eq!(texts(&fields), *expected);
    }
}

const REQUESTS: [&[&str]; 3] = [
    &[":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"],
    &[":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com", "cache-control: no-cache"],
    &[
        ":method: GET",
        ":scheme: https",
        ":path: /index.html",
        ":authority: www.example.com",
        "custom-key: custom-value",
    ],
];

#[test]
fn the_rfcs_requests() {
    // RFC 7541 appendices C.3 and C.4.
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let coded = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for blocks in [plain, coded] {
        check(&[(blocks[0], REQUESTS[0]), (blocks[1], REQUESTS[1]), (blocks[2], REQUESTS[2])]);
    }
    let mut encoder = Encoder::new();
    for (block, fields) in coded.iter().zip(REQUESTS) {
        let mut out = Vec::new();
        let split = fields.iter().map(|field| {
            field[1..].split_once(": ").map(|(_, value)| field.split_at(field.len() - value.len())).unwrap()
        });
        encoder.encode(
            split.map(|(name, value)| Field::new(&name.as_bytes()[..name.len() - 2], value.as_bytes())),
            &mut out,
        );
        assert_eq!(out, bytes(block), "{fields:?}");
    }
}

#[test]
fn the_rfcs_responses() {
    // RFC 7541 appendix C.6, where the table has 256 bytes.
    let date = ["date: Mon, 21 Oct 2013 20:13:21 GMT", "date: Mon, 21 Oct 2013 20:13:22 GMT"];
    let location = "location: https://www.example.com";
    check(&[
        (
            "3fe101 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad \
             1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            &[":status: 302", "cache-control: private", date[0], location],
        ),
        ("4883 640e ffc1 c0bf", &[":status: 307", "cache-control: private", date[0], location]),
        (
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
             b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
            &[
                ":status: 200",
                "cache-control: private",
                date[1],
                location,
                "content-encoding: gzip",
                "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            ],
        ),
    ]);
}

#[test]
fn malformed_blocks() {
    for block in [
        "80",               // index 0
        "be",               // nothing is in the table yet
        "ff",               // half an integer
        "ffffffffff0f",     // an integer without end
        "7fffffffff",       // the same as a name
        "00",               // no name
        "0001",             // half a name
        "000161",           // no value
        "00016105",         // half a value
        "0081ff",           // padding of eight ones
        "0001618100",       // padding of zeros
        "00016184ffffffff", // EOS
        "823fe101",         // a size behind a field
        "3fe2ff03",         // a size that was not allowed
    ] {
        let result = Decoder::new(4096).decode(&bytes(block), 1000, &mut Fields::new());
        assert_eq!(result, Err(Malformed), "{block}");
    }
}

#[test]
fn a_list_that_is_too_large_leaves_the_table_right() {
    let (mut decoder, mut fields) = (Decoder::new(4096), Fields::new());
    // Two fields for the table, of which the first one is already too large, and one that is not for it.
    let found = decoder.decode(&bytes("40 0161 0562626262 62 40 0163 0164 00 0165 0166"), 37, &mut fields).unwrap();
    assert_eq!((found.is_whole, found.is_repeatable, fields.len()), (false, false, 0));
    let found = decoder.decode(&bytes("bf be"), 1000, &mut fields).unwrap();
    assert_eq!((found.is_whole, found.is_repeatable), (true, true));
    assert_eq!(texts(&fields), ["a: bbbbb", "c: d"]);
    assert_eq!(fields.size(), 6 + 2 + 64);
    assert!(decoder.decode(&bytes("bf"), 38, &mut fields).unwrap().is_whole);
    assert!(!decoder.decode(&bytes("bf"), 37, &mut fields).unwrap().is_whole);
    // A block beyond the limit is decoded all the same: 63 fields are known.
    for (block, expected) in
        [("82 bf 40 0165 0166 be 81 c0", true), ("82 c1", false), ("82 be 80", false), ("82 ff00", false)]
    {
        let found = decoder.clone().decode(&bytes(block), 0, &mut fields);
        assert_eq!(found.is_ok_and(|found| !found.is_whole), expected, "{block}");
    }
}

#[test]
fn every_byte_has_its_code() {
    let mut random = SmallRng::seed_from_u64(1);
    for length in (0..=256).chain([5000]) {
        let text: Vec<u8> = (0..length).map(|at| if length == 256 { at as u8 } else { random.random() }).collect();
        let (mut code, mut back) = (Vec::new(), Vec::new());
        huffman::encode(&text, &mut code);
        assert_eq!(code.len(), huffman::encoded_length(&text));
        assert_eq!((huffman::decode(&code, &mut back), back), (Some(()), text));
    }
}

#[test]
fn a_prepared_block_becomes_indices() {
    let block = Block::new([Field::new(b":status", b"200"), Field::new(b"content-type", b"application/grpc")]);
    let other = Block::new([Field::new(b"grpc-status", b"0")]);
    let (mut encoder, mut decoder, mut fields) = (Encoder::new(), Decoder::new(4096), Fields::new());
    let mut lengths = Vec::new();
    for round in 0..6 {
        for block in [&block, &other] {
            let mut out = Vec::new();
            encoder.encode_block(block, &mut out);
            lengths.push(out.len());
            decoder.decode(&out, 1000, &mut fields).unwrap();
            assert!(fields.iter().eq(block.fields().map(|field| (field.name, field.value))));
        }
        if round == 3 {
            encoder.set_table_size(0);
            encoder.set_table_size(100);
        }
    }
    // In full, as indices, as indices; and in full again, behind two sizes, for a table that keeps one of the two.
    assert_eq!(lengths[2..8], [2, 1, 2, 1, 2, 1]);
    assert!(lengths[8] > 10 && lengths[9] > 5);
}

#[test]
fn secrets_stay_out_of_the_table() {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    for _ in 0..2 {
        out.clear();
        encoder.encode([Field::secret(b"cookie", b"x"), Field::once(b"age", b"7")].into_iter(), &mut out);
        assert_eq!(out, bytes("1f11 0178 0f06 0137"));
    }
}

#[test]
fn both_ends_agree_for_ever() {
    let mut random = SmallRng::seed_from_u64(2);
    let (mut encoder, mut decoder, mut fields) = (Encoder::new(), Decoder::new(4096), Fields::new());
    for _ in 0..20_000 {
        let list: Vec<(Vec<u8>, Vec<u8>)> = (0..random.random_range(0..6))
            .map(|_| {
                let name = format!("name-{}", random.random_range(0..30));
                let length = if random.random_ratio(1, 100) { 5000 } else { random.random_range(0..60) };
                (name.into_bytes(), vec![b'a' + random.random_range(0..3); length])
            })
            .collect();
        if random.random_ratio(1, 50) {
            encoder.set_table_size(random.random_range(0..5000));
        }
        let kinds = [Field::new, Field::once, Field::secret];
        let kind = kinds[random.random_range(0..3)];
        let mut out = Vec::new();
        encoder.encode(list.iter().map(|(name, value)| kind(name, value)), &mut out);
        decoder.decode(&out, usize::MAX, &mut fields).unwrap();
        assert!(fields.iter().eq(list.iter().map(|(name, value)| (&name[..], &value[..]))));
    }
}

#[test]
fn the_table_against_a_list() {
    let mut random = SmallRng::seed_from_u64(3);
    let (mut table, mut list, mut limit) = (Table::new(300), Vec::<(Vec<u8>, Vec<u8>)>::new(), 300);
    for _ in 0..50_000 {
        if random.random_ratio(1, 40) {
            limit = random.random_range(0..600);
            table.set_limit(limit);
        } else {
            let text = |length: usize, random: &mut SmallRng| vec![random.random_range(b'a'..=b'c'); length];
            let name = text(random.random_range(0..20), &mut random);
            let value = text(random.random_range(0..100), &mut random);
            table.insert(&name, &value);
            list.insert(0, (name, value));
        }
        let size =
            |list: &[(Vec<u8>, Vec<u8>)]| list.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>();
        while size(&list) > limit {
            list.pop();
        }
        assert_eq!(table.size(), size(&list));
        for (age, (name, value)) in list.iter().enumerate() {
            assert_eq!(table.get(62 + age), Some((&name[..], &value[..])));
        }
        assert_eq!(table.get(62 + list.len()), None);
        if let Some((name, value)) = list.last() {
            let place = list.iter().position(|(known, known_value)| (known, known_value) == (name, value));
            assert_eq!(table.search(name, value).0, place.map(|place| 62 + place));
        }
    }
}
