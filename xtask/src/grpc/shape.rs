//! Who makes which load, and one run of it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::sample::{Said, Sample, of_ghz, of_h2load, of_loadgen};
use crate::compare::{Pinning, pinned};
use crate::process::{Server, children_cpu_seconds, run_quietly};
use crate::programs;

/// What h2load sends: a message with `name: "world"`, uncompressed, behind gRPC's five bytes.
const GREETING: &[u8] = b"\0\0\0\0\x07\x0a\x05world";

/// A run has at least so many calls for each caller.
const TURNS: u64 = 4;

/// How many replies a stream has.
const MESSAGES: u64 = 1000;

/// A program that makes load.
#[derive(Debug)]
struct Tool {
    name: &'static str,
    /// Its words; those in braces are replaced.
    command: &'static str,
    /// Calls of the first run.
    first: u64,
    /// What one call counts.
    counts: u64,
    /// Understands what it prints.
    said: fn(&str) -> Result<Said>,
}

static TOOLS: [Tool; 4] = [
    Tool {
        name: "h2load",
        command: "h2load -c {connections} -m {calls} -n {total} -d {greeting} -H content-type:application/grpc \
            -H te:trailers http://{address}/helloworld.Greeter/SayHello",
        first: 40_000,
        counts: 1,
        said: of_h2load,
    },
    Tool {
        name: "ghz",
        command: "{ghz} --insecure --proto {proto} --call helloworld.Greeter.SayHello -d {\"name\":\"world\"} \
            --total {total} --concurrency {callers} --connections {connections} -O json {address}",
        first: 10_000,
        counts: 1,
        said: of_ghz,
    },
    Tool {
        name: "unary",
        command: "{loadgen} grpc {address} -c {connections} --streams {calls} -n {total} --json - --quiet",
        first: 20_000,
        counts: 1,
        said: |text| of_loadgen(text, 1),
    },
    Tool {
        name: "stream",
        command: "{loadgen} grpc {address} -c {connections} --streams {calls} -n {total} --json - --quiet \
            --proto {proto} --call helloworld.Greeter/SayHelloManyTimes --data {\"name\":\"world\",\"count\":1000}",
        first: 200,
        counts: MESSAGES,
        said: |text| of_loadgen(text, MESSAGES),
    },
];

/// Calls of our own generator that show that a server says what is expected.
const PROOFS: [&str; 2] = [
    "{loadgen} grpc {address} -c 1 -n 10 --json - --quiet --verify --expect {\"message\":\"Hello_world\"}",
    "{loadgen} grpc {address} -c 1 -n 10 --json - --quiet --verify --expect {\"message\":\"Hello_world\"} \
        --proto {proto} --call helloworld.Greeter/SayHelloManyTimes --data {\"name\":\"world\",\"count\":1000}",
];

/// What is done.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    tool: &'static Tool,
    connections: u64,
    /// Calls at a time on each.
    calls: u64,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}x{}", self.tool.name, self.connections, self.calls)
    }
}

/// The generators, ready to run.
pub(super) struct Tools {
    pub(super) folder: PathBuf,
    cores: Option<String>,
    /// What words in braces stand for, where that is always the same.
    names: Vec<(&'static str, PathBuf)>,
}

impl Shape {
    /// Parses `TOOL@CONNECTIONSxCALLS`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "expected TOOL@CONNECTIONSxCALLS, such as h2load@100x50, ghz@100x50, unary@1x1 or stream@10x10";
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let parse = || {
            let (tool, load) = text.split_once('@')?;
            let tool = TOOLS.iter().find(|row| row.name == tool)?;
            let (connections, calls) = load.split_once('x')?;
            Some(Self { tool, connections: number(connections)?, calls: number(calls)? })
        };
        parse().ok_or_else(|| wrong().to_owned())
    }

