//! Priorities (RFC 9218): a request's `priority` field, and PRIORITY_UPDATE frames.

/// How soon a peer wants an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7. 3 where nothing is said.
    pub urgency: u8,
    /// Whether parts of the answer are of use before the whole: then it takes turns with others.
    pub incremental: bool,
}

/// Urgencies that there are.
pub(crate) const URGENCIES: usize = 8;

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Parses a dictionary of structured fields (RFC 9651), such as `u=1, i`. Ignores members that it does not
    /// understand.
    pub fn parse(text: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in text.split(|byte| *byte == b',') {
            // Parameters mean nothing yet.
            let member = member.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
            match member {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities() {
        fn check(text: &str, urgency: u8, incremental: bool) {
            assert_eq!(Priority::parse(text.as_bytes()), Priority { urgency, incremental }, "{text:?}");
        }
        check("", 3, false);
        check("u=0", 0, false);
        check("u=7, i", 7, true);
        check("i=?1,u=5", 5, true);
        check("i, i=?0", 3, false);
        check("u=2;x=1, i;y", 2, true);
        check("u=1, u=4", 4, false);
        for text in ["u=8", "u=-1", "u", "u=10", "i=1", "I", "x=1", "u=\"1\"", ",,,", "\u{0}"] {
            check(text, 3, false);
        }
    }
}
