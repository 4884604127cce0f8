//! A cluster's own map: the replies to CLUSTER SHARDS and CLUSTER SLOTS.

use super::slot::SLOTS;
use super::value::Value;

/// Slots, and their owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotRange {
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) primary: Place,
}

/// Where a node says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// A host name or address; none where it is the one that was asked.
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
}

/// Reads the reply to CLUSTER SHARDS.
///
/// # Errors
/// The expected reply.
pub(crate) fn of_shards(reply: &Value, tls: bool) -> Result<Vec<SlotRange>, String> {
    let mut ranges = Vec::new();
    for shard in shards(reply)? {
        let slots = shard.field("slots").ok_or("a shard without slots")?;
        let nodes = shard.field("nodes").ok_or("a shard without nodes")?;
        let primary = nodes.list().iter().find(|node| {
            let text = |name| node.field(name).and_then(Value::text).unwrap_or_default();
            // `fail`, or `failed` as the documentation has it.
            text("role") == "master" && !text("health").starts_with("fail")
        });
        // A shard whose primary has failed has none until a replica takes over.
        let Some(primary) = primary else { continue };
        let port = primary.field(if tls { "tls-port" } else { "port" }).and_then(Value::integer);
        let port = port.ok_or_else(|| format!("a primary without a {}port", if tls { "TLS " } else { "" }))?;
        let host = host(primary.field("endpoint").or_else(|| primary.field("ip")));
        for bounds in slots.list().chunks_exact(2) {
            ranges.push(range(&bounds[0], &bounds[1], host.clone(), port)?);
        }
    }
    Ok(ranges)
}

/// Reads the reply to CLUSTER SLOTS, whose ports are those of the connection that asked.
///
/// # Errors
/// The expected reply.
pub(crate) fn of_slots(reply: &Value) -> Result<Vec<SlotRange>, String> {
    let ranges = shards(reply)?.iter().map(|entry| match entry.list() {
        [first, last, primary, ..] => {
            let [place, port, ..] = primary.list() else {
                return Err("a primary without a port".to_owned());
            };
            range(first, last, host(Some(place)), port.integer().ok_or("a primary's port that is no number")?)
        }
        _ => Err("slots without a primary".to_owned()),
    });
    ranges.collect()
}

fn shards(reply: &Value) -> Result<&[Value], String> {
    match reply {
        Value::List(shards) => Ok(shards),
        Value::Error(text) => Err(String::from_utf8_lossy(text).into_owned()),
        Value::Text(_) | Value::Integer(_) | Value::Nil => Err("a reply that is no list".to_owned()),
    }
}

/// A host, where it is known: Redis says nil, nothing, or `?`.
fn host(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::text).filter(|host| !host.is_empty() && *host != "?").map(str::to_owned)
}

fn range(first: &Value, last: &Value, host: Option<String>, port: i64) -> Result<SlotRange, String> {
    let slot = |value: &Value| {
        let slot = value.integer().and_then(|slot| usize::try_from(slot).ok()).filter(|slot| *slot < SLOTS);
        slot.ok_or_else(|| format!("{value:?}, expected a slot from 0 to {}", SLOTS - 1))
    };
    let port = u16::try_from(port).map_err(|_| format!("the port {port}, expected 0 to 65535"))?;
    Ok(SlotRange { first: slot(first)?, last: slot(last)?, primary: Place { host, port } })
}

