//! The server that other projects' tests have in their process.

use std::net::TcpListener;
use std::path::Path;

use redis::Commands as _;
use redis_server::test::Server;

fn connect(server: &Server) -> redis::Connection {
    redis::Client::open(server.url()).unwrap().get_connection().unwrap()
}

#[test]
fn servers_side_by_side_share_nothing() {
    let servers = [Server::start(), Server::start()];
    let [mut one, mut other] = servers.each_ref().map(connect);
    let () = one.set("key", "value").unwrap();
    assert_eq!(one.get::<_, Option<String>>("key").unwrap().as_deref(), Some("value"));
    assert_eq!(other.get::<_, Option<String>>("key").unwrap(), None);
}

#[test]
fn settings_are_those_of_redis_conf() {
    let server = Server::with(&[("requirepass", "secret"), ("maxmemory", "10mb")]).unwrap();
    let refused = redis::Client::open(server.url()).unwrap().get_connection().unwrap().get::<_, Option<String>>("key");
    assert!(refused.unwrap_err().to_string().contains("NOAUTH"), "a password is asked for");
    let url = server.url().replace("redis://", "redis://:secret@");
    let mut client = redis::Client::open(url).unwrap().get_connection().unwrap();
    let memory: Vec<String> = redis::cmd("CONFIG").arg("GET").arg("maxmemory").query(&mut client).unwrap();
    assert_eq!(memory, ["maxmemory", "10485760"]);
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
    let mut client = connect(&server);
    drop(server);
    assert!(client.set::<_, _, ()>("key", "value").is_err(), "its connections are cut");
    drop(TcpListener::bind(addr).unwrap());
}

#[test]
fn a_cluster_s_node_leaves_nothing_behind() {
    let bus = test_peers::free_port().to_string();
    let server = Server::with(&[("cluster-enabled", "yes"), ("cluster-port", &bus)]).unwrap();
    let mut client = connect(&server);
    let () = redis::cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(0).arg(16383).query(&mut client).unwrap();
    let file: Vec<String> = redis::cmd("CONFIG").arg("GET").arg("cluster-config-file").query(&mut client).unwrap();
    let file = Path::new(&file[1]);
    assert!(file.is_file() && file.parent() != Some(Path::new("")), "{file:?} is in a folder of its own");
    drop(server);
    assert!(!file.parent().unwrap().exists());
}
