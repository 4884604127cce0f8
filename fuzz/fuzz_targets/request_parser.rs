//! Any bytes, cut anywhere, parse to the same commands as in one piece.

#![no_main]

use libfuzzer_sys::{arbitrary, fuzz_target};
use redis_server::protocol::{Parser, RequestLimits, Span, split_inline};

#[derive(Debug, arbitrary::Arbitrary)]
struct Input {
    authenticated: bool,
    cuts: Vec<u8>,
    bytes: Vec<u8>,
}

/// The arguments of each command, and the error that ended them.
type Commands = (Vec<Vec<Vec<u8>>>, Option<String>);

/// One stream of requests, as a connection reads it: what is complete is taken off the head.
struct Stream {
    limits: RequestLimits,
    parser: Parser,
    spans: Vec<Span>,
    input: Vec<u8>,
    commands: Commands,
}

impl Stream {
    fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let mut at = 0;
        while self.commands.1.is_none() && at < self.input.len() {
            let taken =
                if self.parser.in_command() || self.input[at] == b'*' { self.multibulk(at) } else { self.inline(at) };
            let Some(end) = taken else { break };
            assert!(end > at && end <= self.input.len(), "a command ends inside of the input");
            at = end;
        }
        self.input.drain(..at);
        Parser::relocate(&mut self.spans, at);
    }

    fn multibulk(&mut self, at: usize) -> Option<usize> {
        match self.parser.parse(&self.input, at, &mut self.spans, &self.limits) {
            Ok(Some(end)) => {
                let words = self.spans.drain(..).map(|span| words(&self.input, span));
                self.commands.0.push(words.collect());
                Some(end)
            }
            Ok(None) => {
                let waits = self.parser.pending_bulk().is_none() || at + self.parser.needed() > self.input.len();
                assert!(waits, "all of the argument has come");
                None
            }
            Err(error) => {
                self.commands.1 = Some(error.to_string());
                None
            }
        }
    }

    fn inline(&mut self, at: usize) -> Option<usize> {
        match split_inline(&self.input[at..]) {
            Ok(Some((inline, len))) => {
                self.commands.0.push(inline.spans.iter().map(|span| words(&inline.bytes, *span)).collect());
                Some(at + len)
            }
            Ok(None) => None,
            Err(error) => {
                self.commands.1 = Some(error.to_string());
                None
            }
        }
    }
}

fn words(bytes: &[u8], span: Span) -> Vec<u8> {
    bytes[span.start as usize..][..span.len as usize].to_vec()
}

fn parse<'a>(pieces: impl Iterator<Item = &'a [u8]>, authenticated: bool) -> Commands {
    let limits = RequestLimits { max_bulk_len: 1 << 20, authenticated };
    let (parser, spans, input) = (Parser::default(), Vec::new(), Vec::new());
    let mut stream = Stream { limits, parser, spans, input, commands: Commands::default() };
    pieces.for_each(|piece| stream.receive(piece));
    stream.commands
}

fuzz_target!(|input: Input| {
    let Input { authenticated, cuts, bytes } = &input;
    let whole = parse(std::iter::once(&bytes[..]), *authenticated);
    let mut rest = &bytes[..];
    let mut lengths = cuts.iter().cycle();
    let pieces = std::iter::from_fn(|| {
        let len = lengths.next().map_or(1, |cut| usize::from(*cut).max(1));
        let (piece, behind) = rest.split_at(len.min(rest.len()));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    });
    assert_eq!(parse(pieces, *authenticated), whole);
});
