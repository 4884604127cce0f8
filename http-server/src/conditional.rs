//! Conditional requests (RFC 9110 section 13).

use http::{HeaderMap, HeaderValue};

/// Among the extensions of a 304: the head of the 200 in whose place it is, which says whether that would be compressed.
#[derive(Clone, Debug)]
pub(crate) struct Unmodified(pub(crate) HeaderMap);

/// A line of `If-None-Match` is `*` or has this strong tag, compared weakly (section 8.8.3.2). A comma may be part of a tag.
pub(crate) fn names(line: &HeaderValue, tag: &[u8]) -> bool {
    let mut is_within = false;
    let mut tags = line.as_bytes().split(|byte| {
        is_within ^= *byte == b'"';
        *byte == b',' && !is_within
    });
    line == "*"
        || tags.any(|other| {
            let other = other.trim_ascii();
            other.strip_prefix(b"W/").unwrap_or(other) == tag
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_tags() {
        let check = |line: &'static str, expected| {
            assert_eq!(names(&HeaderValue::from_static(line), b"\"a,b\""), expected, "{line}");
        };
        for line in ["*", "\"a,b\"", "W/\"a,b\"", "\"x\" , \"a,b\"", "\"x,\",W/\"a,b\",\"y\""] {
            check(line, true);
        }
        for line in ["", "\"a", "a,b", "\"x,\"a,b\"", "\"a\", \"b\"", "w/\"a,b\""] {
            check(line, false);
        }
    }
}
