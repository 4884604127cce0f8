//! The work of a connection's task on its socket: it reads, has the requests answered as a batch, and writes.

use std::cell::{RefCell, RefMut};
use std::future::poll_fn;
use std::io;
use std::mem;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::arrivals::Arrivals;
use super::body::Pieces;
use super::connection::Shared;
use crate::frame::{HEAD, Head, Kind};
use crate::{Connection, Error, Reason};

/// Reads after which a connection lets others have their turn.
const TURN_READS: usize = 4;

/// Bytes of which frames are taken and answered together; bytes beyond them wait for the next turn. An ordinary
/// client's hundred requests are less, and the smallest frames, of which these are hundreds, take some 30 µs. Longer
/// frames come as they are, but no more is read in that turn.
const TURN_BYTES: usize = 4 * 1024;

/// Requests of a turn that go on as tasks: beginning one takes many times what it takes to answer a short one at once.
pub const TURN_TASKS: usize = 8;

/// Requests of a connection that has ended whose tasks hear of it in a turn.
const TURN_ENDED: usize = 16;

/// Answers a connection's requests.
pub trait Answers {
    /// Takes what has come, by [`Connection::next`].
    ///
    /// # Errors
    /// When the client has broken the protocol.
    fn take(&mut self, input: &mut &[u8]) -> Result<(), Error>;

    /// The client has broken the protocol: the requests taken get no answer.
    fn forget(&mut self, error: Error);

    /// Answers the requests taken, or as many of them as fit into a turn: those left in [`Buffers::arrivals`] come
    /// first in the next one.
    fn answer(&mut self, cx: &mut Context<'_>);

    /// Something was read.
    fn has_read(&mut self) {}

    /// Has the connection polled again, when others have had their turn.
    fn end_turn(&mut self, cx: &mut Context<'_>) {
        cx.waker().wake_by_ref();
    }

    /// Some was written, or nothing; whether that is all.
    fn has_written(&mut self, some: bool, all: bool) {
        let _ = (some, all);
    }
}

/// Buffers that the connections of a thread use in their turns. An idle one has none of them.
#[derive(Debug)]
pub struct Buffers {
    input: RefCell<Vec<u8>>,
    output: RefCell<Vec<u8>>,
    arrivals: RefCell<Arrivals>,
    pieces: RefCell<Pieces>,
}

impl Buffers {
    /// Buffers into which so many bytes are read at once.
    pub fn new(size: usize) -> Self {
        Self {
            input: RefCell::new(vec![0; size]),
            output: RefCell::default(),
            arrivals: RefCell::default(),
            pieces: RefCell::default(),
        }
    }

    /// The requests of the one that has its turn.
    pub fn arrivals(&self) -> RefMut<'_, Arrivals> {
        self.arrivals.borrow_mut()
    }

    /// Where small pieces of bodies are kept.
    pub fn pieces(&self) -> RefMut<'_, Pieces> {
        self.pieces.borrow_mut()
    }
}

/// How a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client is gone.
    Lost,
    /// All is said.
    Whole,
    /// The client has sent too much that means nothing, and was told. It would go on doing so, so nothing more is read of it.
    Flooded,
    /// The client has broken the protocol, and was told.
    Broken,
}

