//! One run of wrk against one server, and what the server spent on it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::compare::{Pinning, pinned};
use crate::process::{Server, children_cpu_seconds, run_quietly};

/// What wrk does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) path: String,
    pub(super) connections: usize,
    /// Requests that are sent together.
    pub(super) depth: usize,
}

/// What one run showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) rate: f64,
    /// User and system time of the server per request, in microseconds.
    pub(super) cpu_us: f64,
    pub(super) p99_ms: f64,
    pub(super) rss_mib: f64,
    /// CPU time of wrk over elapsed time, in cores.
    pub(super) generator: f64,
}

impl Shape {
    /// Parses `PATH@CONNECTIONS`, with `xDEPTH` behind it for pipelining.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "expected PATH@CONNECTIONS or PATH@CONNECTIONSxDEPTH, such as /json@100 or /@64x16".to_owned();
        let (path, load) = text.rsplit_once('@').ok_or_else(wrong)?;
        let (connections, depth) = load.split_once('x').unwrap_or((load, "1"));
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0).ok_or_else(wrong);
        Ok(Self { path: path.to_owned(), connections: number(connections)?, depth: number(depth)? })
    }

    pub(super) fn name(&self) -> String {
        let depth = if self.depth > 1 { format!("x{}", self.depth) } else { String::new() };
        format!("{}@{}{depth}", self.path, self.connections)
    }

    /// Whether the server has to ask a Redis.
    pub(super) fn needs_redis(&self) -> bool {
        self.path.starts_with("/get")
    }

    /// Runs it.
    pub(super) fn run(&self, server: &Server, seconds: u64, pin: Option<&Pinning>, folder: &Path) -> Result<Sample> {
        let mut words = vec!["wrk".to_owned(), "--latency".to_owned(), format!("-d{seconds}")];
        words.extend([format!("-t{}", self.connections.min(2)), format!("-c{}", self.connections)]);
        if self.depth > 1 {
            words.extend(["-s".to_owned(), self.script(folder)?]);
        }
        words.push(format!("http://127.0.0.1:{}{}", server.port(), self.path));
        let words = pinned(pin.map(Pinning::client), words);
        let (before, wrk_before) = (server.cpu_seconds()?, children_cpu_seconds()?);
        let text = run_quietly(Command::new(&words[0]).args(&words[1..]))?;
        let cpu = server.cpu_seconds()? - before;
        let generator = (children_cpu_seconds()? - wrk_before) / seconds as f64;
        ensure!(!text.contains("Non-2xx"), "wrong answers: {text}");
        let requests: f64 = before_word(&text, " requests in").context("wrk shows no count")?.parse()?;
        Ok(Sample {
            rate: after_word(&text, "Requests/sec:").context("wrk shows no rate")?.parse()?,
            cpu_us: cpu / requests * 1e6,
            p99_ms: milliseconds(after_word(&text, "99%").context("wrk shows no 99th percentile")?)?,
            rss_mib: server.resident_bytes()? as f64 / (1024.0 * 1024.0),
            generator,
        })
    }

    /// A script that makes wrk send several requests at a time.
    fn script(&self, folder: &Path) -> Result<String> {
        let path = folder.join(format!("pipeline-{}.lua", self.depth));
        let text = format!(
            "init = function() local r = {{}} for i = 1, {} do r[i] = wrk.format() end all = table.concat(r) end\n\
             request = function() return all end\n",
            self.depth
        );
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    }
}

fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim().strip_prefix(word)).map(str::trim)
}

fn before_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim().split_once(word)).map(|(number, _)| number)
}

/// A time as wrk writes it: `850.00us`, `1.20ms`, `2.01s`.
fn milliseconds(text: &str) -> Result<f64> {
    let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3), ("m", 6e4)];
    let found = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = found.with_context(|| format!("{text} is no time"))?;
    Ok(number.parse::<f64>()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_times_are_parsed() {
        let shape = |text| Shape::parse(text).map(|shape| (shape.name(), shape.connections, shape.depth));
        assert_eq!(shape("/json@100"), Ok(("/json@100".to_owned(), 100, 1)));
        assert_eq!(shape("/@64x16"), Ok(("/@64x16".to_owned(), 64, 16)));
        for wrong in ["/", "/@", "/@0", "/@1x", "/@1x0"] {
            assert!(shape(wrong).is_err(), "{wrong}");
        }
        for (text, expected) in [("850.00us", 0.85), ("1.20ms", 1.2), ("2.01s", 2010.0)] {
            assert!((milliseconds(text).unwrap() - expected).abs() < 1e-9, "{text}");
        }
    }
}
