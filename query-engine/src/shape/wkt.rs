//! Well-known text, read as leniently as by RediSearch's library: missing coordinates are 0, missing commas do not matter.

use super::{MAX_SHAPE_POINTS, ShapeError};

/// Bytes of a text that an error repeats.
const SHOWN: usize = 100;

/// True for a point, and the rings, whose points are as they stand in the text.
type Parsed = (bool, Vec<Vec<[f64; 2]>>);

pub(super) fn parse(text: &[u8]) -> Result<Parsed, ShapeError> {
    let is_point = text.starts_with(b"POI");
    if !is_point && !text.starts_with(b"POL") {
        return Err(ShapeError::Unknown);
    }
    let mut reader = Reader { text, at: 0, points: 0 };
    let name = if is_point { "POINT" } else { "POLYGON" };
    let first = reader.next();
    if !first.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes())) {
        return Err(reader.wrong(&format!("Should start with '{name}'")));
    }
    let mut rings = Vec::new();
    if reader.has_shape()? {
        if is_point {
            reader.open()?;
            rings.push(vec![reader.point()?]);
            reader.close()?;
        } else {
            reader.polygon(&mut rings)?;
        }
    }
    match reader.peek() {
        None => Ok((is_point, rings)),
        Some(_) => Err(reader.unexpected("Too many tokens")),
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Reads tokens: parentheses, commas, and words between these and spaces.
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    points: usize,
}

impl<'t> Reader<'t> {
    fn skip_spaces(&mut self) {
        self.at += self.text[self.at..].iter().take_while(|byte| is_space(**byte)).count();
    }

