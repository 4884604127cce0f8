//! RedisShake copies a server's data to another, as a replica or by SCAN, and follows the changes. `REDIS_SHAKE_REPOSITORY` names a git
//! repository of it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use test_peers::{Kit, kit};

use super::applications::{Running, folder_for};
use crate::support::genuine::Genuine;
use crate::support::resp::Value;
use crate::support::server::{Client, Server};

const SHAKE: Kit = kit! {
    name: "redis-shake",
    sources: &["tests/peers/shake"],
    programs: &["go", "git"],
    install: "sh install.sh",
};

/// Every type of Redis 7.0, in forms that are saved in their own ways, and in two databases.
const DATA: &[&str] = &[
    "SET text value",
    "SET number 12345",
    "SET lasts v PXAT 2000000005000",
    "SETRANGE large 100000 x",
    "PFADD hll a b c d",
    "RPUSH list a 1 2 3 -5",
    "EVAL for~i=1,3000~do~redis.call('RPUSH','long-list',i)~end 0",
    "SADD integers 1 2 300 70000",
    "SADD words a b c",
    "HSET hash f v g 12",
    "EVAL for~i=1,1000~do~redis.call('HSET','large-hash',i,i*i)~end 0",
    "ZADD zset 1 a 2.5 b inf c",
    "EVAL for~i=1,1000~do~redis.call('ZADD','large-zset',i/2,i)~end 0",
    "XADD stream 1-1 f v",
    "XADD stream 1-2 f w g x",
    "XADD stream 2-1 f v",
    "XDEL stream 1-2",
    "XGROUP CREATE stream group 0",
    "XREADGROUP GROUP group consumer COUNT 1 STREAMS stream >",
    "SELECT 3",
    "SET elsewhere v",
    "SELECT 0",
];

/// Changes while RedisShake follows.
const CHANGES: &[&str] = &[
    "APPEND text more",
    "DEL number",
    "LPUSH list b",
    "EVAL redis.call('SET','by-script',1)~redis.call('INCR','by-script') 0",
    "MULTI",
    "SADD words d",
    "HINCRBY hash g 5",
    "EXEC",
    "XADD stream 3-1 f v",
    "XACK stream group 1-1",
    "SELECT 3",
    "RENAME elsewhere there",
    "SELECT 0",
    "ZPOPMIN zset",
];

/// How often, and for how long, the test waits for the copy.
const WAITS: u32 = 150;
const WAIT: Duration = Duration::from_millis(100);

/// Runs lines in which `~` stands for a space inside of a word.
fn run(client: &mut Client, lines: &[&str]) {
    for line in lines {
        let words: Vec<_> = line.split(' ').map(|word| word.replace('~', " ")).collect();
        client.send(&words);
        let reply = client.reply();
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
}

/// All keys with what is known of them.
fn picture(client: &mut Client) -> Vec<String> {
    let mut lines = Vec::new();
    for database in ["0", "3"] {
        client.ask(&format!("SELECT {database}"));
        let Value::Array(keys) = client.ask("KEYS *") else { panic!("KEYS: an array") };
        for key in keys.iter().map(Value::text) {
            let Value::Int(expires) = client.ask(&format!("PEXPIRETIME {key}")) else { panic!("a moment") };
            // It is passed on as the time that is left.
            let expires = expires.div_euclid(10_000);
            let [kind, digest] = ["TYPE", "DEBUG DIGEST-VALUE"].map(|words| client.ask(&format!("{words} {key}")));
            let Value::Array(digest) = digest else { panic!("a list of digests") };
            lines.push(format!("{database} {key} {} {expires} {}", kind.text(), digest[0].text()));
        }
    }
    client.ask("SELECT 0");
    lines.sort();
    lines
}

/// The folder of a run, whose log is shown if the test fails.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.0.join("shake.log")).unwrap_or_default());
        }
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies by this reader of RedisShake, and compares; `follows` says whether later changes arrive, too.
fn copy(folder: &Path, reader: &str, follows: bool, source: SocketAddr, target: SocketAddr) {
    let own = Folder(folder_for("redis-shake"));
    let config = format!(
        "[{reader}]\naddress = \"{source}\"\n[redis_writer]\naddress = \"{target}\"\n[advanced]\ndir = \"{}\"\n",
        own.0.display()
    );
    fs::write(own.0.join("shake.toml"), config).unwrap();
    let [mut from, mut to] = [source, target].map(Client::connect);
    run(&mut from, DATA);
    let mut shake = Command::new(folder.join("redis-shake"));
    shake.arg(own.0.join("shake.toml")).current_dir(&own.0);
    let running = Running::start(shake);
    let mut arrived = |from: &mut Client, what: &str| {
        let expected = picture(from);
        let mut got = Vec::new();
        for _ in 0..WAITS {
            got = picture(&mut to);
            if got == expected {
                break;
            }
            std::thread::sleep(WAIT);
        }
        assert_eq!(got, expected, "{what}");
        println!("{reader} from {source} to {target}: {} keys are the same, {what}", expected.len());
    };
    arrived(&mut from, "what was there");
    if follows {
        run(&mut from, CHANGES);
        arrived(&mut from, "with the changes");
    }
    // Before its folder goes.
    drop(running);
}

#[test]
fn redis_shake_copies_both_ways() {
    if std::env::var_os("REDIS_SHAKE_REPOSITORY").is_none() {
        println!("skipped: REDIS_SHAKE_REPOSITORY names no git repository of RedisShake");
        return;
    }
    let Some(folder) = SHAKE.installed() else { return };
    for (reader, follows) in [("sync_reader", true), ("scan_reader", false)] {
        for is_source in [true, false] {
            let server = Server::with(&[("repl-diskless-sync-delay", "0"), ("enable-debug-command", "yes")]);
            let settings = [("repl-diskless-sync-delay".to_owned(), "0".to_owned())];
            let Some(mut genuine) = Genuine::start(&settings) else { return };
            let there = genuine.listen();
            let (source, target) = if is_source { (server.addr, there) } else { (there, server.addr) };
            copy(&folder, reader, follows, source, target);
        }
    }
}
