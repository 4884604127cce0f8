//! Who is measured, and how each is built.

use std::path::Path;

use anyhow::{Context, Result};

use super::sample::Shape;
use crate::compare::{Pinning, pinned};
use crate::process::{Server, free_port};
use crate::programs;

/// A server that answers `/` and `/json` on the port that it is told.
pub(super) struct Subject {
    pub(super) name: &'static str,
    make: Make,
}

#[derive(Clone, Copy)]
enum Make {
    /// Our own, from the workspace.
    Ours,
    /// A peer, by its name in `benches/peers/install`.
    Peer(&'static str),
    /// Another, which answers `/get?key=…` from Redis.
    Proxy(&'static str),
}

/// Ours first: it is compared with each of the others.
pub(super) const SUBJECTS: [Subject; 11] = [
    Subject { name: "ours", make: Make::Ours },
    Subject { name: "floor", make: Make::Peer("floor") },
    Subject { name: "axum", make: Make::Peer("axum-default") },
    Subject { name: "actix-web", make: Make::Peer("actix") },
    Subject { name: "ntex", make: Make::Peer("ntex-tokio") },
    Subject { name: "may_minihttp", make: Make::Peer("minihttp") },
    Subject { name: "net/http", make: Make::Peer("nethttp") },
    Subject { name: "fasthttp", make: Make::Peer("fasthttp") },
    Subject { name: "go-redis", make: Make::Proxy("redisproxy") },
    Subject { name: "node", make: Make::Peer("node") },
    Subject { name: "bun", make: Make::Peer("bun") },
];

impl Subject {
    /// Whether it has something to answer.
    pub(super) fn answers(&self, shape: &Shape) -> bool {
        match self.make {
            Make::Ours => true,
            Make::Proxy(_) => shape.needs_redis(),
            Make::Peer(_) => !shape.needs_redis(),
        }
    }

    /// Builds or fetches it if need be; its command line without the port.
    pub(super) fn build(&self) -> Result<Vec<String>> {
        let program = match self.make {
            Make::Ours => programs::ours("http-server")?,
            Make::Peer(name) | Make::Proxy(name) => programs::peer(name)?,
        };
        Ok(vec![program.display().to_string()])
    }

    /// Starts it on a free port, with a Redis behind it if there is one.
    pub(super) fn start(
        &self,
        command: &[String],
        redis: Option<&str>,
        pin: Option<&Pinning>,
        folder: &Path,
    ) -> Result<Server> {
        let port = free_port()?;
        let mut command = command.to_vec();
        match self.make {
            Make::Ours => {
                command.extend(["--listen".to_owned(), format!("127.0.0.1:{port}")]);
                command.extend(redis.iter().flat_map(|place| ["--redis".to_owned(), (*place).to_owned()]));
            }
            Make::Proxy(_) => {
                command.push(port.to_string());
                command.extend(redis.map(str::to_owned));
            }
            Make::Peer(_) => command.push(port.to_string()),
        }
        let command = pinned(pin.map(Pinning::server), command);
        Server::start_when(answers, &command, port, folder).with_context(|| self.name)
    }
}

/// Whether a server on this port of the loopback interface answers `/` with 200.
pub(crate) fn answers(port: u16) -> bool {
    use std::io::{Read, Write};
    let get = || -> std::io::Result<bool> {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(&status == b"HTTP/1.1 200")
    };
    get().unwrap_or(false)
}
