//! The states of a connection of HTTP/1.1, and the results of its steps.

use std::pin::Pin;
use std::rc::Rc;

use axum::response::Response;

use super::http2;
use super::request_line::RequestLine;
use super::sending::Sending;
use super::sending_file::SendingFile;
use super::upgrade::Offer;
use super::upload::Upload;
use super::websocket::Accepted;

/// The event that a connection waits for.
pub(super) enum State {
    /// For a request.
    Waiting,
    /// For the router's answer.
    Calling(Call),
    /// For the rest of a response's body, which may be made of what is left of the request's.
    Sending(Sending, Close, Option<Upload>),
    /// For the socket to take the rest of a file.
    SendingFile(SendingFile, Close),
    /// For the rest of a request's body, which is thrown away: so many more bytes at most.
    Discarding(Upload, usize),
    /// For the socket to take the answer behind which another protocol begins.
    Switching(Served),
    /// For the client to close, after this many more bytes at most.
    Lingering {
        left: usize,
        /// The server's half of the connection has ended.
        is_shut: bool,
    },
}

/// A request that the router answers.
pub(super) struct Call {
    pub(super) future: Pin<Box<dyn Future<Output = Response>>>,
    pub(super) upload: Option<Upload>,
    pub(super) is_http10: bool,
    /// Whether the answer ends the connection.
    pub(super) ends: bool,
    pub(super) is_head: bool,
    /// Another protocol, if the request was for one.
    pub(super) offer: Option<Offer>,
    /// The request, if it was the router's.
    pub(super) line: Option<Rc<RequestLine>>,
}

/// The connection's end, once the output is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    No,
    /// The connection ends.
    Yes,
    /// It ends when the client has read the answer: it may still be sending.
    AfterLinger,
}

/// The result of serving a connection.
pub(super) enum Served {
    Over,
    /// It goes on at another worker, with this index.
    Moves(usize),
    /// HTTP/2, with the request that asked for it, if one has.
    H2(Option<Box<http2::First>>),
    Upgrade(Offer),
    /// The application has accepted a WebSocket.
    WebSocket(Box<Accepted>),
}

/// The result of one step.
pub(super) enum Step {
    /// There may be more to do.
    Again,
    /// The same, and the output so far goes out before.
    Flush,
    /// Nothing to do until somebody wakes the connection.
    Wait,
    Ended(Served),
}
