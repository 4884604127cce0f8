//! A report as a page.

use super::analysis::ScenarioResult;
use super::metric::Metric;
use super::record::{Record, Stored};
use super::report::{self, Part, TEXTS, Table};
use crate::output::chart::{Bar, BarChart};
use crate::output::html;
use crate::output::svg::escape;
use crate::record::Latencies;

/// The page of some records, one below the other.
#[must_use]
pub fn page(records: &[Stored]) -> String {
    let title = match records {
        [Stored::Comparison(record)] => record.header.title.clone(),
        [Stored::Single(_)] => "Load test".to_owned(),
        _ => "Load tests".to_owned(),
    };
    let body: String = records
        .iter()
        .map(|stored| match stored {
            Stored::Comparison(record) if records.len() > 1 => {
                format!("<h2>{}</h2>\n{}", escape(&record.header.title), comparison(record))
            }
            Stored::Comparison(record) => comparison(record),
            Stored::Single(outcome) => html::run_body(outcome),
        })
        .collect();
    html::page(&title, &body)
}

fn comparison(record: &Record) -> String {
    report::parts(record)
        .into_iter()
        .map(|part| match part {
            Part::Heading(heading) => format!("<h2>{}</h2>\n", escape(&heading)),
            Part::Text(words) => format!("<p>{}</p>\n", escape(&words)),
            Part::Command(command) => format!("<pre>{}</pre>\n", escape(command)),
            Part::Notes(notes) => {
                notes.iter().map(|note| format!("<p class=\"note\">Note: {}</p>\n", escape(note))).collect()
            }
            Part::Table(Table { header, rows }) => html::table(&header, &rows, &TEXTS),
            Part::Charts(result) => charts(&result),
        })
        .collect()
}

/// The metrics that are drawn.
const DRAWN: [Metric; 4] = [Metric::Throughput, Metric::Cpu, Metric::P99, Metric::Memory];

fn charts(result: &ScenarioResult<'_>) -> String {
    let mut charts: String = DRAWN.into_iter().map(|metric| bars(metric, result)).collect();
    let curves = result.subjects.iter().filter(|subject| subject.latencies.count() > 0);
    let curves: Vec<(usize, &str, &Latencies)> =
        curves.map(|subject| (subject.index, subject.name, &subject.latencies)).collect();
    charts.push_str(&html::percentile_chart("Latency by percentile, all rounds together", &curves));
    charts
}

fn bars(metric: Metric, result: &ScenarioResult<'_>) -> String {
    let bar = |subject: &super::analysis::SubjectResult<'_>| {
        let found = subject.medians.get(&metric)?;
        let interval = (subject.runs > 1).then_some((found.low, found.high));
        let text = match interval {
            Some((low, high)) => format!("{} [{}, {}]", metric.text(found.value), metric.text(low), metric.text(high)),
            None => metric.text(found.value),
        };
        Some(Bar { label: subject.name.to_owned(), value: found.value, interval, text, colour: subject.index })
    };
    let bars: Vec<Bar> = result.subjects.iter().filter_map(bar).collect();
    if bars.is_empty() {
        return String::new();
    }
    let better = if metric.more_is_better() { "more is better" } else { "less is better" };
    BarChart { title: format!("{} ({better}; median, 95 % interval)", metric.words()), bars }.draw()
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;
    use crate::output::made_up;

    #[test]
    fn a_page_has_bars_with_error_bars_and_curves() {
        let runs =
            [("s", "a", 0, 1000, 1000), ("s", "b", 0, 1500, 900), ("s", "a", 1, 1100, 1000), ("s", "b", 1, 1600, 900)];
        let stored = Stored::Comparison(Box::new(record(&runs)));
        let page = page(std::slice::from_ref(&stored));
        assert_eq!(page.matches("<svg").count(), DRAWN.len() + 1);
        assert_eq!(page.matches("class=\"bar s0\"").count(), DRAWN.len());
        assert_eq!(page.matches("class=\"bar s1\"").count(), DRAWN.len());
        assert_eq!(page.matches("class=\"whisker\"").count(), 3 * 2 * DRAWN.len());
        assert!(page.contains("<title>made up</title>") && page.contains("absent: there is no program c"));
        assert_eq!(page, super::page(&[stored]));
    }

    #[test]
    fn several_records_share_a_page() {
        let stored = Stored::Comparison(Box::new(record(&[])));
        let single = Stored::Single(Box::new(made_up::run_of(100, 1000)));
        let page = page(&[stored, single]);
        assert!(page.contains("<h2>made up</h2>") && page.contains("&lt;made up&gt;"));
    }
}
