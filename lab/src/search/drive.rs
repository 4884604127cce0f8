//! Clients that ask one question behind the other, and the cost of that.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use loadgen::record::Latencies;
use serde::{Deserialize, Serialize};
use xtask::process::Server;

use crate::isolation::Client;

/// The figures of one measurement.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Sample {
    /// Microseconds of the server's CPU time for an answer.
    pub(super) cpu: f64,
    /// Answers a second.
    pub(super) rate: f64,
    /// Milliseconds within which 50 and 99 of 100 answers came.
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// Asks the questions in turns on so many connections, each of which waits for its answer, for a time.
pub(super) fn measure(server: &Server, questions: &[Vec<u8>], clients: usize, time: Duration) -> Result<Sample> {
    let over = AtomicBool::new(false);
    let (before, begun) = (server.cpu_seconds()?, Instant::now());
    let times = thread::scope(|scope| {
        let ask = |first: usize| {
            let over = &over;
            let mut client = Client::connect(server.port())?;
            Ok(scope.spawn(move || -> Result<Latencies> {
                let mut times = Latencies::new();
                let mut next = first * questions.len() / clients;
                loop {
                    let begun = Instant::now();
                    client.pipeline(&questions[next % questions.len()], 1)?;
                    times.record(u64::try_from(begun.elapsed().as_nanos())?);
                    next += 1;
                    if over.load(Relaxed) {
                        return Ok(times);
                    }
                }
            }))
        };
        let asking = (0..clients).map(ask).collect::<Result<Vec<_>>>()?;
        thread::sleep(time);
        over.store(true, Relaxed);
        let mut all = Latencies::new();
        for client in asking {
            all.merge(&client.join().map_err(|_| anyhow!("a client panicked"))??);
        }
        anyhow::Ok(all)
    })?;
    let (seconds, spent) = (begun.elapsed().as_secs_f64(), server.cpu_seconds()? - before);
    let answers = times.count();
    let millis = |percent| times.percentile(percent).as_secs_f64() * 1e3;
    Ok(Sample {
        cpu: spent * 1e6 / answers as f64,
        rate: answers as f64 / seconds,
        p50: millis(50.0),
        p99: millis(99.0),
    })
}

/// The share of the nearest vectors that a server finds.
pub(super) fn recall(client: &mut Client, questions: &[Vec<u8>], exact: &[Vec<usize>]) -> Result<f64> {
    let (mut found, mut of) = (0, 0);
    for (question, exact) in questions.iter().zip(exact) {
        let keys = client.keys(question)?;
        found += exact.iter().filter(|number| keys.contains(&format!("doc:{number}"))).count();
        of += exact.len();
    }
    Ok(found as f64 / of.max(1) as f64)
}
