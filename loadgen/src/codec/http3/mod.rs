//! Requests over HTTP/3.

use super::exchange::{Coding, Exchanges, HttpExchange, Scratch};
use super::h2::hpack::Field;
use super::h3::qpack::{Block, append_literal};
use super::h3::{Connection, Dialler, Request};
use super::http1::HttpRequest;
use super::{Broken, Protocol, Received};
use crate::clock::{Clock, Nanos};
use crate::load::Tls;
use crate::record::{Failure, Tally};
use crate::workload::{Source, Subjects};

/// A mix of requests on an HTTP/3 server.
#[derive(Debug)]
pub struct Http3 {
    exchanges: Exchanges<Qpack>,
    dialler: Dialler,
    /// True if a connection serves one request after the other.
    keep_alive: bool,
}

/// One connection's state.
#[derive(Debug)]
pub struct Http3Connection {
    connection: Connection<HttpExchange>,
    scratch: Scratch,
    seat: usize,
    /// True if it has had a request.
    is_used: bool,
}

/// HTTP/3's coding of header fields.
#[derive(Debug)]
enum Qpack {}

impl Coding for Qpack {
    type Block = Block;

    const VERSION: &'static str = "HTTP/3";

    fn block(fields: &[Field]) -> Block {
        Block::new(fields)
    }

    #[inline]
    fn append_literal(out: &mut Vec<u8>, name: &str, value: &[u8]) {
        append_literal(out, name, value);
    }
}

impl Http3 {
    /// Requests by their weights, filled with subjects, to endpoints that connections go to in turns. QUIC's timers count on
    /// `clock`, whose beginning does not matter.
    ///
    /// # Errors
    /// When there is no request, a weight is 0, or a header is one that HTTP/3 does not have.
    pub fn new(
        requests: Vec<(HttpRequest, u32)>,
        subjects: Subjects,
        endpoints: &[Tls],
        clock: Clock,
        keep_alive: bool,
        verify: bool,
    ) -> Result<Self, String> {
        let exchanges = Exchanges::new(requests, subjects, true, verify)?;
        Ok(Self { exchanges, dialler: Dialler::new(endpoints, clock)?, keep_alive })
    }

    /// True if a connection has had all that it is for.
    fn is_over(&self, connection: &Http3Connection) -> bool {
        !self.keep_alive && connection.is_used && connection.connection.in_flight() == 0
    }
}

impl Protocol for Http3 {
    type Connection = Http3Connection;

    const QUIC: bool = true;

    const PAUSES: bool = true;

    fn operations(&self) -> Vec<String> {
        self.exchanges.names()
    }

    fn connect(&self, seat: usize) -> Http3Connection {
        Http3Connection { connection: Connection::default(), scratch: Scratch::default(), seat, is_used: false }
    }

    fn dial(&self, connection: &mut Http3Connection, now: Nanos) -> Result<(), Broken> {
        // An address that did not answer may have been dialled before.
        connection.connection = Connection::default();
        connection.connection.dial(&self.dialler, connection.seat, now)
    }

    fn is_connected(&self, connection: &Http3Connection) -> bool {
        connection.connection.is_connected()
    }

    fn has_heard(&self, connection: &Http3Connection) -> bool {
        connection.connection.has_heard()
    }

    fn transmit(&self, connection: &mut Http3Connection, now: Nanos, out: &mut Vec<u8>) -> bool {
        connection.connection.transmit(&self.dialler, now, out)
    }

    fn hang_up(&self, connection: &mut Http3Connection, now: Nanos) {
        connection.connection.hang_up(&self.dialler, now);
    }

    fn pause(&self, connection: &Http3Connection) -> Option<Nanos> {
        connection.connection.timer(&self.dialler)
    }

    fn wake(&self, connection: &mut Http3Connection, now: Nanos) {
        connection.connection.wake(&self.dialler, now);
    }

    fn room(&self, connection: &Http3Connection) -> usize {
        let room = connection.connection.room();
        if self.keep_alive { room } else { room.min(usize::from(!connection.is_used)) }
    }

    fn requests_per_connection(&self) -> Option<usize> {
        (!self.keep_alive).then_some(1)
    }

    fn is_prepared(&self, connection: &Http3Connection) -> bool {
        connection.connection.is_connected()
    }

    fn in_flight(&self, connection: &Http3Connection) -> usize {
        connection.connection.in_flight()
    }

    fn begin(&self, connection: &mut Http3Connection, intended: Nanos, source: &mut Source, _out: &mut Vec<u8>) {
        let begun = self.exchanges.next(source, &mut connection.scratch);
        let request = Request { block: begun.block, path: begun.path, fields: begun.fields, body: begun.body };
        connection.connection.begin(&request, intended, |exchange| begun.remember(exchange));
        connection.is_used = true;
    }

    fn receive(&self, connection: &mut Http3Connection, input: &[u8], tally: &mut Tally) -> Result<Received, Broken> {
        let mut received = connection.connection.receive(&self.exchanges, &self.dialler, input, tally)?;
        received.close |= self.is_over(connection);
        Ok(received)
    }

    fn expire(&self, connection: &mut Http3Connection, before: Nanos, tally: &mut Tally) -> bool {
        connection.connection.expire(before, tally);
        self.is_over(connection)
    }

    fn take_back(&self, connection: &mut Http3Connection, waiting: &mut Vec<Nanos>) {
        connection.connection.take_back(waiting);
    }

    fn abandon(&self, connection: &mut Http3Connection, failure: Failure, tally: &mut Tally) {
        connection.connection.abandon(failure, tally);
    }
}
