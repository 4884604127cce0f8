//! Ways to a server: sockets, cut sockets, no sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use redis_server::exec::core::Worker;
use redis_server::runtime::embedded::{self, Session};

use crate::support::Random;
use crate::support::genuine::Genuine;
use crate::support::server::Server;

/// One connection.
pub(crate) trait Wire {
    fn send(&mut self, bytes: &[u8]);
    /// The received bytes: `None` if there are none after a moment, empty at the connection's end.
    fn receive(&mut self) -> Option<Vec<u8>>;
}

/// A server to talk to.
pub(crate) trait Peer {
    fn connect(&mut self) -> Box<dyn Wire>;
    /// Number of clients that wait for keys.
    fn blocked(&mut self) -> i64;
    /// Number of connections.
    fn connected(&mut self) -> i64;
}

/// How long a socket is looked at for something to come.
const MOMENT: Duration = Duration::from_millis(5);

struct Socket<S> {
    stream: S,
    /// Where requests are cut, if they are.
    cuts: Option<Random>,
}

impl<S: Read + Write> Wire for Socket<S> {
    fn send(&mut self, mut bytes: &[u8]) {
        while let Some(random) = self.cuts.as_mut().filter(|_| bytes.len() > 1) {
            // Mostly short pieces, so that every command is cut, but not endless ones of a long argument.
            let limit = if random.below(4) == 0 { bytes.len() } else { bytes.len().min(40) };
            let (head, tail) = bytes.split_at(1 + random.below(limit));
            // The connection may have been ended by the server, as the transcript may say later.
            let _ = self.stream.write_all(head);
            std::thread::yield_now();
            bytes = tail;
        }
        let _ = self.stream.write_all(bytes);
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut chunk = vec![0; 64 * 1024];
        match test_peers::read(&mut self.stream, &mut chunk) {
            Ok(count) => {
                chunk.truncate(count);
                Some(chunk)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
            Err(_) => Some(Vec::new()),
        }
    }
}

fn tcp(stream: TcpStream, cuts: Option<Random>) -> Box<dyn Wire> {
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(MOMENT)).unwrap();
    stream.set_write_timeout(Some(crate::support::PATIENCE)).unwrap();
    Box::new(Socket { stream, cuts })
}

/// Our server over TCP.
pub(crate) struct Tcp {
    pub(crate) server: Server,
    /// Seed of the places where requests are cut, if they are.
    pub(crate) cut: Option<u64>,
}

impl Peer for Tcp {
    fn connect(&mut self) -> Box<dyn Wire> {
        let cuts = self.cut.as_mut().map(|seed| {
            *seed += 2;
            Random::new(*seed)
        });
        tcp(TcpStream::connect(self.server.addr).unwrap(), cuts)
    }

    fn blocked(&mut self) -> i64 {
        self.server.instance.blocked_clients(0)
    }

    fn connected(&mut self) -> i64 {
        self.server.instance.clients().len() as i64
    }
}

impl Peer for Genuine {
    fn connect(&mut self) -> Box<dyn Wire> {
        let stream: UnixStream = Self::connect(self);
        stream.set_read_timeout(Some(MOMENT)).unwrap();
        Box::new(Socket { stream, cuts: None })
    }

    fn blocked(&mut self) -> i64 {
        self.clients_figure("blocked_clients:")
    }

    fn connected(&mut self) -> i64 {
        self.clients_figure("connected_clients:")
    }
}

/// Our server without sockets.
pub(crate) struct InProcess(pub(crate) Rc<Worker>);

impl Peer for InProcess {
    fn connect(&mut self) -> Box<dyn Wire> {
        Box::new(Embedded { session: Session::new(Rc::clone(&self.0)), worker: Rc::clone(&self.0) })
    }

    fn blocked(&mut self) -> i64 {
        self.0.instance.blocked_clients(0)
    }

    fn connected(&mut self) -> i64 {
        self.0.instance.clients().len() as i64
    }
}

struct Embedded {
    session: Session,
    worker: Rc<Worker>,
}

impl Wire for Embedded {
    fn send(&mut self, bytes: &[u8]) {
        self.session.receive(bytes);
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let out = self.session.transmit();
        if out.is_empty() && !self.session.is_closed() {
            // Only time can bring something now.
            std::thread::sleep(Duration::from_millis(1));
            embedded::expire(&self.worker.instance);
            return None;
        }
        Some(out)
    }
}
