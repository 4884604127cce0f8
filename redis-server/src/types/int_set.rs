//! A sorted array of integers, each as wide as the widest needs: the form of a set of integers only.

/// A sorted set of integers.
#[derive(Clone, Default)]
pub(super) struct IntSet {
    /// Little-endian numbers of `width` bytes, ascending.
    bytes: Vec<u8>,
    width: Width,
}

#[derive(Clone, Copy, Default, PartialEq, PartialOrd)]
enum Width {
    #[default]
    Two,
    Four,
    Eight,
}

impl Width {
    fn of(value: i64) -> Self {
        if i16::try_from(value).is_ok() {
            Self::Two
        } else if i32::try_from(value).is_ok() {
            Self::Four
        } else {
            Self::Eight
        }
    }

    #[inline]
    fn bytes(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

impl IntSet {
    pub(super) fn len(&self) -> usize {
        self.bytes.len() / self.width.bytes()
    }

    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// The number at `index`, which must exist.
    #[inline]
    pub(super) fn at(&self, index: usize) -> i64 {
        read(self.width, &self.bytes[index * self.width.bytes()..])
    }

    pub(super) fn contains(&self, value: i64) -> bool {
        self.search(value).is_ok()
    }

    /// Adds `value`; true if it is new.
    pub(super) fn add(&mut self, value: i64) -> bool {
        if Width::of(value) > self.width {
            self.widen(Width::of(value));
        }
        let Err(index) = self.search(value) else { return false };
        let (width, at, len) = (self.width.bytes(), index * self.width.bytes(), self.bytes.len());
        self.bytes.resize(len + width, 0);
        self.bytes.copy_within(at..len, at + width);
        self.bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        true
    }

    /// Removes `value`; true if it was there.
    pub(super) fn remove(&mut self, value: i64) -> bool {
        let found = self.search(value);
        if let Ok(index) = found {
            self.remove_at(index);
        }
        found.is_ok()
    }

    pub(super) fn remove_at(&mut self, index: usize) -> i64 {
        let value = self.at(index);
        let width = self.width.bytes();
        self.bytes.drain(index * width..(index + 1) * width);
        value
    }

    pub(super) fn iter(&self) -> IntSetIter<'_> {
        IntSetIter { bytes: &self.bytes, width: self.width }
    }

    /// Where `value` is, or where it belongs.
    #[inline]
    fn search(&self, value: i64) -> Result<usize, usize> {
        let len = self.len();
        if len == 0 || self.at(len - 1) < value {
            return Err(len); // ascending additions are the usual ones
        }
        let (mut low, mut high) = (0, len);
        while low < high {
            let middle = (low + high) / 2;
            if self.at(middle) < value {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if self.at(low) == value { Ok(low) } else { Err(low) }
    }

    fn widen(&mut self, width: Width) {
        let mut bytes = Vec::with_capacity((self.len() + 1) * width.bytes());
        for value in self.iter() {
            bytes.extend_from_slice(&value.to_le_bytes()[..width.bytes()]);
        }
        *self = Self { bytes, width };
    }
}

#[inline]
fn read(width: Width, bytes: &[u8]) -> i64 {
    match width {
        Width::Two => i64::from(i16::from_le_bytes([bytes[0], bytes[1]])),
        Width::Four => i64::from(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
        Width::Eight => {
            let (bytes, _) = bytes.split_first_chunk().expect("numbers are whole");
            i64::from_le_bytes(*bytes)
        }
    }
}

#[derive(Clone)]
pub(super) struct IntSetIter<'a> {
    bytes: &'a [u8],
    width: Width,
}

impl Iterator for IntSetIter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        if self.bytes.is_empty() {
            return None;
        }
        let (number, rest) = self.bytes.split_at(self.width.bytes());
        self.bytes = rest;
        Some(read(self.width, number))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.bytes.len() / self.width.bytes();
        (left, Some(left))
    }
}

impl ExactSizeIterator for IntSetIter<'_> {}
