//! Tables for people, and the record.

use std::fmt::Write as _;

use anyhow::Result;

use super::run::GENERATOR_BOUND;
use super::stats::{median, paired_ratio};
use super::subject::{FLOOR, Subject, versions};
use super::{Options, Placement, Sample, Scenario};

/// One figure of a sample.
type Metric = fn(&Sample) -> f64;

/// Prints medians, and our ratios to each of the others.
pub(super) fn print(scenario: Scenario, placement: Placement, subjects: &[Subject], samples: &[Sample]) {
    print!("{}", table(scenario, placement, subjects, samples));
}

fn table(scenario: Scenario, placement: Placement, subjects: &[Subject], samples: &[Sample]) -> String {
    let of = |index: usize, metric: Metric| -> Vec<f64> {
        samples.iter().filter(|sample| sample.subject == index).map(metric).collect()
    };
    let present: Vec<usize> = (0..subjects.len()).filter(|index| !of(*index, |s| s.rate).is_empty()).collect();
    let mut text = format!("{}, {}:\n", scenario.name(), placement.name());
    let _ = writeln!(
        text,
        "  {:<18} {:>11} {:>10} {:>8} {:>8} {:>7} {:>6}  other side",
        "subject", "requests/s", "CPU µs/req", "p50 µs", "p99 µs", "lost", "wrong"
    );
    for &index in &present {
        let middle = |metric: Metric| median(&of(index, metric));
        let busy = middle(|s| s.other_busy);
        let note = if busy > GENERATOR_BOUND { ", its limit" } else { "" };
        let _ = writeln!(
            text,
            "  {:<18} {:>11.0} {:>10.2} {:>8.0} {:>8.0} {:>7.0} {:>6.0}  {:.0} % busy{note}",
            subjects[index].name,
            middle(|s| s.rate),
            middle(|s| s.cpu_us),
            middle(|s| s.p50_us),
            middle(|s| s.p99_us),
            of(index, |s| s.lost as f64).iter().sum::<f64>(),
            of(index, |s| s.wrong as f64).iter().sum::<f64>(),
            busy * 100.0,
        );
    }
    let ours = present.iter().filter(|index| subjects[**index].name.starts_with("ours"));
    for &index in ours {
        for &other in present.iter().filter(|other| !subjects[**other].name.starts_with("ours")) {
            for (name, metric) in [("rate", (|s| s.rate) as Metric), ("CPU", |s| s.cpu_us)] {
                let ratio = paired_ratio(&of(index, metric), &of(other, metric));
                let (low, high) = ratio.interval;
                let (ours, theirs) = (subjects[index].name, subjects[other].name);
                let _ = writeln!(text, "  {name:<4} {ours} / {theirs}: {:.3} [{low:.3}, {high:.3}]", ratio.mean);
            }
        }
    }
    text
}

/// The raw samples with what is needed to judge them, and the tables computed from them.
pub(super) fn record(options: &Options, subjects: &[Subject], samples: &[Sample]) -> Result<String> {
    let mut text = String::from("# cargo xtask echonet: raw samples, one line a run; tables below\n");
    text += &versions(subjects);
    writeln!(text, "# {} rounds, {} s a run as a device; every subject on one core", options.rounds, options.seconds)?;
    writeln!(
        text,
        "# CPU: user and system time of the subject per request; ratios are paired by round, with bootstrap 95 % intervals"
    )?;
    writeln!(
        text,
        "# {FLOOR}: benches/peers/echonet-c, echonet-floor.c as a device, echonet-generator.c as a controller"
    )?;
    writeln!(text, "{}", Sample::HEADER)?;
    for sample in samples {
        writeln!(text, "{}", sample.csv(subjects))?;
    }
    for scenario in Scenario::ALL {
        for placement in [Placement::Apart, Placement::Together] {
            let chosen = |sample: &&Sample| sample.scenario == scenario && sample.placement == placement;
            let taken: Vec<Sample> = samples.iter().filter(chosen).cloned().collect();
            if !taken.is_empty() {
                writeln!(text, "\n{}", table(scenario, placement, subjects, &taken).trim_end())?;
            }
        }
    }
    Ok(text)
}
