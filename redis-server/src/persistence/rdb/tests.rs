use super::*;
use crate::keyspace::{Object, StrRef};
use crate::persistence::rdb::version::IDEMPOTENCE;
use crate::protocol::oracle::{Oracle, Reply};
use crate::types::bloom::Bloom;
use crate::types::json::Json;
use crate::types::testing::Rng;
use crate::types::vector_set::{Projection, Quantization, VectorSet, VectorSetOptions};
use crate::types::{
    Group, Hash, Idempotence, IdmpLimits, List, Listpack, Set, SortedSet, Stream, StreamId, StreamLimits,
};

fn borrowed<'v>(loaded: &'v Loaded<'_>) -> ValueRef<'v> {
    match loaded {
        Loaded::Str(bytes) => ValueRef::Str(StrRef::Bytes { bytes, raw: true }),
        Loaded::Object(object) => object.as_ref(),
    }
}

/// One value of every form.
fn values() -> Vec<Loaded<'static>> {
    let limits = Limits::default();
    let mut values: Vec<Loaded<'_>> = ["", "text", "-7", "300", "70000", "12345678901", "9999999999999999999", "007"]
        .map(|t| Loaded::Str(t.as_bytes().into()))
        .into();
    values.push(Loaded::Str(vec![b'x'; 20_000].into()));
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
                group.assign(id, b"ann", 77, |count| count);
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

/// Values of the types that the genuine server has by modules.
fn of_modules() -> impl Iterator<Item = Loaded<'static>> {
    let filters = [bloom(Some(2)), bloom(None)].map(|filter| Object::Bloom(Box::new(filter)));
    let sets = [(Quantization::None, 70), (Quantization::Q8, 4), (Quantization::Binary, 4)];
    let sets = sets.map(|(quantization, m)| {
        Object::VectorSet(Box::new(vector_set(VectorSetOptions { quantization, m, projection: None })))
    });
    let projection = Some(Projection::hadamard(5, 3).unwrap());
    let reduced = vector_set(VectorSetOptions { projection, ..VectorSetOptions::default() });
    let others = [Object::Json(Box::new(json(10))), Object::VectorSet(Box::new(reduced))];
    filters.into_iter().chain(others).chain(sets).map(Loaded::Object)
}

/// A document of about so many values; the text of a large one is written in pieces.
fn json(values: usize) -> Json {
    let elements: Vec<String> = (0..values).map(|n| format!("{{\"n\":{n},\"s\":\"é{n}\",\"d\":{n}.25}}")).collect();
    Json::parse(format!("[{},null,true,{{}}]", elements.join(",")).as_bytes()).unwrap()
}

/// A set of which some elements have changed and gone.
fn vector_set(options: VectorSetOptions) -> VectorSet {
    let mut set = VectorSet::new(5, options).unwrap();
    for n in 0..16_u32 {
        let name = (n % 12).to_string();
        let vector: Vec<f32> = (0..5).map(|at| ((n * 7 + at * 13) % 19) as f32 - 9.0).collect();
        set.add(name.as_bytes(), &vector, None).unwrap();
        if n % 3 == 0 {
            set.set_attributes(name.as_bytes(), b"{\"a\":1}");
        }
    }
    set.remove(b"4");
    set
}

/// A filter that has grown, unless it may not.
fn bloom(growth: Option<u32>) -> Bloom {
    let mut filter = Bloom::new(0.01, 20, growth).unwrap();
    (0..100_u32).for_each(|n| _ = filter.add(&n.to_le_bytes()));
    filter
}

#[test]
fn values_survive() {
    let large = Loaded::Object(Object::Json(Box::new(json(3000))));
    for value in values().into_iter().chain(of_modules()).chain([large]) {
        let payload = dump(borrowed(&value), Fork::default());
        let again = restore(&payload, &Limits::default(), true, false).ok().unwrap();
        assert_eq!(borrowed(&again).type_name(), borrowed(&value).type_name());
        assert_eq!(borrowed(&again).encoding(), borrowed(&value).encoding());
        assert_eq!(dump(borrowed(&again), Fork::default()), payload, "{}", borrowed(&value).type_name());
    }
}

