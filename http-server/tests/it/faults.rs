//! Clients that are slow, rude, many or large.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use socket2::SockRef;

use crate::support::{self, Client, Server, options, until};

/// A server with time-outs short enough for a test.
fn impatient() -> Server {
    Server::with(support::impatient(options()))
}

#[test]
fn slow_heads() {
    let server = impatient();
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: h\r\n");
    // Every new header line would keep a server waiting that counts from the last byte.
    let mut writer = client.stream.try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        while writer.write_all(b"X: y\r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.header("connection")), (408, Some("close")));
    assert!(client.is_closed());
    drop(client);
    dripping.join().unwrap();
}

#[test]
fn slow_bodies() {
    let server = impatient();
    for head in ["Content-Length: 100000\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut client = server.client();
        client.send(&format!("POST /t/count HTTP/1.1\r\nHost: h\r\n{head}\r\n"));
        let mut writer = client.stream.try_clone().unwrap();
        let dripping = std::thread::spawn(move || {
            // As data these are so many bytes, as chunks one byte each.
            while writer.write_all(b"1\r\nx\r\n").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let answer = client.answer().unwrap();
        assert_eq!((answer.status, answer.header("connection")), (408, Some("close")), "{head}");
        drop(client);
        dripping.join().unwrap();
    }
}

#[test]
fn slow_handlers() {
    let mut options = options();
    options.timeouts.handler = Some(Duration::from_millis(50));
    let server = Server::with(options);
    let mut client = server.client();
    let answer = client.get("/t/slow").unwrap();
    assert_eq!((answer.status, answer.text()), (503, "the answer took too long\n"));
    assert_eq!(client.get("/ann").unwrap().status, 200, "the connection goes on");
    // A handler that waits for a body waits no longer; a later part of it would be taken for a request.
    client.send("POST /t/count HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhello");
    let answer = client.answer().unwrap();
    assert_eq!((answer.status, answer.header("connection")), (503, Some("close")));
}

#[test]
fn idle_connections_end_without_a_word() {
    let mut options = options();
    // A busy machine may let one of them wait before it asks.
    options.timeouts.idle = Duration::from_secs(1);
    let server = Server::with(options);
    let mut fresh = server.client();
    let mut used = server.client();
    assert_eq!(used.get("/").unwrap().status, 200);
    assert!(fresh.is_closed() && used.is_closed());
}

#[test]
fn clients_that_do_not_read() {
    let server = impatient();
    let mut client = server.client();
    SockRef::from(&client.stream).set_recv_buffer_size(4096).unwrap();
    client.send("GET /t/big HTTP/1.1\r\nHost: h\r\n\r\n");
    // More than the socket's buffers take: the server waits, and gives up.
    until(|| server.running.connections() == 0);
    drop(client);
    // A pipeline of which nothing is read is not worked off into memory.
    let mut greedy = server.client();
    greedy.stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let requests = "GET /t/text HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1000);
    while greedy.stream.write_all(requests.as_bytes()).is_ok() {}
    until(|| server.running.connections() == 0);
}

#[test]
fn half_closed_clients_get_their_answers() {
    let server = Server::start();
    let mut client = server.client();
    client
        .send("GET /t/slow HTTP/1.1\r\nHost: h\r\n\r\nPOST /t/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    client.half_close();
    assert_eq!(client.answer().unwrap().text(), "slow");
    assert_eq!(client.answer().unwrap().text(), "hi");
    assert!(client.is_closed());
    // Half a request gets none.
    for half in ["GET / HT", "POST /t/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhi"] {
        let mut client = server.client();
        client.send(half);
        client.half_close();
        assert!(client.answer().is_none_or(|answer| answer.status == 400), "{half}");
    }
}

#[test]
fn resets_in_the_middle_of_anything() {
    let server = Server::start();
    for path in ["/t/big", "/t/slow", "/t/stream", "/"] {
        for _ in 0..20 {
            let mut client = server.client();
            client.send(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").repeat(3));
            let mut some = [0; 10];
            if path != "/t/slow" {
                client.stream.read_exact(&mut some).unwrap();
            }
            SockRef::from(&client.stream).set_linger(Some(Duration::ZERO)).unwrap();
        }
        let mut upload = server.client();
        upload.send("POST /t/count HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nx");
        SockRef::from(&upload.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }
    until(|| server.running.connections() == 0);
    assert_eq!(server.get("/").status, 200);
}

#[test]
fn a_body_of_100_mb() {
    let megabyte = vec![b'x'; 1024 * 1024];
    let upload = |client: &mut Client| {
        client.send("POST /t/count HTTP/1.1\r\nHost: h\r\nContent-Length: 104857600\r\n\r\n");
        (0..100).try_for_each(|_| client.stream.write_all(&megabyte))
    };
    // Refused before it is read; the client gets to see why, although it sends on.
    let server = Server::start();
    let mut client = server.client();
    let _ = upload(&mut client);
    let mut answer = [0; 12];
    // A client that sends more than the server is willing to throw away may find a reset in place of the answer.
    if client.stream.read_exact(&mut answer).is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 413");
    }
    let mut client = server.client();
    client.send("POST /t/count HTTP/1.1\r\nHost: h\r\nContent-Length: 104857600\r\n\r\n");
    assert_eq!(client.answer().unwrap().status, 413);
    // Where it is allowed, it streams through.
    let mut options = options();
    options.limits.body = 200 * 1024 * 1024;
    let server = Server::with(options);
    let mut client = server.client();
    upload(&mut client).unwrap();
    assert_eq!(client.answer().unwrap().text(), "104857600");
}

/// The server as a process: its own limit of open files, and ours.
struct Process(Child, SocketAddr);

impl Process {
    fn start(flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_http-server"));
        command.args(["--listen", "127.0.0.1:0"]).args(flags).stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = log.find(|line| line.as_ref().unwrap().contains("ready to accept")).unwrap().unwrap();
        // The log's pipe must not fill up.
        std::thread::spawn(move || log.for_each(drop));
        let addr = ready.split_whitespace().last().unwrap().parse().unwrap();
        Self(child, addr)
    }

    fn resident_kib(&self) -> u64 {
        self.status("VmRSS:")
    }

    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Many answers that are to be compressed at one time are compressed by as many threads as there are processors.
#[test]
fn a_crowd_that_wants_compression() {
    let root = crate::support::folder("crowd");
    let text: String = (0..6_000_u32).map(|number| format!("{} ", number.wrapping_mul(2_654_435_761))).collect();
    std::fs::write(root.join("big.txt"), text).unwrap();
    let server = Process::start(&["--workers", "2", "--root", root.to_str().unwrap()]);
    let clients = crowd(server.1, 300, "GET /big.txt HTTP/1.1\r\nHost: h\r\nAccept-Encoding: br\r\n\r\n");
    let mut most = 0;
    for mut client in clients {
        most = most.max(server.status("Threads:"));
        assert_eq!(client.answer().unwrap().header("content-encoding"), Some("br"));
    }
    eprintln!("{most} threads");
    assert!(most < 150, "{most} threads for two workers");
}

/// So many clients, each of which has sent this.
fn crowd(addr: SocketAddr, count: usize, request: &str) -> Vec<Client> {
    let clients = (0..count).map(|_| {
        let mut client = Client::connect(addr);
        client.send(request);
        client
    });
    clients.collect()
}

/// A file that the kernel has in its caches needs no threads that wait for a disk.
#[test]
#[cfg(target_os = "linux")]
fn a_crowd_that_wants_files() {
    let root = crate::support::folder("cached");
    let content = "0123456789abcdef".repeat(20_000);
    std::fs::write(root.join("big.txt"), &content).unwrap();
    if let Err(error) = read_if_cached(&root.join("big.txt")) {
        eprintln!("the file system does not say what it has in its caches: {error}");
        return;
    }
    let server = Process::start(&["--workers", "2", "--root", root.to_str().unwrap()]);
    let mut first = Client::connect(server.1);
    assert!(first.get("/big.txt").unwrap().text() == content);
    let before = server.status("Threads:");
    for mut client in crowd(server.1, 200, "GET /big.txt HTTP/1.1\r\nHost: h\r\n\r\n") {
        assert!(client.answer().unwrap().text() == content);
    }
    let after = server.status("Threads:");
    // A look at a name that is being changed is made once more by a thread.
    assert!(after <= before + 8, "{before} threads, then {after}");
}

#[cfg(target_os = "linux")]
fn read_if_cached(path: &std::path::Path) -> std::io::Result<usize> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let (file, mut bytes) = (std::fs::File::open(path)?, [0; 16]);
    Ok(preadv2(file, &mut [std::io::IoSliceMut::new(&mut bytes)], 0, ReadWriteFlags::NOWAIT)?)
}

#[test]
fn ten_thousand_idle_connections() {
    const COUNT: usize = 10_000;
    let (_, hard) = rlimit();
    if hard < COUNT as u64 + 500 {
        return test_peers::skip(&format!("only {hard} files may be open"));
    }
    let server = Process::start(&["--max-connections", "11000", "--workers", "2"]);
    let before = server.resident_kib();
    let mut idle = Vec::new();
    for number in 0..COUNT {
        let mut stream = TcpStream::connect(server.1).unwrap();
        if number % 2 == 0 {
            // Half of them in the middle of a head: they must not hold the buffer that they arrived in.
            stream.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        }
        idle.push(stream);
    }
    let mut client = Client::connect(server.1);
    for _ in 0..100 {
        assert_eq!(client.get("/").unwrap().text(), "Hello from Rust");
    }
    let growth = server.resident_kib().saturating_sub(before);
    assert!(growth < 40 * 1024, "{growth} KiB for {COUNT} idle connections");
    eprintln!("{COUNT} idle connections: {growth} KiB");
}

/// Raises the limit of open files as far as allowed.
fn rlimit() -> (u64, u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    (limit.current.unwrap_or(u64::MAX), hard)
}
