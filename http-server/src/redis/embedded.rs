//! Our own server in this process, as a connection: commands written to it run at once, and their replies can be read.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use redis_server::exec::core::{Instance, Worker};
use redis_server::runtime::embedded::{Session, expire};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::MissedTickBehavior;

/// How often what has expired is removed, as often as Redis does.
const EXPIRE_EVERY: Duration = Duration::from_millis(100);

/// Bytes of requests that are run before their replies are read: pipelined, they could ask for far more than any client
/// takes.
const PIECE: usize = 4 * 1024;

/// A session with the server.
pub(super) struct Connection {
    session: Session,
    /// Replies, of which the first `read` bytes are read.
    replies: Vec<u8>,
    read: usize,
    /// The task that waits until they are read.
    writer: Option<Waker>,
}

impl Connection {
    pub(super) fn new(instance: &Arc<Instance>) -> Self {
        let mut session = Session::new(Rc::new(Worker::new(Arc::clone(instance))));
        session.receive(b"HELLO 3\r\n");
        session.transmit();
        Self { session, replies: Vec::new(), read: 0, writer: None }
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read == self.replies.len() {
            // First the waker: a message that comes in between is either taken here or wakes.
            self.session.wake_by(cx.waker());
            self.replies = self.session.transmit();
            self.read = 0;
            if let Some(writer) = self.writer.take() {
                writer.wake();
            }
        }
        let unread = &self.replies[self.read..];
        if unread.is_empty() && !self.session.is_closed() {
            return Poll::Pending;
        }
        let taken = unread.len().min(buf.remaining());
        buf.put_slice(&unread[..taken]);
        self.read += taken;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.read == self.replies.len() {
            self.replies = self.session.transmit();
            self.read = 0;
        }
        if self.read < self.replies.len() {
            self.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = bytes.len().min(PIECE);
        self.session.receive(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Removes what has expired, for as long as it is polled.
pub(super) async fn expiring(instance: &Arc<Instance>) {
    let mut interval = tokio::time::interval(EXPIRE_EVERY);
    // Ticks that were missed must not follow each other: a machine on which a round takes longer than a tick would do nothing else.
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    std::future::poll_fn(|cx| {
        loop {
            ready!(interval.poll_tick(cx));
            expire(instance);
        }
    })
    .await
}
