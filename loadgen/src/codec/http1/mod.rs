//! HTTP/1.1 (RFC 9112): pipelined on kept connections, or a connection per request.

pub(super) mod head;
pub(super) mod reader;
mod request;

pub use request::HttpRequest;
pub(super) use request::Parts;

use std::sync::OnceLock;

use self::reader::{Reader, Request};
use super::fifo::{Asked, InFlight};
use super::operations::Operations;
use super::{Broken, Protocol, Received, shown};
use crate::clock::Nanos;
use crate::record::{Failure, Tally};
use crate::workload::{Mix, Source, Subjects};

/// A mix of requests on an HTTP server.
#[derive(Debug)]
pub struct Http1 {
    requests: Vec<HttpRequest>,
    mix: Mix,
    operations: Operations,
    subjects: Subjects,
    connection_per_request: bool,
    verify: bool,
    /// By request: the first body that came, which all others must equal, where nothing else is expected.
    first_bodies: Vec<OnceLock<Box<[u8]>>>,
}

/// One connection's state.
#[derive(Debug, Default)]
pub struct Http1Connection {
    in_flight: InFlight,
    reader: Reader,
}

impl Http1 {
    /// Requests by their weights, filled with subjects.
    ///
    /// # Errors
    /// When there is no request, or a weight is 0.
    pub fn new(
        requests: Vec<(HttpRequest, u32)>,
        subjects: Subjects,
        connection_per_request: bool,
        verify: bool,
    ) -> Result<Self, String> {
        let (requests, weights): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
        let operations = Operations::each(requests.iter().map(HttpRequest::name));
        Ok(Self::with(requests, Mix::new(&weights)?, operations, subjects, connection_per_request, verify))
    }

    /// Requests in this order, over and over again; those of one name are one operation.
    ///
    /// # Errors
    /// When there is no request.
    pub fn in_turn(
        requests: Vec<HttpRequest>,
        order: Vec<u32>,
        subjects: Subjects,
        connection_per_request: bool,
        verify: bool,
    ) -> Result<Self, String> {
        let operations = Operations::by_name(requests.iter().map(HttpRequest::name));
        Ok(Self::with(requests, Mix::in_turn(order)?, operations, subjects, connection_per_request, verify))
    }

    fn with(
        mut requests: Vec<HttpRequest>,
        mix: Mix,
        operations: Operations,
        subjects: Subjects,
        connection_per_request: bool,
        verify: bool,
    ) -> Self {
        for request in &mut requests {
            request.compile(&subjects, connection_per_request);
        }
        let first_bodies = requests.iter().map(|_| OnceLock::new()).collect();
        Self { requests, mix, operations, subjects, connection_per_request, verify, first_bodies }
    }

    /// Judges a response that is complete.
    fn account(&self, connection: &mut Http1Connection, tally: &mut Tally) {
        let Some(asked) = connection.in_flight.pop() else {
            return;
        };
        let operation = asked.operation as usize;
        let request = &self.requests[operation];
        let (status, body) = (connection.reader.status(), connection.reader.body());
        tally.status(asked.intended, status);
        if status >= 400 {
            return tally
                .failed(asked.intended, Failure::Rejected, || format!("{}: status {}", request.name(), status));
        }
        if self.verify && !self.is_right(operation, asked.key, body) {
            return tally.failed(asked.intended, Failure::Wrong, || {
                let expected = self.expected(operation, asked.key).unwrap_or_default();
                let (expected, read) = (shown(&expected), shown(body));
                format!("{}: expected `{expected}`, read `{read}`", request.name())
            });
        }
        tally.finished(self.operations.of(operation), asked.intended);
    }

    fn is_right(&self, operation: usize, key: u64, body: &[u8]) -> bool {
        match self.expected(operation, key) {
            Some(expected) => *expected == *body,
            None => **self.first_bodies[operation].get_or_init(|| body.into()) == *body,
        }
    }

    fn expected(&self, operation: usize, key: u64) -> Option<Vec<u8>> {
        let first = || self.first_bodies[operation].get().map(|body| body.to_vec());
        self.requests[operation].expected(key, &self.subjects).or_else(first)
    }
}

impl Protocol for Http1 {
    type Connection = Http1Connection;

    fn operations(&self) -> Vec<String> {
        self.operations.names().to_vec()
    }

    fn connect(&self, _seat: usize) -> Http1Connection {
        Http1Connection::default()
    }

    fn room(&self, connection: &Http1Connection) -> usize {
        match (self.connection_per_request, connection.in_flight.len()) {
            (false, _) => usize::MAX,
            (true, 0) => 1,
            (true, _) => 0,
        }
    }

    fn requests_per_connection(&self) -> Option<usize> {
        self.connection_per_request.then_some(1)
    }

    fn in_flight(&self, connection: &Http1Connection) -> usize {
        connection.in_flight.len()
    }

    #[inline]
    fn begin(&self, connection: &mut Http1Connection, intended: Nanos, source: &mut Source, out: &mut Vec<u8>) {
        let operation = self.mix.next(source);
        let request = &self.requests[operation];
        let key = if request.has_key() { self.subjects.keys.next(source) } else { 0 };
        request.append(key, &self.subjects, source, out);
        connection.in_flight.push(Asked { intended, key, operation: operation as u32 });
    }

