//! `echonet bench`: how fast a node answers.

use std::time::{Duration, Instant};

use echonet_lite::controller::{Event, Interview, Request, RequestError, Spacing};
use echonet_lite::net::Error;
use serde_json::json;

use crate::commands::{Bench, Options};
use crate::failure::{self, Failure};
use crate::output::Output;
use crate::{link, names, render};

/// How long an answer is waited for before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(1);
/// The part of the latencies, in thousandths, that is at most the figure.
const QUANTILES: [(&str, u64); 5] = [("p50", 500), ("p90", 900), ("p99", 990), ("p999", 999), ("max", 1000)];

pub(crate) fn run(args: &Bench, options: &Options, out: &Output) -> Result<(), Failure> {
    let node = names::target(&args.target, options)?;
    let eoj = names::object(&args.object)?;
    if eoj.instance() == 0 {
        return Err(Failure::Input("one object can be measured, not all of a class".to_owned()));
    }
    let epcs = args
        .properties
        .iter()
        .map(|text| names::property(names::class_of(eoj), eoj, text))
        .collect::<Result<Vec<_>, _>>()?;
    let request = Request::get(eoj, &epcs).fresh();

    let mut config = link::settings(options, Interview::Nothing);
    let patience = options.timeout.unwrap_or(PATIENCE);
    (config.window, config.spacing, config.tries) = (args.window, Spacing::Fixed(Duration::ZERO), 1);
    (config.first_timeout, config.min_timeout, config.max_timeout) = (patience, patience, patience);
    config.max_requests_per_node = config.max_requests_per_node.max(args.window.into());
    let mut begun_at = vec![Instant::now(); config.max_requests];
    let mut endpoint = link::builder(options).controller(config).bind_blocking()?;

    // One that is not counted: a node that is not there, or refuses, is no matter of speed.
    let first = endpoint.request(node, &request).map_err(|error| failure::of_request(error, node))?;
    super::get::refuse(names::class_of(eoj), std::iter::once(&first).filter(|answer| !answer.is_ok()))?;

    let mut tally = Tally::default();
    let begin = Instant::now();
    let end = begin + args.duration;
    let mut under_way = 0_u64;
    loop {
        while under_way < args.window.into() && is_wanted(args, end, tally.begun) {
            match endpoint.begin(node, &request) {
                Ok(id) => begun_at[id.index()] = Instant::now(),
                Err(RequestError::Full | RequestError::NodeFull) => break,
                Err(error) => return Err(failure::of_request(Error::Refused(error), node)),
            }
            tally.begun += 1;
            under_way += 1;
        }
        if under_way == 0 {
            break;
        }
        if let Some(Event::Done { id, result }) = endpoint.next_event(None)? {
            under_way -= 1;
            match result {
                Ok(answer) if answer.is_ok() => tally.answered(begun_at[id.index()].elapsed()),
                Ok(_) => tally.refused += 1,
                Err(_) => tally.lost += 1,
            }
        }
    }
    show(&tally, begin.elapsed(), &format!("{node} {}", render::object(eoj)), out)
}

/// Whether another request is to be made.
fn is_wanted(args: &Bench, end: Instant, begun: u64) -> bool {
    args.count.map_or_else(|| Instant::now() < end, |count| begun < count)
}

fn show(tally: &Tally, time: Duration, whom: &str, out: &Output) -> Result<(), Failure> {
    let per_second = tally.count as f64 / time.as_secs_f64();
    let micros = |thousandths| (tally.quantile(thousandths) as f64) / 1000.0;
    let json = || {
        let latencies: serde_json::Map<_, _> =
            QUANTILES.iter().map(|(name, thousandths)| ((*name).to_owned(), json!(micros(*thousandths)))).collect();
        json!({
            "requests": tally.begun,
            "answered": tally.count,
            "lost": tally.lost,
            "refused": tally.refused,
            "seconds": time.as_secs_f64(),
            "perSecond": per_second,
            "microseconds": latencies,
        })
    };
    out.result(json, || {
        let latencies: Vec<_> =
            QUANTILES.iter().map(|(name, thousandths)| format!("{name} {:.1}", micros(*thousandths))).collect();
        let (lost, refused) = (tally.lost, tally.refused);
        format!(
            "{whom}: {} requests in {:.2} s, {per_second:.0} per second, {lost} lost, {refused} refused\nµs: {}",
            tally.begun,
            time.as_secs_f64(),
            latencies.join(", ")
        )
    })
}

/// Buckets for each power of two: a figure is at most 1/64 too high.
const STEPS: u64 = 64;

/// The outcomes of the requests, and a histogram of the latencies in nanoseconds.
#[derive(Default)]
struct Tally {
    begun: u64,
    lost: u64,
    refused: u64,
    count: u64,
    buckets: Vec<u64>,
}

impl Tally {
    fn answered(&mut self, latency: Duration) {
        let place = bucket(latency.as_nanos() as u64);
        if self.buckets.len() <= place {
            self.buckets.resize(place + 1, 0);
        }
        self.buckets[place] += 1;
        self.count += 1;
    }

    /// The latency in nanoseconds that so many thousandths do not exceed.
    fn quantile(&self, thousandths: u64) -> u64 {
        let wanted = (self.count * thousandths).div_ceil(1000);
        let mut seen = 0;
        for (place, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted.max(1) {
                return upper(place);
            }
        }
        0
    }
}

fn bucket(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEPS.ilog2();
    (u64::from(shift + 1) * STEPS + (nanos >> shift) - STEPS) as usize
}

/// The highest figure of a bucket.
fn upper(place: usize) -> u64 {
    let (power, step) = (place as u64 / STEPS, place as u64 % STEPS);
    if power == 0 { step } else { ((STEPS + step + 1) << (power - 1)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_close() {
        let mut tally = Tally::default();
        for micros in 1..=1000 {
            tally.answered(Duration::from_micros(micros));
        }
        for (thousandths, exact) in [(500, 500_000), (990, 990_000), (1000, 1_000_000)] {
            let found = tally.quantile(thousandths);
            assert!((exact..=exact + exact / 64).contains(&found), "{found} for {exact}");
        }
        for nanos in [0, 1, 63, 64, 65, 127, 128, 1_000_000, u64::MAX >> 1] {
            let top = upper(bucket(nanos));
            assert!(top >= nanos && top - nanos <= nanos / 64, "{nanos} {top}");
        }
        assert_eq!(Tally::default().quantile(500), 0);
    }
}
