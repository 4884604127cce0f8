//! The view of a run while it goes on: a few lines in place on a terminal, otherwise a line now and then.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::load::Length;
use crate::number;
use crate::record::{Interval, Latencies};
use crate::watch::{Phase, Progress};

/// How often a terminal is drawn again, per second.
const HERTZ: u8 = 10;

/// Seconds in the sparkline of rates.
const SPARKS: usize = 60;

/// Runs longer than this many seconds get a plain line every ten seconds instead of every second.
const LONG: f64 = 60.0;

/// The kind of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Lines in place if the standard error stream is a terminal, plain lines otherwise.
    Auto,
    /// Lines in place if the standard error stream is a terminal, otherwise nothing.
    OnTerminal,
    /// Plain lines.
    Lines,
    /// Nothing.
    Nothing,
}

/// The view of a run under way.
#[derive(Debug)]
pub struct View {
    title: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Live(ProgressBar),
    Lines { shown: usize },
    Nothing,
}

impl View {
    /// A view on the standard error stream.
    #[must_use]
    pub fn new(show: Show, title: &str) -> Self {
        match show {
            Show::Auto | Show::OnTerminal if std::io::stderr().is_terminal() => {
                Self::live(title, ProgressDrawTarget::stderr_with_hz(HERTZ))
            }
            Show::Nothing | Show::OnTerminal => Self { title: title.to_owned(), kind: Kind::Nothing },
            Show::Auto | Show::Lines => {
                eprintln!("{title}");
                Self { title: title.to_owned(), kind: Kind::Lines { shown: 0 } }
            }
        }
    }

    /// A view that draws in place.
    fn live(title: &str, target: ProgressDrawTarget) -> Self {
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
        Self { title: title.to_owned(), kind: Kind::Live(bar) }
    }

    /// Shows a run as it is now.
    pub fn show(&mut self, progress: &Progress<'_>) {
        match &mut self.kind {
            Kind::Live(bar) => bar.set_message(picture(&self.title, progress)),
            Kind::Lines { shown } => {
                let pieces = piece(progress.length);
                while progress.timeline.len() >= *shown + pieces {
                    // The reader may be gone: that must not end the run.
                    let _ = writeln!(std::io::stderr(), "{}", line(&progress.timeline[*shown..*shown + pieces]));
                    *shown += pieces;
                }
            }
            Kind::Nothing => {}
        }
    }

    /// Takes the view away.
    pub fn end(self) {
        if let Kind::Live(bar) = self.kind {
            bar.finish_and_clear();
        }
    }
}

/// How many seconds of the timeline make a plain line.
fn piece(length: Length) -> usize {
    match length {
        Length::Duration(duration) if duration.as_secs_f64() > LONG => 10,
        Length::Duration(_) | Length::Requests(_) => 1,
    }
}

/// Some seconds of a run in a plain line.
fn line(intervals: &[Interval]) -> String {
    let mut latencies = Latencies::new();
    let (mut seconds, mut failures, mut processors) = (0.0, 0, 0.0);
    for interval in intervals {
        latencies.merge(&interval.latencies.open());
        seconds += interval.seconds;
        failures += interval.failures;
        processors += interval.server.map_or(0.0, |server| server.processors);
    }
    let end = intervals.last().map_or(0.0, |last| last.start + last.seconds);
    let rate = if seconds > 0.0 { latencies.count() as f64 / seconds } else { 0.0 };
    let mut line = format!("{end:>5.0} s {:>12}/s  {}", number::rate(rate), percentiles(&latencies));
    if intervals.iter().any(|interval| interval.server.is_some()) {
        line.push_str(&format!("  server {} processors", number::three_digits(processors / intervals.len() as f64)));
    }
    line.push_str(&format!("  failures {}", number::thousands(failures)));
    line
}

