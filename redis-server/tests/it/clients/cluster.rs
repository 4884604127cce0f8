//! Cluster clients of other languages, which verify what they read, while redis-cli moves slots between our nodes, and genuine ones, and
//! replicas take over.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use test_peers::{is_there, printed, run_within};

use super::languages::{GO, JS, PYTHON};
use crate::cluster::{Node, conversation};
use crate::support::resp::Value;
use crate::support::server::Server;
use crate::support::{until, within};

/// For what nodes tell each other, whose turn to speak may come late on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// So many nodes that know each other, of which those are genuine ones that `is_genuine` says; the first three have a third of the
/// slots each.
fn nodes(name: &str, count: usize, is_genuine: fn(usize) -> bool) -> Vec<Node> {
    let start = |at| {
        let name = format!("{name}-{at}");
        if is_genuine(at) { Node::genuine(&name) } else { Node::start(&name, &[]) }
    };
    let nodes: Vec<Node> = (0..count).map(start).collect();
    for (node, range) in nodes.iter().zip(["0 5460", "5461 10922", "10923 16383"]) {
        node.ask(&format!("CLUSTER ADDSLOTSRANGE {range}"));
    }
    nodes[1..].iter().for_each(|node| nodes[0].meets(node));
    let all = |text: &str| nodes.iter().all(|node| node.says("CLUSTER INFO", text));
    until("all know each other", || all(&format!("cluster_known_nodes:{count}")));
    until("all serve", || all("cluster_state:ok"));
    nodes
}

/// A replica behind each of the three.
fn six(name: &str, is_genuine: fn(usize) -> bool) -> Vec<Node> {
    let nodes = nodes(name, 6, is_genuine);
    for at in 0..3 {
        nodes[at + 3].ask(&format!("CLUSTER REPLICATE {}", nodes[at].id()));
    }
    let is_up = |node: &Node| node.says("INFO replication", "master_link_status:up");
    until("the replicas follow", || nodes[3..].iter().all(is_up));
    until("the primaries know", || nodes[..3].iter().all(|node| node.says("CLUSTER NODES", "slave")));
    nodes
}

/// The output of `redis-cli --cluster`.
fn manage(words: &[&str]) -> String {
    printed(Command::new("redis-cli").arg("--cluster").args(words).arg("--cluster-yes"))
}

/// Waits until redis-cli finds that all nodes see the same owners of all slots: it moves none before.
fn agree(through: &Node) {
    let check = || run_within(60, Command::new("redis-cli").args(["--cluster", "check", &through.addr()])).unwrap();
    within(LONG, "all nodes agree", || check().status.success());
}

fn reshard(through: &Node, from: &Node, to: &Node, slots: &str) {
    agree(through);
    let moves = ["--cluster-from", &from.id(), "--cluster-to", &to.id(), "--cluster-slots", slots];
    manage(&[&["reshard", &through.addr()][..], &moves].concat());
}

/// A replica takes its primary's place as it is asked to, and all hear of it.
fn change_places(nodes: &[Node], replica: usize) {
    let mut asked: Option<Instant> = None;
    within(LONG, "it has taken over", || {
        // It ends after five seconds if the primary's answer comes too late.
        if asked.is_none_or(|asked| asked.elapsed() > Duration::from_secs(6)) {
            conversation(&nodes[replica], &[("CLUSTER FAILOVER", "OK")]);
            asked = Some(Instant::now());
        }
        nodes[replica].says("INFO replication", "role:master")
    });
    agree(&nodes[replica]);
}

#[test]
fn cluster_clients_follow_slots_and_primaries() {
    slots_and_primaries_move("cluster-clients", |_| false);
}

/// Primaries of ours have genuine replicas, and the other way round.
#[test]
fn cluster_clients_follow_among_genuine_nodes() {
    slots_and_primaries_move("cluster-mixed", |at| [1, 3, 5].contains(&at));
}

