//! Owned bytes of 24 bytes that need no allocation up to 22 of them.

use std::fmt;
use std::ops::Deref;

/// The bytes that fit beside the length and the variant: a boxed slice with its variant takes three words, too.
const INLINE: usize = 22;

/// An owned byte string. Members, fields and most values are short: inline they cost neither an allocation nor the
/// cache miss of following it.
#[derive(Clone)]
pub struct SmallBytes(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, data: [u8; INLINE] },
    Heap(Box<[u8]>),
}

const _: () = assert!(size_of::<SmallBytes>() == 24);

impl SmallBytes {
    /// A copy of `bytes`.
    #[inline]
    pub fn new(bytes: &[u8]) -> Self {
        if bytes.len() > INLINE {
            return Self(Repr::Heap(bytes.into()));
        }
        let mut data = [0; INLINE];
        data[..bytes.len()].copy_from_slice(bytes);
        Self(Repr::Inline { len: bytes.len() as u8, data })
    }

    /// Replaces the content, in place where the old allocation fits exactly.
    #[inline]
    pub fn assign(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Repr::Heap(old) if old.len() == bytes.len() => old.copy_from_slice(bytes),
            Repr::Heap(_) | Repr::Inline { .. } => *self = Self::new(bytes),
        }
    }

    /// Heap bytes that this value owns.
    pub fn memory(&self) -> usize {
        match &self.0 {
            Repr::Inline { .. } => 0,
            Repr::Heap(bytes) => bytes.len(),
        }
    }
}

impl Deref for SmallBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, data } => &data[..usize::from(*len)],
            Repr::Heap(bytes) => bytes,
        }
    }
}

impl PartialEq for SmallBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SmallBytes {}

impl fmt::Debug for SmallBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_bytes_of_every_length() {
        let source: Vec<u8> = (0..100).collect();
        let mut reused = SmallBytes::new(b"");
        for len in 0..source.len() {
            let bytes = &source[..len];
            assert_eq!(&*SmallBytes::new(bytes), bytes);
            reused.assign(bytes);
            reused.assign(bytes);
            assert_eq!(&*reused, bytes);
            assert_eq!(reused.memory(), if len > INLINE { len } else { 0 });
        }
    }
}
