//! A table of Redis' commands: their kinds, and which of their arguments are keys.
//!
//! A command that is not here is refused, unless an allow-list names it for callers that no key prefix limits.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The effect of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It reads, and does no harm to Redis.
    Read,
    /// It changes data.
    Write,
    /// It sends a message to a channel.
    Publish,
    /// It runs or loads a program, which may do anything that Redis does.
    Script,
    /// It looks after Redis, tells about it, or can stop it: Redis calls such commands admin or dangerous.
    Admin,
    /// It changes or blocks the connection, which all callers share: never to be sent.
    Connection,
}

/// Which arguments are keys; the command's name has position 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// None, and no key's value or name is told.
    None,
    /// From the first to the last position, which counts from the end if negative, by steps.
    Range(usize, isize, usize),
    /// Their number is at this position, they follow it. If told so, the argument at position 1 is one too.
    Counted(usize, bool),
    /// After the word STREAMS: the first half of what follows.
    Streams,
    /// A channel is at position 1, and no key.
    Channel,
    /// It touches, or tells about, keys that its arguments do not name.
    Any,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    pub(crate) keys: Keys,
}

/// Commands that are alike in both respects; `parent|child` is a subcommand. The facts are those of Redis'
/// `COMMAND INFO`, with which a test compares them.
#[rustfmt::skip]
const GROUPS: &[(Kind, Keys, &str)] = &[
    (Kind::Read, Keys::None, "ping echo time lolwut command"),
    (Kind::Read, Keys::Any, "dbsize randomkey scan"),
    // Of modules. A search shows whatever its index covers.
    (Kind::Read, Keys::Any, "ft._list ft.aggregate ft.explain ft.info ft.search ft.tagvals"),
    (Kind::Read, Keys::Range(1, 1, 1),
        "bf.card bf.exists bf.info bf.mexists json.arrindex json.arrlen json.get json.objkeys json.objlen json.resp \
         json.strlen json.type vcard vdim vemb vgetattr vinfo vismember vlinks vrandmember vsim"),
    (Kind::Read, Keys::Range(1, -2, 1), "json.mget"),
    (Kind::Write, Keys::Range(1, 1, 1),
        "bf.add bf.insert bf.madd bf.reserve json.arrappend json.arrinsert json.arrpop json.arrtrim json.clear json.del \
         json.forget json.merge json.numincrby json.set json.strappend json.toggle vadd vrem vsetattr"),
    (Kind::Write, Keys::Range(1, -1, 3), "json.mset"),
    (Kind::Read, Keys::Range(1, 1, 1),
        "bitcount bitfield_ro bitpos dump expiretime geodist geohash geopos georadius_ro georadiusbymember_ro geosearch \
         get getbit getrange hexists hexpiretime hget hgetall hkeys hlen hmget hpexpiretime hpttl hrandfield hscan \
         hstrlen httl hvals lindex llen lpos lrange pexpiretime pttl scard sismember smembers smismember srandmember \
         sscan strlen substr ttl type xlen xpending xrange xrevrange zcard zcount zlexcount zmscore zrandmember zrange \
         zrangebylex zrangebyscore zrank zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore"),
    (Kind::Read, Keys::Range(1, 2, 1), "lcs"),
    (Kind::Read, Keys::Range(1, -1, 1), "exists mget pfcount sdiff sinter sunion touch"),
    (Kind::Read, Keys::Range(2, 2, 1),
        "memory|usage object|encoding object|freq object|idletime object|refcount xinfo|consumers xinfo|groups \
         xinfo|stream"),
    (Kind::Read, Keys::Counted(1, false), "sintercard zdiff zinter zintercard zunion"),
    (Kind::Read, Keys::Streams, "xread"),
    (Kind::Write, Keys::Range(1, 1, 1),
        "append bitfield decr decrby expire expireat geoadd getdel getex getset hdel hexpire hexpireat hgetdel hgetex \
         hincrby hincrbyfloat hmset hpersist hpexpire hpexpireat hset hsetex hsetnx incr incrby incrbyfloat linsert lpop \
         lpush lpushx lrem lset ltrim persist pexpire pexpireat pfadd psetex rpop rpush rpushx sadd set setbit setex \
         setnx setrange spop srem xack xackdel xadd xautoclaim xcfgset xclaim xdel xdelex xsetid xtrim zadd zincrby zpopmax \
         zpopmin zrem zremrangebylex zremrangebyrank zremrangebyscore"),
    (Kind::Write, Keys::Range(1, 2, 1), "geosearchstore lmove rename renamenx rpoplpush smove zrangestore"),
    (Kind::Write, Keys::Range(1, -1, 1), "del pfmerge sdiffstore sinterstore sunionstore unlink"),
    (Kind::Write, Keys::Range(1, -1, 2), "mset msetnx"),
    (Kind::Write, Keys::Range(2, -1, 1), "bitop"),
    (Kind::Write, Keys::Range(2, 2, 1),
        "xgroup|create xgroup|createconsumer xgroup|delconsumer xgroup|destroy xgroup|setid"),
    (Kind::Write, Keys::Counted(1, false), "lmpop zmpop"),
    (Kind::Write, Keys::Counted(2, true), "zdiffstore zinterstore zunionstore"),
    (Kind::Write, Keys::Streams, "xreadgroup"),
    // Other databases' keys, or keys that stand behind options.
    (Kind::Write, Keys::Any, "copy move georadius georadiusbymember"),
    (Kind::Publish, Keys::Channel, "publish spublish"),
    // A script's keys are what it says, not what it touches.
    (Kind::Script, Keys::Any, "eval eval_ro evalsha evalsha_ro fcall fcall_ro function \
                               script|exists script|flush script|kill script|load"),
    (Kind::Admin, Keys::Range(1, 1, 1), "restore"),
    (Kind::Admin, Keys::Any,
        "acl bgrewriteaof bgsave cluster config debug failover flushall flushdb info keys lastsave latency \
         client|list memory|doctor memory|malloc-stats memory|purge memory|stats migrate module pfdebug pfselftest pubsub \
         replicaof role save shutdown slaveof slowlog sort sort_ro swapdb"),
    (Kind::Connection, Keys::Any,
        "asking auth blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin client discard exec hello monitor \
         multi psubscribe psync punsubscribe quit readonly readwrite replconf reset restore-asking script|debug select \
         ssubscribe subscribe sunsubscribe sync unsubscribe unwatch wait waitaof watch"),
];

