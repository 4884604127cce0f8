//! Genuine Sentinels with servers of ours, and clients of several languages that follow them.

use test_peers::printed;

use super::*;
use crate::clients::languages::{GO, JS, PYTHON, RUST};

/// A genuine Sentinel, which ends with this value.
struct Sentinel {
    process: Child,
    folder: PathBuf,
    port: u16,
}

impl Sentinel {
    /// One that watches the primary on this port; `None`, and a line that says so, where there is no genuine server.
    fn of(primary: u16) -> Option<Self> {
        let port = test_peers::free_port();
        let folder = std::env::temp_dir().join(format!("sentinel-{port}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "port {port}\ndir {}\nsentinel monitor first 127.0.0.1 {primary} 1\nsentinel down-after-milliseconds first \
             2000\nsentinel failover-timeout first 10000\n",
            folder.display()
        );
        fs::write(folder.join("sentinel.conf"), text).unwrap();
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut command = Command::new("redis-server");
        command.args(["sentinel.conf", "--sentinel"]).current_dir(&folder).stdin(Stdio::null()).stdout(log);
        match command.spawn() {
            Ok(process) => Some(Self { process, folder, port }),
            Err(error) => {
                skip(&format!("there is no redis-server to be a Sentinel: {error}"));
                None
            }
        }
    }

    fn ask(&self, words: &[&str]) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        Some(ask(&mut stream, words))
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody to tell.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("Sentinel's log:\n{}", fs::read_to_string(self.folder.join("log")).unwrap_or_default());
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A Sentinel that did not run for 2 s does nothing for 30 s more (its "TILT" mode). It asks a server that returns as a
/// primary every 10 s, until that server was up for 8 s without a gap. This is twice the sum, for a busy machine.
const SENTINELS_PATIENCE: Duration = Duration::from_secs(100);

/// A primary and its replica, which the Sentinel knows.
struct Watched {
    first: Process,
    second: Process,
    sentinel: Sentinel,
}

impl Watched {
    fn start(name: &str) -> Option<Self> {
        let [first_port, second_port] = [(); 2].map(|()| test_peers::free_port().to_string());
        let target = format!("127.0.0.1 {first_port}");
        let server = |which: &str, settings: &[(&str, &str)]| {
            let all = [&[("save", ""), ("repl-diskless-sync-delay", "0")], settings].concat();
            Process::start(&format!("{name}-{which}"), &all)
        };
        let first = server("first", &[("port", &first_port)]);
        let second = server("second", &[("port", &second_port), ("replicaof", &target)]);
        let sentinel = Sentinel::of(first_port.parse().unwrap())?;
        until("the replica follows", || replication(&second, "master_link_status") == "up");
        within(SENTINELS_PATIENCE, "Sentinel knows the replica", || {
            let known = sentinel.ask(&["SENTINEL", "REPLICAS", "first"]);
            known.is_some_and(|known| matches!(&known, Value::Array(replicas) if replicas.len() == 1))
        });
        Some(Self { first, second, sentinel })
    }
}

/// A field of INFO; nothing, where Sentinel has ended the connection: it does so with all, where it makes a replica of a primary.
fn replication(server: &Process, name: &str) -> String {
    let info = try_ask(&mut server.connect(), &["INFO", "replication"]);
    info.map_or_else(|_| String::new(), |info| field(&info, name))
}

fn is_promoted(server: &Process) {
    within(SENTINELS_PATIENCE, "the replica is promoted", || replication(server, "role") == "master");
}

fn follows(server: &Process) {
    within(SENTINELS_PATIENCE, "the old primary follows", || {
        replication(server, "role") == "slave" && replication(server, "master_link_status") == "up"
    });
}

/// A genuine Sentinel sees that the primary is gone, promotes the replica, and has the old primary follow it when it is back.
#[test]
fn sentinel_fails_over() {
    let Some(Watched { mut first, second, sentinel: _sentinel }) = Watched::start("failover") else { return };
    let mut client = first.connect();
    assert_eq!(ask(&mut client, &["SET", "k", "v"]), Value::Status("OK".into()));
    assert_eq!(ask(&mut client, &["WAIT", "1", "0"]), Value::Int(1));
    first.signal(Signal::KILL);
    first.ended();
    is_promoted(&second);
    let mut client = second.connect();
    assert_eq!(ask(&mut client, &["GET", "k"]), Value::Bulk(b"v".to_vec()));
    assert_eq!(ask(&mut client, &["SET", "l", "w"]), Value::Status("OK".into()));
    first.restart();
    follows(&first);
    until("it has what it has missed", || {
        ask(&mut first.connect(), &["MGET", "k", "l"])
            == Value::Array(vec![Value::Bulk(b"v".to_vec()), Value::Bulk(b"w".to_vec())])
    });
}

/// Clients of four languages find the primary by Sentinel, and each new one; what a replica has had is there ever after.
#[test]
fn clients_follow_sentinel() {
    let python = PYTHON.installed().map(|folder| ("py", folder.join("venv/bin/python"), "sentinel.py", folder));
    let go = GO.installed().map(|folder| ("go", folder.join("peer"), "sentinel", folder));
    let js = JS.installed().map(|folder| ("js", "node".into(), "sentinel.js", folder));
    let rust = RUST.installed().map(|folder| ("rust", folder.join("target/debug/peer"), "sentinel", folder));
    let clients: Vec<_> = [python, go, js, rust].into_iter().flatten().collect();
    let Some(Watched { mut first, second, sentinel }) = Watched::start("followed") else { return };
    let keys: Vec<_> = clients.iter().map(|(key, ..)| *key).collect();
    let turns = |server: &Process, key: &str| match ask(&mut server.connect(), &["GET", key]) {
        Value::Bulk(text) => String::from_utf8(text).unwrap().parse().unwrap(),
        other => {
            assert_eq!(other, Value::NullBulk);
            0_u64
        }
    };
    let all_write_to = |server: &Process| {
        let before: Vec<_> = keys.iter().map(|key| turns(server, key)).collect();
        for (key, before) in keys.iter().zip(before) {
            within(SENTINELS_PATIENCE, &format!("{key} writes"), || turns(server, key) > before);
        }
    };
    thread::scope(|scope| {
        let port = sentinel.port;
        let running: Vec<_> = clients
            .iter()
            .map(|(_, program, script, folder)| {
                let mut command = Command::new(program);
                command.args([script, &port.to_string()[..]]).current_dir(folder);
                scope.spawn(move || printed(&command))
            })
            .collect();
        all_write_to(&first);
        first.signal(Signal::KILL);
        first.ended();
        is_promoted(&second);
        all_write_to(&second);
        first.restart();
        follows(&first);
        // Now as somebody asks for it, when Sentinel knows that there is somebody to take over.
        within(SENTINELS_PATIENCE, "Sentinel fails over", || {
            sentinel.ask(&["SENTINEL", "FAILOVER", "first"]) == Some(Value::Status("OK".into()))
        });
        is_promoted(&first);
        follows(&second);
        all_write_to(&first);
        assert_eq!(ask(&mut first.connect(), &["SET", "done", "1"]), Value::Status("OK".into()));
        for client in running {
            let said = client.join().unwrap();
            assert!(said.lines().last().is_some_and(|line| line.starts_with("ok, ")), "{said}");
        }
    });
}