/// The genuine server takes what is written here, and what it writes is read.
#[test]
fn a_genuine_server_understands() {
    let Some(mut oracle) = Oracle::start("dump") else { return };
    for value in values() {
        let (value, payload) = (borrowed(&value), dump(borrowed(&value), Fork::default()));
        let replies = oracle.run(&[
            vec![&b"RESTORE"[..], b"k", b"0", &payload, b"REPLACE"],
            vec![b"TYPE", b"k"],
            vec![b"DUMP", b"k"],
        ]);
        assert_eq!(replies[..2], [Reply::Text(b"OK".into()), Reply::Text(value.type_name().into())]);
        let Reply::Text(theirs) = &replies[2] else { panic!("no payload: {:?}", replies[2]) };
        let again = restore(theirs, &Limits::default(), true, false).ok().unwrap();
        assert_eq!(borrowed(&again).encoding(), value.encoding());
        let ours = dump(borrowed(&again), Fork::default());
        // Large hashes and sets have no order.
        if value.encoding() == "hashtable" {
            assert_eq!(ours.len(), payload.len());
        } else {
            assert!(ours == payload, "{}", value.type_name());
        }
    }
}

/// A hash of which some fields expire.
fn expiring() -> Hash {
    let mut hash = Hash::default();
    for n in 0..200u64 {
        let name = format!("field {n}");
        hash.set(name.as_bytes(), n.to_string().as_bytes(), Limits::default().hash);
        hash.expire(name.as_bytes(), (n % 3 != 0).then_some(1_800_000_000_000 + n * n * n));
    }
    hash
}

/// Each field with its value and when it expires.
fn timed(value: ValueRef<'_>) -> Vec<(Vec<u8>, Vec<u8>, Option<u64>)> {
    let ValueRef::Hash(hash) = value else { panic!("no hash") };
    let mut fields: Vec<_> =
        hash.at(0).iter_timed().map(|(field, value, at)| (field.to_vec(), value.to_vec(), at)).collect();
    fields.sort();
    fields
}

#[test]
fn fields_expire_in_what_both_forks_read() {
    let hash = expiring();
    let value = ValueRef::Hash(&hash);
    for (fork, kind, version) in [(Fork::Redis, kind::HASH_TTL, 12), (Fork::Valkey, kind::HASH_TTL_OF_VALKEY, 80)] {
        let payload = dump(value, fork);
        assert_eq!((payload[0], payload[payload.len() - FOOTER]), (kind, version));
        let again = restore(&payload, &Limits::default(), true, false).ok().unwrap();
        assert_eq!(timed(borrowed(&again)), timed(value));
        let options = WriteOptions { fork, fields_expire: true, ..WriteOptions::default() };
        let mut writer = Writer::new(Vec::new(), options);
        writer.database(0, 1, 0);
        writer.record(b"h", value, None, Access::Untold);
        let file = writer.finish().unwrap();
        let records = records(&file, 1000, true);
        assert_eq!(records.as_ref().map(Vec::len), Ok(1));
        assert_eq!(cut_records(&file, 1000, true), records);
    }
}

