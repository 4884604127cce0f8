//! Connections that do not behave as the textbook has it, and their end.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use test_peers::skip;

use super::support::genuine::Genuine;
use super::support::process::{Process, ask};
use super::support::resp::{Value, request};
use super::support::server::{Client, Server, until_blocked};
use super::support::{PATIENCE, until};

fn number(value: &Value) -> i64 {
    let Value::Int(number) = value else { panic!("{value:?} is no number") };
    *number
}

/// A field of a client's CLIENT LIST line.
fn field(server: &Server, id: i64, read: impl Fn(&redis_server::clients::client::ClientShared) -> u64) -> u64 {
    server.instance.client(id as u64).map_or(0, |client| read(&client))
}

#[test]
fn replies_reach_a_client_that_has_finished_sending() {
    let server = Server::start();
    let value = "v".repeat(1_000_000);
    let mut client = server.connect();
    client.send(&["SET", "k", &value]);
    client.reply();
    for _ in 0..20 {
        client.stream.write_all(b"GET k\r\n").unwrap();
    }
    client.stream.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    client.stream.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 20 * (value.len() + "$1000000\r\n\r\n".len()));
}

#[test]
fn output_that_has_been_read_is_no_longer_counted() {
    let server = Server::start();
    let mut client = server.connect();
    let Value::Int(id) = client.ask("CLIENT ID") else { panic!("no number") };
    client.send(&["SET", "k", &"v".repeat(1_000_000)]);
    client.reply();
    for _ in 0..20 {
        client.stream.write_all(b"GET k\r\n").unwrap();
    }
    until("output waits", || field(&server, id, |client| client.output.load(Relaxed)) > 0);
    (0..20).for_each(|_| assert!(matches!(client.reply(), Value::Bulk(_))));
    until("none does", || field(&server, id, |client| client.output.load(Relaxed)) == 0);
}

#[test]
fn pipelined_input_runs_after_a_blocked_command() {
    let server = Server::start();
    let (mut waits, mut pushes) = (server.connect(), server.connect());
    let Value::Int(id) = waits.ask("CLIENT ID") else { panic!("no number") };
    waits.send(&["BLPOP", "l", "0"]);
    until_blocked(&server.instance, 1);
    // The first comes in a read of its own while the client waits, the second behind it.
    for (sent, word) in [(14, "PING"), (28, "PING")] {
        waits.send(&[word]);
        until("input that waits", || field(&server, id, |client| client.input.load(Relaxed)) == sent);
    }
    pushes.ask("RPUSH l x");
    assert!(matches!(waits.reply(), Value::Array(_)));
    assert_eq!(waits.reply(), Value::Status("PONG".into()));
    assert_eq!(waits.reply(), Value::Status("PONG".into()));
}

#[test]
fn subscribers_that_do_not_read_are_cut_off() {
    let server = Server::with(&[("client-output-buffer-limit", "pubsub 4mb 0 0")]);
    let (mut deaf, mut publisher) = (server.connect(), server.connect());
    deaf.ask("SUBSCRIBE news");
    let text = "t".repeat(100_000);
    let mut sent = 0;
    // The kernel's buffers take a few megabytes before anything waits in ours.
    loop {
        publisher.send(&["PUBLISH", "news", &text]);
        if number(&publisher.reply()) == 0 {
            break;
        }
        sent += 1;
        assert!(sent < 1000, "nobody has cut the subscriber off");
    }
    assert_eq!(number(&publisher.ask("PUBLISH news x")), 0);
}

#[test]
fn messages_of_a_publisher_stay_in_order_across_workers() {
    let server = Server::with(&[("workers", "3")]);
    let mut subscribers: Vec<Client> = (0..6).map(|_| server.connect()).collect();
    for subscriber in &mut subscribers {
        subscriber.ask("SUBSCRIBE news");
    }
    let mut publisher = server.connect();
    for number in 0..2000 {
        publisher.send(&["PUBLISH", "news", &number.to_string()]);
    }
    for subscriber in &mut subscribers {
        for number in 0..2000 {
            let Value::Array(parts) = subscriber.reply() else { panic!("a message is an array") };
            assert_eq!(parts[2], Value::Bulk(number.to_string().into_bytes()));
        }
    }
}

