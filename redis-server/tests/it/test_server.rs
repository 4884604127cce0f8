//! The server that other projects' tests have in their process.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use redis_server::test::Server;
use test_peers::printed;

use super::clients::languages::RUST;
use super::support::process::try_ask;
use super::support::resp::Value;
use super::support::server::Client;

fn connect(server: &Server) -> Client {
    Client::connect(server.addr())
}

/// The text of a bulk string.
fn text(value: Value) -> String {
    let Value::Bulk(bytes) = value else { panic!("{value:?} is no bulk string") };
    String::from_utf8(bytes).unwrap()
}

/// The texts of a setting's name and value.
fn setting(client: &mut Client, name: &str) -> Vec<String> {
    let reply = client.ask(&format!("CONFIG GET {name}"));
    let Value::Array(values) = reply else { panic!("{reply:?} is no array") };
    values.into_iter().map(text).collect()
}

#[test]
fn servers_side_by_side_share_nothing() {
    let servers = [Server::start(), Server::start()];
    let [mut one, mut other] = servers.each_ref().map(connect);
    assert_eq!(one.ask("SET key value"), Value::Status("OK".into()));
    assert_eq!(text(one.ask("GET key")), "value");
    assert_eq!(other.ask("GET key"), Value::NullBulk);
}

#[test]
fn settings_are_those_of_redis_conf() {
    let server = Server::with(&[("requirepass", "secret"), ("maxmemory", "10mb")]).unwrap();
    let mut client = connect(&server);
    let Value::Error(refused) = client.ask("GET key") else { panic!("a password is asked for") };
    assert!(refused.starts_with(b"NOAUTH "), "{}", refused.escape_ascii());
    assert_eq!(client.ask("AUTH secret"), Value::Status("OK".into()));
    assert_eq!(setting(&mut client, "maxmemory"), ["maxmemory", "10485760"]);
}

/// The redis crate runs the README's example with the server's URL, without and with a password.
#[test]
fn the_readme_s_example_runs() {
    let readme = include_str!("../../README.md");
    let (_, example) = readme.split_once("```rust,ignore\n").unwrap();
    let (example, _) = example.split_once("\n```").unwrap();
    let (start, client) = example.split_once('\n').unwrap();
    assert!(start.starts_with("let server = redis_server::test::Server::start();"), "{start}");
    let program: Vec<_> = include_str!("../peers/rust/src/readme.rs").lines().map(str::trim).collect();
    let client: Vec<_> = client.lines().collect();
    assert!(
        program.windows(client.len()).any(|lines| lines == client),
        "tests/peers/rust/src/readme.rs lacks {client:?}"
    );
    let Some(folder) = RUST.installed() else { return };
    let runs = |url: &str| {
        let said = printed(Command::new(folder.join("target/debug/peer")).args(["readme", url]));
        assert_eq!(said, "ok\n");
    };
    runs(&Server::start().url());
    let server = Server::with(&[("maxmemory", "10mb"), ("requirepass", "secret")]).unwrap();
    runs(&server.url().replace("redis://", "redis://:secret@"));
}

#[test]
fn invalid_settings_return_descriptive_errors() {
    let check = |settings: &[(&str, &str)], parts: &[&str]| {
        let error = Server::with(settings).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{error} lacks {part}");
        }
    };
    check(&[("maxmemmory", "1")], &["maxmemmory", "maxmemory"]);
    check(&[("maxclients", "many")], &["maxclients", "many"]);
}

#[test]
fn a_dropped_server_has_ended() {
    let server = Server::start();
    let addr = server.addr();
    let mut client = TcpStream::connect(addr).unwrap();
    assert_eq!(try_ask(&mut client, &["PING"]).unwrap(), Value::Status("PONG".into()));
    drop(server);
    assert!(try_ask(&mut client, &["SET", "key", "value"]).is_err(), "its connections are cut");
    drop(TcpListener::bind(addr).unwrap());
}

#[test]
fn a_cluster_s_node_leaves_nothing_behind() {
    let bus = test_peers::free_port().to_string();
    let server = Server::with(&[("cluster-enabled", "yes"), ("cluster-port", &bus)]).unwrap();
    let mut client = connect(&server);
    assert_eq!(client.ask("CLUSTER ADDSLOTSRANGE 0 16383"), Value::Status("OK".into()));
    let file = setting(&mut client, "cluster-config-file");
    let file = Path::new(&file[1]);
    assert!(file.is_file() && file.parent() != Some(Path::new("")), "{file:?} is in a folder of its own");
    drop(server);
    assert!(!file.parent().unwrap().exists());
}
