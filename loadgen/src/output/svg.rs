//! A writer of SVG: the same calls give the same bytes. Colours come from the page's style sheet, by classes.

use std::fmt::Write as _;

/// A drawing that grows by its methods. Lengths are pixels; y grows downwards.
#[derive(Debug)]
pub struct Svg {
    body: String,
    width: f64,
    height: f64,
    title: String,
}

/// Which point of a text its position is.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

impl Svg {
    /// An empty drawing; its title is what a screen reader says.
    #[must_use]
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self { body: String::new(), width, height, title: title.to_owned() }
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(pixels);
        self.element(format_args!(r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#));
    }

    /// A filled rectangle with a text that shows when it is pointed at.
    pub fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64), hint: &str) {
        let [x, y, width, height] = [corner.0, corner.1, size.0.max(0.0), size.1.max(0.0)].map(pixels);
        let hint = escape(hint);
        self.element(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"><title>{hint}</title></rect>"#
        ));
    }

    /// An open line through points.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)], hint: &str) {
        let mut way = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            write!(way, "{command}{} {}", pixels(*x), pixels(*y)).expect("writing to memory does not fail");
        }
        let hint = escape(hint);
        self.element(format_args!(r#"<path class="{class}" d="{way}"><title>{hint}</title></path>"#));
    }

    /// A text.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let (x, y) = (pixels(at.0), pixels(at.1));
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.element(format_args!(r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>"#));
    }

    /// The whole element, to stand in a page.
    #[must_use]
    pub fn finish(self) -> String {
        let (width, height, title) = (pixels(self.width), pixels(self.height), escape(&self.title));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{title}\">\n{}</svg>\n",
            self.body
        )
    }

    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        self.body.write_fmt(element).expect("writing to memory does not fail");
        self.body.push('\n');
    }
}

/// A length with at most one decimal: finer steps than a tenth of a pixel cannot be seen. A value that is no number is 0.
fn pixels(length: f64) -> String {
    let tenths = if length.is_finite() { (length * 10.0).round() } else { 0.0 };
    // Adding 0 turns -0 into 0.
    let text = format!("{:.1}", tenths / 10.0 + 0.0);
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// A text that can stand in an element or a quoted attribute.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            // XML has no way to write them.
            _ if character.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short() {
        #[track_caller]
        fn check(length: f64, expected: &str) {
            assert_eq!(pixels(length), expected);
        }
        check(10.0, "10");
        check(10.04, "10");
        check(10.06, "10.1");
        check(-0.01, "0");
        check(-2.5, "-2.5");
        check(f64::NAN, "0");
        check(f64::INFINITY, "0");
    }

    #[test]
    fn texts_cannot_leave_their_place() {
        let mut svg = Svg::new(10.0, 20.5, "a \"b\"");
        svg.text("t", (1.0, 2.0), Anchor::End, "<script>&'\u{1}");
        let expected = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 10 20.5\" role=\"img\" \
                        aria-label=\"a &quot;b&quot;\">\n<text class=\"t\" x=\"1\" y=\"2\" text-anchor=\"end\">\
                        &lt;script&gt;&amp;&#39;\u{fffd}</text>\n</svg>\n";
        assert_eq!(svg.finish(), expected);
    }
}
