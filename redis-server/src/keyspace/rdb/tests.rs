use super::*;
use crate::keyspace::{Object, StrRef};
use crate::protocol::oracle::{Oracle, Reply};
use crate::types::testing::Rng;
use crate::types::{Group, Hash, List, Set, SortedSet, Stream, StreamId, StreamLimits};

fn borrowed(loaded: &Loaded) -> ValueRef<'_> {
    match loaded {
        Loaded::Str(bytes) => ValueRef::Str(StrRef::Bytes { bytes, raw: true }),
        Loaded::Object(object) => object.as_ref(),
    }
}

/// One value of every form.
fn values() -> Vec<Loaded> {
    let limits = Limits::default();
    let mut values: Vec<Loaded> = ["", "text", "-7", "300", "70000", "12345678901", "9999999999999999999", "007"]
        .map(|t| Loaded::Str(t.into()))
        .into();
    values.push(Loaded::Str(vec![b'x'; 20_000]));
    for count in [1, 100, 1000] {
        let (mut list, mut set, mut ints) = (List::default(), Set::default(), Set::default());
        let (mut hash, mut sorted) = (Hash::default(), SortedSet::default());
        let mut stream = Stream::default();
        stream.groups.insert((*b"empty").into(), Group::new(StreamId::MIN, None));
        let mut group = Group::new(StreamId { ms: 3, seq: 0 }, Some(3));
        group.add_consumer(b"ann", 5);
        for n in 0..count {
            let text = format!("element {n} {}", "y".repeat(n % 90));
            list.push_back(text.as_bytes(), limits.list);
            set.add(text.as_bytes(), limits.set);
            ints.add((n * n * n * 7777).to_string().as_bytes(), limits.set);
            hash.set(text.as_bytes(), n.to_string().as_bytes(), limits.hash);
            sorted.insert(text.as_bytes(), n as f64 / 8.0, limits.sorted_set);
            let id = StreamId { ms: 1 + n as u64 / 3, seq: n as u64 };
            let fields: &[(&[u8], &[u8])] = &[(b"field", text.as_bytes()), (b"n", b"5")];
            stream.log.append(id, fields[..1 + n % 2].iter().copied(), StreamLimits::default());
            if n % 5 == 0 {
                group.assign(id, b"ann").unwrap().delivered_at = 77;
            }
            if n % 7 == 3 {
                stream.log.delete(id);
            }
        }
        stream.groups.insert((*b"group").into(), group);
        values.extend([
            Loaded::Object(Object::List(Box::new(list))),
            Loaded::Object(Object::Set(Box::new(set))),
            Loaded::Object(Object::Set(Box::new(ints))),
            Loaded::Object(Object::Hash(Box::new(hash))),
            Loaded::Object(Object::SortedSet(Box::new(sorted))),
            Loaded::Object(Object::Stream(Box::new(stream))),
        ]);
    }
    values
}

#[test]
fn values_survive() {
    for value in values() {
        let payload = dump(borrowed(&value));
        let again = restore(&payload, &Limits::default()).ok().unwrap();
        assert_eq!(borrowed(&again).type_name(), borrowed(&value).type_name());
        assert_eq!(borrowed(&again).encoding(), borrowed(&value).encoding());
        assert_eq!(dump(borrowed(&again)), payload, "{}", borrowed(&value).type_name());
    }
}

/// The genuine server takes what is written here, and what it writes is read.
#[test]
fn a_genuine_server_understands() {
    let Some(mut oracle) = Oracle::start("dump") else { return };
    for value in values() {
        let (value, payload) = (borrowed(&value), dump(borrowed(&value)));
        let replies = oracle.run(&[
            vec![&b"RESTORE"[..], b"k", b"0", &payload, b"REPLACE"],
            vec![b"TYPE", b"k"],
            vec![b"DUMP", b"k"],
        ]);
        assert_eq!(replies[..2], [Reply::Text(b"OK".into()), Reply::Text(value.type_name().into())]);
        let Reply::Text(theirs) = &replies[2] else { panic!("no payload: {:?}", replies[2]) };
        let again = restore(theirs, &Limits::default()).ok().unwrap();
        assert_eq!(borrowed(&again).encoding(), value.encoding());
        let ours = dump(borrowed(&again));
        // Large hashes and sets have no order.
        if value.encoding() == "hashtable" {
            assert_eq!(ours.len(), payload.len());
        } else {
            assert!(ours == payload, "{}", value.type_name());
        }
    }
}

