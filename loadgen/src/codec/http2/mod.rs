//! Requests over HTTP/2.

use super::exchange::{Coding, Exchanges, HttpExchange, Scratch};
use super::h2::hpack::{Block, Field, append_literal};
use super::h2::{Connection, Request};
use super::http1::HttpRequest;
use super::{Broken, Protocol, Received};
use crate::clock::Nanos;
use crate::record::{Failure, Tally};
use crate::workload::{Source, Subjects};

/// A mix of requests on an HTTP/2 server.
#[derive(Debug)]
pub struct Http2 {
    exchanges: Exchanges<Hpack>,
}

/// One connection's state.
#[derive(Debug, Default)]
pub struct Http2Connection {
    connection: Connection<HttpExchange>,
    scratch: Scratch,
}

/// HTTP/2's coding of header fields.
#[derive(Debug)]
enum Hpack {}

impl Coding for Hpack {
    type Block = Block;

    const VERSION: &'static str = "HTTP/2";

    fn block(fields: &[Field]) -> Block {
        Block::new(fields)
    }

    #[inline]
    fn append_literal(out: &mut Vec<u8>, name: &str, value: &[u8]) {
        append_literal(out, name, value);
    }
}

impl Http2 {
    /// Requests by their weights, filled with subjects; `tls` says which scheme they have.
    ///
    /// # Errors
    /// When there is no request, a weight is 0, or a header is one that HTTP/2 does not have.
    pub fn new(requests: Vec<(HttpRequest, u32)>, subjects: Subjects, tls: bool, verify: bool) -> Result<Self, String> {
        Ok(Self { exchanges: Exchanges::new(requests, subjects, tls, verify)? })
    }
}

impl Protocol for Http2 {
    type Connection = Http2Connection;

    fn operations(&self) -> Vec<String> {
        self.exchanges.names()
    }

    fn connect(&self, _seat: usize) -> Http2Connection {
        Http2Connection::default()
    }

    fn control(&self, connection: &mut Http2Connection, out: &mut Vec<u8>) {
        connection.connection.control(out);
    }

    fn room(&self, connection: &Http2Connection) -> usize {
        connection.connection.room()
    }

    fn is_prepared(&self, connection: &Http2Connection) -> bool {
        connection.connection.is_prepared()
    }

    fn in_flight(&self, connection: &Http2Connection) -> usize {
        connection.connection.in_flight()
    }

    #[inline]
    fn begin(&self, connection: &mut Http2Connection, intended: Nanos, source: &mut Source, out: &mut Vec<u8>) {
        let begun = self.exchanges.next(source, &mut connection.scratch);
        let request = Request { block: begun.block, path: begun.path, fields: begun.fields, body: begun.body };
        connection.connection.begin(&request, intended, out, |exchange| begun.remember(exchange));
    }

    #[inline]
    fn receive(&self, connection: &mut Http2Connection, input: &[u8], tally: &mut Tally) -> Result<Received, Broken> {
        connection.connection.receive(&self.exchanges, input, tally)
    }

    fn expire(&self, connection: &mut Http2Connection, before: Nanos, tally: &mut Tally) -> bool {
        connection.connection.expire(before, tally);
        false
    }

    fn take_back(&self, connection: &mut Http2Connection, waiting: &mut Vec<Nanos>) {
        connection.connection.take_back(waiting);
    }

    fn abandon(&self, connection: &mut Http2Connection, failure: Failure, tally: &mut Tally) {
        connection.connection.abandon(failure, tally);
    }
}

#[cfg(test)]
mod tests;
