//! `GET /events`: the home as server-sent events, first as it is, then what changes.
//!
//! `device` has a device's description with its values, `property` a new value, `status` whether it answers, `gone` one
//! that is no more. A reader that cannot keep up gets everything anew.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::Frame;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::Web;
use super::home::Message;
use super::problem::Problem;

/// Readers at a time.
pub(super) const READERS: usize = 32;
/// Messages that go on their way before the reader has taken them.
const AHEAD: usize = 16;
/// How often a silent stream says that it lives: below the idle time-outs of usual proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a reader may take for a message.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn events(State(web): State<Web>) -> Result<Response, Problem> {
    let place = Arc::clone(&web.readers).try_acquire_owned();
    let place = place.map_err(|_| Problem::busy(format!("there are {READERS} readers, the most that are served")))?;
    let (sender, receiver) = mpsc::channel(AHEAD);
    tokio::spawn(tell(web, sender, place));
    let mut response = Response::new(Body::new(Stream(receiver)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// Tells a reader everything for as long as it listens.
async fn tell(web: Web, reader: mpsc::Sender<Bytes>, _place: OwnedSemaphorePermit) {
    let (known, mut news) = web.home.read();
    // A new reader needs current values, so plan the requests anew.
    web.home.replanned.notify_one();
    if !all(&reader, known).await {
        return;
    }
    loop {
        let bytes = tokio::select! {
            message = news.recv() => match message {
                Ok(message) => bytes(&message),
                Err(RecvError::Lagged(_)) => {
                    let (known, anew) = web.home.read();
                    news = anew;
                    if !all(&reader, known).await {
                        return;
                    }
                    continue;
                }
                Err(RecvError::Closed) => return,
            },
            () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b": alive\n\n"),
            () = reader.closed() => return,
        };
        if !take(&reader, bytes).await {
            return;
        }
    }
}

async fn all(reader: &mpsc::Sender<Bytes>, messages: Vec<Message>) -> bool {
    for message in messages {
        if !take(reader, bytes(&message)).await {
            return false;
        }
    }
    true
}

/// Whether a reader has taken a message in time.
async fn take(reader: &mpsc::Sender<Bytes>, bytes: Bytes) -> bool {
    matches!(tokio::time::timeout(PATIENCE, reader.send(bytes)).await, Ok(Ok(())))
}

fn bytes(message: &Message) -> Bytes {
    Bytes::copy_from_slice(message.as_bytes())
}

/// The body of the answer.
struct Stream(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|bytes| Some(Ok(Frame::data(bytes?))))
    }
}