    fn peek(&mut self) -> Option<&'t [u8]> {
        self.skip_spaces();
        let rest = &self.text[self.at..];
        let is_mark = |byte: &u8| matches!(byte, b'(' | b')' | b',');
        let length = match rest.first() {
            None => return None,
            Some(byte) if is_mark(byte) => 1,
            Some(_) => rest.iter().position(|byte| is_mark(byte) || is_space(*byte)).unwrap_or(rest.len()),
        };
        Some(&rest[..length])
    }

    fn next(&mut self) -> Option<&'t [u8]> {
        let token = self.peek()?;
        self.at += token.len();
        Some(token)
    }

    fn takes(&mut self, word: &[u8]) -> bool {
        let is_it = self.peek().is_some_and(|token| token.eq_ignore_ascii_case(word));
        self.at += if is_it { word.len() } else { 0 };
        is_it
    }

    /// Reads what may stand between the name and the coordinates; false for an empty shape.
    fn has_shape(&mut self) -> Result<bool, ShapeError> {
        if self.takes(b"ZM") || self.takes(b"Z") {
            return Err(self.wrong("Z only allowed for 3 or more dimensions"));
        }
        self.takes(b"M");
        Ok(!self.takes(b"EMPTY"))
    }

    fn open(&mut self) -> Result<(), ShapeError> {
        if self.takes(b"(") { Ok(()) } else { Err(self.unexpected("Expected '('")) }
    }

    fn close(&mut self) -> Result<(), ShapeError> {
        if self.takes(b")") { Ok(()) } else { Err(self.unexpected("Expected ')'")) }
    }

    fn is_at_end(&mut self, of: &[&[u8]]) -> bool {
        self.peek().is_none_or(|token| of.contains(&token))
    }

    fn point(&mut self) -> Result<[f64; 2], ShapeError> {
        self.points += 1;
        if self.points > MAX_SHAPE_POINTS {
            return Err(ShapeError::TooManyPoints);
        }
        let mut point = [0.0; 2];
        for coordinate in &mut point {
            if self.is_at_end(&[b",", b")"]) {
                continue;
            }
            let word = self.peek().and_then(|word| std::str::from_utf8(word).ok());
            *coordinate = word.and_then(|word| word.parse().ok()).ok_or_else(|| {
                self.unexpected("bad lexical cast: source type value could not be interpreted as target")
            })?;
            self.next();
        }
        Ok(point)
    }

    fn ring(&mut self) -> Result<Vec<[f64; 2]>, ShapeError> {
        self.open()?;
        let mut points = Vec::new();
        while !self.is_at_end(&[b")"]) {
            points.push(self.point()?);
            self.takes(b",");
        }
        self.close()?;
        Ok(points)
    }

    fn polygon(&mut self, rings: &mut Vec<Vec<[f64; 2]>>) -> Result<(), ShapeError> {
        self.open()?;
        while !self.is_at_end(&[b")"]) {
            // A ring without points counts, too.
            self.points += 1;
            rings.push(self.ring()?);
            self.takes(b",");
        }
        self.close()
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.text[..self.text.len().min(SHOWN)]).into_owned()
    }

    /// An error at the next token.
    fn unexpected(&mut self, why: &str) -> ShapeError {
        let token = self.peek().map(|token| String::from_utf8_lossy(&token[..token.len().min(SHOWN)]).into_owned());
        let place = token.map_or_else(String::new, |token| format!(" at '{token}'"));
        ShapeError::Syntax(format!("{why}{place} in '{}'", self.shown()))
    }

    /// An error of the text as a whole; the quote is as in RediSearch.
    fn wrong(&self, why: &str) -> ShapeError {
        ShapeError::Syntax(format!("{why}' in ({})", self.shown()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read() {
        let check = |text: &str, expected: &[&[[f64; 2]]]| {
            let (_, rings) = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(rings, expected, "{text}");
        };
        check("POINT(1 -2.5)", &[&[[1.0, -2.5]]]);
        check("POINT (1e2 +3)", &[&[[100.0, 3.0]]]);
        check("POInt\t( .5 \n\r 5. ) ", &[&[[0.5, 5.0]]]);
        check("POINT(1)", &[&[[1.0, 0.0]]]);
        check("POINT()", &[&[[0.0, 0.0]]]);
        check("POINT M(1 2)", &[&[[1.0, 2.0]]]);
        check("POINT EMPTY", &[]);
        check("POLYGON EMPTY", &[]);
        check("POLYGON((0 0,1 1,2 2))", &[&[[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]]);
        check("POLYGON((0 0 1 1, 2)(3 3),)", &[&[[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]], &[[3.0, 3.0]]]);
        check("POLYGON(()())", &[&[], &[]]);
        check("POLYGON()", &[]);
    }

    /// The texts are those of RediSearch 2.10.5.
    #[test]
    fn errors_say_where() {
        let check = |text: &str, expected: &str| {
            let error = parse(text.as_bytes()).map(|_| text.to_owned()).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        };
        let cast = "bad lexical cast: source type value could not be interpreted as target";
        check("", "unknown geometry type");
        check("point(1 1)", "unknown geometry type");
        check("LINESTRING(0 0,1 1)", "unknown geometry type");
        check("POLIKON((1 1))", "Should start with 'POLYGON'' in (POLIKON((1 1)))");
        check("POINTER(1 2)", "Should start with 'POINT'' in (POINTER(1 2))");
        check("POI", "Should start with 'POINT'' in (POI)");
        check("POINT Z(1 2 3)", "Z only allowed for 3 or more dimensions' in (POINT Z(1 2 3))");
        check("POINT", "Expected '(' in 'POINT'");
        check("POLYGON(1 1)", "Expected '(' at '1' in 'POLYGON(1 1)'");
        check("POINT(1 2", "Expected ')' in 'POINT(1 2'");
        check("POINT(1 2 3)", "Expected ')' at '3' in 'POINT(1 2 3)'");
        check("POINT(1,2)", "Expected ')' at ',' in 'POINT(1,2)'");
        check("POINT(1 2) x", "Too many tokens at 'x' in 'POINT(1 2) x'");
        check("POLYGON((0 0)))", "Too many tokens at ')' in 'POLYGON((0 0)))'");
        check("POLYGON((1 1, bart))", &format!("{cast} at 'bart' in 'POLYGON((1 1, bart))'"));
        check("POLYGON(((0 0))", &format!("{cast} at '(' in 'POLYGON(((0 0))'"));
        check("POINT(0x10 1)", &format!("{cast} at '0x10' in 'POINT(0x10 1)'"));
        let long = format!("POLYGON(({}", "1 1,".repeat(1000));
        check(&long, &format!("Expected ')' in '{}'", &long[..100]));
        let (deep, many) = ("(".repeat(1 << 20), "1 1,".repeat(MAX_SHAPE_POINTS + 1));
        assert!(parse(format!("POLYGON{deep}").as_bytes()).is_err());
        assert!(parse(format!("POLYGON({}", "()".repeat(1 << 20)).as_bytes()).is_err());
        assert_eq!(parse(format!("POLYGON(({many}))").as_bytes()), Err(ShapeError::TooManyPoints));
    }
}
