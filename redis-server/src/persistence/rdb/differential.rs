//! Damaged payloads, judged by the genuine server and by us.
//!
//! The genuine one checks them in full here (`sanitize-dump-payload yes`): without, it takes values that it falls over later.

use super::*;
use crate::protocol::oracle::{Oracle, Reply};
use crate::types::testing::Rng;

/// Damaged payloads per value.
const MUTANTS: usize = 1500;
/// Payloads that are sent at once.
const BATCH: usize = 500;

/// Where the listpack of [`streams`] says how many elements it has.
const STREAM_COUNT: std::ops::Range<usize> = 24..26;

/// Commands that make values of every form.
fn recipes() -> Vec<Vec<String>> {
    let numbered = |command: &str, count: usize, item: &dyn Fn(usize) -> Vec<String>| {
        let words = [command.to_owned(), "k".to_owned()];
        words.into_iter().chain((0..count).flat_map(item)).collect::<Vec<_>>()
    };
    let mut recipes: Vec<Vec<String>> =
        ["", "text", "-7", "300", "70000", "12345678901", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaab"]
            .iter()
            .map(|text| vec!["SET".into(), "k".into(), (*text).into()])
            .collect();
    let long = |n: usize| "y".repeat(70 + n);
    for count in [1, 3, 12] {
        recipes.push(numbered("RPUSH", count, &|n| vec![format!("e{n}"), (n * 1000).to_string()]));
        recipes.push(numbered("SADD", count, &|n| vec![(n * n * 70_000).to_string()]));
        recipes.push(numbered("SADD", count, &|n| vec![format!("m{n}")]));
        recipes.push(numbered("HSET", count, &|n| vec![format!("f{n}"), n.to_string()]));
        recipes.push(numbered("HSET", count, &|n| vec![format!("f{n}"), long(n)]));
        recipes.push(numbered("ZADD", count, &|n| vec![(n as f64 / 4.0).to_string(), format!("m{n}")]));
        recipes.push(numbered("ZADD", count, &|n| vec![n.to_string(), long(n)]));
    }
    recipes
}

/// A stream with groups and consumers, in the form that every version has since Redis 5, and those of 7.0 and 7.2.
fn streams() -> Vec<Vec<u8>> {
    let mut streams = Vec::new();
    for name in [kind::STREAM, kind::STREAM_2, kind::STREAM_3] {
        for entries in [1u8, 3] {
            let mut out = vec![name, 1, 16];
            out.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
            let mut list = crate::types::Listpack::default();
            for number in [entries.to_string().as_str(), "0", "1", "field", "0"] {
                list.push(number.as_bytes());
            }
            for n in 0..entries {
                for element in ["2", &n.to_string(), "0", "value", "4"] {
                    list.push(element.as_bytes());
                }
            }
            let list = list.to_redis();
            out.push(list.len() as u8);
            out.extend(list);
            // Number of entries, and the last id.
            out.extend([entries, entries, 0]);
            if name != kind::STREAM {
                // First id, largest deleted id, entries added.
                out.extend([1, 0, 0, 0, entries]);
            }
            // One group that has delivered the first entry to one consumer.
            out.extend([1, 1, b'g', 1, 0]);
            if name != kind::STREAM {
                out.push(1);
            }
            out.push(1);
            out.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
            out.extend([9, 0, 0, 0, 0, 0, 0, 0, 1]);
            out.extend([1, 1, b'c', 9, 0, 0, 0, 0, 0, 0, 0]);
            if name == kind::STREAM_3 {
                out.extend([9, 0, 0, 0, 0, 0, 0, 0]);
            }
            out.extend([1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
            streams.push(out);
        }
    }
    streams
}

/// Forms that Redis wrote before 7.0, by hand.
fn old_forms() -> Vec<Vec<u8>> {
    let ziplist =
        [&[27u8, 0, 0, 0, 20, 0, 0, 0, 4, 0][..], &[0, 1, b'a', 3, 0xf2, 2, 0xfe, 77, 3, 0xc0, 0, 4, 0xff]].concat();
    assert_eq!(ziplist.len(), 23);
    let mut ziplist = ziplist;
    ziplist[0] = 23;
    ziplist[4] = 18;
    let packed = |kind: u8, nodes: &[u8]| [&[kind][..], nodes, &[ziplist.len() as u8], &ziplist].concat();
    let mut forms = vec![
        packed(kind::LIST_ZIPLIST, &[]),
        packed(kind::HASH_ZIPLIST, &[]),
        packed(kind::SORTED_SET_ZIPLIST, &[]),
        packed(kind::LIST_QUICKLIST, &[1]),
    ];
    let zipmap = b"\x02\x03foo\x03\x00bar\x05hello\x05\x00world\xff";
    forms.push([&[kind::HASH_ZIPMAP, zipmap.len() as u8][..], zipmap].concat());
    forms.push(vec![kind::LIST, 3, 1, b'a', 2, b'b', b'c', 0xc0, 5]);
    forms.push(vec![kind::SORTED_SET_TEXT, 2, 1, b'a', 3, b'1', b'.', b'5', 1, b'b', 254]);
    forms.push(vec![kind::HASH, 2, 1, b'a', 1, b'b', 1, b'c', 1, b'd']);
    forms
}

/// Values that no commands are needed for.
pub(super) fn wholes() -> Vec<Vec<u8>> {
    [streams(), old_forms()].concat()
}

/// A payload without its footer, damaged in a few places.
pub(crate) fn damage(whole: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..1 + rng.below(3) {
        let at = rng.below(bytes.len());
        match rng.below(8) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes.insert(at, rng.next() as u8),
            2 => drop(bytes.remove(at)),
            3 => bytes[at] = bytes[at].wrapping_add(1),
            4 => bytes[at] ^= 1 << rng.below(8),
            _ => bytes[at] = rng.next() as u8,
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

#[test]
fn the_genuine_server_judges_the_same() {
    let Some(mut oracle) = Oracle::with("judge", &["--save", "", "--sanitize-dump-payload", "yes"]) else { return };
    let mut wholes = wholes();
    for recipe in recipes() {
        let words: Vec<&[u8]> = recipe.iter().map(String::as_bytes).collect();
        let replies = oracle.run(&[vec![b"DEL", b"k"], words, vec![b"DUMP", b"k"]]);
        let Reply::Text(payload) = &replies[2] else { panic!("{recipe:?}: {replies:?}") };
        wholes.push(payload[..payload.len() - FOOTER].to_vec());
    }
    let mut rng = Rng::new(20);
    let mut mutants: Vec<Vec<u8>> = wholes.clone();
    mutants.extend(wholes.iter().flat_map(|whole| (0..MUTANTS).map(|_| damage(whole, &mut rng)).collect::<Vec<_>>()));
    let (mut taken, mut refused, mut stricter) = (0, 0, 0);
    for batch in mutants.chunks(BATCH) {
        let payloads: Vec<Vec<u8>> = batch.iter().map(|bytes| signed(bytes)).collect();
        let restore_all: Vec<Vec<&[u8]>> =
            payloads.iter().map(|payload| vec![&b"RESTORE"[..], b"k", b"0", payload, b"REPLACE"]).collect();
        for ((bytes, payload), reply) in batch.iter().zip(&payloads).zip(oracle.run(&restore_all)) {
            let theirs = !matches!(reply, Reply::Error(_));
            match (restore(payload, &Limits::default(), true, false).is_ok(), theirs) {
                // Redis 7.0 does not know these forms.
                _ if matches!(bytes[0], kind::SET_LISTPACK | kind::STREAM_3) => {}
                (true, true) => taken += 1,
                (false, false) => refused += 1,
                (false, true) if is_stricter(bytes, payload) => stricter += 1,
                (ours, _) => panic!("ours: {ours}, theirs: {reply:?}: {}", bytes.escape_ascii()),
            }
        }
    }
    assert!(
        taken > 1000 && refused > 10_000 && stricter > 100,
        "{taken} taken, {refused} refused, {stricter} by us alone"
    );
}

fn signed(bytes: &[u8]) -> Vec<u8> {
    let mut payload = bytes.to_vec();
    sign(&mut payload);
    payload
}

/// Returns true if this server may refuse a payload that the genuine server accepts. Such payloads have bytes behind the value, or a value
/// that reaches into the payload's footer. Others have a score that only begins like a number, or a listpack of a stream with a wrong
/// element count. The rest have the mark of an encoded string in place of a number.
fn is_stricter(bytes: &[u8], payload: &[u8]) -> bool {
    const SCORES_AS_TEXT: [u8; 3] = [kind::SORTED_SET_TEXT, kind::SORTED_SET_LISTPACK, kind::SORTED_SET_ZIPLIST];
    let limits = Limits::default();
    let is_value = |payload: &[u8]| (1..=payload.len()).any(|end| load::whole(&payload[..end], &limits).is_some());
    let mut uncounted = payload.to_vec();
    if let (kind::STREAM | kind::STREAM_2, Some(count)) = (bytes[0], uncounted.get_mut(STREAM_COUNT)) {
        count.fill(0xff);
    }
    let has_mark = bytes[1..].iter().any(|&byte| byte >= 0xc0);
    SCORES_AS_TEXT.contains(&bytes[0]) || has_mark || is_value(payload) || is_value(&uncounted)
}
