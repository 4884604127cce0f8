//! A file on its way out over plain HTTP/1.1, without a copy.

use std::io;
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use server_runtime::Stream;
use tokio::task::JoinHandle;

use super::request_line::RequestLine;
use super::sending::SHORTER;
use crate::file_part::FilePart;
use crate::tuning::FILE_PIECE;

/// A file that is being sent.
pub(super) struct SendingFile {
    part: FilePart,
    /// Of the request, if the router has answered it.
    line: Option<Rc<RequestLine>>,
    /// A thread that waits for the disk.
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
    /// The file's system has no sendfile(2).
    has_no_sendfile: bool,
}

/// The outcome of a step.
pub(super) enum Piece {
    /// The socket has taken so many bytes.
    Sent(usize),
    /// These bytes were read from the disk, and are to be sent.
    Read(Bytes),
}

impl SendingFile {
    pub(super) fn new(part: FilePart, line: Option<Rc<RequestLine>>) -> Self {
        Self { part, line, reading: None, has_no_sendfile: false }
    }

    /// Bytes that are not sent yet.
    pub(super) fn left(&self) -> u64 {
        self.part.left
    }

    /// True while a thread reads; otherwise a pending step waits for the socket.
    pub(super) fn waits_for_disk(&self) -> bool {
        self.reading.is_some()
    }

    /// Sends the next bytes, at most [`FILE_PIECE`], or reads them if they are not in the system's cache.
    ///
    /// # Errors
    /// Those of the socket; and those of the file, which are logged.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, stream: &mut Stream) -> Poll<io::Result<Piece>> {
        let polled = self.step(cx, stream);
        if let (Poll::Ready(Err(error)), Some(line)) = (&polled, &self.line)
            && !is_of_socket(error)
        {
            line.body_failed(error);
        }
        polled
    }

    fn step(&mut self, cx: &mut Context<'_>, stream: &mut Stream) -> Poll<io::Result<Piece>> {
        let most = self.part.left.min(FILE_PIECE);
        if self.reading.is_none() && !self.has_no_sendfile && self.part.is_cached(most) {
            let FilePart { file, at, .. } = &self.part;
            let mut offset = *at;
            match ready!(stream.poll_send_file(cx, file.as_fd(), &mut offset, most as usize)) {
                Ok(0) => return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, SHORTER))),
                Ok(count) => {
                    self.part.advance(count);
                    return Poll::Ready(Ok(Piece::Sent(count)));
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
                    self.has_no_sendfile = true;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let reading = self.reading.get_or_insert_with(|| self.part.read_from_disk(most as usize));
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        let bytes = read.map_err(io::Error::other)??;
        if bytes.is_empty() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, SHORTER)));
        }
        self.part.advance(bytes.len());
        Poll::Ready(Ok(Piece::Read(bytes.into())))
    }
}

/// True if the client has ended the connection.
fn is_of_socket(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::NotConnected
            | io::ErrorKind::TimedOut
    )
}
