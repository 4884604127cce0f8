//! The interface of a protocol to the session.

use super::routes::{Drawn, Routes};
use crate::clock::Nanos;
use crate::record::{Failure, Iterations, Tally};
use crate::workload::Source;

/// The requests to a server, and the reading and judging of its answers.
///
/// For one connection the session calls [`connect`](Self::connect), then in every turn [`receive`](Self::receive) with what
/// arrived, [`control`](Self::control), and [`begin`](Self::begin) as often as load and [`room`](Self::room) allow. All that
/// was appended to `out` is sent by one write. Each request begun ends in exactly one call of [`Tally::finished`] or
/// [`Tally::failed`], with the intended time that `begin` was given.
pub trait Protocol: Send + Sync {
    /// One connection's memory. It should be small: a run may have 50,000.
    type Connection: Send;

    /// Whether requests and answers are datagrams: each `begin` is sent as one of its own, each `receive` gets one whole.
    const DATAGRAM: bool = false;

    /// True for a protocol on QUIC. The session [dials](Self::dial) on a UDP socket of the connection's own, and gives every
    /// datagram to `receive` whole. Nothing is appended to `out`: after each call the session sends what
    /// [`transmit`](Self::transmit) gives. The timers are [pauses](Self::pause); after [`wake`](Self::wake) an empty input is
    /// received.
    const QUIC: bool = false;

    /// Whether every request has its own server, by a map that is learnt ([`routes`](Self::routes)). A client of the load then
    /// has a connection to each server; its requests are not begun on the connection that has room, but
    /// [drawn](Self::draw), and [placed](Self::place) on the connection to their server.
    const ROUTED: bool = false;

    /// Whether what one connection asks may be answered on another thread's: then all threads end together.
    const TOGETHER: bool = false;

    /// True if connections also send at a [time of their own](Self::pause), without a request of the load.
    const PAUSES: bool = false;

    /// The names of the operations in a mix, in the order of [`Tally`]'s operation numbers.
    fn operations(&self) -> Vec<String>;

    /// The iterations that requests belong to, with no account yet.
    fn iterations(&self) -> Option<Iterations> {
        None
    }

    /// A new connection; `seat` numbers the run's connections from 0, and stays the same when one is opened again.
    fn connect(&self, seat: usize) -> Self::Connection;

    /// The map of a protocol that is [routed](Self::ROUTED).
    fn routes(&self) -> Option<&Routes> {
        None
    }

    /// A new connection to the server of that number in the map.
    fn connect_to(&self, seat: usize, server: usize) -> Self::Connection {
        let _ = server;
        self.connect(seat)
    }

    /// A new connection in place of one that has ended.
    fn reconnect(&self, ended: &mut Self::Connection, seat: usize, server: usize) -> Self::Connection {
        let _ = ended;
        self.connect_to(seat, server)
    }

    /// Begins QUIC's handshake.
    ///
    /// # Errors
    /// When TLS cannot begin it.
    fn dial(&self, connection: &mut Self::Connection, now: Nanos) -> Result<(), Broken> {
        let _ = (connection, now);
        Ok(())
    }

    /// True after QUIC's handshake.
    fn is_connected(&self, connection: &Self::Connection) -> bool {
        let _ = connection;
        true
    }

    /// True if the received bytes hold a byte of an answer.
    fn has_heard(&self, connection: &Self::Connection) -> bool {
        let _ = connection;
        true
    }

    /// Appends QUIC's next datagram. Gives whether there is one.
    fn transmit(&self, connection: &mut Self::Connection, now: Nanos, out: &mut Vec<u8>) -> bool {
        let _ = (connection, now, out);
        false
    }

    /// Ends a QUIC connection; what [`transmit`](Self::transmit) gives then tells the server.
    fn hang_up(&self, connection: &mut Self::Connection, now: Nanos) {
        let _ = (connection, now);
    }

    /// Until when a connection pauses. The session calls [`wake`](Self::wake) then, and sends what
    /// [`control`](Self::control) appends.
    fn pause(&self, connection: &Self::Connection) -> Option<Nanos> {
        let _ = connection;
        None
    }

    /// Ends the pauses that last until `now`.
    fn wake(&self, connection: &mut Self::Connection, now: Nanos) {
        let _ = (connection, now);
    }

