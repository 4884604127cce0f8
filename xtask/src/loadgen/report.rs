//! Tables for people, and the record.

use std::fmt::Write as _;

use anyhow::Result;

use super::Options;
use super::contest::{Bar, Contest};
use super::run::Sample;
use crate::compare::stats::{median, paired_ratio};
use crate::process::run_quietly;

/// One figure of a sample.
type Metric = fn(&Sample) -> f64;

/// Medians, and our ratios to each of the others.
pub(super) fn table(contest: &Contest, samples: &[Sample]) -> String {
    let of = |index: usize, metric: Metric| -> Vec<f64> {
        samples.iter().filter(|sample| sample.generator == index).map(metric).collect()
    };
    let mut text = format!("{}:\n", contest.name);
    let _ = writeln!(text, "  {:<16} {:>12} {:>12} {:>7}", "generator", "requests/s", "CPU µs/req", "busy");
    let present = || (0..contest.generators.len()).filter(|index| !of(*index, |s| s.rate).is_empty());
    for index in present() {
        let middle = |metric: Metric| median(&of(index, metric));
        let name = contest.generators[index].program.name();
        let (rate, cpu, busy) = (middle(|s| s.rate), middle(|s| s.cpu_us), middle(|s| s.busy) * 100.0);
        let _ = writeln!(text, "  {name:<16} {rate:>12.0} {cpu:>12.3} {busy:>5.0} %");
    }
    for index in present().skip(1) {
        let metrics: [(&str, Metric); 2] = [("CPU", |s| s.cpu_us), ("rate", |s| s.rate)];
        for (name, metric) in metrics {
            let ratio = paired_ratio(&of(0, metric), &of(index, metric));
            let (low, high) = ratio.interval;
            let generator = &contest.generators[index];
            let verdict = verdict(generator.bar, name, ratio.mean, ratio.interval);
            let other = generator.program.name();
            let _ = writeln!(text, "  {name:<4} loadgen / {other}: {:.3} [{low:.3}, {high:.3}]{verdict}", ratio.mean);
        }
    }
    text
}

/// Whether a ratio is what it is to be.
fn verdict(bar: Bar, metric: &str, mean: f64, interval: (f64, f64)) -> String {
    let (is_met, wanted) = match bar {
        Bar::Cpu(most) if metric == "CPU" => (mean <= most, format!("at most {most}")),
        Bar::Rate(least) if metric == "rate" => (mean >= least, format!("at least {least}")),
        Bar::SameRate(apart) if metric == "rate" => {
            let is_same = interval.0 <= 1.0 && interval.1 >= 1.0;
            (is_same || (mean - 1.0).abs() <= apart, format!("1, as far as the interval shows, or {apart} from it"))
        }
        Bar::None | Bar::Cpu(_) | Bar::Rate(_) | Bar::SameRate(_) => return String::new(),
    };
    format!("  wanted {wanted}: {}", if is_met { "holds" } else { "MISSED" })
}

/// What is needed to judge the samples.
pub(super) fn header(options: &Options) -> Result<String> {
    let mut text =
        String::from("# cargo xtask loadgen: raw samples, one line a run, and the tables computed from them\n");
    let version = |program: &str, argument: &str| {
        let output = run_quietly(std::process::Command::new(program).arg(argument)).unwrap_or_default();
        output.lines().next().unwrap_or("not installed").trim().to_owned()
    };
    writeln!(text, "# kernel {}", version("uname", "-r"))?;
    writeln!(text, "# {}; {}", version("redis-benchmark", "--version"), version("h2load", "--version"))?;
    writeln!(
        text,
        "# {} rounds of about {} s; targets on core 1, generators on core 0",
        options.rounds, options.seconds
    )?;
    writeln!(text, "# CPU: user and system time of the generator's whole process per request, start and end included")?;
    writeln!(text, "# ratios are paired by round, with bootstrap 95 % intervals\n")?;
    Ok(text)
}

/// The samples.
pub(super) fn raw(contest: &Contest, samples: &[Sample]) -> String {
    let mut text = String::from("contest,generator,requests_per_s,cpu_us,busy\n");
    for Sample { generator, rate, cpu_us, busy } in samples {
        let generator = contest.generators[*generator].program.name();
        let _ = writeln!(text, "{},{generator},{rate:.1},{cpu_us:.4},{busy:.3}", contest.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_judged() {
        #[track_caller]
        fn check(bar: Bar, metric: &str, mean: f64, interval: (f64, f64), holds: Option<bool>) {
            let verdict = verdict(bar, metric, mean, interval);
            assert_eq!((!verdict.is_empty()).then(|| verdict.ends_with(": holds")), holds, "{verdict}");
        }
        check(Bar::Cpu(0.5), "CPU", 0.5, (0.4, 0.6), Some(true));
        check(Bar::Cpu(0.5), "CPU", 0.51, (0.4, 0.6), Some(false));
        check(Bar::Cpu(0.5), "rate", 0.51, (0.4, 0.6), None);
        check(Bar::Rate(1.6), "rate", 1.7, (1.5, 1.8), Some(true));
        check(Bar::SameRate(0.005), "rate", 0.98, (0.95, 1.01), Some(true));
        check(Bar::SameRate(0.005), "rate", 1.004, (1.003, 1.005), Some(true));
        check(Bar::SameRate(0.005), "rate", 1.02, (1.01, 1.03), Some(false));
        check(Bar::None, "rate", 1.02, (1.01, 1.03), None);
    }
}
