//! Names of objects: class group, class, instance (Part II, 3.2.4).

use core::{fmt, str::FromStr};

/// A class of objects: its group and its code in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassCode {
    /// Class group: 0x00-0x06 devices, 0x0E profiles.
    pub group: u8,
    /// Class in the group.
    pub class: u8,
}

impl ClassCode {
    /// The class of every node's profile.
    pub const NODE_PROFILE: Self = Self::new(0x0E, 0xF0);

    /// The class `class` of group `group`.
    pub const fn new(group: u8, class: u8) -> Self {
        Self { group, class }
    }

    /// Both codes in one number, as in "class 0x0290".
    pub const fn to_u16(self) -> u16 {
        u16::from_be_bytes([self.group, self.class])
    }

    /// The class written as one number, as in 0x0290.
    pub const fn from_u16(code: u16) -> Self {
        let [group, class] = code.to_be_bytes();
        Self { group, class }
    }

    /// The object of this class with the given instance code.
    pub const fn instance(self, instance: u8) -> Eoj {
        Eoj::new(self.group, self.class, instance)
    }
}

/// Four hexadecimal digits: `0290`.
impl fmt::Display for ClassCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04X}", self.to_u16())
    }
}

impl FromStr for ClassCode {
    type Err = ParseEojError;

    /// Four hexadecimal digits, with or without `0x`.
    fn from_str(text: &str) -> Result<Self, ParseEojError> {
        let [group, class] = hex(text)?;
        Ok(Self { group, class })
    }
}

/// An object: the source (SEOJ) or the destination (DEOJ) of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Eoj([u8; 3]);

impl Eoj {
    /// The profile of a general node.
    pub const NODE_PROFILE: Self = Self([0x0E, 0xF0, 1]);
    /// The profile of a node that only sends.
    pub const SEND_ONLY_NODE_PROFILE: Self = Self([0x0E, 0xF0, 2]);
    /// The first controller of a node, the usual SEOJ of a requester.
    pub const CONTROLLER: Self = Self([0x05, 0xFF, 1]);

    /// Instance `instance` of class `class` in group `group`.
    #[inline]
    pub const fn new(group: u8, class: u8, instance: u8) -> Self {
        Self([group, class, instance])
    }

    /// The object whose three bytes on the wire these are.
    #[inline]
    pub const fn from_bytes(bytes: [u8; 3]) -> Self {
        Self(bytes)
    }

    /// The three bytes on the wire.
    #[inline]
    pub const fn to_bytes(self) -> [u8; 3] {
        self.0
    }

    /// Class group code.
    #[inline]
    pub const fn group(self) -> u8 {
        self.0[0]
    }

    /// Class code in the group.
    #[inline]
    pub const fn class(self) -> u8 {
        self.0[1]
    }

    /// Instance code; 0 names every instance of the class.
    #[inline]
    pub const fn instance(self) -> u8 {
        self.0[2]
    }

    /// Group and class.
    #[inline]
    pub const fn class_code(self) -> ClassCode {
        ClassCode::new(self.0[0], self.0[1])
    }

    /// The object of the same class with another instance code.
    #[inline]
    pub const fn with_instance(self, instance: u8) -> Self {
        Self([self.0[0], self.0[1], instance])
    }

    /// Whether a message to `self` is for `object`: the same, or every instance of its class (instance code 0).
    #[inline]
    pub const fn addresses(self, object: Self) -> bool {
        let ([a, b, c], [x, y, z]) = (self.0, object.0);
        a == x && b == y && (c == z || c == 0)
    }
}

/// Six hexadecimal digits: `0EF001`.
impl fmt::Display for Eoj {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [group, class, instance] = self.0;
        write!(f, "{group:02X}{class:02X}{instance:02X}")
    }
}

impl FromStr for Eoj {
    type Err = ParseEojError;

    /// Six hexadecimal digits, with or without `0x`.
    fn from_str(text: &str) -> Result<Self, ParseEojError> {
        hex(text).map(Self)
    }
}

/// The text is not the hexadecimal name of an object (six digits) or of a class (four).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseEojError;

impl fmt::Display for ParseEojError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("six hexadecimal digits name an object (029001), four a class (0290)")
    }
}

impl core::error::Error for ParseEojError {}

fn hex<const N: usize>(text: &str) -> Result<[u8; N], ParseEojError> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(ParseEojError);
    if digits.len() != 2 * N {
        return Err(ParseEojError);
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn text_and_back() {
        for (text, eoj) in [("0EF001", Eoj::NODE_PROFILE), ("0x0130fF", Eoj::new(1, 0x30, 0xFF))] {
            assert_eq!(text.parse(), Ok(eoj));
            assert_eq!(eoj.to_string().parse(), Ok(eoj));
        }
        for text in ["", "0EF0", "0EF0011", "0EF0G1", "+1-2+3", "あい"] {
            assert_eq!(text.parse::<Eoj>(), Err(ParseEojError), "{text}");
        }
        assert_eq!("0290".parse(), Ok(ClassCode::from_u16(0x0290)));
        assert_eq!(ClassCode::from_u16(0x0290).instance(3).to_string(), "029003");
    }

    #[test]
    fn instance_zero_addresses_every_instance_of_the_class() {
        let lights = Eoj::new(2, 0x90, 0);
        assert!(lights.addresses(Eoj::new(2, 0x90, 7)));
        assert!(!lights.addresses(Eoj::new(2, 0x91, 7)));
        assert!(!Eoj::new(2, 0x90, 1).addresses(Eoj::new(2, 0x90, 2)));
    }
}
