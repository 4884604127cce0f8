//! The tables for people.

use super::sample::Sample;
use super::shape::Shape;
use super::{Options, Running, Taken};
use crate::compare::stats::{median, paired_ratio};

/// Cores of the generator above which it, and not the server, is the limit: most have one thread.
const GENERATOR_BOUND: f64 = 0.9;

/// One figure of a sample.
type Metric = fn(&Sample) -> f64;

const RATIOS: [(&str, Metric); 4] =
    [("rate", |s| s.rate), ("CPU", |s| s.cpu_us), ("p99", |s| s.p99_ms), ("RSS", |s| s.peak_mib)];

/// Medians of each server in a shape, and our ratios to each of the others.
pub(super) fn print(load: &Shape, shape: usize, running: &[Running], all: &[Taken], options: &Options) {
    let (rounds, seconds, unit) = (options.rounds, options.seconds, load.unit());
    println!("\n{load}, {rounds} rounds of about {seconds} s, medians; RSS is the highest during a run:");
    println!(
        "{:<10} {:>10} {:>12} {:>12} {:>9} {:>9} {:>10}",
        "server",
        format!("{unit}s/s"),
        format!("CPU µs/{unit}"),
        "per CPU s",
        "p99 ms",
        "RSS MiB",
        "generator"
    );
    let values = |subject: usize, value: Metric| -> Vec<f64> {
        let of_it = all.iter().filter(|taken| taken.subject == subject && taken.shape == shape);
        of_it.map(|taken| value(&taken.sample)).collect()
    };
    for (subject, Running { name, .. }) in running.iter().enumerate() {
        let of = |value| median(&values(subject, value));
        let bound = if of(|s| s.generator) > GENERATOR_BOUND { " generator-bound" } else { "" };
        println!(
            "{name:<10} {:>10.0} {:>12.3} {:>12.0} {:>9} {:>9.1} {:>10.2}{bound}",
            of(|s| s.rate),
            of(|s| s.cpu_us),
            of(|s| 1e6 / s.cpu_us),
            Some(of(|s| s.p99_ms)).filter(|ms| !ms.is_nan()).map_or_else(|| "–".to_owned(), |ms| format!("{ms:.2}")),
            of(|s| s.peak_mib),
            of(|s| s.generator),
        );
    }
    for (subject, Running { name, .. }) in running.iter().enumerate().skip(1) {
        print!("ours / {name}:");
        for (metric, value) in RATIOS {
            let ratio = paired_ratio(&values(0, value), &values(subject, value));
            if ratio.mean.is_nan() {
                continue;
            }
            let (low, high) = ratio.interval;
            print!("  {metric} {:.3} [{low:.3}, {high:.3}]", ratio.mean);
            if metric == "rate" {
                print!(" higher in {} of {rounds}", rounds - ratio.smaller);
            }
        }
        println!();
    }
}
