//! Names of nodes.

use std::fmt;

/// Bytes of a name.
pub const ID: usize = 40;

/// The name of a node, or of a shard: forty digits of a hexadecimal number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId([u8; ID]);

impl NodeId {
    /// The name that stands in a packet; none if it is not one.
    pub fn new(bytes: &[u8; ID]) -> Option<Self> {
        bytes.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then_some(Self(*bytes))
    }

    /// A client's word, or a file's.
    pub fn parse(word: &[u8]) -> Option<Self> {
        Self::new(word.try_into().ok()?)
    }

    /// A new name out of chance.
    pub fn from_random(mut random: impl FnMut() -> u64) -> Self {
        let mut id = [0; ID];
        for part in id.chunks_mut(size_of::<u64>()) {
            let bits = random();
            for (at, digit) in part.iter_mut().enumerate() {
                *digit = b"0123456789abcdef"[(bits >> (4 * at) & 15) as usize];
            }
        }
        Self(id)
    }

    /// Its digits.
    pub fn as_bytes(&self) -> &[u8; ID] {
        &self.0
    }

    /// Its digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("only hexadecimal digits are taken")
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_are_a_name() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(NodeId::parse(id.as_bytes()).map(|id| id.to_string()).as_deref(), Some(id));
        for word in ["", &id[1..], &format!("{id}0"), &id.replace('a', "A"), &id.replace('a', "g")] {
            assert_eq!(NodeId::parse(word.as_bytes()), None, "{word}");
        }
        let mut bits = 0x0123_4567_89ab_cdef_u64;
        let random = NodeId::from_random(|| {
            bits = bits.rotate_left(8);
            bits
        });
        assert_eq!(NodeId::parse(random.as_bytes()), Some(random));
    }
}
