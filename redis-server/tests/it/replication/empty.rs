//! A primary that has started again without its data.

use super::*;

fn info(server: &Process, section: &str, name: &str) -> String {
    field(&ask(&mut server.connect(), &["INFO", section]), name)
}

/// Its replica keeps what it has and says so, until it is told to follow all the same.
#[test]
fn a_restarted_empty_primary_does_not_empty_its_replicas() {
    for load in ["disabled", "swapdb"] {
        let port = test_peers::free_port().to_string();
        let settings = [("port", &*port), ("save", ""), ("repl-diskless-sync-delay", "0")];
        let mut first = Process::start(&format!("emptied-{load}"), &settings);
        let target = format!("127.0.0.1 {port}");
        // Its first snapshot is empty too, and nothing to worry about.
        let replica = Process::start(
            &format!("guarded-{load}"),
            &[("replicaof", &target), ("save", ""), ("repl-diskless-load", load)],
        );
        until("the link is up", || info(&replica, "replication", "master_link_status") == "up");
        let mut client = first.connect();
        ask(&mut client, &["SET", "k", "v"]);
        assert_eq!(ask(&mut client, &["WAIT", "1", "20000"]), Value::Int(1));
        first.signal(Signal::KILL);
        first.ended();
        first.restart();
        until("it refuses", || replica.log().contains("the primary has started without data"));
        assert_eq!(info(&replica, "replication", "master_link_status"), "down");
        assert_eq!(ask(&mut replica.connect(), &["GET", "k"]), Value::Bulk(b"v".to_vec()));
        // A primary with data is followed at once.
        ask(&mut first.connect(), &["SET", "other", "v"]);
        until("the link is up", || info(&replica, "replication", "master_link_status") == "up");
        assert_eq!(ask(&mut replica.connect(), &["GET", "k"]), Value::NullBulk);
        // So is an empty one, where that is wanted.
        first.signal(Signal::KILL);
        first.ended();
        ask(&mut replica.connect(), &["CONFIG", "SET", "replica-refuse-empty-primary", "no"]);
        first.restart();
        until("it is empty", || {
            info(&replica, "replication", "master_link_status") == "up"
                && ask(&mut replica.connect(), &["DBSIZE"]) == Value::Int(0)
        });
    }
}
