//! Pages that need nothing but themselves: no network, no script.

use std::time::Duration;

use super::chart::{Axis, LineChart, Scale, Series};
use super::svg::escape;
use super::table::no_failures;
use crate::number;
use crate::record::{Ending, Interval, Latencies, Outcome};

const STYLE: &str = include_str!("style.css");

/// A whole page around its body.
#[must_use]
pub fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}\
         <footer>Made by loadgen {}.</footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// A chart as a file of its own, in the colours of pages, for viewers of pictures.
#[must_use]
pub fn standing_alone(svg: &str) -> String {
    // Within a picture `:root` is the picture.
    let ground = "svg { background: var(--ground); }";
    svg.replacen(">\n", &format!(">\n<style>\n{STYLE}{ground}\n</style>\n"), 1)
}

/// A table; the first column is text, the others are aligned to the right unless their name is in `texts`.
#[must_use]
pub fn table(header: &[String], rows: &[Vec<String>], texts: &[&str]) -> String {
    let is_text = |column: usize| header.get(column).is_some_and(|name| texts.contains(&name.as_str()));
    let cell = |tag: &str, column: usize, text: &str| {
        let class = if is_text(column) { " class=\"text\"" } else { "" };
        // Narrow screens show cells one below the other, each with its column's name.
        let label = header.get(column).filter(|name| tag == "td" && column > 0 && !name.is_empty());
        let label = label.map_or(String::new(), |name| format!(" data-label=\"{}\"", escape(name)));
        format!("<{tag}{class}{label}>{}</{tag}>", escape(text))
    };
    let row = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().enumerate().map(|(column, text)| cell(tag, column, text)).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = rows.iter().map(|cells| row("td", cells)).collect();
    format!("<div class=\"wide\"><table>\n{}{body}</table></div>\n", row("th", header))
}

/// A single run's page.
#[must_use]
pub fn run_page(outcome: &Outcome) -> String {
    page("Load test", &run_body(outcome))
}

/// The page of a single run.
pub(crate) fn run_body(outcome: &Outcome) -> String {
    let mut body = format!("<p>{}</p>\n", escape(&outcome.description));
    match &outcome.ending {
        Ending::Complete => {}
        Ending::Interrupted => {
            body.push_str("<p class=\"note\"><b>Interrupted:</b> these are the results so far.</p>\n")
        }
        Ending::Failed(reason) => {
            body.push_str(&format!("<p class=\"note\"><b>Failed:</b> {}</p>\n", escape(reason)));
        }
    }
    for note in &outcome.notes {
        body.push_str(&format!("<p class=\"note\">Note: {}</p>\n", escape(note)));
    }
    body.push_str(&table(&["Result".to_owned(), String::new()], &summary(outcome), &[]));
    let (header, rows) = latencies(outcome);
    body.push_str(&table(&header, &rows, &[]));
    let by_operation = outcome.operations.iter().filter(|operation| operation.latencies.count() > 0);
    let deliveries = outcome.deliveries.iter().map(|deliveries| ("delivery", &deliveries.latencies));
    let curves: Vec<(usize, &str, &Latencies)> = by_operation
        .map(|operation| (operation.name.as_str(), &operation.latencies))
        .chain(deliveries)
        .enumerate()
        .map(|(place, (name, latencies))| (place, name, latencies))
        .collect();
    body.push_str(&percentile_chart("Latency by percentile", &curves));
    body.push_str(&timeline_charts(&outcome.timeline));
    body.push_str(&failure_list(outcome));
    body.push_str(&settings(outcome));
    body
}

/// Latency over HdrHistogram's axis of percentiles, a line for each distribution with its colour and name.
#[must_use]
pub fn percentile_chart(title: &str, curves: &[(usize, &str, &Latencies)]) -> String {
    if curves.is_empty() {
        return String::new();
    }
    let most = curves.iter().map(|(_, _, latencies)| latencies.count()).max().unwrap_or(1).max(10);
    let bounds = |pick: fn(&Latencies) -> Duration| curves.iter().map(move |(_, _, latencies)| micros(pick(latencies)));
    let (least, longest) =
        (bounds(Latencies::min).fold(f64::INFINITY, f64::min), bounds(Latencies::max).fold(0.0, f64::max));
    let series = curves.iter().map(|(colour, name, latencies)| Series {
        name: (*name).to_owned(),
        points: curve(latencies),
        colour: *colour,
    });
    let chart = LineChart {
        title: title.to_owned(),
        x: Axis { label: "percentile", scale: Scale::Tail(1.0 - 1.0 / most as f64), write: percentile_text },
        y: Axis { label: "latency", scale: Scale::around(least, longest), write: micros_text },
        series: series.collect(),
    };
    chart.draw()
}

/// How finely a curve follows the axis of percentiles: twenty points for each further nine.
const POINTS_PER_NINE: usize = 20;