#[test]
fn a_pause_ends_for_all_when_it_is_taken_back() {
    let server = Server::start();
    let mut admin = server.connect();
    let mut held: Vec<Client> = (0..8).map(|_| server.connect()).collect();
    admin.ask("CLIENT PAUSE 100000000 WRITE");
    for client in &mut held {
        client.send(&["INCR", "n"]);
    }
    until_blocked(&server.instance, 8);
    admin.ask("CLIENT UNPAUSE");
    let mut numbers: Vec<i64> = held.iter_mut().map(|client| number(&client.reply())).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
    until_blocked(&server.instance, 0);
}

#[test]
fn a_pause_of_everything_ends_by_its_time_alone() {
    let server = Server::start();
    let words = ["CLIENT UNPAUSE", "CLIENT ID", "CLIENT PAUSE 0", "PING", "GET n", "MULTI", "RESET", "QUIT"];
    let mut held: Vec<Client> = words.iter().map(|_| server.connect()).collect();
    let mut admin = server.connect();
    let began = Instant::now();
    admin.ask("CLIENT PAUSE 1000 ALL");
    for (client, words) in held.iter_mut().zip(words) {
        client.send(&words.split(' ').collect::<Vec<_>>());
    }
    // An unknown command, or a wrong number of arguments, is refused without a wait.
    assert!(server.connect().ask("NOSUCH").is_error());
    assert!(server.connect().ask("GET").is_error());
    until_blocked(&server.instance, words.len() as i64);
    for (client, words) in held.iter_mut().zip(words) {
        assert!(!client.reply().is_error(), "{words}");
        assert!(began.elapsed() >= Duration::from_secs(1), "{words} did not wait");
    }
    until_blocked(&server.instance, 0);
}

/// An address of this machine beside the loopback ones. Packets to it do not leave the machine.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Sends nothing: it looks for the route to an address that is nobody's (RFC 5737).
    socket.connect("198.51.100.1:9").ok()?;
    socket.local_addr().ok().map(|addr| addr.ip()).filter(|ip| !ip.is_loopback())
}

#[test]
fn protected_mode_serves_this_machine_alone() {
    let Some(elsewhere) = own_address() else { return skip("this machine has no address but the loopback one") };
    let check = |settings: &[(&str, &str)], from: IpAddr, expected: &str| {
        let server = Server::at("0.0.0.0:0", settings);
        let mut client = Client::connect(SocketAddr::new(from, server.addr.port()));
        // It may be closed before it has sent anything.
        let _ = client.stream.write_all(b"PING\r\nQUIT\r\n");
        let said = client.until_closed();
        assert!(said.starts_with(expected), "{settings:?} from {from}: {said}");
    };
    let here = IpAddr::from([127, 0, 0, 1]);
    let denied =
        "-DENIED This server has no password, so it is in protected mode and serves clients on its own machine only";
    check(&[], here, "+PONG\r\n+OK\r\n");
    check(&[], elsewhere, denied);
    check(&[("protected-mode", "no")], elsewhere, "+PONG\r\n+OK\r\n");
    check(&[("requirepass", "secret")], elsewhere, "-NOAUTH Authentication required.\r\n+OK\r\n");
    // It is looked at when a client connects.
    let server = Server::at("0.0.0.0:0", &[]);
    let addr = SocketAddr::new(elsewhere, server.addr.port());
    assert!(Client::connect(addr).until_closed().starts_with(denied));
    server.connect().ask("CONFIG SET protected-mode no");
    assert_eq!(Client::connect(addr).ask("PING"), Value::Status("PONG".into()));
}

