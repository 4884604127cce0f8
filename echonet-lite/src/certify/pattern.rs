//! Answers that are allowed, as they are written in the table of items.

/// Whether bytes are one of the answers `a or b`. In each, `?` is any digit, and `*` anything up to the end.
pub(super) fn allows(pattern: &str, bytes: &[u8]) -> bool {
    pattern.split(" or ").any(|one| matches(one, bytes))
}

fn matches(pattern: &str, bytes: &[u8]) -> bool {
    let mut digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0x0F]);
    for letter in pattern.chars().filter(|letter| !letter.is_whitespace()) {
        match (letter, letter.to_digit(16)) {
            ('*', _) => return true,
            ('?', _) if digits.next().is_some() => {}
            (_, Some(digit)) if digits.next().map(u32::from) == Some(digit) => {}
            _ => return false,
        }
    }
    digits.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, bytes, allowed) in [
            ("72 01 80 01 3?", &[0x72, 1, 0x80, 1, 0x31][..], true),
            ("72 01 80 01 3?", &[0x72, 1, 0x80, 1, 0x41], false),
            ("72 01 80 01 3?", &[0x72, 1, 0x80, 1], false),
            ("72 01", &[0x72, 1, 0], false),
            ("72 *", &[0x72, 1, 0], true),
            ("51 00 or 71 00", &[0x71, 0], true),
            ("51 00 or 71 00", &[0x61, 0], false),
        ] {
            assert_eq!(allows(pattern, bytes), allowed, "{pattern} {bytes:02X?}");
        }
    }
}
