//! The grammar of paths.

use super::filter::{Comparison, Filter, Operand, Pattern};
use super::{MAX_PATH, Path, PathError, Segment, Selector};
use crate::types::json::document::Json;

/// Parentheses, negations and filters in each other.
const MAX_NESTING: usize = 32;
/// Filters in each other: paths in any of them may go down from the root, each as deep as documents are.
const MAX_FILTERS: usize = 4;

pub(super) fn path(text: &[u8]) -> Result<Path, PathError> {
    if text.len() > MAX_PATH {
        // Nothing is made of the rest, however long it is.
        let text = String::from_utf8_lossy(&text[..MAX_PATH]).into_owned();
        return Err(PathError { at: text.len(), text, expected: "the end, as no path is longer than 16384 bytes" });
    }
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            let (text, at) = (String::from_utf8_lossy(text).into_owned(), error.valid_up_to());
            return Err(PathError { text, at, expected: "UTF-8" });
        }
    };
    let is_legacy = !(text == "$" || text.starts_with("$.") || text.starts_with("$["));
    let full = match text {
        _ if !is_legacy => text.to_owned(),
        "." => "$".to_owned(),
        _ if text.starts_with(['.', '[']) => format!("${text}"),
        _ => format!("$.{text}"),
    };
    let mut parser = Parser { text: &full, at: 1, nesting: 0, filters: 0 };
    let segments = parser.segments()?;
    if parser.at < full.len() {
        return Err(parser.expected("'.', '..', '[' or the end"));
    }
    Ok(Path { segments, is_legacy, text: full })
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    nesting: usize,
    filters: usize,
}