#[test]
fn producer_notes_precede_and_require_a_stream() {
    let mut stream = Stream::default();
    stream.log.append(StreamId { ms: 5, seq: 0 }, [(&b"f"[..], &b"v"[..])].into_iter(), StreamLimits::default());
    let mut known = Idempotence::new(IdmpLimits::new(7, 8).unwrap());
    for (pid, iid) in [(b"p", b"1"), (b"p", b"2"), (b"q", b"1")] {
        known.add(pid, iid, StreamId { ms: 5, seq: 0 }, 9);
    }
    known.find_duplicate(b"p", b"1", 9);
    stream.idempotence = Some(Box::new(known.clone()));
    let mut writer = Writer::new(Vec::new(), WriteOptions::default());
    writer.database(0, 1, 1);
    writer.record(b"s", ValueRef::Stream(&stream), Some(1000), Access::Idle(3));
    let file = writer.finish().unwrap();
    let again = records(&file, 1000, true);
    assert_eq!(again.as_ref().map(Vec::len), Ok(1));
    // A window that ends anywhere asks for more, and whole records are cut the same.
    assert_eq!((records(&file, 1, true), cut_records(&file, 1, true)), (again.clone(), again));

    let note = stream::idempotence(&known);
    let loaded = stream::load_idempotence(&note).unwrap();
    assert_eq!((loaded.limits(), loaded.totals()), (known.limits(), (3, 1)));
    assert_eq!(loaded.records().collect::<Vec<_>>(), known.records().collect::<Vec<_>>());
    for len in 0..note.len() {
        assert!(stream::load_idempotence(&note[..len]).is_none(), "{len}");
    }
    assert!(stream::load_idempotence(&[note, vec![0]].concat()).is_none());
    // It belongs to a stream.
    let mut writer = Writer::new(Vec::new(), WriteOptions::default());
    writer.note(IDEMPOTENCE, &stream::idempotence(&known));
    writer.record(b"s", ValueRef::Str(StrRef::Bytes { bytes: b"v", raw: true }), None, Access::Untold);
    let fault = records(&writer.finish().unwrap(), 1000, true).err();
    assert_eq!(fault.map(|fault| fault.cause), Some(Cause::Element));
}

/// Redis 7.4 writes a small hash as a listpack of fields, values and times, 0 where there is none.
#[test]
fn a_listpack_with_times_is_read() {
    let mut list = Listpack::default();
    for word in ["a", "1", "1800000000000", "b", "2", "0"] {
        list.push(word.as_bytes());
    }
    let mut payload = vec![kind::HASH_LISTPACK_TTL];
    payload.extend_from_slice(&1_800_000_000_000u64.to_le_bytes());
    save::string(&mut payload, &list.to_redis());
    sign_as(&mut payload, NEWEST);
    let loaded = restore(&payload, &Limits::default(), true, false).ok().unwrap();
    let expected = [(b"a".to_vec(), b"1".to_vec(), Some(1_800_000_000_000)), (b"b".to_vec(), b"2".to_vec(), None)];
    assert_eq!(timed(borrowed(&loaded)), expected);
}

#[test]
fn footers_are_checked() {
    let payload = dump(ValueRef::Str(StrRef::Int(5)), Fork::default());
    let check = |payload: &[u8], expected: Refused| {
        assert_eq!(restore(payload, &Limits::default(), true, false).err(), Some(expected), "{payload:?}");
    };
    check(b"", Refused::Footer);
    check(&payload[..payload.len() - 1], Refused::Footer);
    check(&[b"\x01", &payload[1..]].concat(), Refused::Footer);
    let mut newer = payload[..2].to_vec();
    newer.push(13);
    check(&[newer, payload[3..].to_vec()].concat(), Refused::Footer);
    let mut strange = vec![99, 0];
    sign(&mut strange);
    check(&strange, Refused::Content);
}

