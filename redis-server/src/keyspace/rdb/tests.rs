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