/// Reads the text of a redirection, `MOVED 3999 127.0.0.1:6381` or `ASK 3999 host:6381`: slot and place.
pub(crate) fn redirection(text: &[u8]) -> Option<(usize, Place)> {
    let mut words = std::str::from_utf8(text).ok()?.split(' ').skip(1);
    let slot = words.next()?.parse().ok().filter(|slot| *slot < SLOTS)?;
    let (host, port) = words.next()?.rsplit_once(':')?;
    let host = Some(host).filter(|host| !host.is_empty() && *host != "?");
    Some((slot, Place { host: host.map(str::to_owned), port: port.parse().ok()? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reply as redis-cli would be told it, in words: `[`, `]`, numbers, `nil`, texts.
    fn value(text: &str) -> Value {
        let mut open = vec![Vec::new()];
        for word in text.split_whitespace() {
            let value = match word {
                "[" => {
                    open.push(Vec::new());
                    continue;
                }
                "]" => Value::List(open.pop().unwrap()),
                "nil" => Value::Nil,
                number if number.parse::<i64>().is_ok() => Value::Integer(number.parse().unwrap()),
                text => Value::Text(text.as_bytes().to_vec()),
            };
            open.last_mut().unwrap().push(value);
        }
        open.pop().unwrap().pop().unwrap()
    }

    fn range(first: usize, last: usize, host: Option<&str>, port: u16) -> SlotRange {
        SlotRange { first, last, primary: Place { host: host.map(str::to_owned), port } }
    }

    #[test]
    fn shards_name_their_primary() {
        let node = |port: u16, endpoint: &str, role: &str, health: &str| {
            format!("[ id x port {port} tls-port 7 ip 10.0.0.1 endpoint {endpoint} role {role} health {health} ]")
        };
        let [old, new] = [node(1, "a", "master", "fail"), node(2, "a", "master", "online")];
        let [other, replica] = [node(3, "nil", "master", "online"), node(4, "b", "replica", "online")];
        let text = format!(
            "[ [ slots [ 0 5 9 9 ] nodes [ {old} {new} ] ] [ slots [ 6 8 ] nodes [ {replica} {other} ] ] \
             [ slots [ 10 11 ] nodes [ {old} {replica} ] ] [ slots [ ] nodes [ {other} ] ] ]"
        );
        let expected = [range(0, 5, Some("a"), 2), range(9, 9, Some("a"), 2), range(6, 8, None, 3)];
        assert_eq!(of_shards(&value(&text), false).unwrap(), expected);
        assert!(of_shards(&value(&text), true).unwrap().iter().all(|range| range.primary.port == 7));
    }

    #[test]
    fn slots_name_their_primary_first() {
        let text = "[ [ 0 5 [ 10.0.0.1 1 id [ ] ] [ 10.0.0.2 2 id [ ] ] ] [ 6 16383 [ ? 3 id ] ] ]";
        assert_eq!(of_slots(&value(text)).unwrap(), [range(0, 5, Some("10.0.0.1"), 1), range(6, 16_383, None, 3)]);
    }

    #[test]
    fn malformed_slot_maps_are_refused() {
        #[track_caller]
        fn check(found: Result<Vec<SlotRange>, String>, expected: &str) {
            assert_eq!(found.unwrap_err(), expected);
        }
        check(of_slots(&Value::Error(b"ERR This instance".to_vec())), "ERR This instance");
        check(of_slots(&Value::Nil), "a reply that is no list");
        check(of_slots(&value("[ [ 0 5 ] ]")), "slots without a primary");
        check(of_slots(&value("[ [ 0 99999 [ a 1 ] ] ]")), "Integer(99999), expected a slot from 0 to 16383");
        check(of_slots(&value("[ [ 0 1 [ a 70000 ] ] ]")), "the port 70000, expected 0 to 65535");
        check(of_shards(&value("[ [ nodes [ ] ] ]"), false), "a shard without slots");
        let no_port = "[ [ slots [ 0 1 ] nodes [ [ role master port 1 ] ] ] ]";
        check(of_shards(&value(no_port), true), "a primary without a TLS port");
    }

    #[test]
    fn redirections_are_read() {
        #[track_caller]
        fn check(text: &str, expected: Option<(usize, Option<&str>, u16)>) {
            let found = redirection(text.as_bytes());
            let found = found.as_ref().map(|(slot, place)| (*slot, place.host.as_deref(), place.port));
            assert_eq!(found, expected, "{text}");
        }
        check("MOVED 3999 127.0.0.1:6381", Some((3999, Some("127.0.0.1"), 6381)));
        check("ASK 0 ::1:7000", Some((0, Some("::1"), 7000)));
        check("MOVED 1 :6380", Some((1, None, 6380)));
        check("MOVED 1 ?:6380", Some((1, None, 6380)));
        for wrong in ["MOVED", "MOVED x a:1", "MOVED 16384 a:1", "MOVED 1 a", "MOVED 1 a:b"] {
            check(wrong, None);
        }
    }
}
