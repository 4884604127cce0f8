//! Charts: lines over an axis, and bars with error bars.

use super::svg::{Anchor, Svg};

/// How values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Evenly, from the first to the second.
    Linear(f64, f64),
    /// Factors evenly; both ends are above 0.
    Logarithmic(f64, f64),
    /// Shares of all (0 to 1) by the logarithm of `1 / (1 - share)`, up to this share: HdrHistogram's axis of percentiles.
    Tail(f64),
}

impl Scale {
    /// A linear scale from 0 that ends at a round number not below `most`.
    #[must_use]
    pub fn from_zero(most: f64) -> Self {
        let step = round_step(most);
        Self::Linear(0.0, if most > 0.0 { (most / step).ceil() * step } else { 1.0 })
    }

    /// A logarithmic scale whose ends are 1, 2 or 5 times a power of ten, around what is given.
    #[must_use]
    pub fn around(least: f64, most: f64) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        // Of more decades nothing could be read.
        let least = if least.is_finite() { least.clamp(most / 1e7, most) } else { most };
        let from = rounds(least / 10.0, least).last().copied().unwrap_or(least);
        let to = rounds(most, most * 10.0).first().copied().unwrap_or(most);
        Self::Logarithmic(from, if to > from { to } else { from * 10.0 })
    }

    /// Where a value lies, from 0 (the axis' beginning) to 1 (its end).
    fn place(self, value: f64) -> f64 {
        let share = match self {
            Self::Linear(from, to) => (value - from) / (to - from),
            Self::Logarithmic(from, to) => (value.max(from) / from).ln() / (to / from).ln(),
            Self::Tail(most) => (1.0 - value.min(most)).ln() / (1.0 - most).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    /// The values that are marked.
    fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear(from, to) => {
                let step = round_step(to - from);
                (0..=((to - from) / step + 1e-9) as usize).map(|index| from + step * index as f64).collect()
            }
            Self::Logarithmic(from, to) => {
                let all = rounds(from, to);
                if all.len() <= 10 {
                    return all;
                }
                // Over many decades only their beginnings.
                all.into_iter().filter(|value| (value.log10() - value.log10().round()).abs() < 1e-6).collect()
            }
            Self::Tail(most) => {
                let nines = (1..=8).map(|nines| 1.0 - 10f64.powi(-nines));
                [0.0, 0.5].into_iter().chain(nines).filter(|share| *share <= most).collect()
            }
        }
    }
}

/// The step that divides a range into three to seven, and is 1, 2 or 5 times a power of ten.
fn round_step(range: f64) -> f64 {
    if range <= 0.0 || !range.is_finite() {
        return 1.0;
    }
    let least = range / 7.0;
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|factor| factor * power).find(|step| *step >= least).unwrap_or(10.0 * power)
}

/// All of 1, 2 and 5 times a power of ten in a range, both ends included.
fn rounds(from: f64, to: f64) -> Vec<f64> {
    let powers = from.log10().floor() as i32..=to.log10().ceil() as i32;
    let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power)));
    all.filter(|value| *value >= from * (1.0 - 1e-9) && *value <= to * (1.0 + 1e-9)).collect()
}

/// An axis: its scale, and how a value is written.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Its name.
    pub label: &'static str,
    /// Its scale.
    pub scale: Scale,
    /// How a value is written.
    pub write: fn(f64) -> String,
}

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Which of the style sheet's colours.
    pub colour: usize,
}

impl Series {
    /// Its classes in the style sheet; a colour that returns is dashed.
    fn class(&self) -> String {
        let again = if self.colour / COLOURS % 2 == 1 { " again" } else { "" };
        format!("line s{}{again}", self.colour % COLOURS)
    }
}

