//! A front in this process, a client that sees every byte, and genuine Redis servers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use clap::Parser;
use http_server::{Args, api, routes, serve};
use server_runtime::Running;

/// A server of ours.
pub(super) struct Front {
    running: Option<Running>,
    pub(super) addr: SocketAddr,
}

impl Front {
    /// With these flags, at a free port, on two workers.
    pub(super) fn start(flags: &[&str]) -> Self {
        let fixed = ["http-server", "--listen", "127.0.0.1:0", "--workers", "2"];
        let args = Args::try_parse_from(fixed.iter().chain(flags)).unwrap();
        let mut options = args.options().unwrap();
        let router = routes::router().merge(api::routes(&args.redis, &mut options).unwrap());
        let running = serve(router, options).unwrap();
        Self { addr: running.local_addrs()[0], running: Some(running) }
    }

    pub(super) fn connect(&self) -> Http {
        let stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_nodelay(true).unwrap();
        Http(BufReader::new(stream))
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.connect().send("GET", path, &[], b"")
    }

    pub(super) fn put(&self, path: &str) -> Answer {
        self.connect().send("PUT", path, &[], b"")
    }

    pub(super) fn post(&self, path: &str, body: &str) -> Answer {
        self.connect().send("POST", path, &[], body.as_bytes())
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown_handle().trigger();
            running.wait();
        }
    }
}

/// A connection to it.
pub(super) struct Http(pub(super) BufReader<TcpStream>);

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Http {
    pub(super) fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.ask(method, path, headers, body);
        self.answer(method == "HEAD")
    }

    pub(super) fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let has = |name: &str| headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        if !has("host") {
            request.push_str("Host: localhost\r\n");
        }
        if method == "POST" && !has("content-type") {
            // A type that no form has: otherwise a request could be any page's, and writes nothing.
            request.push_str("Content-Type: application/octet-stream\r\n");
        }
        if !body.is_empty() {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        headers.iter().for_each(|(name, value)| request.push_str(&format!("{name}: {value}\r\n")));
        request.push_str("\r\n");
        let stream = self.0.get_mut();
        stream.write_all(request.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
    }

    /// The head of an answer: its status and lines.
    pub(super) fn head(&mut self) -> (u16, String) {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.0.read_line(&mut head).unwrap() > 0, "ended within {head:?}");
        }
        (head[9..12].parse().unwrap(), head)
    }

    pub(super) fn answer(&mut self, without_body: bool) -> Answer {
        let (status, head) = self.head();
        let len = header(&head, "content-length").map_or(0, |len| len.parse().unwrap());
        let mut body = vec![0; if without_body || status == 304 { 0 } else { len }];
        self.0.read_exact(&mut body).unwrap();
        Answer { status, head, body }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)))
        .map(|(_, value)| value)
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A directory of a test's own, gone at its end.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("http-redis-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A genuine server, reached by a Unix socket.
pub(super) struct Genuine {
    server: Child,
    pub(super) folder: Folder,
}

impl Genuine {
    /// Prints why not if there is none.
    pub(super) fn start(settings: &[&str]) -> Option<Self> {
        let folder = Folder::new();
        let Some(server) = spawn(&folder.0, settings) else {
            test_peers::skip("there is no redis-server");
            return None;
        };
        Some(Self { server, folder })
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.0.join("socket")
    }

    pub(super) fn place(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    pub(super) fn id(&self) -> u32 {
        self.server.id()
    }

    /// Ends it at once, as a crash would.
    pub(super) fn kill(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }

    pub(super) fn start_again(&mut self) {
        self.server = spawn(&self.folder.0, &[]).unwrap();
    }
}

impl Drop for Genuine {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Starts it and waits until it answers.
fn spawn(folder: &Path, settings: &[&str]) -> Option<Child> {
    let _ = std::fs::remove_file(folder.join("socket"));
    let mut server = Command::new("redis-server")
        .args(["--unixsocket", "socket", "--appendonly", "no", "--save", "", "--daemonize", "no"])
        .args(if settings.contains(&"--port") || settings.contains(&"--tls-port") { &[][..] } else { &["--port", "0"] })
        .args(settings)
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .ok()?;
    for _ in 0..1500 {
        if let Ok(mut stream) = UnixStream::connect(folder.join("socket"))
            && stream.write_all(b"PING\r\n").is_ok()
            && test_peers::read(&mut stream, &mut [0; 64]).is_ok_and(|read| read > 0)
        {
            return Some(server);
        }
        assert!(server.try_wait().unwrap().is_none(), "redis-server ended: {settings:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("redis-server does not answer");
}
