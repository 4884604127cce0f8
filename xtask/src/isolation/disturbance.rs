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
    /// The action that is repeated until the run is over.
    pub(super) disturb: fn(&mut Client, usize, &AtomicBool) -> Result<()>,
}

const MILLION: usize = 1_000_000;

/// Most bytes that are sent before their replies are read.
const PIPE_PIECE: usize = 256 * 1024;

pub(super) static ALL: [Disturbance; 15] = [
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
];

const fn row(
    name: &'static str,
    size: usize,
    prepare: fn(&mut Client, usize) -> Result<()>,
    disturb: fn(&mut Client, usize, &AtomicBool) -> Result<()>,
) -> Disturbance {
    Disturbance { name, size, prepare, disturb }
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
