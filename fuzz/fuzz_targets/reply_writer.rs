//! For any sequence of writes, the output is RESP that a strict reader reads back to the same values.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::{arbitrary, fuzz_target};
use redis_server::protocol::Reply;

#[allow(dead_code, reason = "the server's tests use more of it")]
#[path = "../../redis-server/tests/it/support/resp.rs"]
mod resp;

use resp::Value;

/// One reply to write.
#[derive(Debug, arbitrary::Arbitrary)]
enum Op {
    Ok,
    Error(String),
    Int(i64),
    Bulk(Vec<u8>),
    /// Large enough to be handed on instead of copied: so many times 4 KiB.
    Blob(u8),
    BulkInt(i64),
    Null,
    NullArray,
    Double(f64),
    Bool(bool),
    BigNumber(i128),
    Verbatim(Vec<u8>),
    Array(Vec<Op>),
    /// The head is inserted afterwards.
    ArrayAt(Vec<Op>),
    Set(Vec<Op>),
    SetAt(Vec<Op>),
    Map(Vec<(Op, Op)>),
    MapAt(Vec<(Op, Op)>),
    Push(Vec<Op>),
    /// Written, and cut off again.
    Undone(Vec<Op>),
}

/// Most levels of nesting that are tried.
const MAX_DEPTH: usize = 8;

/// Writes an operation and appends what must be read back.
fn write(op: &Op, reply: &mut Reply, depth: usize, expected: &mut Vec<Value>) {
    let resp3 = reply.is_resp3();
    let either = |resp2, three| if resp3 { three } else { resp2 };
    let value = match op {
        Op::Ok => {
            reply.ok();
            Value::Status(b"OK".to_vec())
        }
        Op::Error(text) => {
            reply.error(&format_args!("ERR {text}"));
            Value::Error(format!("ERR {text}").replace(['\r', '\n'], " ").into_bytes())
        }
        Op::Int(number) => {
            reply.int(*number);
            Value::Int(*number)
        }
        Op::Bulk(bytes) => {
            reply.bulk(bytes);
            Value::Bulk(bytes.clone())
        }
        Op::Blob(pages) => {
            let bytes = vec![b'x'; usize::from(*pages) * 4096];
            reply.blob(&Bytes::from(bytes.clone()));
            Value::Bulk(bytes)
        }
        Op::BulkInt(number) => {
            reply.bulk_int(*number);
            Value::Bulk(number.to_string().into_bytes())
        }
        Op::Null => {
            reply.null();
            either(Value::NullBulk, Value::Null)
        }
        Op::NullArray => {
            reply.null_array();
            either(Value::NullArray, Value::Null)
        }
        Op::Double(number) => {
            reply.double(*number);
            return expected.push(double(*number, reply));
        }
        Op::Bool(on) => {
            reply.boolean(*on);
            either(Value::Int(i64::from(*on)), Value::Bool(*on))
        }
        Op::BigNumber(number) => {
            let digits = number.to_string();
            reply.big_number(digits.as_bytes());
            either(Value::Bulk(digits.clone().into_bytes()), Value::BigNumber(digits))
        }
        Op::Verbatim(text) => {
            reply.verbatim(*b"txt", text);
            either(Value::Bulk(text.clone()), Value::Verbatim(*b"txt", text.clone()))
        }
        _ if depth == 0 => return,
        Op::Undone(ops) => {
            let mark = reply.mark();
            all(ops, reply, depth - 1);
            return reply.truncate(mark);
        }
        Op::Array(_) | Op::ArrayAt(_) | Op::Set(_) | Op::SetAt(_) | Op::Map(_) | Op::MapAt(_) | Op::Push(_) => {
            aggregate(op, reply, depth - 1)
        }
    };
    expected.push(value);
}

fn all(ops: &[Op], reply: &mut Reply, depth: usize) -> Vec<Value> {
    let mut values = Vec::new();
    ops.iter().for_each(|op| write(op, reply, depth, &mut values));
    values
}

