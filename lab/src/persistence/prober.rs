//! A client that asks for one key again and again, and notes how long each answer takes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use loadgen::output::chart::{Axis, LineChart, Scale, Series};
use loadgen::output::html::standing_alone;

use crate::isolation::Client;

/// Between two requests.
const PAUSE: Duration = Duration::from_micros(100);
/// Samples of this time are one point of the drawing, the longest of them.
const BUCKET: f64 = 0.01;

/// When it was asked, and how long the answer took, in seconds.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) at: f64,
    pub(super) took: f64,
}

/// Latencies over time, by the name of the server: seconds, and the longest answer then in milliseconds.
pub(super) type Plot = BTreeMap<String, Vec<(f64, f64)>>;

pub(super) struct Prober {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<(Instant, Duration)>>>,
}

impl Prober {
    /// Begins to ask.
    pub(super) fn begin(port: u16) -> Result<Self> {
        let mut client = Client::connect(port)?;
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let ask = move || {
            let mut samples = Vec::new();
            while !is_over.load(Relaxed) {
                let asked = Instant::now();
                client.ask(&["GET", "key:1"])?;
                samples.push((asked, asked.elapsed()));
                thread::sleep(PAUSE);
            }
            Ok(samples)
        };
        Ok(Self { over, thread: thread::spawn(ask) })
    }

    /// Ends it; what it has found, with times since `zero`.
    pub(super) fn end(self, zero: Instant) -> Result<Vec<Sample>> {
        self.over.store(true, Relaxed);
        let samples = self.thread.join().map_err(|_| anyhow!("the prober panicked"))??;
        let since = |at: Instant| match at.checked_duration_since(zero) {
            Some(after) => after.as_secs_f64(),
            None => -(zero - at).as_secs_f64(),
        };
        let sample = |(asked, took): (Instant, Duration)| Sample { at: since(asked), took: took.as_secs_f64() };
        Ok(samples.into_iter().map(sample).collect())
    }
}

/// The longest that an answer took which was asked for, or came, between two moments.
pub(super) fn longest(samples: &[Sample], from: f64, to: f64) -> f64 {
    let within = samples.iter().filter(|sample| sample.at + sample.took >= from && sample.at < to);
    within.map(|sample| sample.took).fold(0.0, f64::max)
}

/// How long all answers took at most but one in a thousand, of those that were asked for from the zero of the samples on, in
/// seconds.
pub(super) fn p999(samples: &[Sample]) -> f64 {
    let mut all: Vec<f64> = samples.iter().filter(|sample| sample.at >= 0.0).map(|sample| sample.took).collect();
    all.sort_unstable_by(f64::total_cmp);
    let rank = (all.len() as f64 * 0.999).ceil() as usize;
    rank.checked_sub(1).map_or(0.0, |at| all[at])
}

/// The longest answers over time, from the first sample on: seconds, and milliseconds.
pub(super) fn points(samples: &[Sample]) -> Vec<(f64, f64)> {
    let from = samples.first().map_or(0.0, |sample| sample.at);
    let end = samples.last().map_or(0.0, |sample| sample.at);
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    let point = |at: f64| (rounded(at - from), rounded(1e3 * longest(samples, at, at + BUCKET)));
    let count = ((end - from) / BUCKET).ceil() as usize;
    (0..count).map(|number| point(from + number as f64 * BUCKET)).filter(|(_, took)| *took > 0.0).collect()
}

/// Draws them to a file.
pub(super) fn draw(plot: &Plot, path: &Path) -> Result<()> {
    let series: Vec<Series> = plot
        .iter()
        .enumerate()
        .map(|(colour, (name, points))| Series { name: name.clone(), points: points.clone(), colour })
        .collect();
    let points = || series.iter().flat_map(|series| &series.points);
    let (end, most) = points().fold((0.0, 0.0), |(end, most), (at, took)| (f64::max(end, *at), f64::max(most, *took)));
    let chart = LineChart {
        title: "Longest answer in 10 ms during a snapshot that begins at 1 s".to_owned(),
        x: Axis { label: "seconds", scale: Scale::from_zero(end), write: |value| format!("{value}") },
        y: Axis { label: "milliseconds", scale: Scale::around(0.02, most), write: |value| format!("{value}") },
        series,
    };
    Ok(fs::write(path, standing_alone(&chart.draw()))?)
}
