//! A TCP connection of which its runtime hears when it first has to wait.
//!
//! A client that opens a connection for one request has sent it, more often than not, by the time that the connection is accepted. It is
//! read, answered and closed then without a word to epoll: two system calls and a wake-up less of some seven. A connection that sends more
//! than a small request is registered with the runtime, too. Larger reads, and the same scheduling as other connections, are then worth
//! more.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::mem;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::send_file::{send_file, send_when_ready};

/// Bytes that are read at a time before the runtime knows: room for these is made by zeroes.
const FIRST_READ: usize = 2048;

/// More follows at once: it may leave in the same packet (send(2)).
#[cfg(target_os = "linux")]
const MORE: i32 = libc::MSG_MORE | libc::MSG_NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const MORE: i32 = 0;

/// One end of a TCP connection.
pub struct Tcp(State);

enum State {
    /// As it was accepted, not blocking.
    New(std::net::TcpStream),
    Registered(TcpStream),
    /// The runtime could not take it.
    Lost,
}

impl Tcp {
    /// `socket` is not blocking.
    pub(crate) fn new(socket: std::net::TcpStream) -> Self {
        Self(State::New(socket))
    }

    /// The socket, free of the runtime it was on.
    pub(crate) fn into_std(self) -> io::Result<std::net::TcpStream> {
        match self.0 {
            State::New(socket) => Ok(socket),
            State::Registered(stream) => stream.into_std(),
            State::Lost => Err(lost()),
        }
    }

    /// The result of `now` on a socket that the runtime does not know. `None` if the runtime knows it, or if `now` would block: the socket
    /// is then registered.
    fn at_once<T>(
        &mut self,
        now: impl FnOnce(&mut std::net::TcpStream) -> io::Result<T>,
    ) -> Option<Poll<io::Result<T>>> {
        let State::New(socket) = &mut self.0 else { return None };
        match now(socket) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.register().err().map(|error| Poll::Ready(Err(error)))
            }
            done => Some(Poll::Ready(done)),
        }
    }

    pub(crate) fn register(&mut self) -> io::Result<()> {
        self.0 = match mem::replace(&mut self.0, State::Lost) {
            State::New(socket) => State::Registered(TcpStream::from_std(socket)?),
            known => known,
        };
        Ok(())
    }

    /// [`Stream::poll_send_file`](crate::Stream::poll_send_file).
    pub(crate) fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: BorrowedFd<'_>,
        offset: &mut u64,
        count: usize,
    ) -> Poll<io::Result<usize>> {
        self.register()?;
        self.then(|stream| {
            send_when_ready(
                || stream.poll_write_ready(cx),
                || stream.try_io(Interest::WRITABLE, || send_file(stream.as_fd(), file, offset, count)),
            )
        })
    }

    /// [`Stream::poll_write_head`](crate::Stream::poll_write_head).
    pub(crate) fn poll_write_head(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.register()?;
        self.then(|stream| {
            send_when_ready(
                || stream.poll_write_ready(cx),
                || stream.try_io(Interest::WRITABLE, || SockRef::from(&*stream).send_with_flags(bytes, MORE)),
            )
        })
    }

    /// Goes on with the stream that the runtime knows.
    #[inline]
    fn then<T>(&mut self, poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &mut self.0 {
            State::Registered(stream) => poll(Pin::new(stream)),
            State::New(_) | State::Lost => Poll::Ready(Err(lost())),
        }
    }
}

fn lost() -> io::Error {
    ErrorKind::NotConnected.into()
}

impl AsyncRead for Tcp {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let tcp = self.get_mut();
        let room = buf.remaining().min(FIRST_READ);
        if let Some(read) = tcp.at_once(|socket| socket.read(buf.initialize_unfilled_to(room))) {
            let count = ready!(read)?;
            buf.advance(count);
            if count == FIRST_READ {
                tcp.register()?;
            }
            return Poll::Ready(Ok(()));
        }
        tcp.then(|stream| stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Tcp {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let tcp = self.get_mut();
        tcp.at_once(|socket| socket.write(bytes)).unwrap_or_else(|| tcp.then(|stream| stream.poll_write(cx, bytes)))
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tcp = self.get_mut();
        tcp.at_once(|socket| socket.write_vectored(slices))
            .unwrap_or_else(|| tcp.then(|stream| stream.poll_write_vectored(cx, slices)))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// There is nothing to flush.
    #[inline]
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tcp = self.get_mut();
        let shut = |socket: &mut std::net::TcpStream| match socket.shutdown(Shutdown::Write) {
            // The other end has reset the connection.
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
            shut => shut,
        };
        tcp.at_once(shut).unwrap_or_else(|| tcp.then(|stream| stream.poll_shutdown(cx)))
    }
}

impl AsFd for Tcp {
    /// # Panics
    /// When the runtime could not take the socket, which a call has told by its error.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            State::New(socket) => socket.as_fd(),
            State::Registered(stream) => stream.as_fd(),
            State::Lost => panic!("this connection has failed: it has no socket any more"),
        }
    }
}

