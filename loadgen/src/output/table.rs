//! The result for people.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use crate::number;
use crate::objective::Verdict;
use crate::record::{Check, Cpu, Ending, Iterations, Latencies, Outcome, ServerUse};

/// The percentiles that are shown.
const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// How wide the words before the lines below the table are.
const LABEL: usize = 12;

/// The width of every terminal.
const WIDTH: usize = 80;

/// The result of a run for people: latencies by operation, failures with examples, what it cost, what was wanted.
#[must_use]
pub fn table(outcome: &Outcome, verdicts: &[Verdict]) -> String {
    let mut text: String = wrapped(&outcome.description, WIDTH).iter().map(|line| format!("{line}\n")).collect();
    match &outcome.ending {
        Ending::Complete => {}
        Ending::Interrupted => text.push_str("Interrupted: this is what there was until then.\n"),
        Ending::Failed(reason) => {
            let lines = wrapped(&format!("Failed: {reason}"), WIDTH);
            text.extend(lines.iter().map(|line| format!("{line}\n")));
        }
    }
    if outcome.answers() > 0 {
        text.push('\n');
        text.push_str(&latencies(outcome));
    }
    text.push('\n');
    failures(outcome, &mut text);
    for (label, line) in figures(outcome) {
        push(&mut text, label, &line);
    }
    for verdict in verdicts {
        push(&mut text, "Objective", &verdict.to_string());
    }
    for note in &outcome.notes {
        push(&mut text, "Note", note);
    }
    text
}

fn push(text: &mut String, label: &str, line: &str) {
    for (place, part) in wrapped(line, WIDTH - LABEL).into_iter().enumerate() {
        let label = if place == 0 { label } else { "" };
        writeln!(text, "{label:LABEL$}{part}").expect("a string takes all");
    }
}

/// Lines of at most so many letters, broken behind semicolons where there are some, else between words; a longer word has a
/// line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let fits = |text: &str| text.chars().count() <= width;
    let mut lines: Vec<String> = Vec::new();
    for clause in text.split_inclusive("; ") {
        let clause = clause.strip_suffix(' ').unwrap_or(clause);
        let pieces: Vec<&str> = if fits(clause) { vec![clause] } else { clause.split(' ').collect() };
        for piece in pieces {
            match lines.last_mut() {
                Some(last) if fits(&format!("{last} {piece}")) => {
                    last.push(' ');
                    last.push_str(piece);
                }
                _ => lines.push(piece.to_owned()),
            }
        }
    }
    if lines.is_empty() { vec![String::new()] } else { lines }
}

/// The table of operations, and of all together if there are several.
fn latencies(outcome: &Outcome) -> String {
    let mut rows: Vec<Vec<String>> = outcome
        .operations
        .iter()
        .map(|operation| row(&operation.name, &operation.latencies, outcome.seconds))
        .collect();
    if rows.len() > 1 {
        rows.push(row("all", &outcome.latencies(), outcome.seconds));
    }
    for flow in outcome.iterations.iter().flat_map(|iterations| &iterations.flows) {
        rows.push(row(&format!("{} (iterations)", flow.name), &flow.latencies, outcome.seconds));
    }
    if let Some(deliveries) = &outcome.deliveries {
        rows.push(row("delivery", &deliveries.latencies, outcome.seconds));
    }
    let lines = drawn(&rows);
    if lines.iter().all(|line| line.chars().count() <= WIDTH) {
        return lines.concat();
    }
    // Long names have lines of their own.
    let names: Vec<String> = rows.iter_mut().map(|row| std::mem::take(&mut row[0])).collect();
    let lines = drawn(&rows);
    let (head, figures) = lines.split_at(1);
    let named = names.iter().zip(figures).map(|(name, line)| format!("{name}\n{line}"));
    head.iter().cloned().chain(named).collect()
}

