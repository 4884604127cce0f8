//! The actions of the one more client.

use std::net::TcpListener;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::client::{Client, request};

/// Something that takes long.
pub(super) struct Disturbance {
    pub(super) name: &'static str,
    /// Elements, keys or bytes.
    pub(super) size: usize,
    /// The state before.
    pub(super) prepare: fn(&mut Client, usize) -> Result<()>,
    /// True if a server of Redis 7.0 without modules has the commands.
    pub(super) is_common: bool,
    /// The action that is repeated until the run is over.
    pub(super) disturb: fn(&mut Client, usize, &AtomicBool) -> Result<()>,
}

const MILLION: usize = 1_000_000;
const MIB: usize = 1 << 20;
/// Requests of a pipeline whose replies are long, or long in coming.
const PIPELINED: usize = 16;
/// Numbers of a vector.
const DIMENSIONS: usize = 32;

/// Most bytes that are sent before their replies are read.
const PIPE_PIECE: usize = 256 * 1024;

pub(super) static ALL: [Disturbance; 27] = [
    row(
        "nobody",
        1,
        |_, _| Ok(()),
        |_, _, _| {
            thread::sleep(Duration::from_millis(100));
            Ok(())
        },
    ),
    row("KEYS * of 5 M keys", 5 * MILLION, keys, |client, _, _| client.ask(&["KEYS", "*"])),
    row("SORT of 1 M elements", MILLION, list, |client, _, _| client.ask(&["SORT", "list"])),
    row("LRANGE of 1 M elements", MILLION, list, |client, _, _| client.ask(&["LRANGE", "list", "0", "-1"])),
    row("SMEMBERS of 1 M members", MILLION, set, |client, _, _| client.ask(&["SMEMBERS", "set"])),
    row("ZUNIONSTORE of 1 M members", MILLION, sorted_set, |client, _, _| {
        client.ask(&["ZUNIONSTORE", "sorted:target", "1", "sorted"])
    }),
    row("DEL of a set of 5 M", 5 * MILLION, nothing, |client, size, _| {
        set(client, size)?;
        client.ask(&["DEL", "set"])
    }),
    row("SET over a set of 5 M", 5 * MILLION, nothing, |client, size, _| {
        set(client, size)?;
        client.ask(&["SET", "set", "x"])?;
        client.ask(&["DEL", "set"])
    }),
    row("expiry of a set of 5 M", 5 * MILLION, nothing, |client, size, _| {
        set(client, size)?;
        client.ask(&["PEXPIRE", "set", "1"])?;
        thread::sleep(Duration::from_millis(300));
        Ok(())
    }),
    row("FLUSHALL of 5 M keys", 5 * MILLION, nothing, |client, size, _| {
        new_keys(client, size)?;
        client.ask(&["FLUSHALL"])
    }),
    row("MGET of 100 k keys", 100_000, keys, |client, size, _| {
        let names: Vec<String> = (0..size).map(|i| format!("key:{i}")).collect();
        let words: Vec<&[u8]> =
            std::iter::once("MGET").chain(names.iter().map(String::as_str)).map(str::as_bytes).collect();
        client.pipeline(&request(&words), 1)
    }),
    row("EVAL of 1 s", 1, nothing, |client, _, _| {
        const SCRIPT: &str = "local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end \
            local start = now() while now() - start < 1000 do end";
        client.ask(&["EVAL", SCRIPT, "0"])?;
        // One behind the other they leave each client one command a second, whatever the server.
        thread::sleep(Duration::from_secs(1));
        Ok(())
    }),
    row("--pipe of 1 GB", 1 << 30, nothing, pipe),
    row("growth from 0 to 10 M keys", 10 * MILLION, nothing, |client, size, _| {
        new_keys(client, size)?;
        client.ask(&["FLUSHALL", "ASYNC"])
    }),
    row(
        "MIGRATE to a dead host",
        1,
        |client, _| client.ask(&["SET", "moving", "x"]),
        |client, _, _| {
            static HOLE: OnceLock<Option<TcpListener>> = OnceLock::new();
            let hole = HOLE.get_or_init(|| TcpListener::bind("127.0.0.1:0").ok()).as_ref();
            let port = hole.and_then(|hole| hole.local_addr().ok()).map_or(9, |addr| addr.port()).to_string();
            client.ask(&["MIGRATE", "127.0.0.1", &port, "moving", "0", "1000"])
        },
    ),
    row("SET over a string of 512 MB", 512 * MIB, nothing, |client, size, _| {
        string(client, size)?;
        client.ask(&["SET", "string", "x"])
    }),
    row("HSET of a value of 100 MB", 100 * MIB, nothing, |client, size, _| {
        client.pipeline(&request(&[b"HSET", b"hash", b"field", &vec![b'x'; size]]), 1)
    }),
    row("GET of a string of 512 MB", 512 * MIB, string, |client, _, _| client.ask(&["GET", "string"])),
    row("GETs of a string of 100 MB", 100 * MIB, string, |client, _, _| {
        client.pipeline(&request(&[b"GET", b"string"]).repeat(PIPELINED), PIPELINED)
    }),
    row("PFCOUNT of 2,000 keys", 2000, counters, |client, size, _| {
        let names: Vec<String> = (0..size).map(|i| format!("counter:{i}")).collect();
        let words: Vec<&str> = std::iter::once("PFCOUNT").chain(names.iter().map(String::as_str)).collect();
        client.ask(&words)
    }),
    row("CLIENT LIST of 3,000 clients", 3000, Client::bring, |client, _, _| client.ask(&["CLIENT", "LIST"])),
    row("EVALs of 300 calls, 16 pipelined", 300, nothing, |client, size, _| {
        let script = format!("for i = 1, {size} do redis.call('INCR', KEYS[1]) end");
        client.pipeline(&request(&[b"EVAL", script.as_bytes(), b"1", b"counter"]).repeat(PIPELINED), PIPELINED)
    }),
    search("FT.AGGREGATE over 1 M documents", MILLION, documents, |client, _, _| {
        client.ask(&[
            "FT.AGGREGATE",
            "index",
            "*",
            "GROUPBY",
            "1",
            "@tag",
            "REDUCE",
            "AVG",
            "1",
            "@number",
            "AS",
            "mean",
        ])
    }),
    search("FT.SEARCH with SORTBY over 1 M", MILLION, documents, |client, _, _| {
        client.ask(&["FT.SEARCH", "index", "@number:[0 inf]", "SORTBY", "number", "DESC", "LIMIT", "0", "10"])
    }),
    search("KNN over 1 M vectors, FLAT", MILLION, vectors, |client, _, _| {
        let query = [0u8; 4 * DIMENSIONS];
        let words: [&[u8]; 8] =
            [b"FT.SEARCH", b"index", b"*=>[KNN 10 @vector $query]", b"PARAMS", b"2", b"query", &query, b"NOCONTENT"];
        client.pipeline(&request(&[&words[..], &[b"DIALECT", b"2"]].concat()), 1)
    }),
    search("FT.CREATE over 5 M keys", 5 * MILLION, hashes, |client, _, _| {
        create(client, &["number", "NUMERIC"])?;
        thread::sleep(Duration::from_secs(1));
        client.ask(&["FT.DROPINDEX", "index"])
    }),
    search("FT.DROPINDEX DD of 100 k keys", 100_000, nothing, |client, size, _| {
        documents(client, size)?;
        client.ask(&["FT.DROPINDEX", "index", "DD"])
    }),
];