/// The lines that are drawn in place.
fn picture(title: &str, progress: &Progress<'_>) -> String {
    let mut lines = vec![title.to_owned(), phase(progress)];
    if let Some(last) = progress.timeline.last() {
        let rate = last.latencies.count() as f64 / last.seconds.max(f64::MIN_POSITIVE);
        lines.push(format!("rate      {:>10}/s  {}", number::rate(rate), sparkline(progress.timeline)));
        lines.push(format!("last 1 s  {}", percentiles(&last.latencies.open())));
    }
    if progress.latencies.count() > 0 {
        lines.push(format!("so far    {}", percentiles(progress.latencies)));
    }
    if let Some(deliveries) = progress.deliveries.filter(|deliveries| deliveries.count() > 0) {
        lines.push(format!("delivered {}", percentiles(deliveries)));
    }
    if let Some(server) = progress.timeline.last().and_then(|last| last.server) {
        let processors = number::three_digits(server.processors);
        lines.push(format!("server    {processors} processors, {}", number::bytes(server.resident_bytes)));
    }
    if let Some(redirects) = progress.redirects {
        let (moved, asked) = (number::thousands(redirects.moved), number::thousands(redirects.asked));
        lines.push(format!("redirects {moved} moved, {asked} asked"));
    }
    lines.push(format!("failures  {}", failures(progress)));
    lines.join("\n")
}

/// `measuring   4.0 s of 10.0 s  ████████░░░░░░░░░░░░  6.0 s left, 50 connections open`
fn phase(progress: &Progress<'_>) -> String {
    let elapsed = progress.elapsed.as_secs_f64();
    let open = format!("{} connections open", number::thousands(progress.open_connections as u64));
    let name = match progress.phase {
        Phase::Connecting => "connecting",
        Phase::WarmUp => "warm-up",
        Phase::Measuring => "measuring",
        Phase::Draining => "last answers",
    };
    if progress.phase != Phase::Measuring {
        return format!("{name}, {elapsed:.1} s, {open}");
    }
    match progress.length {
        Length::Duration(whole) => {
            let left = whole.saturating_sub(progress.elapsed).as_secs_f64();
            let bar = bar(elapsed / whole.as_secs_f64().max(f64::MIN_POSITIVE));
            format!("{name} {elapsed:.1} s of {}  {bar}  {left:.1} s left, {open}", seconds(whole))
        }
        Length::Requests(requests) => {
            let done = progress.latencies.count() + progress.failures.total();
            let bar = bar(done as f64 / requests as f64);
            let (done, all) = (number::thousands(done), number::thousands(requests));
            format!("{name} {elapsed:.1} s  {bar}  {done} of {all} requests, {open}")
        }
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A bar of twenty characters.
fn bar(share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * 20.0) as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(20 - full))
}

/// The last seconds' rates, drawn.
fn sparkline(timeline: &[Interval]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let last = &timeline[timeline.len().saturating_sub(SPARKS)..];
    let rate = |interval: &Interval| interval.latencies.count() as f64 / interval.seconds.max(f64::MIN_POSITIVE);
    let most = last.iter().map(rate).fold(f64::MIN_POSITIVE, f64::max);
    last.iter().map(|interval| BARS[((rate(interval) / most * 7.0).round() as usize).min(7)]).collect()
}

fn percentiles(latencies: &Latencies) -> String {
    let columns = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9), ("max", 100.0)];
    let figure = |(name, percent)| format!("{name} {:>7}", number::latency(latencies.percentile(percent)));
    columns.map(figure).join("  ")
}

fn failures(progress: &Progress<'_>) -> String {
    let kinds = progress.failures.list();
    if kinds.is_empty() {
        return "none".to_owned();
    }
    let kinds: Vec<_> =
        kinds.iter().map(|kind| format!("{} {}", number::thousands(kind.count), kind.kind.words())).collect();
    kinds.join(", ")
}

#[cfg(test)]
mod tests {
    use indicatif::{InMemoryTerm, TermLike as _};

    use super::*;
    use crate::output::made_up;
    use crate::record::{Failure, Failures, Outcome, Redirects};