/// The distribution as points (share, microseconds), up to the share that its number of values can tell.
fn curve(latencies: &Latencies) -> Vec<(f64, f64)> {
    let nines = (latencies.count().max(1) as f64).log10();
    let steps = (nines * POINTS_PER_NINE as f64).ceil() as usize;
    let shares = (0..=steps).map(|step| 1.0 - 10f64.powf(-(step as f64 / POINTS_PER_NINE as f64).min(nines)));
    shares.map(|share| (share, micros(latencies.percentile(share * 100.0)))).collect()
}

/// A share as a percentile: 0.999 is `99.9 %`.
fn percentile_text(share: f64) -> String {
    let text = format!("{:.6}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

fn micros(latency: Duration) -> f64 {
    latency.as_nanos() as f64 / 1e3
}

fn micros_text(micros: f64) -> String {
    let text = number::latency(Duration::from_nanos((micros * 1e3).round() as u64));
    // A tick is a round number.
    let (value, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let value = if value.contains('.') { value.trim_end_matches('0').trim_end_matches('.') } else { value };
    format!("{value} {unit}")
}

/// A run's figures by name.
pub(crate) fn summary(outcome: &Outcome) -> Vec<Vec<String>> {
    let mut rows = vec![
        ("Right answers", number::thousands(outcome.answers())),
        ("Measured", format!("{:.2} s", outcome.seconds)),
        ("Right answers per second", number::rate(outcome.per_second())),
        (
            "Failures",
            if outcome.failed() == 0 { no_failures(outcome).to_owned() } else { number::thousands(outcome.failed()) },
        ),
    ];
    if let Some(offered) = outcome.offered_per_second {
        rows.push(("Offered per second", number::rate(offered)));
    }
    if let Some(deliveries) = &outcome.deliveries {
        let [arrived, promised] = [deliveries.arrived, deliveries.promised].map(number::thousands);
        rows.push(("Deliveries", format!("{arrived} of {promised}")));
    }
    if let Some(redirects) = outcome.redirects {
        let [moved, asked, slots] = [redirects.moved, redirects.asked, redirects.slots].map(number::thousands);
        rows.push(("Redirects", format!("{moved} moved, {asked} asked; {slots} slots changed their server")));
    }
    if let Some(micros) = outcome.server_cpu_micros() {
        rows.push(("Server's CPU time per answer", format!("{} µs", number::three_digits(micros))));
    }
    if let Some(server) = outcome.server {
        rows.push(("Server's memory, most", number::bytes(server.peak_resident_bytes)));
        let (waited, pushed) = (server.voluntary_switches, server.involuntary_switches);
        let switches = format!("{} waiting, {} pushed aside", number::thousands(waited), number::thousands(pushed));
        rows.push(("Server's context switches", switches));
    }
    if let Some(micros) = outcome.generator_cpu_micros() {
        rows.push(("Generator's CPU time per answer", format!("{} µs", number::three_digits(micros))));
    }
    rows.push((
        "Generator's busiest thread",
        number::share((outcome.generator.busiest_thread * 100.0).round() / 100.0),
    ));
    let fairness = outcome.fairness;
    let spread = format!("{} to {}", number::thousands(fairness.least), number::thousands(fairness.most));
    rows.push(("Right answers by connection", spread));
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
}

/// Percentiles that tables show.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// Percentiles by operation: the names of the columns, and the rows.
pub(crate) fn latencies(outcome: &Outcome) -> (Vec<String>, Vec<Vec<String>>) {
    let mut header: Vec<String> = ["Operation", "answers", "mean"].map(str::to_owned).to_vec();
    header.extend(PERCENTILES.map(|percent| format!("p{percent}")));
    header.push("max".to_owned());
    let row = |name: &str, latencies: &Latencies| {
        let mut row = vec![name.to_owned(), number::thousands(latencies.count()), number::latency(latencies.mean())];
        let known = |percent| latencies.known_percentile(percent).map_or_else(|| "–".to_owned(), number::latency);
        row.extend(PERCENTILES.map(known));
        row.push(number::latency(latencies.max()));
        row
    };
    let mut rows: Vec<Vec<String>> =
        outcome.operations.iter().map(|operation| row(&operation.name, &operation.latencies)).collect();
    if rows.len() > 1 {
        rows.push(row("all", &outcome.latencies()));
    }
    if let Some(deliveries) = &outcome.deliveries {
        rows.push(row("delivery", &deliveries.latencies));
    }
    (header, rows)
}

fn timeline_charts(timeline: &[Interval]) -> String {
    if timeline.len() < 2 {
        return String::new();
    }
    let series = |name: &str, value: &dyn Fn(&Interval) -> Option<f64>| Series {
        name: name.to_owned(),
        colour: 0,
        points: timeline.iter().filter_map(|interval| Some((interval.start, value(interval)?))).collect(),
    };
    let per_second = |count: u64, interval: &Interval| {
        if interval.seconds > 0.0 { count as f64 / interval.seconds } else { 0.0 }
    };
    let rate = series("answers", &|interval| Some(per_second(interval.latencies.count(), interval)));
    let failures = series("failures", &|interval| Some(per_second(interval.failures, interval)));
    let processors = series("processors", &|interval| Some(interval.server?.processors));
    let memory = series("memory", &|interval| Some(interval.server?.resident_bytes as f64 / 1_048_576.0));
    let latency = |colour: usize, name: &str, percent: f64| {
        let value = |interval: &Interval| {
            (interval.latencies.count() > 0).then(|| micros(interval.latencies.open().percentile(percent)))
        };
        Series { colour, ..series(name, &value) }
    };
    let latencies = vec![latency(0, "p50", 50.0), latency(1, "p99", 99.0), latency(2, "max", 100.0)];
    let failed = failures.points.iter().any(|(_, count)| *count > 0.0);
    let mut charts = over_time("Right answers", "per second", vec![rate]);
    let values = || latencies.iter().flat_map(|series| &series.points).map(|(_, value)| *value);
    let scale = Scale::around(values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    charts.push_str(&time_chart("Latencies", "", scale, latencies, micros_text));
    if failed {
        charts.push_str(&over_time("Failures", "per second", vec![failures]));
    }
    if !processors.points.is_empty() {
        charts.push_str(&over_time("Server's CPU", "processors", vec![processors]));
        charts.push_str(&over_time("Server's memory", "MiB", vec![memory]));
    }
    charts
}

/// A chart over time whose values begin at 0.
fn over_time(title: &str, unit: &'static str, series: Vec<Series>) -> String {
    let most = series.iter().flat_map(|series| &series.points).map(|(_, value)| *value).fold(0.0, f64::max);
    time_chart(title, unit, Scale::from_zero(most), series, short)
}

fn time_chart(title: &str, label: &'static str, scale: Scale, series: Vec<Series>, write: fn(f64) -> String) -> String {
    let last = series.iter().flat_map(|series| &series.points).map(|(time, _)| *time).fold(0.0, f64::max);
    let time = Axis { label: "seconds", scale: Scale::Linear(0.0, last.max(1e-3)), write: short };
    LineChart { title: title.to_owned(), x: time, y: Axis { label, scale, write }, series }.draw()
}

/// A number without digits that say nothing.
fn short(value: f64) -> String {
    if value >= 1000.0 {
        return number::thousands(value.round() as u64);
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn failure_list(outcome: &Outcome) -> String {
    if outcome.failures.is_empty() {
        return String::new();
    }
    let header = ["Failures", "count", "examples"].map(str::to_owned);
    let row = |failure: &crate::record::FailureCount| {
        vec![failure.kind.words().to_owned(), number::thousands(failure.count), failure.examples.join("\n")]
    };
    table(&header, &outcome.failures.iter().map(row).collect::<Vec<_>>(), &["examples"])
}

fn settings(outcome: &Outcome) -> String {
    if outcome.settings.is_empty() {
        return String::new();
    }
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let rows: Vec<Vec<String>> = outcome.settings.iter().map(|(name, value)| vec![name.clone(), text(value)]).collect();
    table(&["Setting", "value"].map(str::to_owned), &rows, &["value"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::made_up;

    #[test]
    fn a_runs_page_stands_alone_and_is_always_the_same() {
        let outcome = made_up::run_of(1000, 100_000);
        let page = run_page(&outcome);
        assert_eq!(page, run_page(&outcome));
        for part in ["<svg", "Latency by percentile", "99.9 %", "Server&#39;s CPU", "&lt;made up&gt;"] {
            assert!(page.contains(part), "{part} is missing");
        }
        for network in ["http:", "https:", "src=", "@import", "url("] {
            let found = page.replace("http://www.w3.org/2000/svg", "").contains(network);
            assert!(!found, "{network} reaches for the network");
        }
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn runs_without_answers_have_a_page() {
        let mut outcome = made_up::run_of(0, 0);
        outcome.ending = Ending::Failed("nobody <there>".to_owned());
        outcome.timeline.clear();
        outcome.server = None;
        assert!(run_page(&outcome).contains("nobody &lt;there&gt;"));
        outcome.operations.clear();
        assert!(run_page(&outcome).contains("Failed"));
    }

    #[test]
    fn cells_know_their_columns() {
        let header = ["a", "b \"", "version"].map(str::to_owned);
        let found = table(&header, &[["1", "2", "<3>"].map(str::to_owned).to_vec()], &["version"]);
        let row = "<tr><td>1</td><td data-label=\"b &quot;\">2</td><td class=\"text\" data-label=\"version\">&lt;3&gt;</td></tr>";
        assert!(found.contains(row), "{found}");
        assert!(STYLE.contains("td[data-label]::before"));
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(percentile_text(0.0), "0 %");
        assert_eq!(percentile_text(0.999_99), "99.999 %");
        assert_eq!(micros_text(0.5), "500 ns");
        assert_eq!(micros_text(2000.0), "2 ms");
        assert_eq!(short(0.0), "0");
        assert_eq!(short(2.50), "2.5");
        assert_eq!(short(20_000.0), "20,000");
    }
}