    fn receive(&self, connection: &mut Http1Connection, input: &[u8], tally: &mut Tally) -> Result<Received, Broken> {
        let mut consumed = 0;
        loop {
            let request = connection.in_flight.first().map(|asked| Request {
                is_head: self.requests[asked.operation as usize].is_head(),
                keeps_body: self.verify,
            });
            let Some((length, is_complete)) = connection.reader.read(&input[consumed..], request)? else {
                return Ok(Received { consumed, close: false });
            };
            consumed += length;
            if is_complete {
                self.account(connection, tally);
                if connection.reader.closes() || self.connection_per_request {
                    return Ok(Received { consumed, close: true });
                }
            }
        }
    }

    fn end(&self, connection: &mut Http1Connection, tally: &mut Tally) {
        if connection.reader.end() {
            self.account(connection, tally);
        }
    }

    fn expire(&self, connection: &mut Http1Connection, before: Nanos, tally: &mut Tally) -> bool {
        connection.in_flight.expire(before, tally)
    }

    fn abandon(&self, connection: &mut Http1Connection, failure: Failure, tally: &mut Tally) {
        connection.in_flight.abandon(failure, tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Window;
    use crate::workload::{Distribution, Keys, Sizes, Template, Values};

    fn http(request: HttpRequest, verify: bool) -> Http1 {
        let subjects = Subjects {
            keys: Keys::new(1, Distribution::Uniform).unwrap(),
            values: Values::new(Sizes::Fixed(5), 0).unwrap(),
        };
        Http1::new(vec![(request, 1)], subjects, false, verify).unwrap()
    }

    /// The outcome of a server's bytes after three requests: right answers, examples of failures, whether it closes.
    fn outcome(http: &Http1, answer: &[u8], cut: usize) -> Result<(u64, Vec<String>, bool), Broken> {
        let mut connection = http.connect(0);
        let mut tally = Tally::new(1);
        tally.set_window(Window::Open { from: 0, until: 9 });
        let (mut source, mut out) = (Source::new(0, 0, 1), Vec::new());
        for _ in 0..3 {
            http.begin(&mut connection, 1, &mut source, &mut out);
        }
        let (mut unread, mut closes) = (Vec::new(), false);
        for piece in [&answer[..cut], &answer[cut..]] {
            unread.extend_from_slice(piece);
            let received = http.receive(&mut connection, &unread, &mut tally)?;
            unread.drain(..received.consumed);
            closes |= received.close;
            if closes {
                break;
            }
        }
        http.end(&mut connection, &mut tally);
        let failures = tally.failures().list();
        Ok((tally.latencies()[0].count(), failures.into_iter().flat_map(|failure| failure.examples).collect(), closes))
    }

    #[test]
    fn responses_of_every_framing_are_read() {
        #[track_caller]
        fn check(method: &str, answer: &str, right: u64, failures: &[&str], closes: bool) {
            let http = http(HttpRequest::new(method, "/x").unwrap(), false);
            for cut in 0..=answer.len() {
                let found = outcome(&http, answer.as_bytes(), cut).unwrap();
                assert_eq!(found, (right, failures.iter().map(ToString::to_string).collect(), closes), "{cut}");
            }
        }
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        check("GET", &ok.repeat(3), 3, &[], false);
        check(
            "GET",
            "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
            2,
            &[],
            false,
        );
        check("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", 1, &[], false);
        check("GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 1, &[], false);
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nt: r\r\n\r\n";
        check("GET", &chunked.repeat(2), 2, &[], false);
        check("GET", "HTTP/1.0 200 OK\r\n\r\nall of this", 1, &[], false);
        check("GET", "HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 0\r\n\r\n", 1, &[], true);
        check("GET", "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 0, &["GET /x: status 404"], false);
    }

    #[test]
    fn bodies_are_checked() {
        #[track_caller]
        fn check(request: HttpRequest, bodies: &[&str], right: u64, failures: &[&str]) {
            let http = http(request, true);
            let response = |body: &&str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let answer: String = bodies.iter().map(response).collect();
            let (found, examples, _) = outcome(&http, answer.as_bytes(), 0).unwrap();
            assert_eq!((found, examples), (right, failures.iter().map(ToString::to_string).collect()));
        }
        let plain = HttpRequest::new("GET", "/x").unwrap();
        check(plain, &["a", "a", "b"], 2, &["GET /x: expected `a`, read `b`"]);
        let greeting = HttpRequest::new("GET", "/{key}").unwrap().expecting(Template::new("Hello {key}"));
        let right = "Hello 000000000000";
        check(greeting, &[right, "Hello 1", right], 2, &["GET /{key}: expected `Hello 000000000000`, read `Hello 1`"]);
    }

    #[test]
    fn http1_protocol_errors_end_the_connection() {
        #[track_caller]
        fn check(answer: &str, example: &str) {
            let http = http(HttpRequest::new("GET", "/").unwrap(), false);
            let broken = outcome(&http, answer.as_bytes(), 0).unwrap_err();
            assert_eq!(broken, Broken { failure: Failure::Protocol, example: example.to_owned() });
        }
        check("SSH-2.0-x\r\n", "expected a response of HTTP/1.1, read `SSH-2.0-x\u{fffd}\u{fffd}`");
        check("HTTP/1.1 abc\r\n\r\n", "expected a status, read `HTTP/1.1 abc\u{fffd}\u{fffd}\u{fffd}\u{fffd}`");
        let lengths = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n";
        assert!(outcome(&http(HttpRequest::new("GET", "/").unwrap(), false), lengths.as_bytes(), 0).is_err());
        let ok = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        check(&ok.repeat(4), "a response that nobody asked for: status 200");
        check("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", "expected a chunk's size, read `xyz`");
    }
}
