//! Requests for another protocol, WebSocket above all. Our own loop answers them like all others, so that one that is
//! declined costs nothing but its answer; if a handler takes the offer, the stream is handed over.
//!
//! Handlers expect hyper's promise of a stream ([`OnUpgrade`]), which hyper alone can make. So a connection of hyper is
//! shown a request that no client sent, and its promise goes with the real one. When the real answer, a 101, has gone
//! out, the connection is told to agree: its output goes nowhere, and the stream that it then hands over is the real
//! one.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use axum::body::Body;
use http::{Request, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use super::gathered::{Gathered, gathered};
use super::wire::Wire;

/// The request that no client sent.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: any\r\n\r\n";

/// A stream that a handler may take over. When it is dropped, its promise fails.
pub(super) struct Offer {
    conn: Pin<Box<dyn Future<Output = hyper::Result<()>>>>,
    agree: oneshot::Sender<()>,
    stream: Arc<Mutex<Option<Gathered<Wire>>>>,
}

impl Offer {
    /// Offers the stream to the handler of this request.
    pub(super) fn to(request: &mut Request<()>) -> Option<Self> {
        let (agree, agreed) = oneshot::channel::<()>();
        let (promise, agreed) = (Rc::new(Cell::new(None)), Cell::new(Some(agreed)));
        let service = {
            let promise = Rc::clone(&promise);
            service_fn(move |request: Request<hyper::body::Incoming>| {
                promise.set(Some(hyper::upgrade::on(request)));
                let agreed = agreed.take();
                async move {
                    if let Some(agreed) = agreed {
                        // Its sender lives as long as this future.
                        let _ = agreed.await;
                    }
                    let mut response = Response::new(Body::empty());
                    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                    Ok::<_, Infallible>(response)
                }
            })
        };
        let stream = Arc::<Mutex<Option<Gathered<Wire>>>>::default();
        let handed = Handed { request: REQUEST, shared: Arc::clone(&stream), stream: None };
        let conn = http1::Builder::new().serve_connection(TokioIo::new(handed), service).with_upgrades();
        let mut conn: Pin<Box<dyn Future<Output = _>>> = Box::pin(conn);
        // One look, and the request is with the service.
        let polled = conn.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let promise: OnUpgrade = promise.take().filter(|_| polled.is_pending())?;
        request.extensions_mut().insert(promise);
        Some(Self { conn, agree, stream })
    }

    /// The offer is taken, and the answer that says so has gone out.
    pub(super) async fn keep(mut self, mut wire: Wire) {
        // The handler may take the stream to a thread whose runtime ends before the connection does.
        if let Err(error) = wire.register() {
            return tracing::error!("an upgrade was taken and could not be kept: {error}");
        }
        // The receiver cannot be gone: the service that waits is in `conn`.
        let _ = self.agree.send(());
        let kept = poll_fn(|cx| self.conn.as_mut().poll(cx)).await;
        if let Err(error) = kept {
            return tracing::error!("an upgrade was taken and could not be kept: {error}");
        }
        let (stream, flusher) = gathered(wire);
        *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
        tokio::task::spawn_local(flusher);
    }
}

/// The stream that hyper hands over: first the request that no client sent, then nothing, and then the real one.
struct Handed {
    request: &'static [u8],
    shared: Arc<Mutex<Option<Gathered<Wire>>>>,
    /// The real one, since it was first asked for.
    stream: Option<Gathered<Wire>>,
}

impl Handed {
    fn stream(&mut self) -> Option<Pin<&mut Gathered<Wire>>> {
        if self.stream.is_none() {
            self.stream = self.shared.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        self.stream.as_mut().map(Pin::new)
    }
}

impl AsyncRead for Handed {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.request.is_empty() {
            let (now, later) = self.request.split_at(self.request.len().min(buf.remaining()));
            buf.put_slice(now);
            self.request = later;
            return Poll::Ready(Ok(()));
        }
        match self.stream() {
            Some(stream) => stream.poll_read(cx, buf),
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for Handed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.stream() {
            Some(stream) => stream.poll_write(cx, bytes),
            // The answer to the request that no client sent.
            None => Poll::Ready(Ok(bytes.len())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().map_or(Poll::Ready(Ok(())), |stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(stream) = self.stream() {
            ready!(stream.poll_shutdown(cx))?;
        }
        Poll::Ready(Ok(()))
    }
}