/// A damaged payload is refused, or restores a value that can be used. Nothing panics.
#[test]
fn damage_does_no_harm() {
    let mut rng = Rng::new(17);
    let limits = Limits::default();
    for value in values().into_iter().chain(of_modules()) {
        let mut whole = dump(borrowed(&value), Fork::default());
        whole.truncate(whole.len() - FOOTER);
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
            let Some(mut loaded) = load::whole(&bytes, &limits) else { continue };
            let _ = dump(borrowed(&loaded), Fork::default());
            if let Loaded::Object(Object::Bloom(filter)) = &mut loaded {
                assert!(filter.add(b"an element").is_err() || filter.contains(b"an element"));
            }
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

/// A client of a server with these flags.
fn session(flags: &[&str]) -> crate::runtime::embedded::Session {
    let launch = crate::config::Launch::from_flags(flags).unwrap();
    let (config, _) = crate::config::Config::load(&launch, std::iter::empty()).unwrap();
    let instance =
        std::sync::Arc::new(crate::exec::core::Instance::new(std::sync::Arc::new(config), &crate::commands::TABLE));
    crate::runtime::embedded::Session::new(std::rc::Rc::new(crate::exec::core::Worker::new(instance)))
}

/// Whether the key `k` can be made of a value.
fn makes(session: &mut crate::runtime::embedded::Session, value: &[u8]) -> bool {
    let mut payload = value.to_vec();
    sign(&mut payload);
    let mut request = format!("*5\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$1\r\n0\r\n${}\r\n", payload.len()).into_bytes();
    request.extend([&payload[..], b"\r\n$7\r\nREPLACE\r\n"].concat());
    session.receive(&request);
    session.transmit() == b"+OK\r\n"
}

/// Redis 7.2 notes -1 for a consumer that was given nothing.
#[test]
fn a_consumer_that_was_given_nothing_stays_so() {
    let mut session = session(&["--compatibility", "7.2"]);
    for (active_at, shown) in [(9i64, false), (-1, true)] {
        let mut value = super::differential::wholes().into_iter().find(|value| value[0] == kind::STREAM_3).unwrap();
        // Behind the consumer's name stands when it was seen.
        let at = value.windows(4).rposition(|bytes| bytes == [1, 1, b'c', 9]).unwrap() + 3 + 8;
        value[at..at + 8].copy_from_slice(&active_at.to_le_bytes());
        assert!(makes(&mut session, &value));
        session.receive(b"XINFO CONSUMERS k g\r\n");
        let reply = session.transmit();
        assert_eq!(reply.ends_with(b"inactive\r\n:-1\r\n"), shown, "{}", reply.escape_ascii());
    }
}

/// A restored value can be used: no command panics, whatever its content.
#[test]
fn restored_damaged_values_cause_no_panic() {
    let mut session = session(&["--enable-debug-command", "yes"]);
    let mut use_value = |bytes: &[u8]| {
        let is_restored = makes(&mut session, bytes);
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

/// A file of every value, in three databases.
pub(crate) fn file(options: WriteOptions) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), options);
    writer.note("redis-ver", b"7.0.15");
    writer.function(b"#!lua name=lib\nredis.register_function('f', function() end)");
    let values: Vec<_> = values().into_iter().chain(of_modules()).collect();
    for (number, some) in values.chunks(10).enumerate() {
        writer.database(number, some.len(), 1);
        for (at, value) in some.iter().enumerate() {
            let access = [Access::Untold, Access::Idle(100 + at as u64), Access::Frequency(at as u8)][at % 3];
            writer.record(format!("key {at}").as_bytes(), borrowed(value), (at == 3).then_some(1 << 41), access);
        }
    }
    writer.finish().unwrap()
}

/// A key, its value as it is dumped, and its deadline.
type Seen = (Vec<u8>, Vec<u8>, Option<u64>);

/// The records of a file that is seen in pieces of `piece` bytes.
fn records(file: &[u8], piece: usize, checks: bool) -> Result<Vec<Seen>, Fault> {
    let mut decoder = Decoder::new(Limits::default(), checks);
    let (mut records, mut at, mut seen) = (Vec::new(), 0, 0);
    loop {
        match decoder.next(&file[at..seen], (file.len() - seen) as u64)? {
            Step::More(missing) => {
                assert!(missing <= file.len() - seen, "more than the file has");
                seen = (seen + missing.max(piece)).min(file.len());
            }
            Step::Item(Item::End, _) => return Ok(records),
            Step::Item(item, len) => {
                if let Item::Record(Record { key, value: Some(value), expire_at, .. }) = item {
                    records.push((key.into_owned(), dump(borrowed(&value), Fork::default()), expire_at));
                }
                at += len;
            }
        }
    }
}

/// [`records`], which are cut from the file in pieces and decoded later, except where nothing can be cut.
fn cut_records(file: &[u8], piece: usize, checks: bool) -> Result<Vec<Seen>, Fault> {
    let limits = Limits::default();
    let mut decoder = Decoder::new(limits, checks);
    let (mut records, mut at, mut seen) = (Vec::new(), 0, 0);
    let mut cut = Vec::new();
    let end = loop {
        let (window, beyond) = (&file[at..seen], (file.len() - seen) as u64);
        let missing = match decoder.cut(window, beyond, 100) {
            Cut::Records(len) => {
                cut.push((at, len));
                at += len;
                continue;
            }
            Cut::More(missing) => missing,
            Cut::Other => match decoder.next(window, beyond) {
                Ok(Step::More(missing)) => missing,
                Ok(Step::Item(Item::End, _)) => break Ok(()),
                Ok(Step::Item(Item::Record(_), _)) => panic!("what is decoded is skipped, too"),
                Ok(Step::Item(_, len)) => {
                    at += len;
                    continue;
                }
                Err(fault) => break Err(fault),
            },
        };
        assert!(missing <= file.len() - seen, "more than the file has");
        seen = (seen + missing.max(piece)).min(file.len());
    };
    for (mut at, len) in cut {
        let end = at + len;
        while at < end {
            let (record, len) = decoder::whole_record(&file[at..end], at as u64, &limits)?;
            if let Record { key, value: Some(value), expire_at, .. } = record {
                records.push((key.into_owned(), dump(borrowed(&value), Fork::default()), expire_at));
            }
            at += len;
        }
    }
    end.map(|()| records)
}

#[test]
fn cut_records_equal_directly_decoded_records() {
    for file in [file(WriteOptions { compress: true, ..WriteOptions::default() }), small_file()] {
        assert_eq!(cut_records(&file, 1, true), records(&file, 1, true));
    }
    let (mut rng, file) = (Rng::new(37), small_file());
    for _ in 0..4_000 {
        let damaged = super::differential::damage(&file, &mut rng);
        assert_eq!(cut_records(&damaged, 64, false), records(&damaged, 64, false), "{}", damaged.escape_ascii());
    }
}

#[test]
fn files_survive_in_pieces() {
    let all = values().into_iter().chain(of_modules());
    let expected: Vec<_> = all.map(|value| dump(borrowed(&value), Fork::default())).collect();
    for (compress, checksum) in [(false, false), (true, false), (true, true)] {
        let file = file(WriteOptions { compress, checksum, ..WriteOptions::default() });
        for piece in [5000, usize::MAX / 2] {
            let records = records(&file, piece, true).unwrap();
            assert_eq!(records.iter().map(|(_, dump, _)| dump.clone()).collect::<Vec<_>>(), expected);
            assert_eq!(records.iter().filter(|(.., at)| at.is_some()).count(), 4);
        }
    }
}

/// A file with one short value of every type.
fn small_file() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), WriteOptions { compress: true, ..WriteOptions::default() });
    writer.note("redis-ver", b"7.0.15");
    writer.function(b"#!lua name=l");
    writer.database(0, 20, 0);
    for (at, value) in
        values().iter().enumerate().filter(|(_, value)| dump(borrowed(value), Fork::default()).len() < 300)
    {
        writer.record(&[b'k', at as u8], borrowed(value), Some(at as u64), Access::Idle(3));
    }
    writer.finish().unwrap()
}

