//! A method's call, prepared as bytes.

use std::time::Duration;

use prost_reflect::{MessageDescriptor, MethodDescriptor};

use super::message::{MessageTemplate, PREFIX, frame};
use crate::codec::h2::hpack::{Block, Field};
use crate::workload::{Source, Subjects};

/// A call of a method.
#[derive(Clone, Debug)]
pub struct GrpcCall {
    /// The method.
    pub method: MethodDescriptor,
    /// The server's name, as `:authority`.
    pub authority: String,
    /// Whether the connection is TLS.
    pub tls: bool,
    /// The messages in JSON, with places. Of a method that takes one, calls take turns; of one that takes a stream, each
    /// call sends all.
    pub data: Vec<String>,
    /// How many messages a stream has, where it is not as many as there are in `data`: they are repeated.
    pub messages: Option<usize>,
    /// Expected answers, in JSON with places: each message, or if there are several, all messages of an answer in turn.
    pub expected: Vec<String>,
    /// Metadata sent with every call.
    pub metadata: Vec<(String, String)>,
    /// How long the server may take, as it is told.
    pub deadline: Option<Duration>,
    /// How messages are compressed.
    pub compression: Compression,
}

/// Compression of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// None, and none is offered.
    #[default]
    None,
    /// gzip, in both directions.
    Gzip,
}

/// A call as bytes.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) name: String,
    pub(super) block: Block,
    bodies: Bodies,
    compress: bool,
    /// The answers' messages.
    pub(super) output: MessageDescriptor,
    pub(super) streams_answers: bool,
    pub(super) expected: Vec<MessageTemplate>,
    pub(super) has_key: bool,
}

/// The bodies of calls, in turn.
#[derive(Debug)]
enum Bodies {
    Fixed(Vec<Vec<u8>>),
    /// Messages that are made for each call.
    Made(Vec<Vec<MessageTemplate>>),
}

impl Prepared {
    /// A call; whether there are others beside it decides which header fields a connection can remember.
    pub(super) fn new(call: &GrpcCall, is_alone: bool, subjects: &Subjects) -> Result<Self, String> {
        let (input, output) = (call.method.input(), call.method.output());
        let messages: Result<Vec<_>, _> =
            call.data.iter().map(|json| MessageTemplate::new(&input, json, subjects)).collect();
        let mut turns = turns(call, messages?)?;
        let expected: Result<Vec<_>, _> =
            call.expected.iter().map(|json| MessageTemplate::new(&output, json, subjects)).collect();
        let expected = expected.map_err(|error| format!("what is expected: {error}"))?;
        if !expected.iter().all(MessageTemplate::is_determined_by_key) {
            return Err("what is expected can hold {key} and {value}, but nothing random".to_owned());
        }
        let has_key = turns.iter().flatten().chain(&expected).any(MessageTemplate::has_key);
        let compress = call.compression == Compression::Gzip;
        let bodies = if turns.iter().flatten().all(MessageTemplate::is_fixed) {
            let source = &mut Source::new(0, 0, 1);
            let fixed: Result<Vec<_>, _> =
                turns.drain(..).map(|messages| body(&messages, 0, subjects, source, compress)).collect();
            Bodies::Fixed(fixed?)
        } else {
            Bodies::Made(turns)
        };
        Ok(Self {
            name: call.method.name().to_owned(),
            block: Block::new(&fields(call, is_alone)?),
            bodies,
            compress,
            output,
            streams_answers: call.method.is_server_streaming(),
            expected,
            has_key,
        })
    }

    /// The body of the next call, if it is known before.
    #[inline]
    pub(super) fn fixed_body(&self, source: &mut Source) -> Option<&[u8]> {
        match &self.bodies {
            Bodies::Fixed(bodies) if bodies.len() == 1 => Some(&bodies[0]),
            Bodies::Fixed(bodies) => Some(&bodies[turn(bodies.len(), source)]),
            Bodies::Made(_) => None,
        }
    }

    /// Appends what the next call sends.
    ///
    /// # Errors
    /// When a message cannot be made; an empty one is sent instead.
    pub(super) fn append_body(
        &self,
        key: u64,
        subjects: &Subjects,
        source: &mut Source,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        let Bodies::Made(turns) = &self.bodies else {
            return Ok(());
        };
        let turn = if turns.len() == 1 { 0 } else { turn(turns.len(), source) };
        let made = append(&turns[turn], key, subjects, source, self.compress, out);
        if made.is_err() {
            out.clear();
            out.extend_from_slice(&[0; PREFIX]);
        }
        made
    }