const fn row(
    name: &'static str,
    size: usize,
    prepare: fn(&mut Client, usize) -> Result<()>,
    disturb: fn(&mut Client, usize, &AtomicBool) -> Result<()>,
) -> Disturbance {
    Disturbance { name, size, prepare, is_common: true, disturb }
}

/// One whose commands search.
const fn search(
    name: &'static str,
    size: usize,
    prepare: fn(&mut Client, usize) -> Result<()>,
    disturb: fn(&mut Client, usize, &AtomicBool) -> Result<()>,
) -> Disturbance {
    Disturbance { is_common: false, ..row(name, size, prepare, disturb) }
}

fn nothing(_: &mut Client, _: usize) -> Result<()> {
    Ok(())
}

fn keys(client: &mut Client, size: usize) -> Result<()> {
    client.ask(&["DEBUG", "POPULATE", &size.to_string(), "key", "100"])
}

fn list(client: &mut Client, size: usize) -> Result<()> {
    // In no order, so that SORT has to make one.
    client.fill(&["RPUSH", "list"], size, |i| vec![(i.wrapping_mul(2_654_435_761) % size).to_string().into_bytes()])
}

fn set(client: &mut Client, size: usize) -> Result<()> {
    client.fill(&["SADD", "set"], size, |i| vec![format!("member:{i}").into_bytes()])
}

