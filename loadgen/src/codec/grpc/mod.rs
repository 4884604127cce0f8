//! gRPC over HTTP/2 (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>): calls of one method or several.

mod answer;
mod call;
mod message;
mod status;

pub use answer::Exchange;
pub use call::{Compression, GrpcCall};
pub(crate) use status::status_text;

use std::sync::OnceLock;

use self::call::Prepared;
use super::h2::{Connection, Head, Judge, Request};
use super::{Broken, Protocol, Received};
use crate::clock::Nanos;
use crate::record::{Failure, Tally};
use crate::workload::{Mix, Source, Subjects};

/// A mix of calls.
#[derive(Debug)]
pub struct Grpc {
    calls: Vec<Prepared>,
    mix: Mix,
    subjects: Subjects,
    verify: bool,
    /// By call: the first message that came, which all others must equal, where nothing else is expected of calls that are all
    /// alike.
    firsts: Vec<OnceLock<Box<[u8]>>>,
}

/// One connection's state.
#[derive(Debug, Default)]
pub struct GrpcConnection {
    connection: Connection<Exchange>,
    /// Where messages that differ from call to call are made.
    body: Vec<u8>,
}

impl Grpc {
    /// Calls by their weights, filled with subjects.
    ///
    /// # Errors
    /// When a call's data or what is expected of its answers is not in the form of its messages, when there is no call, or a
    /// weight is 0.
    pub fn new(calls: &[(GrpcCall, u32)], subjects: Subjects, verify: bool) -> Result<Self, String> {
        let mix = Mix::new(&calls.iter().map(|(_, weight)| *weight).collect::<Vec<_>>())?;
        let is_alone = calls.len() == 1;
        let calls = calls.iter().map(|(call, _)| Prepared::new(call, is_alone, &subjects));
        let calls: Vec<_> = calls.collect::<Result<_, _>>()?;
        let firsts = calls.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { calls, mix, subjects, verify, firsts })
    }

    /// Compares a message with what is expected.
    fn check(&self, exchange: &mut Exchange, message: &[u8]) {
        let operation = exchange.operation as usize;
        let (call, place) = (&self.calls[operation], exchange.messages as usize);
        if let Some(expected) = call.expected_message(place) {
            let mut filled = Vec::new();
            if !expected.matches(exchange.key, &self.subjects, message, &mut filled) {
                exchange.say_wrong(|| {
                    let (expected, read) =
                        (message::shown(&call.output, &filled), message::shown(&call.output, message));
                    format!("expected {expected}, read {read}")
                });
            }
            return;
        }
        if call.expected.is_empty() && call.is_always_the_same() && !call.streams_answers {
            let first = self.firsts[operation].get_or_init(|| message.into());
            if **first != *message && !message::same_meaning(&call.output, first, message) {
                exchange.say_wrong(|| {
                    let (first, read) = (message::shown(&call.output, first), message::shown(&call.output, message));
                    format!("the first answer was {first}, this one is {read}")
                });
            }
        } else if !message::same_meaning(&call.output, message, message) {
            exchange.say_wrong(|| format!("a message that is no {}", call.output.full_name()));
        }
    }

    /// Why a call that ended with OK is not right.
    fn problem(&self, exchange: &Exchange) -> Option<(Failure, String)> {
        if exchange.is_inside() {
            return Some((Failure::Protocol, "a message that is cut off".to_owned()));
        }
        if let Some(wrong) = &exchange.wrong {
            return Some((Failure::Wrong, wrong.to_string()));
        }
        let call = &self.calls[exchange.operation as usize];
        if !call.streams_answers && exchange.messages != 1 {
            return Some((Failure::Protocol, format!("{} messages, expected one", exchange.messages)));
        }
        let expected = call.expected.len();
        if self.verify && call.streams_answers && expected > 1 && exchange.messages as usize != expected {
            return Some((Failure::Wrong, format!("{} messages, expected {expected}", exchange.messages)));
        }
        None
    }
}

impl Judge for Grpc {
    type Exchange = Exchange;

    #[inline]
    fn head(&self, exchange: &mut Exchange, head: &Head) {
        exchange.head(head);
    }

    #[inline]
    fn data(&self, exchange: &mut Exchange, data: &[u8]) {
        // An answer that is not gRPC, such as a page about an error, has no messages.
        if !exchange.is_grpc {
            return;
        }
        if self.verify {
            exchange.look(data, |exchange, message| self.check(exchange, message));
        } else {
            exchange.count(data);
        }
    }

    #[inline]
    fn trailers(&self, exchange: &mut Exchange, trailers: &Head) {
        exchange.trailers(trailers);
    }

    #[inline]
    fn complete(&self, exchange: &mut Exchange, intended: Nanos, tally: &mut Tally) {
        let failure = match exchange.grpc_status {
            Some(0) => match self.problem(exchange) {
                None => return tally.finished(exchange.operation as usize, intended),
                Some(failure) => failure,
            },
            Some(code) => (Failure::Rejected, status_text(code, exchange.text.as_deref())),
            None if exchange.status != 200 => (Failure::Rejected, format!("HTTP status {}", exchange.status)),
            None if !exchange.is_grpc => (Failure::Protocol, "an answer that is not application/grpc".to_owned()),
            None => (Failure::Protocol, "an answer without grpc-status".to_owned()),
        };
        tally.failed(intended, failure.0, || failure.1);
    }
}

impl Protocol for Grpc {
    type Connection = GrpcConnection;

    fn operations(&self) -> Vec<String> {
        self.calls.iter().map(|call| call.name.clone()).collect()
    }

    fn connect(&self, _seat: usize) -> GrpcConnection {
        GrpcConnection::default()
    }

    fn control(&self, connection: &mut GrpcConnection, out: &mut Vec<u8>) {
        connection.connection.control(out);
    }

    fn room(&self, connection: &GrpcConnection) -> usize {
        connection.connection.room()
    }

    fn is_prepared(&self, connection: &GrpcConnection) -> bool {
        connection.connection.is_prepared()
    }

    fn in_flight(&self, connection: &GrpcConnection) -> usize {
        connection.connection.in_flight()
    }

    #[inline]
    fn begin(&self, connection: &mut GrpcConnection, intended: Nanos, source: &mut Source, out: &mut Vec<u8>) {
        let operation = self.mix.next(source);
        let call = &self.calls[operation];
        let key = if call.has_key { self.subjects.keys.next(source) } else { 0 };
        let mut wrong = None;
        let body = match call.fixed_body(source) {
            Some(body) => body,
            None => {
                connection.body.clear();
                wrong = call.append_body(key, &self.subjects, source, &mut connection.body).err();
                &connection.body
            }
        };
        let request = Request { block: &call.block, path: &[], fields: &[], body };
        connection.connection.begin(&request, intended, out, |exchange| {
            exchange.begin(operation as u32, key);
            exchange.wrong = wrong.map(Into::into);
        });
    }

    #[inline]
    fn receive(&self, connection: &mut GrpcConnection, input: &[u8], tally: &mut Tally) -> Result<Received, Broken> {
        connection.connection.receive(self, input, tally)
    }

    fn expire(&self, connection: &mut GrpcConnection, before: Nanos, tally: &mut Tally) -> bool {
        connection.connection.expire(before, tally);
        false
    }

    fn take_back(&self, connection: &mut GrpcConnection, waiting: &mut Vec<Nanos>) {
        connection.connection.take_back(waiting);
    }

    fn abandon(&self, connection: &mut GrpcConnection, failure: Failure, tally: &mut Tally) {
        connection.connection.abandon(failure, tally);
    }
}

#[cfg(test)]
mod tests;
