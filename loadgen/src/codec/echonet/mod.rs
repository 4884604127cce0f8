//! ECHONET Lite over UDP and TCP: reads and writes of a node's properties, answers found by their TIDs.

mod frame;
mod request;
mod window;

pub use request::{CONTROLLER, Eoj, Operation, Read, Service, Write};
pub use window::{LARGEST_WINDOW, Window};

use rand::Rng as _;

use self::frame::{Frame, Head, Properties, head};
use self::request::{HEADER, Hex};
use self::window::Request;
use super::{Broken, Protocol, Received};
use crate::clock::Nanos;
use crate::record::{Failure, Tally};
use crate::workload::Source;

/// ECHONET Lite over UDP.
pub type EchonetUdp = Echonet<true>;

/// ECHONET Lite over TCP: the same frames, one after the other.
pub type EchonetTcp = Echonet<false>;

/// A mix of requests to a node's objects.
#[derive(Clone, Debug)]
pub struct Echonet<const DATAGRAM: bool> {
    operations: Vec<Prepared>,
    weights: u32,
    window: usize,
    verify: bool,
}

/// An operation and its frame.
#[derive(Clone, Debug)]
struct Prepared {
    operation: Operation,
    frame: Vec<u8>,
    /// Sum of the weights up to this operation.
    weights: u32,
}

impl<const DATAGRAM: bool> Echonet<DATAGRAM> {
    /// Requests in proportion to their weights, up to `window` of them under way on a connection.
    ///
    /// The service, the objects and the number of properties of an answer are always checked; `verify` adds which
    /// properties they are, that a write leaves no value, and each read value that is expected. A value that a SetGet both
    /// writes and reads is expected to be what was written.
    ///
    /// # Errors
    /// When there is nothing to ask, or the window is too large.
    pub fn new(operations: Vec<Operation>, window: usize, verify: bool) -> Result<Self, String> {
        if window > LARGEST_WINDOW {
            return Err(format!("a window of {window}, expected at most {LARGEST_WINDOW}: TIDs have 16 bits"));
        }
        let mut weights = 0_u32;
        let mut prepared = Vec::new();
        for mut operation in operations {
            expect_what_is_written(&mut operation);
            weights = weights.checked_add(operation.weight).ok_or("the weights' sum is too large")?;
            prepared.push(Prepared { frame: operation.frame(), operation, weights });
        }
        if weights == 0 {
            return Err("nothing is asked: expected at least one request with a weight of 1 or more".to_owned());
        }
        Ok(Self { operations: prepared, weights, window, verify })
    }

    fn choose(&self, source: &mut Source) -> usize {
        if self.operations.len() == 1 {
            return 0;
        }
        let ticket = source.rng.random_range(0..self.weights);
        self.operations.partition_point(|prepared| prepared.weights <= ticket)
    }

    /// Judges an answer to a known request.
    fn judge(&self, operation: &Operation, answer: &Frame<'_>) -> Result<(), (Failure, String)> {
        let wrong = |what: String| Err((Failure::Wrong, format!("{operation}: {what}")));
        let object = operation.object;
        let all_instances = object[2] == 0 && answer.source[..2] == object[..2];
        if (answer.source != object && !all_instances) || answer.destination != CONTROLLER {
            let (from, to) = (Hex(&answer.source), Hex(&answer.destination));
            return wrong(format!("the answer is from {from} to {to}"));
        }
        if answer.service == operation.service.refusal() {
            let name = operation.service.name();
            let (first, second) = (Listed(answer.first), Listed(answer.second));
            return Err((Failure::Rejected, format!("{operation}: {name}_SNA{first}{second}")));
        }
        if answer.service != operation.service.answer() {
            return wrong(format!("the answer's service is {:02X}", answer.service));
        }
        let (writes, reads) = match operation.service {
            Service::Get => (Properties::default(), answer.first),
            Service::SetC | Service::SetGet => (answer.first, answer.second),
        };
        if (writes.len(), reads.len()) != (operation.writes.len(), operation.reads.len()) {
            return wrong(format!("the answer has {} and {} properties", writes.len(), reads.len()));
        }
        if !self.verify {
            return Ok(());
        }
        for ((epc, edt), asked) in writes.iter().zip(&operation.writes) {
            if epc != asked.epc || !edt.is_empty() {
                return wrong(format!("{:02X} was written, the answer says {epc:02X}={}", asked.epc, Hex(edt)));
            }
        }
        for ((epc, edt), asked) in reads.iter().zip(&operation.reads) {
            if epc != asked.epc || !(asked.expected.is_empty() || asked.expected.iter().any(|value| value == edt)) {
                return wrong(format!("{}, the answer has {epc:02X}={}", Expected(asked), Hex(edt)));
            }
        }
        Ok(())
    }