impl<'t> Parser<'t> {
    fn expected(&self, expected: &'static str) -> PathError {
        PathError { text: self.text.to_owned(), at: self.at, expected }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Steps over a token, and white space in front of it, if it stands there.
    fn takes(&mut self, token: &str) -> bool {
        let before = self.at;
        self.space();
        let is_there = self.rest().starts_with(token);
        self.at = if is_there { self.at + token.len() } else { before };
        is_there
    }

    fn require(&mut self, token: &str, expected: &'static str) -> Result<(), PathError> {
        if self.takes(token) { Ok(()) } else { Err(self.expected(expected)) }
    }

    /// Steps, up to what is none.
    fn segments(&mut self) -> Result<Vec<Segment>, PathError> {
        let mut segments = Vec::new();
        loop {
            let is_deep = self.takes("..");
            let is_dotted = is_deep || self.takes(".");
            let selector = if self.takes("[") {
                self.bracket()?
            } else if is_dotted {
                self.dotted()?
            } else {
                return Ok(segments);
            };
            segments.push(Segment { is_deep, selector });
        }
    }

    /// Parses the selector behind a dot.
    fn dotted(&mut self) -> Result<Selector, PathError> {
        if self.takes("*") {
            return Ok(Selector::All);
        }
        let is_end = |c: char| c.is_whitespace() || ".[]()'\",?*=<>&|!".contains(c);
        let len = self.rest().find(is_end).unwrap_or_else(|| self.rest().len());
        if len == 0 {
            return Err(self.expected("a name, '*' or '['"));
        }
        let name = self.rest().as_bytes()[..len].into();
        self.at += len;
        Ok(Selector::Names(vec![name]))
    }

    /// Parses the selector behind an opening bracket, and the closing bracket.
    fn bracket(&mut self) -> Result<Selector, PathError> {
        self.space();
        let selector = if self.takes("*") {
            Selector::All
        } else if self.takes("?") {
            if self.filters == MAX_FILTERS {
                return Err(self.expected("no more than 4 filters in each other"));
            }
            self.filters += 1;
            let filter = self.nested(Self::filter)?;
            self.filters -= 1;
            Selector::Filter(filter)
        } else if self.rest().starts_with(['"', '\'']) {
            let mut names = vec![self.quoted()?];
            while self.takes(",") {
                self.space();
                names.push(self.quoted()?);
            }
            Selector::Names(names)
        } else {
            self.places()?
        };
        self.require("]", "']'")?;
        Ok(selector)
    }

    /// Places, or a slice.
    fn places(&mut self) -> Result<Selector, PathError> {
        let expected = "a place, a slice, a name in quotes, '*' or '?'";
        let start = self.place()?;
        if !self.takes(":") {
            let mut places = vec![start.ok_or_else(|| self.expected(expected))?];
            while self.takes(",") {
                places.push(self.place()?.ok_or_else(|| self.expected("a place"))?);
            }
            return Ok(Selector::Indexes(places));
        }
        let end = self.place()?;
        let step = if self.takes(":") {
            let before = self.at;
            match self.place()? {
                None => 1,
                Some(step) => usize::try_from(step).ok().filter(|step| *step > 0).ok_or_else(|| {
                    self.at = before;
                    self.expected("a step above 0")
                })?,
            }
        } else {
            1
        };
        Ok(Selector::Slice { start: start.unwrap_or(0), end, step })
    }

    /// An integer, if one stands there.
    fn place(&mut self) -> Result<Option<i64>, PathError> {
        self.space();
        let digits = self.rest().strip_prefix('-').unwrap_or_else(|| self.rest());
        let len = self.rest().len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if len == 0 {
            return Ok(None);
        }
        let place = self.rest()[..len].parse().map_err(|_| self.expected("an integer of 64 bits"))?;
        self.at += len;
        Ok(Some(place))
    }

    /// A string in single or double quotes.
    fn quoted(&mut self) -> Result<Box<[u8]>, PathError> {
        let quote = self.rest().chars().next().filter(|quote| matches!(quote, '"' | '\''));
        let quote = quote.ok_or_else(|| self.expected("a string in quotes"))?;
        let mut text = String::new();
        let mut is_escaped = false;
        for (at, c) in self.rest().char_indices().skip(1) {
            match c {
                _ if is_escaped => {
                    self.unescape(at, quote, c, &mut text)?;
                    is_escaped = false;
                }
                '\\' => is_escaped = true,
                c if c == quote => {
                    self.at += at + 1;
                    return Ok(text.into_bytes().into());
                }
                c => text.push(c),
            }
        }
        Err(self.expected("a string that ends with its quote"))
    }

    /// A character behind a backslash. Escapes that JSON lacks stay as they are, which patterns rely on.
    fn unescape(&mut self, at: usize, quote: char, c: char, text: &mut String) -> Result<(), PathError> {
        match c {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            '\\' | '/' => text.push(c),
            c if c == quote => text.push(c),
            'u' => {
                self.at += at;
                return Err(self.expected("a character as it is, in the place of its number"));
            }
            c => text.extend(['\\', c]),
        }
        Ok(())
    }

    fn nested<R>(&mut self, parse: impl FnOnce(&mut Self) -> Result<R, PathError>) -> Result<R, PathError> {
        if self.nesting == MAX_NESTING {
            return Err(self.expected("no more than 32 parentheses, negations and filters in each other"));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    fn filter(&mut self) -> Result<Filter, PathError> {
        let mut any = vec![self.conjunction()?];
        while self.takes("||") {
            any.push(self.conjunction()?);
        }
        Ok(if any.len() == 1 { any.swap_remove(0) } else { Filter::Any(any) })
    }

    fn conjunction(&mut self) -> Result<Filter, PathError> {
        let mut all = vec![self.term()?];
        while self.takes("&&") {
            all.push(self.term()?);
        }
        Ok(if all.len() == 1 { all.swap_remove(0) } else { Filter::All(all) })
    }

    fn term(&mut self) -> Result<Filter, PathError> {
        if self.takes("!") {
            return self.nested(Self::term).map(|term| Filter::Not(Box::new(term)));
        }
        if self.takes("(") {
            let inner = self.nested(Self::filter)?;
            self.require(")", "')', '&&', '||' or a comparison")?;
            return Ok(inner);
        }
        let left = self.operand()?;
        if self.takes("=~") {
            return Ok(Filter::Matches(left, self.pattern()?));
        }
        const SIGNS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::Unequal),
            ("<=", Comparison::AtMost),
            (">=", Comparison::AtLeast),
            ("<", Comparison::Below),
            (">", Comparison::Above),
        ];
        match SIGNS.iter().find(|(sign, _)| self.takes(sign)) {
            Some((_, comparison)) => Ok(Filter::Compare(left, *comparison, self.operand()?)),
            None if matches!(left, Operand::Literal(_)) => Err(self.expected("a comparison")),
            None => Ok(Filter::Exists(left)),
        }
    }

    fn pattern(&mut self) -> Result<Pattern, PathError> {
        self.space();
        let before = self.at;
        match self.operand()? {
            Operand::Literal(literal) => Pattern::fixed(literal.root()).ok_or_else(|| {
                self.at = before;
                self.expected("a regular expression of a bounded size in quotes")
            }),
            path => Ok(Pattern::of(path)),
        }
    }

    /// A path, or a value.
    fn operand(&mut self) -> Result<Operand, PathError> {
        self.space();
        if self.takes("@") {
            return self.segments().map(Operand::Current);
        }
        if self.takes("$") {
            return self.segments().map(Operand::Root);
        }
        let rest = self.rest();
        if rest.starts_with(['"', '\'']) {
            let text = self.quoted()?;
            return Ok(Operand::Literal(Json::of_string(&text)));
        }
        let len = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
        let literal = Json::parse(&rest.as_bytes()[..len])
            .map_err(|_| self.expected("'@', '$', a number, a string in quotes, true, false or null"))?;
        self.at += len;
        Ok(Operand::Literal(literal))
    }
}
