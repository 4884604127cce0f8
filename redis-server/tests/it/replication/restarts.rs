//! Either side starts again from its snapshot, and the other goes on with it.

use super::*;

fn info(server: &Process, section: &str, name: &str) -> String {
    field(&ask(&mut server.connect(), &["INFO", section]), name)
}

/// Whether the append-only file of a server ends with the line that says it has all of the stream.
fn is_marked(server: &Process) -> bool {
    let folder = server.folder.join("appendonlydir");
    let manifest = fs::read_to_string(folder.join("appendonly.aof.manifest")).unwrap();
    let last = manifest.lines().rfind(|line| line.ends_with("type i")).expect("a file that is appended to");
    let file = fs::read(folder.join(last.split(' ').nth(1).expect("its name"))).unwrap();
    let end = format!(":{}\r\n", info(server, "replication", "master_repl_offset"));
    let line = file.split_inclusive(|&byte| byte == b'\n').next_back().unwrap_or_default();
    line.starts_with(b"#REPL:") && line.ends_with(end.as_bytes())
}

/// A replica goes on with its primary where its snapshot ends, in the database in which the stream was.
#[test]
fn a_restarted_replica_goes_on() {
    let settings = [("repl-diskless-sync-delay", "0")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let Some(mut genuine) = Genuine::start(&settings) else { return };
    let target = format!("127.0.0.1 {}", genuine.listen().port());
    let mut replica = Process::start(
        "restarted-replica",
        &[("replicaof", &target), ("save", "3600 1"), ("enable-debug-command", "yes")],
    );
    let is_up = |replica: &Process| info(replica, "replication", "master_link_status") == "up";
    let figures = |genuine: &mut Genuine| {
        let stats = genuine.ask(&["INFO", "stats"]);
        (field(&stats, "sync_full"), field(&stats, "sync_partial_ok"))
    };
    until("the link is up", || is_up(&replica));
    let mut expected = 0;
    for (round, signal) in [Signal::TERM, Signal::TERM, Signal::KILL].into_iter().enumerate() {
        // The stream is in another database than the one that a server begins with.
        genuine.ask(&["SELECT", "3"]);
        genuine.ask(&["INCR", "counter"]);
        genuine.ask(&["PEXPIRE", "counter", "100000"]);
        assert_eq!(genuine.ask(&["WAIT", "1", "20000"]), Value::Int(1));
        if signal == Signal::KILL {
            assert_eq!(ask(&mut replica.connect(), &["SAVE"]), Value::Status("OK".into()));
        }
        replica.signal(signal);
        replica.ended();
        genuine.ask(&["INCR", "counter"]);
        expected += 2;
        replica.restart();
        until("the link is up", || is_up(&replica));
        assert_eq!(figures(&mut genuine), ("1".to_owned(), (round + 1).to_string()), "after {signal:?}");
    }
    assert_eq!(genuine.ask(&["WAIT", "1", "20000"]), Value::Int(1));
    let digest = genuine.ask(&["DEBUG", "DIGEST"]);
    let mut client = replica.connect();
    ask(&mut client, &["SELECT", "3"]);
    assert_eq!(ask(&mut client, &["GET", "counter"]), Value::Bulk(expected.to_string().into_bytes()));
    assert_eq!(ask(&mut client, &["DEBUG", "DIGEST"]), digest);
}

/// Connections of this machine to this port, on the side of who has connected.
fn connections_to(port: &str) -> usize {
    const ESTABLISHED: &str = "01";
    let remote = format!("0100007F:{:04X}", port.parse::<u16>().unwrap());
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let fields = table.lines().map(|line| line.split_whitespace().skip(2).take(2).collect::<Vec<_>>());
    fields.filter(|fields| fields[..] == [&remote, ESTABLISHED]).count()
}

/// The link is gone when REPLICAOF is answered, so whoever asks the primary then does not see a replica that has left.
#[test]
fn a_replica_leaves_at_once() {
    let port = test_peers::free_port().to_string();
    let first = Process::start("left-primary", &[("port", &port), ("save", ""), ("repl-diskless-sync-delay", "0")]);
    let replica = Process::start("leaving-replica", &[("save", "")]);
    let (mut here, mut there) = (first.connect(), replica.connect());
    let mut shown = || field(&ask(&mut here, &["INFO", "replication"]), "slave0");
    for _ in 0..10 {
        ask(&mut there, &["REPLICAOF", "127.0.0.1", &port]);
        until("it is online", || shown().contains("state=online"));
        assert_eq!(connections_to(&port), 1);
        ask(&mut there, &["REPLICAOF", "NO", "ONE"]);
        assert_eq!(connections_to(&port), 0);
        until("it is seen no more", || shown().is_empty());
    }
}

/// The log says by a letter whether the server follows another.
#[test]
fn the_log_tells_the_role() {
    let server = Process::start("log-role", &[("save", "")]);
    let last = || {
        let log = fs::read_to_string(server.folder.join("log")).unwrap();
        let line = log.lines().last().unwrap_or_default();
        line.split([':', ' ']).nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(last(), "M");
    ask(&mut server.connect(), &["REPLICAOF", "127.0.0.1", "1"]);
    until("it is a replica", || last() == "S");
    ask(&mut server.connect(), &["REPLICAOF", "NO", "ONE"]);
    until("it is a master again", || last() == "M");
}

/// A primary that has saved everything takes its replicas back under a new name; what has expired meanwhile goes there too.
#[test]
fn a_restarted_primary_takes_its_replicas_back() {
    let port = test_peers::free_port().to_string();
    let settings = [("port", &*port), ("save", "3600 1"), ("repl-diskless-sync-delay", "0")];
    let mut first = Process::start("restarted-primary", &settings);
    let Some(mut genuine) = follower(port.parse().unwrap(), &[]) else { return };
    until("the link is up", || is_up(&mut genuine));
    let id = info(&first, "replication", "master_replid");
    let mut client = first.connect();
    ask(&mut client, &["SET", "k", "v"]);
    ask(&mut client, &["SET", "over", "soon", "PX", "30"]);
    assert_eq!(ask(&mut client, &["WAIT", "1", "20000"]), Value::Int(1));
    first.signal(Signal::TERM);
    first.ended();
    until("its link is down", || !is_up(&mut genuine));
    thread::sleep(std::time::Duration::from_millis(40));
    first.restart();
    until("the link is up", || is_up(&mut genuine));
    assert_eq!(
        (info(&first, "stats", "sync_full"), info(&first, "stats", "sync_partial_ok")),
        ("0".into(), "1".into())
    );
    assert_eq!(info(&first, "replication", "master_replid2"), id);
    assert_ne!(info(&first, "replication", "master_replid"), id);
    let kept = info(&first, "replication", "second_repl_offset");
    assert_eq!(kept, info(&first, "replication", "repl_backlog_first_byte_offset"), "both are the next byte");
    assert_eq!(ask(&mut first.connect(), &["CONFIG", "RESETSTAT"]), Value::Status("OK".into()));
    assert_eq!(info(&first, "stats", "sync_partial_ok"), "0");
    let mut client = first.connect();
    ask(&mut client, &["SET", "more", "v"]);
    assert_eq!(ask(&mut client, &["WAIT", "1", "20000"]), Value::Int(1));
    until("what has expired goes", || genuine.ask(&["DBSIZE"]) == Value::Int(2));
    assert_eq!(ask(&mut client, &["DBSIZE"]), Value::Int(2));
}

/// A server that ends waits for replicas that have not got everything, and writes wait with it; SHUTDOWN ABORT takes that back.
#[test]
fn shutdown_waits_for_lagging_replicas() {
    let port = test_peers::free_port().to_string();
    let settings = [("port", &*port), ("save", "3600 1"), ("repl-diskless-sync-delay", "0")];
    let mut first = Process::start("lagging", &settings);
    let Some(mut genuine) = follower(port.parse().unwrap(), &[]) else { return };
    until("the link is up", || is_up(&mut genuine));
    let (mut client, mut other, mut writer) = (first.connect(), first.connect(), first.connect());
    let lag = |client: &mut std::os::unix::net::UnixStream| {
        genuine.connect().write_all(b"DEBUG SLEEP 1.5\r\n").unwrap();
        thread::sleep(std::time::Duration::from_millis(100));
        ask(client, &["INCR", "counter"]);
    };
    let is_waiting = |client: &mut std::os::unix::net::UnixStream| {
        !field(&ask(client, &["INFO", "server"]), "shutdown_in_milliseconds").is_empty()
    };
    lag(&mut client);
    assert!(!is_waiting(&mut client));
    other.write_all(b"SHUTDOWN\r\n").unwrap();
    until("it waits", || is_waiting(&mut client));
    writer.write_all(b"INCR counter\r\n").unwrap();
    assert_eq!(ask(&mut client, &["GET", "counter"]), Value::Bulk(b"1".to_vec()), "writes wait");
    assert_eq!(ask(&mut client, &["SHUTDOWN", "ABORT"]), Value::Status("OK".into()));
    assert_eq!(ask(&mut other, &["PING"]), Value::Error("ERR Errors trying to SHUTDOWN. Check logs.".into()));
    until("writes go on", || ask(&mut client, &["GET", "counter"]) == Value::Bulk(b"2".to_vec()));
    assert!(!is_waiting(&mut client));
    assert_eq!(ask(&mut client, &["WAIT", "1", "20000"]), Value::Int(1), "it is awake");

    lag(&mut client);
    let counted = ask(&mut client, &["GET", "counter"]);
    first.signal(Signal::TERM);
    first.ended();
    assert_eq!(genuine.ask(&["GET", "counter"]), counted, "it has what was answered");
    let log = first.log();
    for line in ["Waiting for replicas before shutting down.", "1 of 1 replicas are in sync when shutting down."] {
        assert!(log.contains(line), "{line}: {log}");
    }
    first.restart();
    until("the link is up", || is_up(&mut genuine));
    assert_eq!(
        (info(&first, "stats", "sync_full"), info(&first, "stats", "sync_partial_ok")),
        ("0".into(), "1".into())
    );

    // One that takes too long is not waited for any longer.
    let mut client = first.connect();
    ask(&mut client, &["CONFIG", "SET", "shutdown-timeout", "1"]);
    genuine.connect().write_all(b"DEBUG SLEEP 4\r\n").unwrap();
    thread::sleep(std::time::Duration::from_millis(100));
    ask(&mut client, &["INCR", "counter"]);
    first.signal(Signal::TERM);
    first.ended();
    let log = first.log();
    for line in ["Lagging replica 127.0.0.1:", "0 of 1 replicas are in sync when shutting down."] {
        assert!(log.contains(line), "{line}: {log}");
    }
}

/// With an append-only file a server goes on as well: its end says where in the stream it is.
#[test]
fn a_restarted_replica_goes_on_from_its_append_only_file() {
    let settings = [("repl-diskless-sync-delay", "0")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let Some(mut genuine) = Genuine::start(&settings) else { return };
    let target = format!("127.0.0.1 {}", genuine.listen().port());
    let mut replica = Process::start(
        "replica-with-aof",
        &[("replicaof", &target), ("save", ""), ("appendonly", "yes"), ("enable-debug-command", "yes")],
    );
    let is_up = |replica: &Process| info(replica, "replication", "master_link_status") == "up";
    until("the link is up", || is_up(&replica));
    genuine.ask(&["SELECT", "3"]);
    for (round, signal) in [Signal::TERM, Signal::KILL, Signal::KILL].into_iter().enumerate() {
        // A file begins in the middle of a stream that does not say for which database it is.
        genuine.ask(&["INCR", "counter"]);
        assert_eq!(genuine.ask(&["WAIT", "1", "20000"]), Value::Int(1));
        until("it is rewritten", || {
            let rewrites = info(&replica, "persistence", "aof_rewrite_in_progress") == "0";
            rewrites && !ask(&mut replica.connect(), &["BGREWRITEAOF"]).is_error()
        });
        until("it is", || info(&replica, "persistence", "aof_rewrite_in_progress") == "0");
        genuine.ask(&["INCR", "counter"]);
        genuine.ask(&["PUBLISH", "news", "which no file keeps"]);
        assert_eq!(genuine.ask(&["WAIT", "1", "20000"]), Value::Int(1));
        until("the file says how far it is", || is_marked(&replica));
        replica.signal(signal);
        replica.ended();
        genuine.ask(&["INCR", "counter"]);
        replica.restart();
        until("the link is up", || is_up(&replica));
        let stats = genuine.ask(&["INFO", "stats"]);
        assert_eq!(
            (field(&stats, "sync_full"), field(&stats, "sync_partial_ok")),
            ("1".to_owned(), (round + 1).to_string()),
            "after {signal:?}"
        );
        assert_eq!(genuine.ask(&["WAIT", "1", "20000"]), Value::Int(1));
        assert_eq!(ask(&mut replica.connect(), &["DEBUG", "DIGEST"]), genuine.ask(&["DEBUG", "DIGEST"]));
    }
    // Our annotations between the commands do not disturb the tool.
    let manifest = replica.folder.join("appendonlydir/appendonly.aof.manifest");
    match Command::new("redis-check-aof").arg(&manifest).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => skip(&format!("there is no redis-check-aof: {error}")),
    }
}

#[test]
fn a_restarted_primary_with_an_append_only_file_takes_its_replicas_back() {
    let port = test_peers::free_port().to_string();
    let settings = [("port", &*port), ("save", ""), ("appendonly", "yes"), ("repl-diskless-sync-delay", "0")];
    let mut first = Process::start("primary-with-aof", &settings);
    let Some(mut genuine) = follower(port.parse().unwrap(), &[]) else { return };
    until("the link is up", || is_up(&mut genuine));
    for (round, signal) in [Signal::TERM, Signal::KILL, Signal::TERM].into_iter().enumerate() {
        let mut client = first.connect();
        ask(&mut client, &["SELECT", "2"]);
        ask(&mut client, &["INCR", "counter"]);
        assert_eq!(ask(&mut client, &["WAIT", "1", "20000"]), Value::Int(1));
        until("the file says how far it is", || is_marked(&first));
        first.signal(signal);
        first.ended();
        until("its link is down", || !is_up(&mut genuine));
        first.restart();
        until("the link is up", || is_up(&mut genuine));
        assert_eq!(
            (info(&first, "stats", "sync_full"), info(&first, "stats", "sync_partial_ok")),
            ("0".into(), "1".into()),
            "round {round}, after {signal:?}"
        );
    }
    let mut client = first.connect();
    ask(&mut client, &["SET", "k", "v"]);
    assert_eq!(ask(&mut client, &["WAIT", "1", "20000"]), Value::Int(1));
    genuine.ask(&["SELECT", "2"]);
    assert_eq!(genuine.ask(&["GET", "counter"]), Value::Bulk(b"3".to_vec()));
}