    /// Whether all calls send the same.
    pub(super) fn is_always_the_same(&self) -> bool {
        matches!(&self.bodies, Bodies::Fixed(bodies) if bodies.len() == 1)
    }

    /// The expected message of an answer at this place.
    pub(super) fn expected_message(&self, place: usize) -> Option<&MessageTemplate> {
        if self.expected.len() == 1 { self.expected.first() } else { self.expected.get(place) }
    }
}

fn turn(number: usize, source: &mut Source) -> usize {
    (source.next_in_sequence() % number as u64) as usize
}

/// Which messages each call sends, in turn.
fn turns(call: &GrpcCall, messages: Vec<MessageTemplate>) -> Result<Vec<Vec<MessageTemplate>>, String> {
    if messages.is_empty() {
        return Err("there is no message to send, expected at least one".to_owned());
    }
    if call.method.is_client_streaming() {
        let number = call.messages.unwrap_or(messages.len());
        return Ok(vec![messages.iter().cycle().take(number).cloned().collect()]);
    }
    if call.messages.is_some_and(|number| number != 1) {
        return Err(format!("{} takes one message, not a stream of them", call.method.full_name()));
    }
    Ok(messages.into_iter().map(|message| vec![message]).collect())
}

fn body(
    messages: &[MessageTemplate],
    key: u64,
    subjects: &Subjects,
    source: &mut Source,
    compress: bool,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    append(messages, key, subjects, source, compress, &mut out)?;
    Ok(out)
}

fn append(
    messages: &[MessageTemplate],
    key: u64,
    subjects: &Subjects,
    source: &mut Source,
    compress: bool,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    for message in messages {
        let start = out.len();
        out.extend_from_slice(&[0; PREFIX]);
        message.append(key, subjects, source, out)?;
        frame(out, start, compress);
    }
    Ok(())
}

/// The call's header fields. All calls have the same, so all enter the server's table, except for the path in a mix.
fn fields(call: &GrpcCall, is_alone: bool) -> Result<Vec<Field>, String> {
    let path = format!("/{}/{}", call.method.parent_service().full_name(), call.method.name());
    let mut fields = vec![
        Field::shared(":method", "POST"),
        Field::shared(":scheme", if call.tls { "https" } else { "http" }),
        if is_alone { Field::shared(":path", path) } else { Field::own(":path", path) },
        Field::shared(":authority", call.authority.as_str()),
        Field::shared("content-type", "application/grpc"),
        Field::shared("user-agent", concat!("loadgen/", env!("CARGO_PKG_VERSION"))),
        Field::shared("te", "trailers"),
    ];
    if call.compression == Compression::Gzip {
        fields.push(Field::shared("grpc-encoding", "gzip"));
        fields.push(Field::shared("grpc-accept-encoding", "identity,gzip"));
    }
    if let Some(deadline) = call.deadline {
        fields.push(Field::shared("grpc-timeout", timeout(deadline)));
    }
    for (name, value) in &call.metadata {
        let name = name.to_ascii_lowercase();
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_name) || fields.iter().any(|field| field.name == name) {
            return Err(format!(
                "the metadata's name is `{name}`, expected letters, digits and -_. and none of gRPC's own"
            ));
        }
        if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(format!("the metadata {name} is `{value}`, expected printable ASCII"));
        }
        fields.push(Field::shared(name, value.as_str()));
    }
    Ok(fields)
}

/// A time as gRPC writes it: up to eight digits and a unit.
fn timeout(deadline: Duration) -> String {
    let units = [("n", 1), ("u", 1_000), ("m", 1_000_000), ("S", 1_000_000_000), ("H", 3_600_000_000_000)];
    for (unit, nanos) in units {
        // Rounded up: a short deadline must not become none.
        let number = deadline.as_nanos().div_ceil(nanos);
        if number < 100_000_000 {
            return format!("{number}{unit}");
        }
    }
    "99999999H".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_written_in_eight_digits() {
        #[track_caller]
        fn check(deadline: Duration, expected: &str) {
            assert_eq!(timeout(deadline), expected);
        }
        check(Duration::from_nanos(7), "7n");
        check(Duration::from_millis(50), "50000000n");
        check(Duration::from_secs(20), "20000000u");
        check(Duration::from_secs(3600), "3600000m");
        check(Duration::from_secs(1_000_000), "1000000S");
        check(Duration::MAX, "99999999H");
    }
}