impl fmt::Debug for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            State::New(socket) => socket.fmt(f),
            State::Registered(stream) => stream.fmt(f),
            State::Lost => f.write_str("Lost"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A connection that was just accepted, and the client's end of it.
    fn accepted() -> (Tcp, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        (Tcp::new(socket), client)
    }

    fn is_new(tcp: &Tcp) -> bool {
        matches!(tcp.0, State::New(_))
    }

    #[tokio::test(flavor = "current_thread")]
    async fn arrived_requests_are_answered_without_runtime_registration() {
        let (mut tcp, mut client) = accepted();
        client.write_all(&[7; FIRST_READ - 1]).unwrap();
        let mut read = vec![0; FIRST_READ + 1];
        assert_eq!(tcp.read(&mut read).await.unwrap(), FIRST_READ - 1);
        assert_eq!(read[..FIRST_READ - 1], [7; FIRST_READ - 1]);
        assert_eq!(tcp.write_vectored(&[IoSlice::new(b"an"), IoSlice::new(b"swer")]).await.unwrap(), 6);
        tcp.flush().await.unwrap();
        assert!(is_new(&tcp), "nothing had to be waited for");
        tcp.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "answer");
        drop(client);
        assert_eq!(tcp.read(&mut [0; 10]).await.unwrap(), 0);
        assert!(is_new(&tcp));
        // Another worker's runtime can have it as it is.
        tcp.into_std().unwrap();
    }

    #[tokio::test(flavor = "current_thread")]
    async fn large_input_is_read_in_large_pieces() {
        let (mut tcp, mut client) = accepted();
        client.write_all(&[7; 5000]).unwrap();
        let mut read = vec![0; 10_000];
        assert_eq!(tcp.read(&mut read).await.unwrap(), FIRST_READ);
        assert!(!is_new(&tcp));
        assert_eq!(tcp.read(&mut read).await.unwrap(), 5000 - FIRST_READ);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn blocked_reads_and_writes_wake_their_task() {
        let (mut tcp, mut client) = accepted();
        let sends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            client.write_all(b"late").unwrap();
            // The answer is larger than what the sockets hold.
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).unwrap();
            answer.len()
        });
        let mut read = [0; 4];
        tcp.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"late");
        assert!(!is_new(&tcp));
        tcp.write_all(&vec![1; 20_000_000]).await.unwrap();
        tcp.shutdown().await.unwrap();
        drop(tcp);
        assert_eq!(sends.join().unwrap(), 20_000_000);
    }

    #[tokio::test(flavor = "current_thread")]
    #[cfg(target_os = "linux")]
    async fn a_file_is_sent_whole_to_a_slow_reader() {
        let (mut tcp, mut client) = accepted();
        let content: Vec<u8> = (0..20_000_000_u32).map(|at| (at / 7) as u8).collect();
        let path = std::env::temp_dir().join(format!("server-runtime-send-file-{}", std::process::id()));
        std::fs::write(&path, &content).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let reads = std::thread::spawn(move || {
            let mut answer = Vec::new();
            let mut piece = [0; 100_000];
            loop {
                match client.read(&mut piece).unwrap() {
                    0 => return answer,
                    count => answer.extend_from_slice(&piece[..count]),
                }
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let mut offset = 3;
        let mut send = async |count| {
            std::future::poll_fn(|cx| tcp.poll_send_file(cx, file.as_fd(), &mut offset, count)).await.unwrap()
        };
        while send(1 << 20).await > 0 {}
        assert_eq!(offset, 20_000_000);
        drop(tcp);
        assert!(reads.join().unwrap() == content[3..]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_first_to_wait_may_be_a_write() {
        let (mut tcp, mut client) = accepted();
        let reads = std::thread::spawn(move || {
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).unwrap();
            answer.len()
        });
        tcp.write_all(&vec![1; 20_000_000]).await.unwrap();
        tcp.into_std().unwrap();
        assert_eq!(reads.join().unwrap(), 20_000_000);
    }
}
