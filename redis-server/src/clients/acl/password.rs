//! Passwords, of which only the SHA-256 is kept.

use std::fmt;

use ring::digest;

/// The SHA-256 of a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PasswordHash([u8; digest::SHA256_OUTPUT_LEN]);

impl PasswordHash {
    /// The hash of this password.
    pub fn of(password: &[u8]) -> Self {
        let mut hash = [0; digest::SHA256_OUTPUT_LEN];
        hash.copy_from_slice(digest::digest(&digest::SHA256, password).as_ref());
        Self(hash)
    }

    /// The hash that exactly 64 hexadecimal digits in lower case spell.
    pub fn parse(hex: &[u8]) -> Option<Self> {
        if hex.len() != 2 * digest::SHA256_OUTPUT_LEN {
            return None;
        }
        let mut hash = [0; digest::SHA256_OUTPUT_LEN];
        for (byte, pair) in hash.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(hash))
    }

    /// Whether both are the same, in a time that does not depend on where they differ.
    pub fn matches(&self, other: &Self) -> bool {
        std::hint::black_box(self.0.iter().zip(&other.0).fold(0, |differ, (a, b)| differ | (a ^ b))) == 0
    }
}

impl fmt::Display for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_spelled_in_lower_case() {
        let abc = PasswordHash::of(b"abc");
        assert_eq!(abc.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(PasswordHash::parse(abc.to_string().as_bytes()), Some(abc));
        assert!(abc.matches(&abc) && !abc.matches(&PasswordHash::of(b"abd")));
        for wrong in [abc.to_string().to_uppercase(), abc.to_string()[1..].to_owned(), "g".repeat(64), String::new()] {
            assert_eq!(PasswordHash::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
