//! WAITAOF, and snapshots for who wants nothing else.

use super::*;

/// Both sides report their synced data: a genuine 7.0 does not report its own.
#[test]
fn waitaof_counts_disks() {
    let first = Process::start(
        "waitaof-primary",
        &[
            ("port", &test_peers::free_port().to_string()),
            ("save", ""),
            ("appendonly", "yes"),
            ("repl-diskless-sync-delay", "0"),
        ],
    );
    let port = field(&ask(&mut first.connect(), &["INFO", "server"]), "tcp_port");
    let target = format!("127.0.0.1 {port}");
    let kept = Process::start("waitaof-kept", &[("replicaof", &target), ("save", ""), ("appendonly", "yes")]);
    let unkept = Process::start("waitaof-unkept", &[("replicaof", &target), ("save", "")]);
    let link = |server: &Process| field(&ask(&mut server.connect(), &["INFO", "replication"]), "master_link_status");
    until("the links are up", || link(&kept) == "up" && link(&unkept) == "up");
    until("the replica's file is there", || {
        let info = ask(&mut kept.connect(), &["INFO", "persistence"]);
        field(&info, "aof_enabled") == "1" && field(&info, "aof_rewrite_in_progress") == "0"
    });
    let both = |here: i64, there: i64| Value::Array(vec![Value::Int(here), Value::Int(there)]);
    let mut client = first.connect();
    for _ in 0..3 {
        ask(&mut client, &["INCR", "counter"]);
        let reply = ask(&mut client, &["WAITAOF", "1", "0", "20000"]);
        assert!(matches!(&reply, Value::Array(counts) if counts[0] == Value::Int(1)), "{reply:?}");
    }
    ask(&mut client, &["INCR", "counter"]);
    assert_eq!(ask(&mut client, &["WAITAOF", "1", "1", "20000"]), both(1, 1));
    assert_eq!(ask(&mut client, &["WAITAOF", "0", "2", "300"]), both(1, 1), "one of the replicas keeps nothing");
    assert_eq!(ask(&mut client, &["WAIT", "2", "20000"]), Value::Int(2));
    let mut there = unkept.connect();
    for (words, error) in [
        (["WAITAOF", "2", "0", "0"], "ERR value is out of range, value must between 0 and 1"),
        (["WAITAOF", "0", "-1", "0"], "ERR value is out of range, must be positive"),
        (["WAITAOF", "0", "0", "-1"], "ERR timeout is negative"),
    ] {
        assert_eq!(ask(&mut client, &words), Value::Error(error.into()));
    }
    let refused = |reply: Value| matches!(reply, Value::Error(text) if text.starts_with(b"ERR WAIT"));
    assert!(refused(ask(&mut there, &["WAITAOF", "0", "0", "0"])));
    assert!(refused(ask(&mut there, &["WAIT", "0", "0"])));
    ask(&mut client, &["CONFIG", "SET", "appendonly", "no"]);
    assert!(refused(ask(&mut client, &["WAITAOF", "1", "0", "0"])));
}

/// `redis-cli --rdb` and `--functions-rdb` get what a genuine server loads.
#[test]
fn redis_cli_fetches_snapshots() {
    let first = primary(&[]);
    let mut client = first.connect();
    client.ask("SET k v");
    let code = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    client.send(&["FUNCTION", "LOAD", code]);
    client.reply();
    let folder = std::env::temp_dir().join(format!("redis-cli-rdb-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (flag, keys) in [("--rdb", 1), ("--functions-rdb", 0)] {
        let file = folder.join("fetched.rdb");
        let fetched = Command::new("redis-cli")
            .args(["-p", &first.addr.port().to_string(), flag, file.to_str().unwrap()])
            .stdin(Stdio::null())
            .output();
        let output = match fetched {
            Ok(output) => output,
            Err(error) => return skip(&format!("there is no redis-cli: {error}")),
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let Some(mut genuine) = Genuine::with_file(
            &[],
            Some(&{
                let place = folder.join("dump.rdb");
                fs::rename(&file, &place).unwrap();
                place
            }),
        ) else {
            return;
        };
        assert_eq!(genuine.ask(&["DBSIZE"]), Value::Int(keys));
        assert!(matches!(genuine.ask(&["FUNCTION", "LIST"]), Value::Array(list) if list.len() == 1), "{flag}");
    }
    until("they have left", || first.instance.replication.replicas().is_empty());
    fs::remove_dir_all(folder).unwrap();
}

/// DEBUG POPULATE fills one server: a replica may not allow DEBUG.
#[test]
fn debug_populate_is_not_in_the_stream() {
    let first = primary(&[]);
    let mut client = first.connect();
    let mut replica = first.connect();
    replica.stream.write_all(b"PSYNC ? -1\r\n").unwrap();
    until("there is a stream", || field(&client.ask("INFO replication"), "repl_backlog_active") == "1");
    client.ask("SET k v");
    let offset = first.instance.journal.offset();
    assert_eq!(client.ask("DEBUG POPULATE 100"), Value::Status("OK".into()));
    assert_eq!((client.ask("DBSIZE"), first.instance.journal.offset()), (Value::Int(101), offset));
    client.ask("SET k w");
    assert!(first.instance.journal.offset() > offset);
}