/// Commands whose first argument says which one is meant, though one row stands for all of them.
const CONTAINERS: &str = "acl cluster command config function latency module pubsub slowlog";

/// Commands that write a file into the server's directory, or have it write there.
const OF_FILES: &[&str] = &[
    "acl|save",
    "bgrewriteaof",
    "bgsave",
    "cluster|saveconfig",
    "config|rewrite",
    "debug",
    "failover",
    "replicaof",
    "save",
    "shutdown",
    "slaveof",
];

/// Whether a command writes files: by itself, or because of a setting that it turns on.
pub(crate) fn writes_files<A: AsRef<[u8]>>(args: &[A]) -> bool {
    let (name, _) = find(args);
    let turns_on = || args[2..].iter().step_by(2).any(|setting| setting.as_ref().eq_ignore_ascii_case(b"appendonly"));
    OF_FILES.contains(&name.as_str()) || (name == "config|set" && turns_on())
}

static ROWS: LazyLock<HashMap<&'static str, Row>> = LazyLock::new(|| {
    GROUPS
        .iter()
        .flat_map(|&(kind, keys, names)| names.split_whitespace().map(move |name| (name, Row { kind, keys })))
        .collect()
});

/// A command's row and its full name in lower case, as in `config|get`. No row if the command is not known.
pub(crate) fn find<A: AsRef<[u8]>>(args: &[A]) -> (String, Option<Row>) {
    let Some(name) = args.first().map(|name| lower(name.as_ref())) else { return (String::new(), None) };
    // No command has this sign in its name; here it joins a command and its subcommand.
    if name.contains('|') {
        return (name, None);
    }
    let subcommand = || args.get(1).map(|sub| format!("{name}|{}", lower(sub.as_ref())));
    match ROWS.get(name.as_str()) {
        Some(row) if is_container(&name) => (subcommand().unwrap_or(name), Some(*row)),
        Some(row) if row.kind != Kind::Connection => (name, Some(*row)),
        // Of CLIENT, one subcommand leaves the connection as it is and has its own row.
        parent => match subcommand().and_then(|full| Some((ROWS.get(full.as_str())?, full))) {
            Some((row, full)) => (full, Some(*row)),
            None => (name, parent.copied()),
        },
    }
}