    fn accept(&self, window: &mut Window, answer: &Frame<'_>, tally: &mut Tally) {
        // Announcements and requests of the node are not for us; of answers, only some may still be waited for.
        if !matches!(answer.service, 0x71 | 0x72 | 0x7e | 0x51 | 0x52 | 0x5e) {
            return;
        }
        let Some(request) = window.answered(answer.tid) else {
            tally.unexpected();
            return;
        };
        let operation = usize::from(request.operation);
        match self.judge(&self.operations[operation].operation, answer) {
            Ok(()) => tally.finished(operation, request.intended),
            Err((failure, example)) => tally.failed(request.intended, failure, || example),
        }
    }

    fn describe(&self, request: Request) -> &Operation {
        &self.operations[usize::from(request.operation)].operation
    }
}

/// A SetGet that writes and reads a property must read the written value: it writes first (4.2.3.4).
fn expect_what_is_written(operation: &mut Operation) {
    for read in operation.reads.iter_mut().filter(|read| read.expected.is_empty()) {
        let written = operation.writes.iter().rev().find(|write| write.epc == read.epc);
        read.expected.extend(written.map(|write| write.edt.clone()));
    }
}

impl<const DATAGRAM: bool> Protocol for Echonet<DATAGRAM> {
    type Connection = Window;

    const DATAGRAM: bool = DATAGRAM;

    fn operations(&self) -> Vec<String> {
        self.operations.iter().map(|prepared| prepared.operation.to_string()).collect()
    }

    fn connect(&self, _seat: usize) -> Window {
        Window::new(self.window)
    }

    fn room(&self, window: &Window) -> usize {
        window.room()
    }

    fn in_flight(&self, window: &Window) -> usize {
        window.len()
    }

    fn begin(&self, window: &mut Window, intended: Nanos, source: &mut Source, out: &mut Vec<u8>) {
        let operation = self.choose(source);
        let tid = window.begin(Request { intended, operation: operation as u16 });
        let start = out.len();
        out.extend_from_slice(&self.operations[operation].frame);
        out[start + 2..start + 4].copy_from_slice(&tid.to_be_bytes());
    }

    fn receive(&self, window: &mut Window, input: &[u8], tally: &mut Tally) -> Result<Received, Broken> {
        let mut consumed = 0;
        while consumed < input.len() {
            let rest = &input[consumed..];
            match head(rest) {
                Head::Frame(answer, length) if !DATAGRAM || length == rest.len() => {
                    self.accept(window, &answer, tally);
                    consumed += length;
                }
                // One datagram says nothing about the next: its request, if it was for one, times out.
                _ if DATAGRAM => {
                    tally.connection_failed(Failure::Protocol, || not_a_frame(rest));
                    consumed = input.len();
                }
                Head::Frame(..) | Head::Partial => break,
                Head::Garbage => return Err(Broken { failure: Failure::Protocol, example: not_a_frame(rest) }),
            }
        }
        Ok(Received { consumed, close: false })
    }

    fn expire(&self, window: &mut Window, before: Nanos, tally: &mut Tally) -> bool {
        window.expire(before, |request, tid| {
            tally.failed(request.intended, Failure::TimedOut, || {
                format!("{}: no answer (TID {tid:04X})", self.describe(request))
            });
        });
        // Late answers are told from others by their TIDs.
        false
    }

    fn abandon(&self, window: &mut Window, failure: Failure, tally: &mut Tally) {
        window.expire(Nanos::MAX, |request, _| tally.failed(request.intended, failure, String::new));
    }
}

fn not_a_frame(bytes: &[u8]) -> String {
    let least = HEADER + 1;
    format!("not a frame (10 81, at least {least} bytes, counts that agree): {} ({} bytes)", Hex(bytes), bytes.len())
}

/// A list of properties for people.
struct Listed<'a>(Properties<'a>);

impl std::fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|(epc, edt)| write!(f, " {epc:02X}={}", Hex(edt)))
    }
}

/// The expected value of a read property, for people.
struct Expected<'a>(&'a Read);

impl std::fmt::Display for Expected<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected {:02X}", self.0.epc)?;
        for (place, value) in self.0.expected.iter().enumerate() {
            write!(f, "{}{}", if place == 0 { '=' } else { '|' }, Hex(value))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