    /// How long a request may take that is begun now, if each wait for the server may take `timeout`.
    fn patience(&self, timeout: Nanos) -> Nanos {
        timeout
    }

    /// A run begins; there may have been others before.
    fn rewind(&self) {}

    /// True when no further request can be made, so that the load ends.
    fn is_exhausted(&self) -> bool {
        false
    }

    /// Makes the next request, and gives its server's number.
    fn draw(&self, source: &mut Source, drawn: &mut Drawn) -> usize {
        let _ = (source, drawn);
        0
    }

    /// Puts a request behind those that are in flight; the next [`control`](Self::control) sends it.
    fn place(&self, connection: &mut Self::Connection, drawn: &Drawn) {
        let _ = (connection, drawn);
    }

    /// Takes back a request that the server has sent on, and gives the next server's number.
    fn redirected(&self, connection: &mut Self::Connection, drawn: &mut Drawn) -> Option<usize> {
        let _ = (connection, drawn);
        None
    }

    /// Appends what the protocol itself has to say: a preface, a login, window updates, acknowledgements.
    fn control(&self, connection: &mut Self::Connection, out: &mut Vec<u8>) {
        let _ = (connection, out);
    }

    /// How many more requests the protocol would take now; 0 until a handshake is done. The session also keeps to the
    /// load's depth.
    fn room(&self, connection: &Self::Connection) -> usize;

    /// Whether an open connection has what the load of others counts on; the load begins when all have, or takes too long.
    fn is_prepared(&self, connection: &Self::Connection) -> bool {
        let _ = connection;
        true
    }

    /// How many requests a connection is for, where the protocol closes it behind them: such a connection is opened by the
    /// request that needs it, and its opening is a part of that request's latency.
    fn requests_per_connection(&self) -> Option<usize> {
        None
    }

    /// Whether a connection is needed without a request, as that of a subscriber: it is opened again as soon as it is lost.
    fn listens(&self, connection: &Self::Connection) -> bool {
        let _ = connection;
        false
    }

    /// How many requests have no answer yet.
    fn in_flight(&self, connection: &Self::Connection) -> usize;

    /// Appends one request, to be accounted from `intended`.
    fn begin(&self, connection: &mut Self::Connection, intended: Nanos, source: &mut Source, out: &mut Vec<u8>);

    /// Reads what arrived, together with what the last call left over, and accounts the answers that are complete.
    ///
    /// # Errors
    /// When the connection cannot go on, because what arrived is not the protocol.
    fn receive(&self, connection: &mut Self::Connection, input: &[u8], tally: &mut Tally) -> Result<Received, Broken>;

    /// The peer has closed. Accounts an answer that ends with the connection; the session calls
    /// [`abandon`](Self::abandon) for the rest.
    fn end(&self, connection: &mut Self::Connection, tally: &mut Tally) {
        let _ = (connection, tally);
    }

    /// Gives up the requests that were intended before `before`, as [`Failure::TimedOut`].
    ///
    /// Gives whether the connection must be closed, because late answers could be taken for others.
    fn expire(&self, connection: &mut Self::Connection, before: Nanos, tally: &mut Tally) -> bool;

    /// Moves the intended times of requests that the server has said it did not process to `waiting`: they are begun again on
    /// another connection. The session calls it before it closes a connection.
    fn take_back(&self, connection: &mut Self::Connection, waiting: &mut Vec<Nanos>) {
        let _ = (connection, waiting);
    }

    /// The connection is lost: accounts everything in flight as `failure`.
    fn abandon(&self, connection: &mut Self::Connection, failure: Failure, tally: &mut Tally);
}

/// The result of [`Protocol::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// How many bytes of the input are done with; the rest comes again, with more behind it.
    pub consumed: usize,
    /// Whether the protocol wants the connection closed now, as agreed (a connection per request, `Connection: close`,
    /// GOAWAY). Requests still in flight are accounted by the codec before, or [taken back](Protocol::take_back).
    pub close: bool,
}

/// Why a connection cannot go on. The session accounts what is in flight and opens the connection again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// How it is counted.
    pub failure: Failure,
    /// The failure, for people: the bytes read and what was expected.
    pub example: String,
}

/// Text of a peer for people: short, and without control characters.
pub(super) fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)]);
    text.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}
