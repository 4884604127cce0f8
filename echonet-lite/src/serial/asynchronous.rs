//! A meter for tokio.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddrV6;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant as TokioInstant, sleep_until};

use super::client::seed;
use super::{COMMAND_MAX, Config, Error, Event, Link, Pan, SerialPort};
use crate::controller::{Answer, Notification, Request, Write as PropertyWrite};
use crate::node::Instant;
use crate::wire::Eoj;

/// A smart meter behind a module, for tokio: the counterpart of [`Client`](super::Client), which blocks.
///
/// The port is anything asynchronous: an [`AsyncSerialPort`], or the TCP stream of a serial server. Every method can be
/// dropped before it is done. Nothing is read between calls; messages of the meter wait in the port's buffer meanwhile.
pub struct AsyncClient<T> {
    port: T,
    link: Link,
    began: TokioInstant,
    command: [u8; COMMAND_MAX],
    /// The part of `command` that is yet to be written.
    unwritten: Range<usize>,
}

/// How long tokio's timers are set at most: where there is nothing to wait for, the loop turns that often.
const WAIT_MAX: Duration = Duration::from_secs(3600);

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncClient<T> {
    /// A client that has not begun to speak with its module.
    pub fn new(port: T, config: Config) -> Self {
        Self {
            port,
            link: Link::new(config, seed()),
            began: TokioInstant::now(),
            command: [0; COMMAND_MAX],
            unwritten: 0..0,
        }
    }

    /// Has everything that the module does told, for logs and progress.
    pub fn observe(&mut self, observer: impl FnMut(&Event<'_>) + Send + 'static) {
        self.link.observe(observer);
    }

    /// Joins the meter's network; returns at once if that was done.
    ///
    /// # Errors
    /// The last failure, if `timeout` passes or trying again would not help.
    pub async fn join(&mut self, timeout: Duration) -> Result<SocketAddrV6, Error> {
        self.link.start(self.now());
        let deadline = self.now() + timeout;
        loop {
            if let Some(result) = self.link.joined() {
                return result.map_err(Error::Failed);
            }
            if self.now() >= deadline {
                return Err(self.link.late());
            }
            self.turn(deadline).await?;
        }
    }

    /// Reads properties of the meter.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn get(&mut self, eoj: Eoj, epcs: &[u8]) -> Result<Answer, Error> {
        self.request(&Request::get(eoj, epcs)).await
    }

    /// Writes properties of the meter and has it confirmed.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn set(&mut self, eoj: Eoj, writes: &[PropertyWrite<'_>]) -> Result<Answer, Error> {
        self.request(&Request::set(eoj, writes)).await
    }

    /// Makes a request and waits for the answer; where the session is lost meanwhile, until it is there again.
    ///
    /// # Errors
    /// [`join`](Self::join) has not succeeded yet, the meter did not answer, or the port failed.
    pub async fn request(&mut self, request: &Request<'_>) -> Result<Answer, Error> {
        let pending = self.link.request(self.now(), request)?;
        loop {
            if let Some(answer) = self.link.answer(self.now(), &pending) {
                return answer;
            }
            self.turn(pending.deadline()).await?;
        }
    }

    /// The next notification that the meter sent by itself; waits for it until `timeout` has passed.
    ///
    /// # Errors
    /// The port failed.
    pub async fn notification(&mut self, timeout: Duration) -> Result<Option<Notification>, Error> {
        let deadline = self.now() + timeout;
        loop {
            let notification = self.link.notification();
            if notification.is_some() || self.now() >= deadline {
                return Ok(notification);
            }
            self.turn(deadline).await?;
        }
    }

    /// The meter's network, worth keeping for [`Config::pan`]: the next start needs no scan then.
    pub const fn pan(&self) -> Option<Pan> {
        self.link.pan()
    }

    fn now(&self) -> Instant {
        Instant(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Writes what there is to write, waits for the module or a deadline, and reads.
    async fn turn(&mut self, until: Instant) -> Result<(), Error> {
        loop {
            while !self.unwritten.is_empty() {
                // A part written counts even if the caller drops this future afterwards.
                self.unwritten.start += match self.port.write(&self.command[self.unwritten.clone()]).await? {
                    0 => return Err(Error::Port(ErrorKind::WriteZero.into())),
                    length => length,
                };
            }
            let now = self.now();
            match self.link.poll_transmit(now, &mut self.command) {
                Some(length) => self.unwritten = 0..length,
                None => break,
            }
        }
        let due = self.link.poll_timeout().map_or(until, |due| due.min(until));
        let wait = due.since(self.now()).min(WAIT_MAX);
        let mut bytes = [0; 1024];
        tokio::select! {
            read = self.port.read(&mut bytes) => match read? {
                0 => return Err(Error::Port(ErrorKind::UnexpectedEof.into())),
                length => self.link.receive(self.now(), &bytes[..length]),
            },
            () = sleep_until(TokioInstant::now() + wait) => {}
        }
        self.link.handle_timeout(self.now());
        Ok(())
    }
}

impl<T> fmt::Debug for AsyncClient<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncClient").field("link", &self.link).finish_non_exhaustive()
    }
}

/// A [`SerialPort`] that tokio waits for.
#[derive(Debug)]
pub struct AsyncSerialPort {
    port: AsyncFd<SerialPort>,
}

impl AsyncSerialPort {
    /// Takes a port over; to be called within a runtime.
    ///
    /// # Errors
    /// The runtime cannot wait for it.
    pub fn new(port: SerialPort) -> io::Result<Self> {
        // The successor of this call is unsafe because a descriptor could be closed while it is registered. A port
        // keeps its own open.
        #[allow(deprecated, reason = "the successor needs an unsafe block for the same call")]
        let port = AsyncFd::new(port)?;
        Ok(Self { port })
    }
}

impl AsyncRead for AsyncSerialPort {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.port.poll_read_ready_mut(cx))?;
            let read = ready.try_io(|port| port.get_mut().read(into.initialize_unfilled()));
            if let Ok(result) = read {
                return Poll::Ready(result.map(|length| into.advance(length)));
            }
        }
    }
}

impl AsyncWrite for AsyncSerialPort {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.port.poll_write_ready_mut(cx))?;
            if let Ok(result) = ready.try_io(|port| port.get_mut().write(bytes)) {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