/// A line for the head and for each row.
fn drawn(rows: &[Vec<String>]) -> Vec<String> {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let heads = ["answers", "per second", "mean"].map(str::to_owned).into_iter();
    let heads = heads.chain(PERCENTILES.iter().map(|percent| format!("p{percent}"))).chain(["max".to_owned()]);
    table.set_header(std::iter::once(String::new()).chain(heads));
    table.add_rows(rows);
    for (place, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if place > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn row(name: &str, latencies: &Latencies, seconds: f64) -> Vec<String> {
    let per_second = if seconds > 0.0 { latencies.count() as f64 / seconds } else { 0.0 };
    let mut row = vec![name.to_owned(), number::thousands(latencies.count()), number::rate(per_second)];
    row.push(number::latency(latencies.mean()));
    let percentile =
        |percent: &f64| latencies.known_percentile(*percent).map_or_else(|| "–".to_owned(), number::latency);
    row.extend(PERCENTILES.iter().map(percentile));
    row.push(number::latency(latencies.max()));
    row
}

fn failures(outcome: &Outcome, text: &mut String) {
    let failed = outcome.failed();
    if failed == 0 {
        return push(text, "Failures", no_failures(outcome));
    }
    let all = failed + outcome.answers();
    let share = number::share(failed as f64 / all as f64);
    push(text, "Failures", &format!("{} of {} ({share})", number::thousands(failed), number::thousands(all)));
    let width = outcome.failures.iter().map(|failure| number::thousands(failure.count).len()).max().unwrap_or(0);
    for failure in &outcome.failures {
        push(text, "", &format!("{:>width$} {}", number::thousands(failure.count), failure.kind.words()));
        for example in &failure.examples {
            push(text, "", &format!("{:width$} · {example}", ""));
        }
    }
}

/// The words for a run without failed requests. One that failed as a whole stands above them.
pub(crate) fn no_failures(outcome: &Outcome) -> &'static str {
    match outcome.ending {
        _ if outcome.answers() == 0 => "no request was measured",
        Ending::Failed(_) => "none until the run failed",
        Ending::Complete | Ending::Interrupted => "none",
    }
}

/// Iterations, and how often each check passed.
fn iteration_lines(iterations: &Iterations) -> Vec<(&'static str, String)> {
    let [complete, failed] = [iterations.complete(), iterations.failed()].map(number::thousands);
    let mut lines = vec![("Iterations", format!("{complete} complete, {failed} ended with a failure"))];
    lines.extend(iterations.checks.iter().enumerate().map(|(place, Check { name, passed, failed })| {
        let label = if place == 0 { "Checks" } else { "" };
        let verdict = if *failed == 0 { String::new() } else { format!(", {} FAILED", number::thousands(*failed)) };
        (label, format!("{name}: {} passed{verdict}", number::thousands(*passed)))
    }));
    lines
}

/// The lines below the table, in order.
fn figures(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(offered) = outcome.offered_per_second {
        let achieved = outcome.achieved_per_second();
        let share = number::share((achieved / offered.max(f64::MIN_POSITIVE) * 1000.0).round() / 1000.0);
        let line = format!("{}/s; achieved {}/s, {share}", number::rate(offered), number::rate(achieved));
        lines.push(("Offered", line));
    }
    if outcome.answers() == 0 {
        return lines;
    }
    if outcome.statuses.iter().any(|status| status.status != 200) {
        let statuses = outcome.statuses.iter().map(|one| format!("{}: {}", one.status, number::thousands(one.count)));
        lines.push(("Statuses", statuses.collect::<Vec<_>>().join("; ")));
    }
    if let Some(deliveries) = &outcome.deliveries {
        let [arrived, promised] = [deliveries.arrived, deliveries.promised].map(number::thousands);
        lines.push(("Deliveries", format!("{arrived} of {promised} that the server promised")));
    }
    if let Some(iterations) = &outcome.iterations {
        lines.extend(iteration_lines(iterations));
    }
    if let Some(redirects) = outcome.redirects {
        let [moved, asked, slots] = [redirects.moved, redirects.asked, redirects.slots].map(number::thousands);
        lines.push(("Redirects", format!("{moved} moved, {asked} asked; {slots} slots changed their server")));
    }
    for (name, latencies) in outcome.openings.iter().flat_map(|openings| openings.parts()) {
        lines.push((name, opening(latencies)));
    }
    let fairness = outcome.fairness;
    let (least, most) = (number::thousands(fairness.least), number::thousands(fairness.most));
    lines.push(("Fairness", format!("a connection had {least} to {most} answers")));
    if let Some(server) = &outcome.server {
        lines.extend(server_lines(server, outcome));
    }
    let generator = &outcome.generator;
    let cpu = cpu_per_request(generator.cpu, outcome.answers());
    let busiest = number::share((generator.busiest_thread * 100.0).round() / 100.0);
    let resident = number::bytes(generator.resident_bytes);
    lines.push(("Generator", format!("{cpu}; busiest thread {busiest} busy; {resident} resident")));
    let per_second = |bytes: u64| number::bytes((bytes as f64 / outcome.seconds.max(f64::MIN_POSITIVE)) as u64);
    lines.push((
        "Traffic",
        format!(
            "{} received, {} sent; {}/s, {}/s",
            number::bytes(outcome.bytes_received),
            number::bytes(outcome.bytes_sent),
            per_second(outcome.bytes_received),
            per_second(outcome.bytes_sent)
        ),
    ));
    lines
}

/// `50 connections; p50 41.2 µs, p99 1.10 ms, max 1.21 ms`.
fn opening(latencies: &Latencies) -> String {
    let count = latencies.count();
    let connections = if count == 1 { "connection" } else { "connections" };
    let [p50, p99] = [50.0, 99.0].map(|percent| number::latency(latencies.percentile(percent)));
    let max = number::latency(latencies.max());
    format!("{} {connections}; p50 {p50}, p99 {p99}, max {max}", number::thousands(count))
}

fn server_lines(server: &ServerUse, outcome: &Outcome) -> [(&'static str, String); 2] {
    let cpu = cpu_per_request(server.cpu, outcome.answers());
    let processors = number::three_digits(server.cpu.total() / outcome.seconds.max(f64::MIN_POSITIVE));
    let resident = number::bytes(server.resident_bytes);
    let peak = number::bytes(server.peak_resident_bytes);
    let switches = |count: u64| number::three_digits(count as f64 * 1000.0 / outcome.answers() as f64);
    let (voluntary, forced) = (switches(server.voluntary_switches), switches(server.involuntary_switches));
    let whose = match (server.pid, server.others) {
        (0, _) => "all of its control group".to_owned(),
        (pid, 0) => format!("{voluntary} voluntary and {forced} forced switches per 1000 requests; process {pid}"),
        (pid, others) => {
            format!(
                "{voluntary} voluntary and {forced} forced switches per 1000 requests; process {pid} and {others} more"
            )
        }
    };
    [("Server", format!("{cpu}; {processors} processors; {resident} resident, at most {peak}")), ("", whose)]
}

/// `6.52 µs CPU per request (2.10 user, 4.42 system)`.
fn cpu_per_request(cpu: Cpu, answers: u64) -> String {
    let micros = |seconds: f64| number::three_digits(seconds * 1e6 / answers as f64);
    format!("{} µs CPU per request ({} user, {} system)", micros(cpu.total()), micros(cpu.user), micros(cpu.system))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::judge;
    use crate::output::made_up;
    use crate::record::{Deliveries, Redirects};

    #[track_caller]
    fn check(outcome: &Outcome, objectives: &[&str], expected: &str) {
        let objectives: Vec<_> = objectives.iter().map(|text| text.parse().unwrap()).collect();
        let found = table(outcome, &judge(&objectives, outcome));
        assert_eq!(found, expected, "\n{found}");
    }

    #[test]
    fn no_line_is_longer_than_a_terminal() {
        let mut outcome = made_up::outcome();
        outcome.operations[0].name = "GET /a/path/of/some/length?and=more".to_owned();
        outcome.notes.push("a note of many words ".repeat(9));
        let text = table(&outcome, &[]);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("\nGET /a/path/of/some/length?and=more\n   "), "{text}");
        assert_eq!(wrapped("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrapped("  · abcdefg h", 4), ["  ·", "abcdefg", "h"]);
        assert_eq!(wrapped("aa bb; cc d; e", 8), ["aa bb;", "cc d; e"]);
        assert_eq!(wrapped("", 4), [""]);
    }

    #[test]
    fn a_run_is_shown() {
        check(&made_up::outcome(), &["p99=2ms", "errors=0%"], include_str!("golden/table.txt"));
    }

    #[test]
    fn redirects_deliveries_and_several_servers_are_shown() {
        let mut outcome = made_up::outcome();
        outcome.redirects = Some(Redirects { moved: 12, asked: 1300, slots: 2 });
        let latencies = outcome.operations[1].latencies.clone();
        outcome.deliveries = Some(Box::new(Deliveries { latencies, promised: 1001, arrived: 1000 }));
        let server = outcome.server.unwrap();
        outcome.server = Some(ServerUse { others: 2, ..server });
        let text = table(&outcome, &[]);
        assert!(text.contains("\nRedirects   12 moved, 1,300 asked; 2 slots changed their server\n"), "{text}");
        assert!(text.contains("process 4711 and 2 more\n"), "{text}");
        assert!(text.contains("\ndelivery\n     1,000         333  1.52 ms"), "{text}");
        assert!(text.contains("\nDeliveries  1,000 of 1,001 that the server promised\n"), "{text}");
        outcome.server = Some(ServerUse { pid: 0, ..server });
        let text = table(&outcome, &[]);
        assert!(text.contains("all of its control group\n") && !text.contains("voluntary"), "{text}");
    }

    #[test]
    fn percentiles_of_few_answers_are_left_out() {
        let text = table(&made_up::run_of(99, 1000), &[]);
        let row = text.lines().find(|line| line.starts_with("GET ")).unwrap();
        assert_eq!(row.matches('–').count(), 2, "p99 and p99.9: {row}");
    }

    #[test]
    fn a_failed_run_does_not_say_that_nothing_failed() {
        let failed = |answers: u64| Outcome {
            ending: Ending::Failed("the TLS handshake failed".to_owned()),
            failures: Vec::new(),
            ..made_up::run_of(answers, 1000)
        };
        for (answers, line) in
            [(0, "Failures    no request was measured\n"), (9, "Failures    none until the run failed\n")]
        {
            let objectives = ["errors=0%".parse().unwrap()];
            let text = table(&failed(answers), &judge(&objectives, &failed(answers)));
            assert!(text.contains(line), "{text}");
            assert_eq!(text.contains("errors=0% MISSED: no answers"), answers == 0, "{text}");
        }
    }

    #[test]
    fn a_run_without_an_answer_is_shown() {
        check(&made_up::refused(), &["p99=2ms"], include_str!("golden/refused.txt"));
    }
}
