//! Live figures over HTTP, for Prometheus to scrape.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::blocking::Stream as _;
use crate::output::prometheus;
use crate::watch::Progress;

/// The time-out of a metrics request.
const PATIENCE: Duration = Duration::from_secs(1);

/// The longest question.
const LONGEST_HEAD: usize = 8 << 10;

/// A server of the figures of the run under way; it ends with the process.
#[derive(Debug)]
pub(super) struct Metrics {
    address: SocketAddr,
    text: Arc<Mutex<String>>,
}

impl Metrics {
    /// Listens.
    ///
    /// # Errors
    /// When the address cannot be listened on, or there is no thread for it.
    pub(super) fn serve(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let metrics = Self { address: listener.local_addr()?, text: Arc::default() };
        let text = Arc::clone(&metrics.text);
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            // A bad or closed request gets nothing; the next one is served.
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &text);
            }
        })?;
        Ok(metrics)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells a run as it is now.
    pub(super) fn show(&self, progress: &Progress<'_>) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = prometheus(progress);
    }
}

fn answer(mut stream: TcpStream, text: &Mutex<String>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = stream.receive(&mut buffer)?;
        if length == 0 || head.len() > LONGEST_HEAD {
            return Ok(());
        }
        head.extend_from_slice(&buffer[..length]);
    }
    let is_known = head.starts_with(b"GET /metrics ") || head.starts_with(b"GET / ");
    let (status, body) = if is_known {
        ("200 OK", text.lock().unwrap_or_else(PoisonError::into_inner).clone())
    } else {
        ("404 Not Found", "GET /metrics\n".to_owned())
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}