    fn progress<'a>(outcome: &'a Outcome, all: &'a Latencies, failures: &'a Failures, length: Length) -> Progress<'a> {
        Progress {
            phase: Phase::Measuring,
            elapsed: Duration::from_millis(3200),
            length,
            latencies: all,
            failures,
            deliveries: None,
            redirects: None,
            timeline: &outcome.timeline,
            open_connections: 50,
        }
    }

    #[test]
    fn the_view_is_drawn_in_place() {
        let outcome = made_up::outcome();
        let all = outcome.latencies();
        let mut failures = Failures::default();
        failures.add(Failure::TimedOut, || "no answer".to_owned());
        let terminal = InMemoryTerm::new(12, 100);
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(terminal.clone()), 255);
        let mut view = View::live("redis 127.0.0.1:6379, 50 connections: GET", target);
        let expected = "\
redis 127.0.0.1:6379, 50 connections: GET
measuring 3.2 s of 10.0 s  ██████░░░░░░░░░░░░░░  6.8 s left, 50 connections open
rate           1,000/s  ███
last 1 s  p50 1.50 ms  p90 2.70 ms  p99 2.97 ms  p99.9 3.00 ms  max 3.00 ms
so far    p50  650 µs  p90 2.10 ms  p99 2.91 ms  p99.9 3.00 ms  max 3.00 ms
server    0.25 processors, 12.0 MiB
failures  1 timed out";
        // Drawn twice, it is there once.
        for _ in 0..2 {
            view.show(&progress(&outcome, &all, &failures, Length::Duration(Duration::from_secs(10))));
        }
        assert_eq!(terminal.contents(), expected, "\n{}", terminal.contents());
        assert_eq!(terminal.width(), 100);
        view.end();
        assert_eq!(terminal.contents(), "");
    }

    #[test]
    fn redirects_and_deliveries_have_a_line() {
        let outcome = made_up::outcome();
        let (all, failures) = (outcome.latencies(), Failures::default());
        let redirects = Some(Redirects { moved: 1200, asked: 3, slots: 1 });
        let length = Length::Duration(Duration::from_secs(10));
        let found = picture("t", &Progress { deliveries: Some(&all), ..progress(&outcome, &all, &failures, length) });
        assert!(found.contains("\ndelivered p50  650 µs  p90 2.10 ms"), "{found}");
        let found = picture("t", &Progress { redirects, ..progress(&outcome, &all, &failures, length) });
        assert!(found.contains("\nredirects 1,200 moved, 3 asked\nfailures  none"), "{found}");
    }

    #[test]
    fn every_phase_and_length_has_its_line() {
        let outcome = made_up::outcome();
        let (all, failures) = (outcome.latencies(), Failures::default());
        #[track_caller]
        fn check(progress: &Progress<'_>, expected: &str) {
            assert_eq!(phase(progress), expected);
        }
        let counted = progress(&outcome, &all, &failures, Length::Requests(6000));
        check(&counted, "measuring 3.2 s  ██████████░░░░░░░░░░  3,000 of 6,000 requests, 50 connections open");
        let connecting = Progress { phase: Phase::Connecting, ..counted };
        check(&connecting, "connecting, 3.2 s, 50 connections open");
        check(&Progress { phase: Phase::WarmUp, ..counted }, "warm-up, 3.2 s, 50 connections open");
        check(&Progress { phase: Phase::Draining, ..counted }, "last answers, 3.2 s, 50 connections open");
    }

    #[test]
    fn plain_lines_add_seconds_up() {
        let outcome = made_up::outcome();
        let one = "    1 s        1,000/s  p50  500 µs  p90  900 µs  p99  990 µs  p99.9 1.00 ms  max 1.00 ms  \
                   server 0.25 processors  failures 0";
        assert_eq!(line(&outcome.timeline[..1]), one);
        let three = "    3 s        1,000/s  p50  820 µs  p90 2.10 ms  p99 2.91 ms  p99.9 3.00 ms  max 3.00 ms  \
                     server 0.25 processors  failures 3";
        assert_eq!(line(&outcome.timeline), three);
    }
}
