//! Applications that people run on Redis, unmodified, on our server and on a genuine one: the same has to come of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use test_peers::{Kit, kit, printed};

use crate::support::genuine::Genuine;
use crate::support::server::{Client, Server};
use crate::support::{PATIENCE, until};

const CELERY: Kit = kit! {
    name: "redis-celery",
    sources: &["tests/peers/celery"],
    programs: &["python3"],
    install: "python3 -m venv venv && venv/bin/pip install --quiet --requirement requirements.txt",
};
const JAVA: Kit = kit! {
    name: "redis-java",
    sources: &["tests/peers/java"],
    programs: &["javac", "mvn"],
    install: "mvn --batch-mode --quiet package dependency:copy-dependencies -DoutputDirectory=lib",
};
const RUBY: Kit = kit! {
    name: "redis-ruby",
    sources: &["tests/peers/ruby"],
    programs: &["apt-get", "dpkg"],
    install: "sh install.sh",
};
/// redis_exporter, HAProxy, nutcracker and syslog-ng.
const DEBIAN: Kit = kit! {
    name: "redis-debian",
    sources: &["tests/peers/debian"],
    programs: &["apt-get", "dpkg"],
    install: "sh install.sh",
};

/// The results of `application` on our server and, if there is one, on a genuine server.
fn on_both<T>(mut application: impl FnMut(SocketAddr) -> T) -> (T, Option<T>) {
    let server = Server::start();
    let ours = application(server.addr);
    let genuine = Genuine::start(&[]).map(|mut genuine| application(genuine.listen()));
    (ours, genuine)
}

/// Runs a program of a kit that prints what has come of each step, and "ok": the same has to come of both servers.
fn check(kit: &Kit, program: &str, arguments: &[&str]) {
    let Some(folder) = kit.installed() else { return };
    let (ours, genuine) = on_both(|addr| {
        // Installed programs stand in the folder, others in the path.
        let inside = folder.join(program);
        let mut command = if inside.exists() { Command::new(inside) } else { Command::new(program) };
        let said = printed(command.args(arguments).arg(addr.port().to_string()).current_dir(&folder));
        assert_eq!(said.lines().last(), Some("ok"), "{said}");
        said
    });
    assert!(genuine.as_ref().is_none_or(|genuine| ours == *genuine), "{ours}\n{genuine:?}");
}

/// Tasks with results, retries, chords, delays, priorities, and the worker's remote control.
#[test]
fn celery() {
    check(&CELERY, "venv/bin/python", &["peer.py"]);
}

/// Jobs now and later, in bulk, that fail and are tried again, and that nobody tries any more.
#[test]
#[ignore = "its scheduler waits for ten seconds at the start: full runs of the gates"]
fn sidekiq() {
    check(&RUBY, "ruby", &["peer.rb"]);
}

/// Locks, semaphores, rate limits, caches, queues, messages, transactions.
#[test]
#[ignore = "Java takes its time: full runs of the gates"]
fn redisson() {
    check(&JAVA, "java", &["-cp", "target/classes:lib/*", "RedissonPeer"]);
}

/// Templates, streams, listeners, transactions, pipelines, scripts, on Lettuce.
#[test]
#[ignore = "Java takes its time: full runs of the gates"]
fn spring_data_redis() {
    check(&JAVA, "java", &["-cp", "target/classes:lib/*", "SpringPeer"]);
}

/// A program of a kit with its libraries.
fn program(folder: &Path, path: &str) -> Command {
    let mut program = Command::new(folder.join(path));
    let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib/syslog-ng"];
    let libraries: Vec<_> = libraries.iter().map(|path| folder.join(path).display().to_string()).collect();
    program.env("LD_LIBRARY_PATH", libraries.join(":")).stdin(Stdio::null());
    program
}

/// A program that ends with this value.
pub(super) struct Running(Child);