/// Lines over a horizontal axis.
#[derive(Debug)]
pub struct LineChart {
    /// The title.
    pub title: String,
    /// The axis below.
    pub x: Axis,
    /// The axis on the left.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 760.0;
const LINE_HEIGHT: f64 = 300.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 48.0;
/// The legend's first line, and how far apart its lines are.
const LEGEND: f64 = 40.0;
const LEGEND_LINE: f64 = 18.0;
/// About the width of a letter at the size of legends, in pixels.
const LETTER: f64 = 7.0;
/// Colours in the style sheet: `s0`, `s1`, …
pub const COLOURS: usize = 8;

impl LineChart {
    /// The chart as an SVG element.
    #[must_use]
    pub fn draw(&self) -> String {
        let places = self.legend_places();
        // A legend of several lines moves all below it.
        let top = TOP + places.last().map_or(0.0, |(_, y)| y - LEGEND);
        let height = LINE_HEIGHT + top - TOP;
        let mut svg = Svg::new(WIDTH, height, &self.title);
        svg.text("title", (LEFT, 20.0), Anchor::Start, &self.title);
        self.legend(&mut svg, &places);
        let (right, bottom) = (WIDTH - RIGHT, height - BOTTOM);
        let x = |value| LEFT + (right - LEFT) * self.x.scale.place(value);
        let y = |value| bottom - (bottom - top) * self.y.scale.place(value);
        for tick in self.y.scale.ticks() {
            svg.line("grid", (LEFT, y(tick)), (right, y(tick)));
            svg.text("tick", (LEFT - 8.0, y(tick) + 4.0), Anchor::End, &(self.y.write)(tick));
        }
        for tick in self.x.scale.ticks() {
            svg.line("grid", (x(tick), top), (x(tick), bottom));
            svg.text("tick", (x(tick), bottom + 18.0), Anchor::Middle, &(self.x.write)(tick));
        }
        svg.line("axis", (LEFT, bottom), (right, bottom));
        svg.text("tick", ((LEFT + right) / 2.0, height - 10.0), Anchor::Middle, self.x.label);
        svg.text("tick", (8.0, top - 10.0), Anchor::Start, self.y.label);
        for series in &self.series {
            let points: Vec<(f64, f64)> = series.points.iter().map(|point| (x(point.0), y(point.1))).collect();
            svg.path(&series.class(), &points, &series.name);
        }
        svg.finish()
    }

    /// Where each line's name stands; one line alone needs none.
    fn legend_places(&self) -> Vec<(f64, f64)> {
        if self.series.len() < 2 {
            return Vec::new();
        }
        let (mut at, mut y) = (LEFT + 60.0, LEGEND);
        let mut places = Vec::new();
        for series in &self.series {
            let width = 24.0 + LETTER * series.name.chars().count() as f64;
            if at + width > WIDTH && at > LEFT + 60.0 {
                (at, y) = (LEFT + 60.0, y + LEGEND_LINE);
            }
            places.push((at, y));
            at += width + 18.0;
        }
        places
    }

    fn legend(&self, svg: &mut Svg, places: &[(f64, f64)]) {
        for (series, (x, y)) in self.series.iter().zip(places) {
            svg.line(&series.class(), (*x, *y), (x + 18.0, *y));
            svg.text("tick", (x + 24.0, y + 4.0), Anchor::Start, &series.name);
        }
    }
}

/// A bar with its error bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The text left of it.
    pub label: String,
    /// Its length.
    pub value: f64,
    /// The ends of the interval.
    pub interval: Option<(f64, f64)>,
    /// The value, written.
    pub text: String,
    /// Which colour; subjects keep theirs in all charts.
    pub colour: usize,
}

