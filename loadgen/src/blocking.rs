//! Connections that wait: for the few questions that are asked before a run, and beside it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use crate::load::{Endpoint, Tls};

/// An open connection.
pub(crate) trait Stream: Read + Write {
    /// Reads what there is, whatever signals come meanwhile: the system starts no read again that has a timeout.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}
impl<S: Read + Write> Stream for S {}

/// Opens a connection, on which each read and each write waits no longer than `timeout`.
pub(crate) fn connect(endpoint: &Endpoint, timeout: Duration) -> io::Result<Box<dyn Stream>> {
    match endpoint {
        Endpoint::Tcp(addresses, tls) => {
            let mut last = io::Error::new(ErrorKind::InvalidInput, "no address");
            for address in addresses {
                match TcpStream::connect_timeout(address, timeout) {
                    Ok(stream) => {
                        stream.set_nodelay(true)?;
                        stream.set_read_timeout(Some(timeout))?;
                        stream.set_write_timeout(Some(timeout))?;
                        return secured(stream, tls.as_ref());
                    }
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
        Endpoint::Unix(path, tls) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))?;
            secured(stream, tls.as_ref())
        }
        Endpoint::Udp(_) | Endpoint::Quic(..) => {
            Err(io::Error::new(ErrorKind::InvalidInput, "datagrams have no connection"))
        }
    }
}

/// An error for people.
pub(crate) fn explained(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "no answer in time".to_owned(),
        _ => error.to_string(),
    }
}

fn secured<S: Read + Write + 'static>(stream: S, tls: Option<&Tls>) -> io::Result<Box<dyn Stream>> {
    let Some(tls) = tls else {
        return Ok(Box::new(stream));
    };
    let client = ClientConnection::new(Arc::clone(&tls.config), tls.name.clone()).map_err(io::Error::other)?;
    Ok(Box::new(StreamOwned::new(client, stream)))
}