/// A connection's socket and its engine.
#[derive(Debug)]
pub struct Link<S> {
    shared: Rc<Shared>,
    socket: S,
    /// Bytes read and not used, between turns.
    unread: Vec<u8>,
    /// Requests taken and not answered, between turns.
    unanswered: Arrivals,
    /// Whether nothing was read or written yet.
    is_new: bool,
    /// Bytes that were given to the socket.
    written: u64,
    /// Bytes that came from it.
    read: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Link<S> {
    /// A link of which `read` was read already.
    pub fn new(engine: Connection, socket: S, read: Vec<u8>) -> Self {
        let shared = Rc::new(Shared::new(engine));
        let is_new = read.is_empty();
        Self { shared, socket, unread: read, unanswered: Arrivals::default(), is_new, written: 0, read: 0 }
    }

    /// The state that its requests' tasks need.
    pub fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// The socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Bytes that were given to the socket.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that came from the socket, without those that were read before.
    pub fn read_bytes(&self) -> u64 {
        self.read
    }

    /// Whether the peer has begun a header block that has not come whole: between its frames, or within one. For [`poll`](Self::poll)'s
    /// caller, between its turns.
    pub fn is_within_head(&self) -> bool {
        let is_part = |head: &[u8; HEAD]| {
            let head = Head::parse(head);
            matches!(head.kind, Kind::Headers | Kind::Continuation) && self.unread.len() < HEAD + head.length
        };
        self.shared.engine().is_within_block() || self.unread.first_chunk().is_some_and(is_part)
    }

    /// Reads, answers and writes until there is nothing more to do. Ready at the end of the connection.
    pub fn poll(&mut self, cx: &mut Context<'_>, buffers: &Buffers, answers: &mut impl Answers) -> Poll<Ended> {
        let mut input = buffers.input.borrow_mut();
        let shared = Rc::clone(&self.shared);
        shared.turn(cx, &mut buffers.output.borrow_mut(), |cx| {
            let mut unused = 0..self.unread.len();
            if input.len() < unused.end {
                // The previous reader of the socket may read more at once.
                input.resize(unused.end, 0);
            }
            input[unused.clone()].copy_from_slice(&self.unread);
            self.unread = Vec::new();
            if !self.unanswered.is_empty() {
                *buffers.arrivals() = mem::take(&mut self.unanswered);
            }
            let ended = self.turn(cx, &mut input, &mut unused, buffers, answers);
            let mut arrivals = buffers.arrivals();
            if !arrivals.is_empty() {
                self.unanswered = mem::take(&mut arrivals);
            }
            self.unread.extend_from_slice(&input[unused]);
            ended
        })
    }

    fn turn(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut [u8],
        unused: &mut Range<usize>,
        buffers: &Buffers,
        answers: &mut impl Answers,
    ) -> Poll<Ended> {
        // A client has spoken by now, as a rule, or is gone: our settings leave with the first answers.
        if self.is_new
            && let Poll::Ready(Err(ended)) = self.read(cx, input, unused, answers)
        {
            return Poll::Ready(ended);
        }
        let mut spent = 0;
        for _ in 0..TURN_READS {
            self.shared.release();
            let unspent = unused.len();
            let taken = if buffers.arrivals().is_empty() { take(input, unused, answers) } else { Ok(Taken::Part) };
            spent += unspent - unused.len();
            let is_held = unused.start < unused.end && self.shared.engine().is_full();
            answers.answer(cx);
            if !buffers.arrivals().is_empty() {
                // Before all have begun nobody's turn to send comes, or those that begin later would have theirs first.
                break;
            }
            let Ok(is_written) = self.write(cx, answers) else { return Poll::Ready(Ended::Lost) };
            match taken {
                Err(error) if is_written && error.reason == Reason::ENHANCE_YOUR_CALM => {
                    return Poll::Ready(Ended::Flooded);
                }
                Err(_) if is_written => return Poll::Ready(Ended::Broken),
                Err(_) => return Poll::Pending,
                Ok(_) if is_written && self.shared.engine().is_over() => return Poll::Ready(Ended::Whole),
                Ok(_) => {}
            }
            if self.shared.engine().is_full() {
                return Poll::Pending;
            }
            if is_held {
                // Input that had to wait for room comes before fresh input.
                continue;
            }
            if taken == Ok(Taken::Part) || spent >= TURN_BYTES {
                break;
            }
            if let Err(ended) = ready!(self.read(cx, input, unused, answers)) {
                return Poll::Ready(ended);
            }
        }
        answers.end_turn(cx);
        Poll::Pending
    }

    /// Reads what has come, behind what is unused.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut [u8],
        unused: &mut Range<usize>,
        answers: &mut impl Answers,
    ) -> Poll<Result<(), Ended>> {
        input.copy_within(unused.clone(), 0);
        *unused = 0..unused.len();
        let mut room = ReadBuf::new(&mut input[unused.end..]);
        match ready!(Pin::new(&mut self.socket).poll_read(cx, &mut room)) {
            Ok(()) if !room.filled().is_empty() => {
                self.is_new = false;
                unused.end += room.filled().len();
                self.read += room.filled().len() as u64;
                answers.has_read();
                Poll::Ready(Ok(()))
            }
            Ok(()) | Err(_) => Poll::Ready(Err(Ended::Lost)),
        }
    }