fn is_container(name: &str) -> bool {
    CONTAINERS.split(' ').any(|container| container == name)
}

/// Redis compares names so: ASCII letters alone have two cases. A name that is no UTF-8 is no command either.
fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

/// The names that limits by prefix compare with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Touched<'a> {
    /// These keys and no others.
    Keys(Vec<&'a [u8]>),
    /// This channel.
    Channel(&'a [u8]),
    /// More than its arguments tell, or they cannot be made out.
    Any,
}

/// The keys or the channel of a call.
pub(crate) fn touched<A: AsRef<[u8]>>(row: Row, args: &[A]) -> Touched<'_> {
    let at = |position: usize| args.get(position).map(AsRef::as_ref);
    let keys = match row.keys {
        Keys::None => Some(Vec::new()),
        Keys::Any => None,
        Keys::Channel => return at(1).map_or(Touched::Any, Touched::Channel),
        Keys::Range(first, last, step) => {
            let last = if last < 0 { args.len().saturating_add_signed(last) } else { last as usize };
            (first..=last).step_by(step).map(at).collect()
        }
        Keys::Counted(count, with_first) => at(count).and_then(number).and_then(|keys| {
            let end = count.checked_add(keys).filter(|end| *end < args.len() && keys > 0)?;
            let first = with_first.then(|| at(1)).flatten();
            Some(first.into_iter().chain((count + 1..=end).filter_map(at)).collect())
        }),
        Keys::Streams => streams(args).map(|streams| streams.keys),
    };
    keys.map_or(Touched::Any, Touched::Keys)
}

/// The options of XREAD and XREADGROUP.
struct Streams<'a> {
    blocks: bool,
    keys: Vec<&'a [u8]>,
}

/// Reads options as Redis does: a group may be called STREAMS.
fn streams<A: AsRef<[u8]>>(args: &[A]) -> Option<Streams<'_>> {
    let (mut at, mut blocks) = (1, false);
    loop {
        let option = lower(args.get(at)?.as_ref());
        blocks |= option == "block";
        match option.as_str() {
            "count" | "block" => at += 2,
            "noack" => at += 1,
            "group" => at += 3,
            "streams" => break,
            _ => return None,
        }
    }
    let rest = &args[at + 1..];
    let keys = rest[..rest.len() / 2].iter().map(AsRef::as_ref).collect();
    (rest.len().is_multiple_of(2) && !rest.is_empty()).then_some(Streams { blocks, keys })
}

/// Whether the call would block the connection that all callers share, or it cannot be made out.
pub(crate) fn blocks<A: AsRef<[u8]>>(row: Row, args: &[A]) -> bool {
    row.keys == Keys::Streams && streams(args).is_none_or(|streams| streams.blocks)
}