#[test]
fn footers_are_checked() {
    let payload = dump(ValueRef::Str(StrRef::Int(5)));
    let check = |payload: &[u8], expected: Refused| {
        assert_eq!(restore(payload, &Limits::default()).err(), Some(expected), "{payload:?}");
    };
    check(b"", Refused::Footer);
    check(&payload[..payload.len() - 1], Refused::Footer);
    check(&[b"\x01", &payload[1..]].concat(), Refused::Footer);
    let mut newer = payload[..2].to_vec();
    newer.push(12);
    check(&[newer, payload[3..].to_vec()].concat(), Refused::Footer);
    let mut strange = vec![99, 0];
    sign(&mut strange);
    check(&strange, Refused::Content);
}

/// What is damaged is refused, or is a value that can be used; nothing panics.
#[test]
fn damage_does_no_harm() {
    let mut rng = Rng::new(17);
    let limits = Limits::default();
    for value in values() {
        let whole = save::value(borrowed(&value));
        for _ in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(bytes.len());
                match rng.below(4) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes.insert(at, rng.next() as u8),
                    _ => bytes[at] = rng.next() as u8,
                }
            }
            let Some(mut loaded) = load::value(&bytes, &limits) else { continue };
            let _ = dump(borrowed(&loaded));
            if let Loaded::Object(Object::Stream(stream)) = &mut loaded {
                let ids: Vec<_> = stream.log.range(StreamId::MIN, StreamId::MAX).map(|entry| entry.id).collect();
                let _ = stream.log.range_backwards(StreamId::MIN, StreamId::MAX).flat_map(|entry| entry.fields).count();
                ids.into_iter().step_by(2).for_each(|id| _ = stream.log.delete(id));
                let to = crate::types::TrimTo::Len(3);
                stream.log.trim(&crate::types::Trim { to, approximate: false, limit: 0 });
            }
        }
    }
}

/// The stream of three entries whose flags stand in three bytes each, as no server writes them.
fn wide_stream() -> Vec<u8> {
    let entry = |n: u8| [&[0xf1, 2, 0, 3, n, 1, 0, 1, 0x81, b'v', 2, 4, 1][..]].concat();
    let entries: Vec<u8> = (0..3).flat_map(entry).collect();
    let body = [&[3, 1, 0, 1, 1, 1, 0x81, b'f', 2, 0, 1][..], &entries].concat();
    let mut bytes = vec![kind::STREAM, 1, 16];
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.push(body.len() as u8 + 7);
    bytes.extend([body.len() as u8 + 7, 0, 0, 0, 5 + 3 * 5, 0]);
    bytes.extend([&body[..], &[0xff, 3, 3, 0, 0]].concat());
    bytes
}

/// Commands that look at and change a value of any type, one a line; the fuzz target `dump_payload` runs them too.
const USES: &str = include_str!("uses.txt");

/// What is restored can be used: no command panics, whatever it was.
#[test]
fn what_is_restored_can_be_used() {
    let flags = ["--enable-debug-command", "yes"];
    let launch = crate::config::Launch::from_flags(&flags).unwrap();
    let (config, _) = crate::config::Config::load(&launch, std::iter::empty()).unwrap();
    let instance =
        std::sync::Arc::new(crate::exec::instance::Instance::new(std::sync::Arc::new(config), &crate::commands::TABLE));
    let worker = std::rc::Rc::new(crate::exec::worker::Worker::new(instance));
    let mut session = crate::runtime::embedded::Session::new(worker);
    let mut use_value = |bytes: &[u8]| {
        let mut payload = bytes.to_vec();
        sign(&mut payload);
        let mut request = format!("*5\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n0\r\n${}\r\n", payload.len()).into_bytes();
        request.extend([&payload[..], b"\r\n$7\r\nREPLACE\r\n"].concat());
        session.receive(&request);
        let is_restored = session.transmit() == b"+OK\r\n";
        if is_restored {
            session.receive(USES.as_bytes());
            let _ = session.transmit();
        }
        is_restored
    };
    assert!(use_value(&wide_stream()));
    let mut rng = Rng::new(23);
    let wholes: Vec<Vec<u8>> = super::differential::wholes();
    let restored = wholes
        .iter()
        .flat_map(|whole| (0..800).map(|_| super::differential::damage(whole, &mut rng)).collect::<Vec<_>>());
    let restored = restored.filter(|bytes| use_value(bytes)).count();
    assert!(restored > 500, "only {restored} were taken");
}