    /// Writes what there is; whether that is all.
    fn write(&mut self, cx: &mut Context<'_>, answers: &mut impl Answers) -> io::Result<bool> {
        let mut sent = 0;
        let is_written = loop {
            self.shared.notify_writable();
            let mut engine = self.shared.engine();
            if engine.output().is_empty() {
                break Pin::new(&mut self.socket).poll_flush(cx)?.is_ready();
            }
            match Pin::new(&mut self.socket).poll_write(cx, engine.output())? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(count) => {
                    engine.advance(count);
                    sent += count;
                }
                Poll::Pending => break false,
            }
        };
        self.is_new &= sent == 0;
        self.written += sent as u64;
        answers.has_written(sent > 0, is_written);
        Ok(is_written)
    }

    /// Ends the connection, and its requests a few at a time: `end_turn` is that of [`Answers`]. A socket that closes
    /// with unread input sends a reset, which may overtake the last answer or the GOAWAY. So up to `most` bytes are
    /// read and thrown away, or until the client closes. It may be called again after it was given up.
    ///
    /// # Errors
    /// Of the socket.
    pub async fn close(&mut self, ended: Ended, most: usize, end_turn: impl Fn(&Context<'_>)) -> io::Result<()> {
        poll_fn(|cx| {
            if self.shared.end(TURN_ENDED) {
                return Poll::Ready(());
            }
            end_turn(cx);
            Poll::Pending
        })
        .await;
        if ended == Ended::Lost {
            return Ok(());
        }
        poll_fn(|cx| Pin::new(&mut self.socket).poll_shutdown(cx)).await?;
        let mut left = if ended == Ended::Flooded { 0 } else { most };
        while left > 0 {
            let read = poll_fn(|cx| {
                // Here it needs no room in the connection's task, which every idle one would have.
                let mut bytes = [0; 4096];
                let mut room = ReadBuf::new(&mut bytes);
                ready!(Pin::new(&mut self.socket).poll_read(cx, &mut room))?;
                Poll::Ready(io::Result::Ok(room.filled().len()))
            });
            let count = read.await?;
            left = if count == 0 { 0 } else { left.saturating_sub(count) };
        }
        Ok(())
    }
}

impl<S> Drop for Link<S> {
    /// Tells the requests' tasks that are left of the end.
    fn drop(&mut self) {
        self.shared.end(usize::MAX);
    }
}

/// The amount of the input that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    All,
    /// As much as is answered together.
    Part,
}

/// Has taken what has come, or the first part of it.
fn take(input: &[u8], unused: &mut Range<usize>, answers: &mut impl Answers) -> Result<Taken, Error> {
    let (part, end) = (unused.end.min(unused.start + TURN_BYTES), unused.end);
    let mut upto = |end: usize| {
        let mut rest = &input[unused.start..end];
        let taken = if rest.is_empty() { Ok(()) } else { answers.take(&mut rest) };
        let has_taken = end - rest.len() > unused.start;
        unused.start = end - rest.len();
        taken.map(|()| has_taken).inspect_err(|error| answers.forget(*error))
    };
    if part < end && upto(part)? {
        return Ok(Taken::Part);
    }
    // Nothing more, or a frame that is longer.
    upto(end).map(|_| Taken::All)
}
