//! Commands that share their locks in a window do what they do one by one.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;

use redis_server::commands::{REGISTRY, TABLE};
use redis_server::exec::core::{Instance, Worker};
use redis_server::runtime::embedded::Session;

use super::support::Random;
use super::support::resp::{Value, parse, request};
use super::support::server::{Server, config};

const SEEDS: u64 = 8;
/// Pipelines per seed, and commands in each: several windows, and what cuts them.
const PIPELINES: usize = 20;
const COMMANDS: usize = 150;
/// Letters of the keys, by type, and how many there are of each.
const FAMILIES: [&str; 6] = ["S", "H", "L", "E", "Z", "X"];
const KEYS: usize = 4;

/// The form of each command. `S`, `H`, `L`, `E`, `Z` and `X` are keys of that type, `K` is a key of any, `#` is a number; the key `t` has
/// times to live that nobody asks for, and `one` has one member.
pub(crate) const TEMPLATES: &[&str] = &[
    "APPEND S v#|DECR S|DECRBY S #|GET S|GETBIT S #|GETDEL S|GETEX S|GETEX t EX 100|GETRANGE S # -#|GETSET S v#",
    "INCR S|INCRBY S #|INCRBYFLOAT S #.5|PSETEX t 100000 v|SET S #|SET S v# GET|SET S v# XX|SETBIT S # 1|SETEX t 100 v",
    "SETBIT S # 0|SETNX S #|SETRANGE S # v#|STRLEN S|SUBSTR S # #|BITFIELD S INCRBY u8 # # GET i5 #|BITFIELD_RO S GET u4 #",
    "HDEL H #|HEXISTS H #|HGET H #|HINCRBY H # #|HINCRBYFLOAT H # 1.5|HLEN H|HMGET H # #|HMSET H # #|HSET H # # # #",
    "HSETNX H # #|HSTRLEN H #|LLEN L|LPOP L|LPOP L #|LPUSH L # #|LPUSHX L #|RPOP L|RPUSH L #|RPUSHX L #",
    "SADD E # #|SCARD E|SISMEMBER E #|SMISMEMBER E # #|SPOP one|SADD one x|SREM E #|ZADD Z # # # #|ZCARD Z|ZCOUNT Z # #",
    "ZINCRBY Z # #|ZLEXCOUNT Z [# [#|ZMSCORE Z # #|ZPOPMAX Z|ZPOPMIN Z #|ZRANK Z #|ZREM Z #|ZREVRANK Z #|ZSCORE Z #",
    "EXPIRE t 1000|PEXPIRE t 1000000|EXPIREAT K 99999999#|PEXPIREAT K 9999999999#|EXPIREAT K 1|EXPIRETIME K|PEXPIRETIME K",
    "PERSIST K|TTL none|PTTL none|TYPE K|GET K|HGET K #|SPUBLISH K v",
    "XADD X 1-* f #|XADD X 1-* f # g #|XADD X MAXLEN 9 1-* f #|XLEN X|XDEL X 1-#|XACK X g 1-#|XCLAIM X g c 0 1-# JUSTID",
    "PFADD P #|PFADD P # # #|PFCOUNT P",
    "XAUTOCLAIM X g d 0 1-# JUSTID|XSETID X 1-#",
    // These run alone.
    "XGROUP CREATE X g 0|XREADGROUP GROUP g c COUNT 2 STREAMS X >|XRANGE X - +|XTRIM X MAXLEN #",
    "DEL K K|RENAME K K|MGET S S S|LRANGE L 0 -1|BITCOUNT S|MULTI|EXEC|NOSUCH|GET",
];

/// The same of commands that Redis 7.0 does not know. Replies on their time to live must not depend on the moment of the call.
const NEWER: &[&str] = &[
    "HSETEX H PXAT 9999999999#00 FIELDS 1 # v|HSETEX H KEEPTTL FIELDS 1 # w|HPEXPIREAT H 9999999999#00 FIELDS 2 # #",
    "HEXPIREAT H 99999999# FIELDS 1 #|HEXPIRE ht 1000 FIELDS 1 #|HPEXPIRE ht 1000000 FIELDS 1 #|HPERSIST H FIELDS 1 #",
    "HEXPIRETIME H FIELDS 2 # #|HPEXPIRETIME H FIELDS 1 #|HTTL none FIELDS 1 #|HPTTL none FIELDS 1 #",
    "HGETEX H FIELDS 1 #|HGETEX H PERSIST FIELDS 1 #|HGETDEL H FIELDS 1 #",
    "DELIFEQ S #|DELEX S IFNE v#|DIGEST S|SET S v# IFEQ v#|INCREX S BYINT # UBOUND 60 SATURATE|INCREX t PXAT 9999999999#00 BYFLOAT 0.5",
    "XDELEX X IDS 1 1-#|XDELEX X ACKED IDS 1 1-#|XACKDEL X g DELREF IDS 1 1-#|XADD X ACKED MAXLEN 9 1-* f #",
    "XCFGSET X IDMP-DURATION 50 IDMP-MAXSIZE #|XIDMPRECORD X p # 1-#",
    "VADD V VALUES 2 # 1 e#|VCARD V|VDIM V|VGETATTR V e#|VINFO none|VISMEMBER V e#|VSETATTR V e# {\"a\":#}|VADD K VALUES 1 # e|VCARD K",
    "BF.ADD B #|BF.CARD B|BF.DEBUG B|BF.EXISTS B #|BF.INFO B|BF.MEXISTS B # #|BF.ADD K #",
];

