//! The task of one thread's connection: it connects, writes, reads, and connects again.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use super::client::{Ending, Link, Redis};
use super::connect::Io;
#[cfg(feature = "embedded-redis")]
use super::embedded;
use super::settings::Target;

/// Bytes read at once: some hundred small replies.
const INPUT: usize = 64 * 1024;

/// Waits between attempts to connect: they double from the first to the last, which keeps recovery well below a second.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// A connection that ends before this age was none: the next attempt waits.
const SETTLED: Duration = Duration::from_secs(1);

/// How long to wait before the next attempt to connect.
#[derive(Debug, Default)]
pub(super) struct BackOff {
    last: Duration,
    connected: Option<Instant>,
}

impl BackOff {
    /// There is a connection.
    pub(super) fn connected(&mut self) {
        self.connected = Some(Instant::now());
    }

    /// The wait after a failed attempt, or after the end of a connection: none if that has lasted.
    pub(super) fn wait(&mut self) -> Duration {
        let lasted = self.connected.take().is_some_and(|since| since.elapsed() >= SETTLED);
        self.last = if lasted { Duration::ZERO } else { (self.last * 2).clamp(BACK_OFF.0, BACK_OFF.1) };
        self.last
    }
}

/// Serves a thread's connection for as long as its runtime lives.
pub(super) async fn run(redis: Redis, ending: Ending) {
    let link = &ending.0;
    let server = async {
        match &redis.settings().target {
            #[cfg(feature = "embedded-redis")]
            Target::Embedded(instance) => embedded::expiring(instance).await,
            Target::Server(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = connected(&redis, link) => {}
        () = expiring(link) => {}
        () = server => {}
    }
}

/// Connects, and again whenever the connection ends.
async fn connected(redis: &Redis, link: &Rc<Link>) {
    let target = &redis.settings().target;
    let mut back_off = BackOff::default();
    loop {
        match redis.connector().connect().await {
            Ok(stream) => {
                if link.down.take().is_some() {
                    info!("{target}: connected again");
                }
                back_off.connected();
                link.mux.borrow_mut().connected(Instant::now());
                let why: Arc<str> = serve(link, stream).await.into();
                warn!("{target}: connection lost: {why}");
                link.mux.borrow_mut().lost(&why);
            }
            Err(why) => {
                let why: Arc<str> = why.into();
                if link.down.borrow().is_none() {
                    warn!("{why}");
                }
                link.mux.borrow_mut().away(&why);
                *link.down.borrow_mut() = Some(why);
            }
        }
        sleep(back_off.wait()).await;
    }
}

/// Ends the waiting of those whose time is over, whether there is a connection or not.
async fn expiring(link: &Link) {
    loop {
        // With one time-out for all, a later request is due later: nothing is missed by sleeping until the first.
        let idle = Instant::now() + link.mux.borrow().answer_timeout();
        let due = link.mux.borrow().deadline().unwrap_or(idle);
        sleep_until(due).await;
        let silent = link.mux.borrow_mut().expire(Instant::now());
        if silent.is_err() {
            link.give_up();
        }
    }
}

/// Writes and reads until the connection ends; says why it did.
async fn serve(link: &Link, mut stream: Box<dyn Io>) -> String {
    let mut input = Input { bytes: vec![0; INPUT].into(), filled: 0 };
    poll_fn(|cx| {
        link.polled_by(cx);
        if link.takes_up_again() {
            return Poll::Ready("it has been silent for too long".to_owned());
        }
        match write(link, &mut stream, cx).and_then(|()| input.read(link, &mut stream, cx)) {
            Ok(()) => Poll::Pending,
            Err(why) => Poll::Ready(why),
        }
    })
    .await
}

/// Writes what was asked, as far as the socket takes it.
fn write(link: &Link, stream: &mut Box<dyn Io>, cx: &mut Context<'_>) -> Result<(), String> {
    let mut mux = link.mux.borrow_mut();
    if mux.unsent().is_empty() {
        // TLS may still hold a part of what it took.
        return flush(stream, cx);
    }
    while !mux.unsent().is_empty() {
        match Pin::new(&mut *stream).poll_write(cx, mux.unsent()) {
            Poll::Ready(Ok(0)) => return Err("it takes nothing more".to_owned()),
            Poll::Ready(Ok(bytes)) => mux.sent(bytes),
            Poll::Ready(Err(error)) => return Err(error.to_string()),
            Poll::Pending => return Ok(()),
        }
    }
    flush(stream, cx)
}

fn flush(stream: &mut Box<dyn Io>, cx: &mut Context<'_>) -> Result<(), String> {
    match Pin::new(stream).poll_flush(cx) {
        Poll::Ready(Err(error)) => Err(error.to_string()),
        Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
    }
}

/// Where replies are read into.
struct Input {
    bytes: Box<[u8]>,
    /// Bytes at the head that wait for more: a line without its end.
    filled: usize,
}

impl Input {
    /// Reads what is there and gives it to those who wait.
    fn read(&mut self, link: &Link, stream: &mut Box<dyn Io>, cx: &mut Context<'_>) -> Result<(), String> {
        loop {
            if self.filled == self.bytes.len() {
                return Err("a line of its reply is too long".to_owned());
            }
            let mut room = ReadBuf::new(&mut self.bytes[self.filled..]);
            match Pin::new(&mut *stream).poll_read(cx, &mut room) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(error.to_string()),
                Poll::Ready(Ok(())) => {}
            }
            let read = room.filled().len();
            if read == 0 {
                return Err("it was closed by Redis".to_owned());
            }
            let end = self.filled + read;
            let taken = link.mux.borrow_mut().received(&self.bytes[..end], Instant::now());
            let taken = taken.map_err(|unfit| unfit.to_string())?;
            self.bytes.copy_within(taken..end, 0);
            self.filled = end - taken;
        }
    }
}
