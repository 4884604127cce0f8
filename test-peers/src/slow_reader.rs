//! A client that takes an answer slowly and steadily.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

/// Bytes that a slow reader takes at a time: 8,000 bytes a second.
const PIECE: usize = 400;

/// Between two of them.
const PAUSE: Duration = Duration::from_millis(50);

/// A connection whose system buffers 32 KiB, from its beginning. Over loopback it acknowledges 24,000 to 30,000 bytes at a time of what is read slowly. Reads
/// end after `patience`.
///
/// # Errors
/// Those of the socket.
pub fn slow_reader(addr: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let domain = Domain::for_address(addr);
    let socket = Socket::new(domain, Type::STREAM, None)?;
    socket.set_recv_buffer_size(16 * 1024)?;
    socket.connect(&addr.into())?;
    socket.set_read_timeout(Some(patience))?;
    Ok(socket.into())
}

/// Reads 8,000 bytes a second for so long, or to the end; all that came.
///
/// # Panics
/// If the connection is cut.
#[track_caller]
pub fn read_slowly(mut from: impl Read, time: Duration) -> Vec<u8> {
    let (began, mut all) = (Instant::now(), Vec::new());
    while began.elapsed() < time {
        let piece = from.by_ref().take(PIECE as u64).read_to_end(&mut all);
        match piece {
            Ok(PIECE) => {}
            Ok(_) => break,
            Err(error) => panic!("cut after {} bytes, {:?}: {error}", all.len(), began.elapsed()),
        }
        thread::sleep(PAUSE);
    }
    all
}