/// Commands behind AUTH in a pipeline may be longer than those of a stranger, even if they were read at the same time.
#[test]
fn a_pipeline_that_begins_with_auth_is_not_a_strangers() {
    let server = Server::with(&[("requirepass", "secret")]);
    let auth = request(&["AUTH", "secret"]);
    let many = request(&["MGET", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a"]);
    let long = request(&["ECHO", &"x".repeat(20_000)]);
    let check = |requests: &[&[u8]], expected: &str| {
        let mut client = server.connect();
        client.stream.write_all(&requests.concat()).unwrap();
        let said = client.until_closed();
        assert!(said.starts_with(expected), "{expected}: {said}");
    };
    let quit = request(&["QUIT"]);
    check(&[&many], "-ERR Protocol error: unauthenticated multibulk length");
    check(&[&long], "-ERR Protocol error: unauthenticated bulk length");
    check(&[&auth, &many, &quit], "+OK\r\n*10\r\n$-1\r\n");
    check(&[&auth, &long, &quit], "+OK\r\n$20000\r\nxxx");
    check(
        &[&request(&["PING"]), &many],
        "-NOAUTH Authentication required.\r\n-ERR Protocol error: unauthenticated multibulk",
    );
}

#[test]
fn idle_connections_do_not_hold_up_the_end() {
    let server = Server::with(&[("drain-timeout", "60")]);
    let mut clients: Vec<Client> = (0..50).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.ask("PING");
    }
    clients[0].send(&["BLPOP", "l", "0"]);
    until_blocked(&server.instance, 1);
    let began = Instant::now();
    drop(server);
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_client_that_moves_takes_its_session_along() {
    let server = Server::with(&[("workers", "2")]);
    let handle = server.handle();
    let (mut moves, mut other) = (server.connect(), server.connect());
    // Back and forth, so that each line below runs on another worker than the one before.
    let mut ask = |line: &str| {
        let value = moves.ask(line);
        until("the client to be elsewhere", || {
            handle.move_connections(0, 1, 1.0);
            handle.move_connections(1, 0, 1.0);
            let before = handle.moved();
            assert!(!moves.ask("CLIENT ID").is_error());
            handle.moved() > before
        });
        value.text()
    };
    let id = ask("CLIENT ID");
    for (line, reply) in [("SELECT 3", "OK"), ("CLIENT SETNAME wanderer", "OK"), ("SET k v", "OK"), ("WATCH k", "OK")] {
        assert_eq!(ask(line), reply, "{line}");
    }
    assert_eq!(ask("CLIENT ID"), id);
    assert_eq!(ask("CLIENT GETNAME"), "wanderer");
    assert_eq!(ask("GET k"), "v");
    other.ask("SELECT 3");
    other.ask("SET k w");
    assert_eq!(moves.ask("MULTI").text(), "OK");
    for _ in 0..2 {
        handle.move_connections(0, 1, 1.0);
        handle.move_connections(1, 0, 1.0);
        assert_eq!(moves.ask("GET k").text(), "QUEUED");
    }
    assert_eq!(moves.ask("EXEC"), Value::NullArray, "the watched key was changed");
    // Messages of other clients reach the client on any worker.
    moves.ask("HELLO 3");
    moves.ask("SUBSCRIBE news");
    for round in 0..20 {
        handle.move_connections(0, 1, 1.0);
        handle.move_connections(1, 0, 1.0);
        moves.send(&["PING"]);
        assert_eq!(moves.reply(), Value::Status("PONG".into()));
        other.send(&["PUBLISH", "news", &round.to_string()]);
        let Value::Push(message) = moves.reply() else { panic!("no message") };
        assert_eq!(message[2].text(), round.to_string());
        assert_eq!(other.reply(), Value::Int(1));
    }
    assert_eq!(server.instance.clients().len(), 2);
}

#[test]
fn pipelines_of_moving_clients_keep_their_order() {
    let server = Server::shuffled();
    let addr = server.addr;
    let spawn = |number: usize| {
        std::thread::spawn(move || {
            let mut client = Client::connect(addr);
            for round in 0..200 {
                let sent: Vec<_> = (0..30).map(|at| format!("{number}:{round}:{at}")).collect();
                let requests = sent.iter().flat_map(|text| request(&["ECHO", text]));
                client.stream.write_all(&requests.collect::<Vec<_>>()).unwrap();
                sent.iter().for_each(|text| assert_eq!(client.reply().text(), *text));
            }
        })
    };
    let threads: Vec<_> = (0..6).map(spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(server.handle().moved() > 10, "only {} moved", server.handle().moved());
}

/// A peer that sees the end of a connection finds no trace of its client.
#[test]
fn a_client_has_left_when_its_connection_ends() {
    let server = Server::shuffled();
    let mut other = server.connect();
    for _ in 0..1000 {
        let mut client = server.connect();
        client.send(&["SUBSCRIBE", "news"]);
        client.reply();
        other.send(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        assert_eq!(other.reply(), Value::Int(1));
        client.until_closed();
        assert_eq!(other.ask("PUBSUB NUMSUB news"), Value::Array(vec![Value::Bulk("news".into()), Value::Int(0)]));
        assert_eq!(server.instance.clients().len(), 1);
    }
}

/// Lines of an HTTP request end the connection, and nothing behind them runs; as the genuine server has it.
#[test]
fn a_web_page_cannot_send_commands() {
    let requests: [&[u8]; 5] = [
        b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET key value\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nSET key value\r\n",
        b"host: x\r\nSET key value\r\n",
        b"*1\r\n$4\r\npOsT\r\n*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n",
        b"MULTI\r\nPOST\r\nEXEC\r\nSET key value\r\n",
    ];
    let said = |connect: &dyn Fn() -> UnixStream| {
        let answers = requests.map(|request| {
            let mut stream = connect();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(request).unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).expect("the connection ends");
            String::from_utf8(answer).unwrap()
        });
        assert_eq!(ask(&mut connect(), &["EXISTS", "key"]), Value::Int(0));
        answers
    };
    let process = Process::start("http", &[]);
    let ours = said(&|| process.connect());
    let log = process.log();
    assert_eq!(
        log.matches("Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host:").count(),
        1,
        "{log}"
    );
    let Some(genuine) = Genuine::start(&[]) else { return };
    // Replies to earlier commands may or may not arrive.
    let without_ok = |answers: [String; 5]| answers.map(|answer| answer.replace("+OK\r\n", ""));
    assert_eq!(without_ok(ours), without_ok(said(&|| genuine.connect())));
}

/// The fields of each section of INFO, in their order.
fn fields(info: &str) -> Vec<(String, Vec<String>)> {
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    for line in info.lines() {
        match (line.strip_prefix("# "), line.split_once(':'), sections.last_mut()) {
            (Some(name), ..) => sections.push((name.to_owned(), Vec::new())),
            (None, Some((field, _)), Some((_, fields))) => fields.push(field.to_owned()),
            _ => {}
        }
    }
    sections
}

/// Programs read INFO by its fields: each that the genuine server has is in the same section here, whatever it says.
#[test]
fn info_has_every_field_of_the_genuine_server() {
    // Sections whose field names are data: the calls before INFO, their failures, the sizes of keys, I/O threads, and listening addresses.
    const NAMES_ARE_DATA: [&str; 6] = ["Commandstats", "Errorstats", "Latencystats", "Modules", "Keysizes", "Threads"];
    for program in Genuine::programs() {
        let Some(mut genuine) = Genuine::of(&program, &[], None) else { return };
        let level = match genuine.version {
            [7, 0] => "7.0",
            [7, 2] => "7.2",
            [8, 0] => "8.0",
            _ => continue,
        };
        let server = Server::with(&[("compatibility", level)]);
        let mut client = server.connect();
        for line in ["SET k v", "PING"] {
            genuine.ask(&line.split(' ').collect::<Vec<_>>());
            client.ask(line);
        }
        let theirs = fields(&genuine.ask(&["INFO", "everything"]).text());
        let ours: BTreeMap<_, _> = fields(&client.ask("INFO everything").text()).into_iter().collect();
        for (section, theirs) in theirs.iter().filter(|(name, _)| !NAMES_ARE_DATA.contains(&name.as_str())) {
            let ours = ours.get(section).unwrap_or_else(|| panic!("{level}: no section {section}"));
            let named = theirs.iter().filter(|field| !field.starts_with("listener"));
            let missing: Vec<_> = named.filter(|field| !ours.contains(field)).collect();
            assert!(missing.is_empty(), "{level}, {section}: {missing:?}");
        }
        // MEMORY STATS by the same names in the same order, of databases, too.
        let names = |reply: Value| -> Vec<String> {
            let Value::Array(parts) = reply else { panic!("{reply:?}") };
            let pairs = parts.chunks(2).flat_map(|pair| match &pair[1] {
                Value::Array(inner) => [pair].into_iter().chain(inner.chunks(2)).collect(),
                _ => vec![pair],
            });
            pairs.map(|pair| pair[0].text()).collect()
        };
        let [ours, theirs] = [client.ask("MEMORY STATS"), genuine.ask(&["MEMORY", "STATS"])].map(names);
        assert_eq!(ours, theirs, "{level}");
    }
}