/// A reply whose elements are known before the head: those that write nothing count for nothing.
fn aggregate(op: &Op, reply: &mut Reply, depth: usize) -> Value {
    let resp3 = reply.is_resp3();
    let head_first = |reply: &mut Reply, ops: &[Op], head: fn(&mut Reply, usize)| {
        let mut trial = Reply::default();
        trial.set_resp3(resp3);
        head(reply, all(ops, &mut trial, depth).len());
        all(ops, reply, depth)
    };
    match op {
        Op::Array(ops) => Value::Array(head_first(reply, ops, Reply::array)),
        Op::Set(ops) if resp3 => Value::Set(head_first(reply, ops, Reply::set)),
        Op::Set(ops) => Value::Array(head_first(reply, ops, Reply::set)),
        Op::Push(ops) if resp3 => Value::Push(head_first(reply, ops, Reply::push)),
        Op::Push(ops) => Value::Array(head_first(reply, ops, Reply::push)),
        Op::ArrayAt(ops) | Op::SetAt(ops) => {
            let mark = reply.mark();
            let values = all(ops, reply, depth);
            if matches!(op, Op::ArrayAt(_)) {
                reply.array_at(mark, values.len());
                return Value::Array(values);
            }
            reply.set_at(mark, values.len());
            if resp3 { Value::Set(values) } else { Value::Array(values) }
        }
        Op::Map(pairs) | Op::MapAt(pairs) => {
            let mark = reply.mark();
            let mut found = Vec::new();
            for (key, value) in pairs {
                let before = reply.mark();
                let (mut k, mut v) = (Vec::new(), Vec::new());
                write(key, reply, depth, &mut k);
                write(value, reply, depth, &mut v);
                match (k.pop(), v.pop()) {
                    (Some(key), Some(value)) => found.push((key, value)),
                    _ => reply.truncate(before),
                }
            }
            if matches!(op, Op::MapAt(_)) {
                reply.map_at(mark, found.len());
            } else {
                let body = rest_of(reply, mark);
                reply.map(found.len());
                reply.raw(&body);
            }
            if resp3 {
                return Value::Map(found);
            }
            Value::Array(found.into_iter().flat_map(|(key, value)| [key, value]).collect())
        }
        _ => Value::Array(Vec::new()),
    }
}

/// Cuts off what was written since `mark`, and returns it.
fn rest_of(reply: &mut Reply, mark: redis_server::protocol::Mark) -> Vec<u8> {
    let whole = reply.to_vec();
    reply.truncate(mark);
    whole[reply.len()..].to_vec()
}

/// A double is read back as the same number; its text is the server's choice.
fn double(number: f64, reply: &Reply) -> Value {
    let whole = reply.to_vec();
    let text = if reply.is_resp3() {
        let from = whole.iter().rposition(|byte| *byte == b',').expect("a double was written");
        &whole[from + 1..whole.len() - 2]
    } else {
        let end = whole.len() - 2;
        let from = whole[..end].iter().rposition(|byte| *byte == b'\n').expect("it has a length line");
        &whole[from + 1..end]
    };
    let text = String::from_utf8(text.to_vec()).expect("a number is ASCII");
    let read: f64 = text.parse().expect("a number was written");
    assert!(read == number || read.is_nan() && number.is_nan(), "{number} was written as {text}");
    if reply.is_resp3() { Value::Double(text) } else { Value::Bulk(text.into_bytes()) }
}

fuzz_target!(|input: (bool, Vec<Op>)| {
    let (resp3, ops) = input;
    let mut reply = Reply::default();
    reply.set_resp3(resp3);
    let expected = all(&ops, &mut reply, MAX_DEPTH);
    let bytes = reply.to_vec();
    assert_eq!(bytes.len(), reply.len());
    let mut at = 0;
    for value in expected {
        let (read, len) = resp::parse(&bytes[at..]).expect("well-formed").expect("complete");
        assert_eq!(read, value);
        at += len;
    }
    assert_eq!(at, bytes.len(), "nothing else was written");
});