#[test]
fn every_flipped_bit_and_every_missing_end_is_noticed() {
    let file = small_file();
    assert!(file.len() > 500);
    assert_eq!(records(&file, 1, true), records(&file, file.len(), true));
    for at in 0..file.len() {
        assert!(records(&file[..at], usize::MAX / 2, true).is_err(), "cut at {at}");
        for bit in 0..8 {
            let mut flipped = file.clone();
            flipped[at] ^= 1 << bit;
            let fault = records(&flipped, usize::MAX / 2, true).unwrap_err();
            assert!(fault.offset <= file.len() as u64, "{fault}");
        }
    }
}

/// Without the checksum, damage may go unnoticed, and ends in no panic.
#[test]
fn damage_is_a_fault_or_another_file() {
    let (mut rng, file) = (Rng::new(29), small_file());
    let (mut read, mut refused) = (0, 0);
    for _ in 0..30_000 {
        match records(&super::differential::damage(&file, &mut rng), 64, false) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read > 1000 && refused > 1000, "{read} read, {refused} refused");
}

/// Types that other versions write, but this one does not.
#[test]
fn other_versions_are_read_or_refused_by_name() {
    let cause = |body: &[u8]| {
        let fault = records(body, 1, true).err();
        fault.map(|fault| fault.cause)
    };
    let with = |head: &str, body: &[u8]| [head.as_bytes(), body, &[opcode::END], &[0; 8]].concat();
    let string = [kind::STRING, 1, b'k', 1, b'v'];
    let sound: &[Vec<u8>] = &[
        with("REDIS0012", &string),
        with("VALKEY080", &string),
        [&b"REDIS0003"[..], &string, &[opcode::END]].concat(),
        with("REDIS0006", &[&[opcode::EXPIRES_AT_SECOND, 255, 255, 255, 127][..], &string].concat()),
        with("REDIS0012", &[&[opcode::SLOT_INFO, 1, 1, 0][..], &string].concat()),
        with(
            "REDIS0009",
            &[&[opcode::MODULE_AUX, 1, 2, 1, 2, 64, 9, 5, 2, b'x', b'y', 4, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &string]
                .concat(),
        ),
        with("REDIS0002", &[&[kind::HASH_ZIPMAP, 1, b'h'][..], b"\x07\x01\x01f\x01\x00v\xff"].concat()),
    ];
    for (at, file) in sound.iter().enumerate() {
        assert_eq!(records(file, 1, true).map(|records| records.len()), Ok(1), "file {at}");
        assert_eq!(cut_records(file, 1, true), records(file, 1, true), "file {at}");
    }
    assert_eq!(cause(&with("REDIS0013", &string)), Some(Cause::Version(13)));
    assert_eq!(cause(&with("REDIS0080", &string)), Some(Cause::Version(80)));
    assert_eq!(cause(&with("REDISabcd", &string)), Some(Cause::Signature));
    assert_eq!(
        cause(&with("REDIS0009", &[kind::MODULE_2, 1, b'k', 0])),
        Some(Cause::ModuleValue(Some("AAAAAAAAA version 0".to_owned())))
    );
    assert_eq!(cause(&with("REDIS0012", &[kind::HASH_TTL_OF_VALKEY, 1, b'k', 0])), Some(Cause::FieldExpiry));
    assert_eq!(
        cause(&with("VALKEY080", &[kind::HASH_LISTPACK_TTL_OF_A_CANDIDATE, 1, b'k', 0])),
        Some(Cause::FieldExpiry)
    );
    assert_eq!(cause(&with("REDIS0009", &[opcode::FUNCTION_OF_A_CANDIDATE, 1, b'k'])), Some(Cause::OldFunction));
    assert_eq!(cause(&with("REDIS0012", &[243, 1, b'k'])), Some(Cause::Opcode(243)));
    // Lengths that no file has are not believed.
    let long = [kind::LIST, 1, b'k', 0x81, 255, 255, 255, 255, 255, 255, 255, 255];
    assert_eq!(cause(&[&b"REDIS0009"[..], &long].concat()), Some(Cause::Truncated));
}