/// Bars from left to right, one below the other.
#[derive(Debug)]
pub struct BarChart {
    /// The title.
    pub title: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

const BAR: f64 = 22.0;
const BAR_GAP: f64 = 12.0;
/// Room for a value's text right of the longest bar.
const VALUE_ROOM: f64 = 230.0;
/// Longest label that is shown whole.
const LABEL_LETTERS: usize = 24;

impl BarChart {
    /// The chart as an SVG element.
    #[must_use]
    pub fn draw(&self) -> String {
        let height = 40.0 + self.bars.len() as f64 * (BAR + BAR_GAP);
        let mut svg = Svg::new(WIDTH, height, &self.title);
        svg.text("title", (0.0, 20.0), Anchor::Start, &self.title);
        let longest = self.bars.iter().map(|bar| bar.label.chars().count().min(LABEL_LETTERS)).max().unwrap_or(0);
        let left = longest as f64 * (LETTER + 0.5) + 16.0;
        let most = self.bars.iter().map(|bar| bar.interval.map_or(bar.value, |ends| ends.1.max(bar.value)));
        let most = most.fold(0.0, f64::max);
        let scale = Scale::Linear(0.0, if most > 0.0 { most } else { 1.0 });
        let x = |value| left + (WIDTH - VALUE_ROOM - left) * scale.place(value);
        for (index, bar) in self.bars.iter().enumerate() {
            let top = 34.0 + index as f64 * (BAR + BAR_GAP);
            let middle = top + BAR / 2.0;
            let label: String = bar.label.chars().take(LABEL_LETTERS).collect();
            svg.text("label", (left - 8.0, middle + 4.0), Anchor::End, &label);
            let hint = format!("{}: {}", bar.label, bar.text);
            svg.rect(&format!("bar s{}", bar.colour % COLOURS), (left, top), (x(bar.value) - left, BAR), &hint);
            let mut end = x(bar.value);
            if let Some((low, high)) = bar.interval {
                svg.line("whisker", (x(low), middle), (x(high), middle));
                for side in [low, high] {
                    svg.line("whisker", (x(side), middle - 5.0), (x(side), middle + 5.0));
                }
                end = end.max(x(high));
            }
            svg.text("label", (end + 8.0, middle + 4.0), Anchor::Start, &bar.text);
        }
        svg.line("axis", (left, 30.0), (left, height - 4.0));
        svg.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_round_ends_and_ticks() {
        #[track_caller]
        fn check(scale: Scale, expected: &[f64]) {
            let ticks = scale.ticks();
            let same = ticks.len() == expected.len()
                && ticks.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-9 * b.abs().max(1.0));
            assert!(same, "{scale:?}: {ticks:?}");
        }
        check(Scale::from_zero(9.3), &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        check(Scale::from_zero(0.0), &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        check(Scale::from_zero(123_456.0), &[0.0, 20e3, 40e3, 60e3, 80e3, 100e3, 120e3, 140e3]);
        check(Scale::around(0.13, 0.9), &[0.1, 0.2, 0.5, 1.0]);
        check(Scale::around(3.0, 3.0), &[2.0, 5.0]);
        check(Scale::around(f64::INFINITY, 0.0), &[1.0, 2.0, 5.0, 10.0]);
        check(Scale::around(0.0001, 1000.0), &[1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0]);
        check(Scale::Tail(0.9995), &[0.0, 0.5, 0.9, 0.99, 0.999]);
    }

    #[test]
    fn values_lie_where_the_scale_says() {
        #[track_caller]
        fn check(scale: Scale, value: f64, expected: f64) {
            assert!((scale.place(value) - expected).abs() < 1e-9, "{scale:?} {value}: {}", scale.place(value));
        }
        check(Scale::Linear(0.0, 10.0), 2.5, 0.25);
        check(Scale::Linear(0.0, 10.0), 25.0, 1.0);
        check(Scale::Logarithmic(1.0, 100.0), 10.0, 0.5);
        check(Scale::Logarithmic(1.0, 100.0), 0.0, 0.0);
        check(Scale::Tail(0.9999), 0.99, 0.5);
        check(Scale::Tail(0.9999), 1.0, 1.0);
    }

    #[test]
    fn charts_of_nothing_are_drawn() {
        let axis = Axis { label: "s", scale: Scale::from_zero(0.0), write: |value| value.to_string() };
        let chart = LineChart { title: "t".to_owned(), x: axis, y: axis, series: Vec::new() };
        assert!(chart.draw().ends_with("</svg>\n"));
        assert!(BarChart { title: "t".to_owned(), bars: Vec::new() }.draw().ends_with("</svg>\n"));
    }

    #[test]
    fn many_lines_have_room_and_differ() {
        let axis = Axis { label: "s", scale: Scale::from_zero(1.0), write: |value| value.to_string() };
        let series = (0..10).map(|colour| Series { name: "a server".to_owned(), points: Vec::new(), colour }).collect();
        let chart = LineChart { title: "t".to_owned(), x: axis, y: axis, series };
        let places = chart.legend_places();
        assert!(places.iter().all(|(x, _)| x + 24.0 + 8.0 * LETTER <= WIDTH), "{places:?}");
        assert_eq!((places[0], places[6], places[7].1), ((144.0, 40.0), (144.0, 58.0), 58.0));
        let drawn = chart.draw();
        assert!(drawn.contains(r#"class="line s1""#) && drawn.contains(r#"class="line s1 again""#), "{drawn}");
    }

    #[test]
    fn an_error_bar_lies_around_its_bars_end() {
        let bar =
            Bar { label: "a".to_owned(), value: 8.0, interval: Some((6.0, 10.0)), text: "8".to_owned(), colour: 9 };
        let drawn = BarChart { title: "t".to_owned(), bars: vec![bar] }.draw();
        // The label takes 23.5 pixels; 10 lies at 530, so that 6 and 8 lie at 327.4 and 428.7.
        assert!(drawn.contains(r#"<rect class="bar s1" x="23.5" y="34" width="405.2" height="22">"#), "{drawn}");
        assert!(drawn.contains(r#"x1="327.4" y1="45" x2="530" y2="45""#), "{drawn}");
    }
}
