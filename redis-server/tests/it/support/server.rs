//! Our own server, in this process, on a free port.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redis_server::config::{Config, Launch};
use redis_server::exec::core::Instance;
use server_runtime::{Handle, Listen, Running};

use super::resp::{Value, parse, request};
use super::{PATIENCE, Random, until};

const LOOPBACK: &str = "127.0.0.1:0";

/// A server that ends with this value.
pub(crate) struct Server {
    pub(crate) instance: Arc<Instance>,
    pub(crate) addr: SocketAddr,
    running: Option<Running>,
    shuffler: Option<JoinHandle<()>>,
}

/// Workers among which connections are shuffled.
const SHUFFLED_WORKERS: usize = 4;

/// A configuration with these settings: `&[("maxclients", "10")]`.
pub(crate) fn config(settings: &[(String, String)]) -> Config {
    let mut flags: Vec<_> = ["--enable-debug-command", "yes"].map(str::to_owned).to_vec();
    flags.extend(settings.iter().flat_map(|(name, value)| [format!("--{name}"), value.clone()]));
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let launch = Launch::from_flags(&flags).unwrap();
    Config::load(&launch, std::iter::empty()).unwrap().0
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(settings: &[(&str, &str)]) -> Self {
        Self::at(LOOPBACK, settings)
    }

    /// A server that listens at this place, such as `tls:127.0.0.1:0`.
    pub(crate) fn at(place: &str, settings: &[(&str, &str)]) -> Self {
        let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::listening(place, config(&settings))
    }

    pub(crate) fn configured(config: Config) -> Self {
        Self::listening(LOOPBACK, config)
    }

    fn listening(place: &str, config: Config) -> Self {
        let place: Listen = place.parse().unwrap();
        let (running, instance) = redis_server::runtime::start_at(vec![place], config).unwrap();
        let addr = running.local_addrs()[0];
        Self { instance, addr, running: Some(running), shuffler: None }
    }

    /// A server with several workers, whose connections are sent from one to another all the time: left alone they would
    /// gather on one worker and never work against each other.
    pub(crate) fn shuffled() -> Self {
        let mut server = Self::with(&[("workers", &SHUFFLED_WORKERS.to_string())]);
        let handle = server.handle();
        let mut random = Random::new(7);
        server.shuffler = Some(thread::spawn(move || {
            while !handle.is_triggered() {
                let (from, to) = (random.below(SHUFFLED_WORKERS), random.below(SHUFFLED_WORKERS));
                handle.move_connections(from, to, 0.5);
                thread::sleep(Duration::from_millis(1));
            }
        }));
        server
    }

    pub(crate) fn handle(&self) -> Handle {
        self.running.as_ref().expect("it runs until it is dropped").shutdown_handle()
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.addr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown_handle().trigger();
            running.wait();
        }
        self.shuffler.take().map(JoinHandle::join);
    }
}

/// A client that waits for each reply.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    input: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, input: Vec::new() }
    }

    pub(crate) fn send<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.stream.write_all(&request(words)).unwrap();
    }

    /// Sends a command given as one line, words between spaces.
    pub(crate) fn ask(&mut self, line: &str) -> Value {
        let words: Vec<_> = line.split(' ').collect();
        self.send(&words);
        self.reply()
    }

    #[track_caller]
    pub(crate) fn reply(&mut self) -> Value {
        loop {
            if let Some((value, len)) = parse(&self.input).unwrap() {
                self.input.drain(..len);
                return value;
            }
            let mut chunk = [0; 64 * 1024];
            let count = test_peers::read(&mut self.stream, &mut chunk).expect("a reply in time");
            assert!(
                count > 0,
                "the server closed the connection; before that: {:?}",
                self.input.escape_ascii().to_string()
            );
            self.input.extend_from_slice(&chunk[..count]);
        }
    }

    /// The next byte; `None` when the connection is over.
    pub(crate) fn until_byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        matches!(test_peers::read(&mut self.stream, &mut byte), Ok(1)).then_some(byte[0])
    }

    /// Waits until the server closes the connection; returns what it said before.
    pub(crate) fn until_closed(&mut self) -> String {
        let mut rest = std::mem::take(&mut self.input);
        // A reset is an end too: the server had not read all that we sent.
        let _ = self.stream.read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// Waits until so many clients of the instance wait for keys.
pub(crate) fn until_blocked(instance: &Instance, count: i64) {
    until("blocked clients", || instance.blocked_clients(0) == count);
}