/// A random command.
pub(crate) fn command(random: &mut Random, templates: &[&str]) -> Vec<u8> {
    let template = templates[random.below(templates.len())];
    let mut line = String::new();
    for letter in template.split(' ') {
        let key = |family: &str, random: &mut Random| format!("{family}{}", random.below(KEYS));
        let word = match letter {
            family if FAMILIES.contains(&family) && random.below(16) > 0 => key(family, random),
            any if any == "K" || FAMILIES.contains(&any) => key(FAMILIES[random.below(FAMILIES.len())], random),
            other => other.replace('#', &random.below(40).to_string()),
        };
        line.push_str(&word);
        line.push(' ');
    }
    request(&line.trim_end().split(' ').collect::<Vec<_>>())
}

#[test]
fn windows_do_what_single_commands_do() {
    let templates: Vec<&str> = TEMPLATES.iter().chain(NEWER).flat_map(|line| line.split('|')).collect();
    let keys = FAMILIES.iter().flat_map(|family| (0..KEYS).map(move |number| format!("{family}{number}")));
    let digests: Vec<String> = ["DEBUG", "DIGEST-VALUE"].map(str::to_owned).into_iter().chain(keys).collect();
    for seed in 0..SEEDS {
        let mut random = Random::new(seed * 2 + 1);
        let server = Server::start();
        let mut client = server.connect();
        let worker = Worker::new(Arc::new(Instance::new(Arc::new(config(&[])), &TABLE)));
        let mut session = Session::new(Rc::new(worker));
        for _ in 0..PIPELINES {
            let mut commands: Vec<_> = (0..COMMANDS).map(|_| command(&mut random, &templates)).collect();
            commands.push(request(&digests));
            client.stream.write_all(&commands.concat()).unwrap();
            for command in commands {
                session.receive(&command);
                let alone = parse(&session.transmit()).unwrap().expect("a reply").0;
                assert_eq!(client.reply(), alone, "seed {seed}: {}", command.escape_ascii());
            }
        }
    }
}

#[test]
fn every_command_of_a_window_is_among_them() {
    let tested: BTreeSet<String> = TEMPLATES
        .iter()
        .chain(NEWER)
        .flat_map(|line| line.split('|'))
        .map(|template| template.split(' ').next().unwrap_or_default().to_lowercase())
        .collect();
    let missing: Vec<_> = REGISTRY
        .rows()
        .iter()
        .filter(|row| row.command.batch.0 <= row.command.batch.1 || row.command.batches_if_light)
        .filter(|row| !tested.contains(row.command.name))
        .map(|row| row.name())
        .collect();
    assert_eq!(missing, [""; 0]);
}

/// Replies hold very large strings without a copy, and a write meanwhile changes none of them, whether it comes in the same window or from
/// another client.
#[test]
fn replies_on_their_way_stay_as_they_were() {
    const SIZE: usize = 8 * 1024 * 1024;
    let server = Server::start();
    let mut client = server.connect();
    for (name, make) in [
        ("written", format!("SETRANGE written {} z", SIZE - 1)),
        ("set", format!("SET set {}z", "\0".repeat(SIZE - 1))),
    ] {
        client.ask(&make);
        let mut expected = vec![0; SIZE];
        expected[SIZE - 1] = b'z';
        let head = format!("${SIZE}\r\n");
        let reply = |string: &[u8]| [head.as_bytes(), string, b"\r\n"].concat();
        let words = [vec!["GET", name], vec!["SETRANGE", name, "0", "a"], vec!["APPEND", name, ""], vec!["GET", name]];
        client.stream.write_all(&words.map(|words| request(&words)).concat()).unwrap();
        let first = reply(&expected);
        expected[0] = b'a';
        let all = [&first[..], format!(":{SIZE}\r\n:{SIZE}\r\n").as_bytes(), &reply(&expected)].concat();
        let mut read = vec![0; all.len()];
        client.stream.read_exact(&mut read).unwrap();
        assert!(read == all, "{name}: in one window");
        // The reply has begun, and no socket holds all of it.
        client.send(&["GET", name]);
        let mut read = vec![0; head.len() + SIZE + 2];
        client.stream.read_exact(&mut read[..1]).unwrap();
        let mut other = server.connect();
        other.ask(&format!("SETBIT {name} {} 0", SIZE * 8 - 2));
        client.stream.read_exact(&mut read[1..]).unwrap();
        assert!(read == reply(&expected), "{name}: by another client");
        assert_eq!(other.ask(&format!("GETRANGE {name} -1 -1")), Value::Bulk(b"x".to_vec()));
    }
}
