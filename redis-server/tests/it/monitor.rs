//! MONITOR's lines, and the output of clients that do not read: what waits for them has a limit.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::support::genuine::Genuine;
use super::support::process::Process;
use super::support::resp::{Value, request};
use super::support::server::{Client, Server};
use super::support::{PATIENCE, until};

/// Bytes of each value that bystanders write: a monitor's line has a little more.
const VALUE: usize = 64 * 1024;
/// More than the sockets of a connection hold between them.
const FLOOD: usize = 64 << 20;

/// Asks on a connection that other bytes come on, too, and reads until `end` has come or the server has closed it.
fn exchange(stream: &mut (impl Read + Write), words: &[&[&str]], end: &[u8]) -> String {
    words.iter().for_each(|words| stream.write_all(&request(words)).unwrap());
    let mut said = Vec::new();
    while end.is_empty() || !said.ends_with(end) {
        let mut chunk = [0; 16 * 1024];
        match test_peers::read(stream, &mut chunk).unwrap() {
            0 => break,
            count => said.extend_from_slice(&chunk[..count]),
        }
    }
    String::from_utf8(said).unwrap()
}

/// Behind the reply to QUIT nothing is sent, the line of QUIT itself neither.
#[test]
fn a_monitor_that_quits_is_sent_no_line_of_it() {
    fn check(mut stream: impl Read + Write) {
        let said = exchange(&mut stream, &[&["MONITOR"], &["PING"], &["QUIT"]], b"");
        let lines: Vec<_> = said.lines().collect();
        assert!(matches!(lines[..], ["+OK", "+PONG", shown, "+OK"] if shown.ends_with(r#""PING""#)), "{said}");
    }
    check(Server::start().connect().stream);
    if let Some(genuine) = Genuine::start(&[]) {
        check(genuine.connect());
    }
}

/// The time of a line is that of its call to the microsecond: not all of two hundred are whole milliseconds.
#[test]
fn lines_have_microseconds() {
    fn check(mut stream: impl Read + Write) {
        let pings = vec![&["PING"][..]; 200];
        let said =
            exchange(&mut stream, &[&[&["MONITOR"][..]], &pings[..], &[&["ECHO", "end"]]].concat(), b"\"end\"\r\n");
        let times = said.lines().filter(|line| line.contains("] \"PING\"")).map(|line| {
            let (seconds, micros) = line[1..].split_once(' ').unwrap().0.split_once('.').unwrap();
            assert_eq!(micros.len(), 6, "{line}");
            seconds.parse::<u64>().unwrap() * 1_000_000 + micros.parse::<u64>().unwrap()
        });
        let times: Vec<_> = times.collect();
        assert_eq!(times.len(), 200);
        assert!(times.is_sorted());
        assert!(times.iter().any(|time| time % 1000 != 0), "{times:?}");
    }
    check(Server::start().connect().stream);
    if let Some(genuine) = Genuine::start(&[]) {
        check(genuine.connect());
    }
}

/// A command that waits is shown when it begins to, and not again when it is served.
#[test]
fn a_command_that_waits_is_shown_once() {
    fn check([mut monitor, mut waiter, mut pusher]: [impl Read + Write; 3]) {
        assert_eq!(exchange(&mut monitor, &[&["MONITOR"]], b"\r\n"), "+OK\r\n");
        waiter.write_all(&request(&["BLPOP", "queue", "0"])).unwrap();
        assert!(exchange(&mut monitor, &[], b"\r\n").ends_with("\"BLPOP\" \"queue\" \"0\"\r\n"));
        assert_eq!(
            exchange(&mut pusher, &[&["LPUSH", "queue", "x"], &["ECHO", "end"]], b"end\r\n"),
            ":1\r\n$3\r\nend\r\n"
        );
        assert_eq!(exchange(&mut waiter, &[], b"x\r\n"), "*2\r\n$5\r\nqueue\r\n$1\r\nx\r\n");
        let shown = exchange(&mut monitor, &[], b"\"end\"\r\n");
        let shown: Vec<_> = shown.lines().map(|line| line.split_once("] ").unwrap().1).collect();
        assert_eq!(shown, [r#""LPUSH" "queue" "x""#, r#""ECHO" "end""#]);
    }
    let server = Server::start();
    check([(); 3].map(|()| server.connect().stream));
    if let Some(genuine) = Genuine::start(&[]) {
        check([(); 3].map(|()| genuine.connect()));
    }
}

/// How many MONITOR lines a client that reads none gets before it is cut off; `None` if that is not within [`FLOOD`].
fn lines_until_cut_off(mut monitor: impl Read + Write, mut bystander: impl Read + Write) -> Option<usize> {
    assert_eq!(exchange(&mut monitor, &[&["MONITOR"]], b"\r\n"), "+OK\r\n");
    let value = "x".repeat(VALUE);
    let mut ask = |words: &[&str], end: &[u8]| exchange(&mut bystander, &[words], end);
    (0..FLOOD / VALUE).find(|_| {
        assert_eq!(ask(&["SET", "key", &value], b"\r\n"), "+OK\r\n");
        // The reply begins with its length.
        let list = ask(&["CLIENT", "LIST"], b"\n\r\n");
        !list.contains("flags=O")
    })
}

/// A monitor is a client like any other: `client-output-buffer-limit normal` bounds what waits for it.
#[test]
fn a_monitor_that_does_not_read_is_cut_off() {
    let settings = [("client-output-buffer-limit", "normal 4mb 0 0")];
    let server = Server::with(&settings);
    let cut = lines_until_cut_off(server.connect().stream, server.connect().stream);
    println!("cut off behind {cut:?} lines of {VALUE} bytes");
    assert!(cut.is_some(), "{FLOOD} bytes wait for a client that may have 4 MB");
    let mut observer = server.connect();
    observer.ask("CONFIG SET compatibility 8.0");
    let info = observer.ask("INFO stats").text();
    assert!(info.contains("client_output_buffer_limit_disconnections:1\r\n"), "{info}");
    let Some(mut genuine) = Genuine::start(&settings.map(|(name, value)| (name.to_owned(), value.to_owned()))) else {
        return;
    };
    let addr = genuine.listen();
    let [monitor, bystander] = [(); 2].map(|()| TcpStream::connect(addr).unwrap());
    assert!(lines_until_cut_off(monitor, bystander).is_some());
    // Without a limit, which is the default, neither cuts it off.
    genuine.ask(&["CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0"]);
    let [monitor, bystander] = [(); 2].map(|()| TcpStream::connect(addr).unwrap());
    assert_eq!(lines_until_cut_off(monitor, bystander), None);
    let server = Server::start();
    assert_eq!(lines_until_cut_off(server.connect().stream, server.connect().stream), None);
}

/// The time above a soft limit goes on while replies wait for the disk.
#[test]
fn a_soft_limit_holds_while_output_waits_for_the_disk() {
    let settings = [
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("enable-debug-command", "yes"),
        ("client-output-buffer-limit", "normal 0 1mb 1"),
    ];
    let server = Process::start("soft-limit", &settings);
    let mut client = server.connect();
    let value = "x".repeat(VALUE);
    assert_eq!(exchange(&mut client, &[&["SET", "key", &value]], b"\r\n"), "+OK\r\n");
    // No write ends before this test does.
    let micros = (4 * PATIENCE).as_micros().to_string();
    assert_eq!(exchange(&mut client, &[&["DEBUG", "AOF-FLUSH-SLEEP", &micros]], b"\r\n"), "+OK\r\n");
    let gets = vec![&["GET", "key"][..]; 4 * (1 << 20) / VALUE];
    let start = Instant::now();
    let said = exchange(&mut client, &[&[&["SET", "other", "1"][..]], &gets[..]].concat(), b"");
    println!("cut off behind {:?}", start.elapsed());
    assert_eq!(said, "", "nothing is told that is not on disk");
}

/// A client that sends all before it reads is served, however much that is, as by Redis: nothing but
/// `client-output-buffer-limit` bounds what waits.
#[test]
fn a_client_may_write_everything_before_it_reads() {
    const REQUESTS: usize = 300_000;
    const LEN: usize = 1000;
    fn check(mut client: Client) {
        client.send(&["SET", "key", &"x".repeat(LEN)]);
        assert_eq!(client.reply(), Value::Status(b"OK".into()));
        client.stream.write_all(&request(&["GET", "key"]).repeat(REQUESTS)).unwrap();
        for _ in 0..REQUESTS {
            assert_eq!(client.reply().text().len(), LEN);
        }
    }
    let server = Server::start();
    check(server.connect());
    if let Some(mut genuine) = Genuine::start(&[]) {
        check(Client::connect(genuine.listen()));
    }
    until("it has gone", || server.instance.clients().is_empty());
}
