//! The Redis behind `/get`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use xtask::process::Server;

use crate::compare::memory_only;

/// A genuine Redis in which the key `foo` is `bar`.
pub(super) struct Backend {
    place: String,
    /// Ends with this.
    _server: Server,
}

impl Backend {
    /// Starts one.
    ///
    /// # Errors
    /// When redis-server is not installed or does not start.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        let port = test_peers::free_port();
        let mut command = vec!["redis-server".to_owned()];
        command.extend(memory_only(port));
        let server = Server::start(&command, port, folder)?;
        let place = format!("127.0.0.1:{port}");
        set(&place)?;
        Ok(Self { place, _server: server })
    }

    /// HOST:PORT.
    pub(super) fn place(&self) -> &str {
        &self.place
    }
}

fn set(place: &str) -> Result<()> {
    let mut stream = TcpStream::connect(place).with_context(|| format!("no Redis at {place}"))?;
    stream.write_all(b"SET foo bar\r\n")?;
    let mut reply = [0; 5];
    stream.read_exact(&mut reply)?;
    ensure!(&reply == b"+OK\r\n", "{place} does not take a key: {}", String::from_utf8_lossy(&reply));
    Ok(())
}