fn sorted_set(client: &mut Client, size: usize) -> Result<()> {
    client.fill(&["ZADD", "sorted"], size, |i| vec![i.to_string().into_bytes(), format!("member:{i}").into_bytes()])
}

fn string(client: &mut Client, size: usize) -> Result<()> {
    client.ask(&["SETRANGE", "string", &(size - 1).to_string(), "x"])
}

/// HyperLogLogs that are dense.
fn counters(client: &mut Client, size: usize) -> Result<()> {
    let element = |i: usize| i.to_string().into_bytes();
    client.fill(&["PFADD", "counter:0"], 20_000, |i| vec![element(i)])?;
    client.each("PFMERGE", size, |i| vec![format!("counter:{i}").into_bytes(), b"counter:0".to_vec()])
}

fn create(client: &mut Client, fields: &[&str]) -> Result<()> {
    client.ask(&[&["FT.CREATE", "index", "PREFIX", "1", "doc:", "SCHEMA"], fields].concat())
}

/// Documents with a number and one of a hundred tags.
fn hashes(client: &mut Client, size: usize) -> Result<()> {
    client.each("HSET", size, |i| {
        let (number, tag) = (i.wrapping_mul(2_654_435_761) % size, format!("tag{}", i % 100));
        [format!("doc:{i}"), "number".to_owned(), number.to_string(), "tag".to_owned(), tag]
            .map(String::into_bytes)
            .into()
    })
}

fn documents(client: &mut Client, size: usize) -> Result<()> {
    create(client, &["number", "NUMERIC", "SORTABLE", "tag", "TAG", "SORTABLE"])?;
    hashes(client, size)
}

fn vectors(client: &mut Client, size: usize) -> Result<()> {
    let dimensions = DIMENSIONS.to_string();
    let vector = ["vector", "VECTOR", "FLAT", "6", "TYPE", "FLOAT32", "DIM", &dimensions, "DISTANCE_METRIC", "L2"];
    create(client, &vector)?;
    client.each("HSET", size, |i| {
        let numbers = (0..DIMENSIONS).flat_map(|place| ((i * (place + 1) % 997) as f32).to_le_bytes());
        vec![format!("doc:{i}").into_bytes(), b"vector".to_vec(), numbers.collect()]
    })
}

fn new_keys(client: &mut Client, size: usize) -> Result<()> {
    client.fill(&["MSET"], size, |i| vec![format!("new:{i}").into_bytes(), b"a value of twenty b.".to_vec()])
}

/// `redis-cli --pipe`: commands are sent as fast as the server takes them.
fn pipe(client: &mut Client, size: usize, over: &AtomicBool) -> Result<()> {
    let value = [b'v'; 100];
    let mut sent = 0;
    let mut key = 0usize;
    while sent < size && !over.load(Relaxed) {
        let (mut bytes, mut commands) = (Vec::with_capacity(PIPE_PIECE), 0);
        while bytes.len() < PIPE_PIECE {
            key = (key + 1) % MILLION;
            bytes.extend(request(&[b"SET", format!("pipe:{key}").as_bytes(), &value]));
            commands += 1;
        }
        sent += bytes.len();
        client.pipeline(&bytes, commands)?;
    }
    Ok(())
}