#[test]
fn cluster_clients_follow_between_genuine_nodes() {
    slots_and_primaries_move("cluster-mixed-too", |at| [0, 2, 4].contains(&at));
}

fn slots_and_primaries_move(name: &str, is_genuine: fn(usize) -> bool) {
    if !is_there("redis-cli") || !is_there("redis-server") {
        return;
    }
    let python = PYTHON.installed().map(|folder| (folder.join("venv/bin/python"), vec!["cluster.py"], folder));
    let go = GO.installed().map(|folder| (folder.join("peer"), vec!["cluster"], folder));
    let js = JS.installed().map(|folder| ("node".into(), vec!["cluster.js"], folder));
    let clients: Vec<_> = [python, go, js].into_iter().flatten().collect();
    if clients.is_empty() {
        return;
    }
    let nodes = six(name, is_genuine);
    thread::scope(|scope| {
        let running: Vec<_> = clients
            .iter()
            .map(|(program, script, folder)| {
                let mut command = Command::new(program);
                command.args(script).arg(&nodes[0].port).current_dir(folder);
                scope.spawn(move || printed(&command))
            })
            .collect();
        reshard(&nodes[2], &nodes[0], &nodes[1], "100");
        change_places(&nodes, 4);
        reshard(&nodes[2], &nodes[4], &nodes[0], "200");
        change_places(&nodes, 1);
        change_places(&nodes, 5);
        reshard(&nodes[0], &nodes[5], &nodes[1], "100");
        let set = ["-c", "-p", &nodes[0].port, "SET", "done", "1"];
        assert_eq!(printed(Command::new("redis-cli").args(set)).trim(), "OK");
        for client in running {
            let said = client.join().unwrap();
            assert!(said.lines().last().is_some_and(|line| line.starts_with("ok, ")), "{said}");
        }
    });
}

/// Data comes from a server alone, goes into files that a genuine tool finds sound, and a slot that nobody has is given to somebody.
#[test]
fn redis_cli_imports_backs_up_and_fixes() {
    if !is_there("redis-cli") || !is_there("redis-check-rdb") {
        return;
    }
    let nodes = nodes("cluster-tools", 3, |_| false);
    let alone = Server::start();
    let mut client = alone.connect();
    for number in 0..300 {
        client.ask(&format!("SET key:{number} {number}"));
    }
    client.ask("RPUSH list a b");
    let source = alone.addr.to_string();
    manage(&["import", &nodes[0].addr(), "--cluster-from", &source]);
    assert_eq!(client.ask("DBSIZE"), Value::Int(0));
    let sizes = nodes.iter().map(|node| node.ask("DBSIZE").text().parse::<usize>().unwrap());
    assert_eq!(sizes.sum::<usize>(), 301);

    let folder = std::env::temp_dir().join(format!("cluster-backup-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    manage(&["backup", &nodes[1].addr(), folder.to_str().unwrap()]);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let snapshots: Vec<_> = files.iter().filter(|path| path.extension().is_some_and(|end| end == "rdb")).collect();
    assert_eq!(snapshots.len(), 3, "{files:?}");
    for snapshot in snapshots {
        assert!(printed(Command::new("redis-check-rdb").arg(snapshot)).contains("RDB looks OK"));
    }
    fs::remove_dir_all(&folder).unwrap();

    conversation(&nodes[1], &[("CLUSTER DELSLOTS 6000", "OK")]);
    // It ends with 1 as long as, or because, it has found something; it asks whatever the flags say.
    let say = |what: &str| {
        let line = format!("echo yes | redis-cli --cluster {what} {}", nodes[0].addr());
        String::from_utf8(run_within(60, Command::new("sh").args(["-c", &line])).unwrap().stdout).unwrap()
    };
    let fixed = say("fix");
    assert!(fixed.contains("[6000]"), "{fixed}");
    until("all slots are served", || say("check").contains("All 16384 slots covered"));
}