fn number(digits: &[u8]) -> Option<usize> {
    // Redis takes no other form: no sign, no leading zero, no blank.
    let plain = digits.iter().all(u8::is_ascii_digit) && !(digits.len() > 1 && digits[0] == b'0');
    if plain { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_write_files() {
        let check = |args: &[&str], expected| assert_eq!(writes_files(args), expected, "{args:?}");
        for args in [&["SAVE"][..], &["BgSave", "SCHEDULE"], &["config", "REWRITE"], &["DEBUG", "RELOAD"]] {
            check(args, true);
        }
        check(&["CONFIG", "SET", "maxmemory", "1mb", "AppendOnly", "yes"], true);
        check(&["CONFIG", "SET", "maxmemory", "1mb"], false);
        check(&["CONFIG", "SET"], false);
        check(&["CONFIG", "GET", "appendonly"], false);
        check(&["SET", "save", "appendonly"], false);
    }

    #[test]
    fn every_name_once() {
        let names: Vec<_> = GROUPS.iter().flat_map(|(_, _, names)| names.split_whitespace()).collect();
        assert_eq!(names.len(), ROWS.len());
        assert!(names.iter().all(|name| **name == name.to_ascii_lowercase()));
        assert!(CONTAINERS.split(' ').all(|name| ROWS.contains_key(name)));
    }

    #[test]
    fn keys() {
        fn check(command: &str, expected: Option<&str>) {
            let args: Vec<_> = command.split(' ').collect();
            let (name, row) = find(&args);
            let row = row.unwrap_or_else(|| panic!("{name} is known"));
            let expected = match expected {
                Some(keys) => Touched::Keys(keys.split_whitespace().map(str::as_bytes).collect()),
                None => Touched::Any,
            };
            assert_eq!(touched(row, &args), expected, "{command}");
        }
        check("get a", Some("a"));
        check("GeT a", Some("a"));
        check("get", None);
        check("ping", Some(""));
        check("echo a", Some(""));
        check("mget a b c", Some("a b c"));
        check("mset a 1 b 2", Some("a b"));
        check("lcs a b LEN", Some("a b"));
        check("lcs a", None);
        check("bitop and d a b", Some("d a b"));
        check("object encoding a", Some("a"));
        check("xgroup create s g $", Some("s"));
        check("zunion 2 a b weights 1 2", Some("a b"));
        check("zunion 3 a b", None);
        check("zunion 0 a b", None);
        check("zunion +1 a b", None);
        check("zunion 01 a b", None);
        check("zunion 99999999999999999999 a", None);
        check("zunion 18446744073709551615 a", None);
        check("zunionstore d 1 a", Some("d a"));
        check("xread streams a b 0 0", Some("a b"));
        check("xread count 1 streams a 0", Some("a"));
        check("xread streams a b 0", None);
        check("xread count streams a 0", None);
        check("xreadgroup group streams c streams a >", Some("a"));
        check("xreadgroup count 1 group streams streams noack streams a >", Some("a"));
        check("eval return 1 a", None);
        check("scan 0", None);
        check("sort a by b", None);
        check("json.mget a b $.x", Some("a b"));
        check("json.mset a $ 1 b $ 2", Some("a b"));
        check("bf.info a", Some("a"));
        check("ft.search index *", None);
        check("copy a b db 1", None);
        check("config get save", None);
    }

    #[test]
    fn unknown() {
        fn check(command: &[&[u8]], name: &str) {
            assert_eq!(find(command), (name.to_owned(), None), "{name}");
        }
        check(&[], "");
        check(&[b""], "");
        check(&[b" get", b"a"], " get");
        check(&[b"get\r\n", b"a"], "get\r\n");
        check(&[b"get|", b"a"], "get|");
        check(&[b"object|encoding", b"x", b"k"], "object|encoding");
        check(&[b"object", b"nothing"], "object");
        check(&[b"xgroup"], "xgroup");
        check(&[b"\xff"], "\u{fffd}");
    }

    #[test]
    fn full_names() {
        fn check(command: &[&str], name: &str) {
            assert_eq!(find(command).0, name);
        }
        check(&["CONFIG", "Get", "save"], "config|get");
        check(&["CONFIG"], "config");
        check(&["Client", "LIST"], "client|list");
        check(&["CLIENT", "REPLY"], "client");
        check(&["OBJECT", "ENCODING", "k"], "object|encoding");
    }

    #[test]
    fn blocking() {
        fn check(command: &str, expected: bool) {
            let args: Vec<_> = command.split(' ').collect();
            assert_eq!(blocks(find(&args).1.unwrap(), &args), expected, "{command}");
        }
        check("get block", false);
        check("xread streams block 0", false);
        check("xread BLOCK 0 streams a 0", true);
        check("xread count 1 block 0 streams a 0", true);
        check("xread other block 0 streams a 0", true);
    }
}
