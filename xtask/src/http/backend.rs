//! The Redis behind `/get`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::compare::{Pinning, memory_only, pinned};
use crate::process::{Server, free_port};

/// A Redis in which the key `foo` is `bar`.
pub(crate) struct Backend {
    place: String,
    /// Ends with this.
    _server: Option<Server>,
}

impl Backend {
    /// One that runs at HOST:PORT.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub(crate) fn running(place: &str) -> Result<Self> {
        set(place)?;
        Ok(Self { place: place.to_owned(), _server: None })
    }

    /// A genuine one of its own, on the cores of the load generator: it is not what is measured.
    ///
    /// # Errors
    /// When redis-server is not installed or does not start.
    pub(crate) fn start(pin: Option<&Pinning>, folder: &Path) -> Result<Self> {
        let port = free_port()?;
        let mut command = vec!["redis-server".to_owned()];
        command.extend(memory_only(port));
        let server = Server::start(&pinned(pin.map(Pinning::client), command), port, folder)?;
        let place = format!("127.0.0.1:{port}");
        set(&place)?;
        Ok(Self { place, _server: Some(server) })
    }

    /// HOST:PORT.
    pub(crate) fn place(&self) -> &str {
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