    /// What is counted.
    pub(super) fn unit(&self) -> &'static str {
        if self.tool.counts > 1 { "message" } else { "call" }
    }

    /// How many calls take so many seconds, by a first run, which also warms the server up.
    pub(super) fn calls_of(&self, seconds: f64, tools: &Tools, server: &Server) -> Result<u64> {
        let least = self.connections * self.calls * TURNS;
        let rate = self.run(tools, server, self.tool.first.max(least))?.rate;
        Ok(((rate * seconds) as u64 / self.tool.counts).max(least))
    }

    /// Makes so many calls.
    pub(super) fn run(&self, tools: &Tools, server: &Server, total: u64) -> Result<Sample> {
        let words = self.tool.command.split_whitespace().map(|word| {
            let word = tools.replaced(word, server).replace("{callers}", &(self.connections * self.calls).to_string());
            let word = word.replace("{connections}", &self.connections.to_string());
            word.replace("{calls}", &self.calls.to_string()).replace("{total}", &total.to_string())
        });
        let words = pinned(tools.cores.as_deref(), words.collect());
        server.reset_peak()?;
        let (cpu, generator, start) = (server.cpu_seconds()?, children_cpu_seconds()?, Instant::now());
        let text = run_quietly(Command::new(&words[0]).args(&words[1..]))?;
        let (cpu, elapsed) = (server.cpu_seconds()? - cpu, start.elapsed().as_secs_f64());
        let generator = (children_cpu_seconds()? - generator) / elapsed;
        let peak_mib = server.peak_bytes()? as f64 / (1024.0 * 1024.0);
        let Said { counted, per_second, p99_ms } = (self.tool.said)(&text)?;
        ensure!(counted as u64 == total * self.tool.counts, "{counted} {}s of {total} calls", self.unit());
        Ok(Sample { rate: per_second, cpu_us: cpu / counted * 1e6, p99_ms, peak_mib, generator })
    }
}

impl Tools {
    /// Builds ours, writes what the others read, fetches ghz by its package client if a shape needs it.
    pub(super) fn open(folder: &Path, pin: Option<&Pinning>, shapes: &[Shape]) -> Result<Self> {
        let loadgen = programs::ours("loadgen")?;
        let needs_ghz = shapes.iter().any(|shape| shape.tool.name == "ghz");
        let ghz = if needs_ghz { programs::peer("ghz")? } else { PathBuf::new() };
        let greeting = folder.join("greeting");
        fs::write(&greeting, GREETING)?;
        let names = vec![
            ("{ghz}", ghz),
            ("{greeting}", greeting),
            ("{loadgen}", loadgen),
            ("{proto}", crate::root().join("grpc-server/proto/helloworld.proto")),
        ];
        Ok(Self { folder: folder.to_owned(), cores: pin.map(|pin| pin.client().to_owned()), names })
    }

    /// Checks every byte of a few answers.
    pub(super) fn verify(&self, server: &Server) -> Result<()> {
        for proof in PROOFS {
            // The expected text has a space, where words are separated by spaces.
            let words = proof.split_whitespace().map(|word| self.replaced(word, server).replace("Hello_", "Hello "));
            let words: Vec<String> = words.collect();
            let text = run_quietly(Command::new(&words[0]).args(&words[1..]))?;
            of_loadgen(&text, 1).with_context(|| format!("wrong answers to `{}`", words.join(" ")))?;
        }
        Ok(())
    }

    fn replaced(&self, word: &str, server: &Server) -> String {
        let word = word.replace("{address}", &format!("127.0.0.1:{}", server.port()));
        self.names.iter().fold(word, |word, (name, path)| word.replace(name, &path.display().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_parsed() {
        let shape = |text| Shape::parse(text).map(|shape| (shape.to_string(), shape.connections, shape.calls));
        assert_eq!(shape("ghz@100x50"), Ok(("ghz@100x50".to_owned(), 100, 50)));
        assert_eq!(shape("stream@1x1"), Ok(("stream@1x1".to_owned(), 1, 1)));
        for wrong in ["ghz", "ghz@100", "ghz@0x1", "ghz@1x0", "wrk@1x1"] {
            assert!(shape(wrong).is_err(), "{wrong}");
        }
    }
}
