//! A call: from its request to the last byte of its answer.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use http_body::Body as _;
use tonic::Status;
use tonic::body::Body;

use super::inbound::Inbound;
use super::worker::Worker;
use crate::routes::Answer;

/// Begins a call. One that is ready at once is over when this returns; another one goes on as a task.
pub(super) fn start(worker: &Rc<Worker>, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
    let request = request.map(Inbound::new);
    let stage = match worker.answer(request) {
        Some(answer) => Stage::Handling(answer),
        None => Stage::Answering(Status::unimplemented("").into_http()),
    };
    let mut call = Call { respond, stage };
    // What this poll registers is not needed: a call that is not ready is polled again, by its task.
    if call.poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        tokio::task::spawn_local(async move { poll_fn(|cx| call.poll(cx)).await });
    }
}

struct Call {
    respond: SendResponse<Bytes>,
    stage: Stage,
}

/// What happens next.
enum Stage {
    /// The handler works.
    Handling(Answer),
    /// Its answer is sent.
    Answering(Response<Body>),
    /// The answer's body is sent.
    Sending(Sending),
    /// Nothing.
    Over,
}

impl Call {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.stage {
                Stage::Handling(answer) => match answer.as_mut().poll(cx) {
                    Poll::Ready(Ok(response)) => self.stage = Stage::Answering(response),
                    Poll::Pending => {
                        // Ready when the client has given up, or is gone: then nobody waits for the handler.
                        ready!(self.respond.poll_reset(cx)).ok();
                        self.stage = Stage::Over;
                    }
                },
                Stage::Answering(_) => self.send_head(),
                Stage::Sending(sending) => {
                    ready!(sending.poll(cx));
                    self.stage = Stage::Over;
                }
                Stage::Over => return Poll::Ready(()),
            }
        }
    }

    fn send_head(&mut self) {
        let Stage::Answering(response) = std::mem::replace(&mut self.stage, Stage::Over) else { return };
        let (head, body) = response.into_parts();
        let is_all = body.is_end_stream();
        match self.respond.send_response(Response::from_parts(head, ()), is_all) {
            Ok(stream) if !is_all => {
                self.stage = Stage::Sending(Sending { body, stream, waiting: None, is_first: true });
            }
            // The client has given up, or is gone.
            Ok(_) | Err(_) => {}
        }
    }
}

/// The body of an answer on its way.
struct Sending {
    body: Body,
    stream: SendStream<Bytes>,
    /// A piece that waits for the client's window or for the send buffer.
    waiting: Option<Bytes>,
    /// Whether nothing was sent yet.
    is_first: bool,
}

impl Sending {
    /// Ready when all is on its way, or nobody wants it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(piece) = self.waiting.take_if(|_| self.stream.capacity() > 0) {
                if self.stream.send_data(piece, false).is_err() {
                    return Poll::Ready(());
                }
            } else if self.waiting.is_some() {
                match ready!(self.stream.poll_capacity(cx)) {
                    Some(Ok(_)) => continue,
                    // The client has given up, or is gone.
                    Some(Err(_)) | None => return Poll::Ready(()),
                }
            }
            let frame = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    ready!(self.stream.poll_reset(cx)).ok();
                    return Poll::Ready(());
                }
            };
            match frame {
                None => {
                    // A body that says nothing of a status: tonic's do.
                    let _ = self.stream.send_data(Bytes::new(), true);
                    return Poll::Ready(());
                }
                Some(Err(error)) => {
                    tracing::debug!("a response broke off: {error}");
                    self.stream.send_reset(Reason::INTERNAL_ERROR);
                    return Poll::Ready(());
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => self.send(piece),
                    Err(frame) => {
                        if let Ok(trailers) = frame.into_trailers() {
                            // An error says that the client has given up, or is gone.
                            let _ = self.stream.send_trailers(trailers);
                        }
                        return Poll::Ready(());
                    }
                },
            }
        }
    }

    fn send(&mut self, piece: Bytes) {
        // The first piece, most often the only one, goes out without asking: h2 holds it until there is a window. So a
        // stream holds one piece more than its send buffer.
        if std::mem::take(&mut self.is_first) {
            // An error shows again at the next step.
            let _ = self.stream.send_data(piece, false);
            return;
        }
        self.stream.reserve_capacity(piece.len());
        self.waiting = Some(piece);
    }
}
