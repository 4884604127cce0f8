//! A plot of ratios with their intervals around the line where both are equal.

use loadgen::compare::Verdict;
use loadgen::output::svg::{Anchor, Svg};

use super::answers::Answer;

/// The ratios of a finding's answers, in their order; what is void is grey.
pub(super) fn of_answers(title: &str, answers: &[Answer<'_>]) -> Option<String> {
    let row = |answer: &Answer<'_>| {
        let estimate = answer.judged.estimate?;
        Some(Row {
            group: answer.question.scenario.clone(),
            label: format!("{} / {}", answer.question.subject, answer.question.rival),
            value: estimate.value,
            low: estimate.low,
            high: estimate.high,
            text: format!("{} {}", answer.text(), answer.metric().words()),
            colour: match answer.verdict() {
                Verdict::Better => 2,
                Verdict::Worse => 1,
                Verdict::Equivalent => 0,
                Verdict::Inconclusive => 4,
                Verdict::Void(_) => 7,
            },
        })
    };
    let rows: Vec<Row> = answers.iter().filter_map(row).collect();
    draw(&format!("{title} (green better, orange worse, blue equivalent, yellow inconclusive, grey void)"), &rows)
}

/// A ratio in the plot.
struct Row {
    /// Stands above all rows in a row that share it.
    group: String,
    label: String,
    value: f64,
    low: f64,
    high: f64,
    /// The ratio, written.
    text: String,
    /// Which of the style sheet's colours.
    colour: usize,
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 290.0;
const RIGHT: f64 = 250.0;
const LINE: f64 = 24.0;
const TOP: f64 = 52.0;
/// Beyond this, only every other tick has room.
const ALL_TICKS: f64 = 64.0;

/// The plot as an SVG element; nothing without rows.
fn draw(title: &str, rows: &[Row]) -> Option<String> {
    let most =
        rows.iter().flat_map(|row| [row.high, 1.0 / row.low]).filter(|bound| bound.is_finite()).fold(1.25, f64::max);
    if rows.is_empty() {
        return None;
    }
    // The same way to both sides of 1, so that half and double lie equally far.
    let side = ticks().find(|tick| *tick >= most).unwrap_or(1000.0);
    let x = |ratio: f64| {
        let place = (ratio.clamp(1.0 / side, side).ln() / side.ln() + 1.0) / 2.0;
        LEFT + (WIDTH - LEFT - RIGHT) * place
    };
    let groups: Vec<&[Row]> = rows.chunk_by(|one, next| one.group == next.group).collect();
    let bottom = TOP + LINE * (groups.len() + rows.len()) as f64;
    let mut svg = Svg::new(WIDTH, bottom + 28.0, title);
    svg.text("title", (0.0, 18.0), Anchor::Start, title);
    let has_room = |tick: &f64| match side {
        ..=8.0 => true,
        ..=ALL_TICKS => *tick >= 2.0,
        _ => tick.log2() % 2.0 == 0.0,
    };
    let marked: Vec<f64> = ticks().filter(|tick| *tick <= side && has_room(tick)).collect();
    for tick in marked.iter().flat_map(|tick| [1.0 / tick, *tick]).filter(|tick| *tick != 1.0) {
        svg.line("grid", (x(tick), TOP - 8.0), (x(tick), bottom));
        svg.text("tick", (x(tick), bottom + 18.0), Anchor::Middle, &number(tick));
    }
    svg.line("axis", (x(1.0), TOP - 8.0), (x(1.0), bottom));
    svg.text("tick", (x(1.0), bottom + 18.0), Anchor::Middle, "equal");
    let mut middle = TOP - LINE / 2.0;
    for (row, is_first) in
        groups.iter().flat_map(|group| group.iter().enumerate().map(|(index, row)| (row, index == 0)))
    {
        if is_first {
            middle += LINE;
            svg.text("tick", (0.0, middle + 4.0), Anchor::Start, &row.group);
        }
        middle += LINE;
        svg.text("label", (LEFT - 12.0, middle + 4.0), Anchor::End, &row.label);
        let hint = format!("{}: {}: {}", row.group, row.label, row.text);
        svg.line("whisker", (x(row.low), middle), (x(row.high), middle));
        svg.rect(&format!("bar s{}", row.colour), (x(row.value) - 4.0, middle - 4.0), (8.0, 8.0), &hint);
        svg.text("label", (WIDTH - RIGHT + 10.0, middle + 4.0), Anchor::Start, &row.text);
    }
    Some(svg.finish())
}

/// Where an axis may end, and what it marks.
fn ticks() -> impl Iterator<Item = f64> {
    [1.25, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1024.0].into_iter()
}

fn number(ratio: f64) -> String {
    if ratio >= 1.0 { format!("{ratio}") } else { format!("1/{}", 1.0 / ratio) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_lie_on_their_side_of_one() {
        let row = |value: f64| Row {
            group: "a <b>".to_owned(),
            label: "c".to_owned(),
            value,
            low: value * 0.9,
            high: value * 1.1,
            text: "t".to_owned(),
            colour: 1,
        };
        let svg = draw("ratios", &[row(0.5), row(2.0)]).unwrap();
        assert!(svg.contains(">equal<") && svg.contains(">1/2<"));
        assert_eq!((svg.matches(">a &lt;b&gt;<").count(), svg.matches(">c<").count()), (1, 2));
        assert_eq!(svg, draw("ratios", &[row(0.5), row(2.0)]).unwrap());
        assert!(draw("nothing", &[]).is_none());
    }
}