impl Running {
    pub(super) fn start(mut program: Command) -> Self {
        Self(program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

/// A folder of its own for what a program writes.
pub(super) fn folder_for(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("{name}-{}-{}", std::process::id(), test_peers::free_port()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The response to `GET /metrics`, or `None` while the port is closed.
fn scrape(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    Some(answer)
}

/// The samples of a scrape: their values by name and labels.
fn samples(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| line.starts_with("redis_"));
    lines.filter_map(|line| line.rsplit_once(' ')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Samples of which only the name is the same: the machine's, the version's, and what is measured.
fn is_measured(name: &str) -> bool {
    const MEASURED: &[&str] = &[
        "allocator",
        "bytes",
        "cpu",
        "duration",
        "exporter",
        "frag",
        "instance_info",
        "last_save",
        "latency",
        "mem_",
        "memory",
        "net_",
        "process_id",
        "reads_processed",
        "writes_processed",
        "recent_max",
        "scrape",
        "script",
        "seconds",
        "uptime",
        "usec",
        "lua",
        "lazyfree",
        "key_memory",
        "reply_buffer",
        "total_system",
        "expire_cycle",
        "slowlog",
        "io_threads",
        "connections_received",
        "commands_processed",
        "rdb_changes",
        "connected_clients",
        "start_time",
        "config_maxclients",
        "config_maxmemory",
        "master_repl",
        "repl_backlog",
        "second_repl",
    ];
    MEASURED.iter().any(|part| name.contains(part))
}

/// Every metric that redis_exporter makes of a genuine server it makes of ours, with the same value where it counts something.
#[test]
fn redis_exporter() {
    let Some(folder) = DEBIAN.installed() else { return };
    let (ours, genuine) = on_both(|addr| {
        let mut client = Client::connect(addr);
        for line in [
            "SET a 1",
            "SET b 2 EX 1000",
            "RPUSH l 1 2 3",
            "XADD s 1-1 f v",
            "XGROUP CREATE s g 0",
            "GET a",
            "GET x",
            "INCR l",
            "NOSUCH",
            "SUBSCRIBE c",
            "UNSUBSCRIBE",
            "CONFIG SET slowlog-log-slower-than 0",
        ] {
            client.ask(line);
        }
        let port = test_peers::free_port();
        let mut exporter = program(&folder, "usr/bin/prometheus-redis-exporter");
        exporter
            .args(["--web.listen-address", &format!("127.0.0.1:{port}"), "--redis.addr", &format!("redis://{addr}")])
            .args([
                "--check-keys",
                "db0=*",
                "--check-single-streams",
                "db0=s",
                "--export-client-list",
                "--include-system-metrics",
            ]);
        let _exporter = Running::start(exporter);
        let mut text = None;
        until("it serves", || {
            text = scrape(port);
            text.is_some()
        });
        samples(&text.unwrap())
    });
    assert_eq!(ours.get("redis_up").map(String::as_str), Some("1"), "{ours:#?}");
    assert_eq!(ours.get("redis_exporter_last_scrape_error{err=\"\"}").map(String::as_str), Some("0"), "{ours:#?}");
    let Some(genuine) = genuine else { return };
    let family = |name: &str| name.split('{').next().unwrap().to_owned();
    let families: BTreeSet<_> = ours.keys().map(|name| family(name)).collect();
    let missing: Vec<_> = genuine.keys().map(|name| family(name)).filter(|name| !families.contains(name)).collect();
    assert!(missing.is_empty(), "metrics that the genuine server has and ours has not: {missing:?}");
    // The test itself has asked the genuine server for its version and for a port.
    let is_asked = |name: &str| name.contains("cmd=\"info\"") || name.contains("cmd=\"config|set\"");
    let counted = genuine.iter().filter(|(name, _)| !is_measured(name) && !is_asked(name));
    let others: Vec<_> = counted.filter(|(name, value)| ours.get(*name) != Some(*value)).collect();
    let others: Vec<_> =
        others.iter().map(|(name, value)| format!("{name}: {value}, ours {:?}", ours.get(*name))).collect();
    assert!(others.is_empty(), "{others:#?}");
    println!("{} samples, {} families", genuine.len(), families.len());
}

/// Waits until somebody listens at a port, and connects.
fn connect(port: u16) -> Client {
    let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    until("it listens", || TcpStream::connect(addr).is_ok());
    Client::connect(addr)
}

/// HAProxy's own check of a Redis, and clients through it.
#[test]
fn haproxy() {
    let Some(folder) = DEBIAN.installed() else { return };
    let (ours, genuine) = on_both(|addr| {
        let [front, stats] = [(); 2].map(|()| test_peers::free_port());
        let own = folder_for("haproxy");
        let config = format!(
            "defaults\n mode tcp\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n option redis-check\n\
             frontend front\n bind 127.0.0.1:{front}\n default_backend back\n\
             backend back\n server one {addr} check inter 100ms\n\
             frontend stats\n mode http\n bind 127.0.0.1:{stats}\n stats enable\n stats uri /metrics\n"
        );
        fs::write(own.join("haproxy.cfg"), config).unwrap();
        let mut haproxy = program(&folder, "usr/sbin/haproxy");
        haproxy.arg("-f").arg(own.join("haproxy.cfg"));
        let _haproxy = Running::start(haproxy);
        let mut client = connect(front);
        until("it takes the server for one", || scrape(stats).is_some_and(|page| page.contains("L7OK")));
        let said = ["SET k v", "GET k", "INCR n", "EVAL return{1,2} 0", "NOSUCH"].map(|line| client.ask(line));
        fs::remove_dir_all(own).unwrap();
        said
    });
    assert!(genuine.is_none_or(|genuine| ours == genuine), "{ours:?}");
}

/// Twemproxy in front of a server: what it splits up and puts together again.
#[test]
fn nutcracker() {
    let Some(folder) = DEBIAN.installed() else { return };
    let (ours, genuine) = on_both(|addr| {
        let (port, own) = (test_peers::free_port(), folder_for("nutcracker"));
        let config = format!(
            "alpha:\n  listen: 127.0.0.1:{port}\n  redis: true\n  hash: fnv1a_64\n  distribution: ketama\n  servers:\n   - {addr}:1\n"
        );
        fs::write(own.join("nutcracker.yml"), config).unwrap();
        let mut nutcracker = program(&folder, "usr/sbin/nutcracker");
        nutcracker.args(["--stats-addr", "127.0.0.1", "--stats-port", &test_peers::free_port().to_string()]);
        nutcracker.arg("--conf-file").arg(own.join("nutcracker.yml")).arg("--output").arg(own.join("log"));
        let _nutcracker = Running::start(nutcracker);
        let mut client = connect(port);
        let said = [
            "MSET a 1 b 2 c 3",
            "MGET a b c d",
            "DEL a b",
            "EVAL return{KEYS[1],ARGV[1]} 1 k x",
            "HSET h f v g w",
            "HGETALL h",
            "LPUSH l 1 2 3",
            "LRANGE l 0 -1",
            "ZADD z 1.5 m",
            "ZRANGE z 0 -1 WITHSCORES",
            "INCR h",
            "SETEX e 100 x",
            "EXISTS e",
        ];
        let said = said.map(|line| client.ask(line));
        fs::remove_dir_all(own).unwrap();
        said
    });
    assert!(genuine.is_none_or(|genuine| ours == genuine), "{ours:?}");
}

/// syslog-ng counts messages in a hash.
#[test]
fn syslog_ng() {
    let Some(folder) = DEBIAN.installed() else { return };
    let (ours, genuine) = on_both(|addr| {
        let (port, own) = (test_peers::free_port(), folder_for("syslog-ng"));
        let redis = format!(
            "redis(host(\"127.0.0.1\") port({}) command(\"HINCRBY\", \"seen\", \"${{MESSAGE}}\", \"1\"))",
            addr.port()
        );
        let source = format!("tcp(ip(\"127.0.0.1\") port({port}))");
        let config = format!(
            "@version: 3.38\nsource from {{ {source}; }};\ndestination to {{ {redis}; }};\nlog {{ source(from); destination(to); }};\n"
        );
        fs::write(own.join("syslog-ng.conf"), config).unwrap();
        let mut syslog = program(&folder, "usr/sbin/syslog-ng");
        syslog.args(["--foreground", "--no-caps"]).arg("--module-path").arg(folder.join("usr/lib/syslog-ng/3.38"));
        for (flag, file) in [
            ("--cfgfile", "syslog-ng.conf"),
            ("--persist-file", "persist"),
            ("--control", "control"),
            ("--pidfile", "pid"),
        ] {
            syslog.arg(flag).arg(own.join(file));
        }
        let _syslog = Running::start(syslog);
        let mut sender = connect(port);
        let messages =
            ["one", "two", "one", "three", "one"].map(|word| format!("<13>Oct 11 22:14:15 host program: {word}\n"));
        sender.stream.write_all(messages.concat().as_bytes()).unwrap();
        let mut client = Client::connect(addr);
        until("all have come", || client.ask("HGET seen one").text() == "3" && client.ask("HLEN seen").text() == "3");
        let said = ["one", "two", "three"].map(|word| client.ask(&format!("HGET seen {word}")));
        fs::remove_dir_all(own).unwrap();
        said
    });
    assert!(genuine.is_none_or(|genuine| ours == genuine), "{ours:?}");
}
