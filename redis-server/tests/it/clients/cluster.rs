//! Cluster clients of other languages, which verify what they read, while redis-cli moves slots between our nodes and replicas take over.

use std::process::Command;
use std::thread;

use test_peers::{is_there, printed};

use super::languages::{GO, JS, PYTHON};
use crate::cluster::{Node, conversation};
use crate::support::until;

/// Three primaries with a third of the slots each, and a replica of each behind them.
fn six() -> Vec<Node> {
    let nodes: Vec<Node> = (0..6).map(|at| Node::start(&format!("cluster-clients-{at}"), &[])).collect();
    for (node, range) in nodes.iter().zip(["0 5460", "5461 10922", "10923 16383"]) {
        node.ask(&format!("CLUSTER ADDSLOTSRANGE {range}"));
    }
    nodes[1..].iter().for_each(|node| nodes[0].meets(node));
    let all = |text: &str| nodes.iter().all(|node| node.says("CLUSTER INFO", text));
    until("all know each other", || all("cluster_known_nodes:6"));
    until("all serve", || all("cluster_state:ok"));
    for at in 0..3 {
        nodes[at + 3].ask(&format!("CLUSTER REPLICATE {}", nodes[at].id()));
    }
    until("the replicas follow", || {
        nodes[3..].iter().all(|node| node.says("INFO replication", "master_link_status:up"))
    });
    until("the primaries know", || nodes[..3].iter().all(|node| node.says("CLUSTER NODES", "slave")));
    nodes
}

fn reshard(through: &Node, from: &Node, to: &Node, slots: &str) {
    let mut redis_cli = Command::new("redis-cli");
    redis_cli.args(["--cluster", "reshard", &format!("127.0.0.1:{}", through.port), "--cluster-yes"]);
    redis_cli.args(["--cluster-from", &from.id(), "--cluster-to", &to.id(), "--cluster-slots", slots]);
    let _moved = printed(&redis_cli);
}

/// A replica takes its primary's place as it is asked to.
fn change_places(replica: &Node) {
    conversation(replica, &[("CLUSTER FAILOVER", "OK")]);
    until("it has taken over", || replica.says("INFO replication", "role:master"));
}

#[test]
fn cluster_clients_follow_slots_and_primaries() {
    if !is_there("redis-cli") {
        return;
    }
    let python = PYTHON.installed().map(|folder| (folder.join("venv/bin/python"), vec!["cluster.py"], folder));
    let go = GO.installed().map(|folder| (folder.join("peer"), vec!["cluster"], folder));
    let js = JS.installed().map(|folder| ("node".into(), vec!["cluster.js"], folder));
    let clients: Vec<_> = [python, go, js].into_iter().flatten().collect();
    if clients.is_empty() {
        return;
    }
    let nodes = six();
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
        change_places(&nodes[4]);
        reshard(&nodes[2], &nodes[4], &nodes[0], "200");
        change_places(&nodes[1]);
        change_places(&nodes[5]);
        reshard(&nodes[0], &nodes[5], &nodes[1], "100");
        let set = ["-c", "-p", &nodes[0].port, "SET", "done", "1"];
        assert_eq!(printed(Command::new("redis-cli").args(set)).trim(), "OK");
        for client in running {
            let said = client.join().unwrap();
            assert!(said.lines().last().is_some_and(|line| line.starts_with("ok, ")), "{said}");
        }
    });
}
