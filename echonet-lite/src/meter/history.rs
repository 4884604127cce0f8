//! Histories and readings at fixed times.

use core::fmt;
use core::iter::FusedIterator;

use super::{DecodeError, count, exactly};

/// A date and time of the meter's own clock (Japan Standard Time).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Year, such as 2025.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
}

impl Timestamp {
    pub(super) fn decode_with_seconds(bytes: [u8; 7]) -> Result<Self, DecodeError> {
        let [y0, y1, month, day, hour, minute, second] = bytes;
        let time = Self { year: u16::from_be_bytes([y0, y1]), month, day, hour, minute, second };
        if time.is_possible() { Ok(time) } else { Err(DecodeError::Range) }
    }

    const fn is_possible(self) -> bool {
        matches!((self.month, self.day, self.hour, self.minute, self.second), (1..=12, 1..=31, 0..=23, 0..=59, 0..=59))
    }
}

impl fmt::Display for Timestamp {
    /// `2025-05-17 12:30:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second } = self;
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }
}

/// EA, EB: the count at the last half hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedTime {
    /// When.
    pub at: Timestamp,
    /// The count; `None` if the meter missed it.
    pub count: Option<u32>,
}

impl FixedTime {
    /// Reads the value of EA or EB.
    ///
    /// # Errors
    /// Wrong length or range.
    pub fn decode(edt: &[u8]) -> Result<Self, DecodeError> {
        let [at @ .., a, b, c, d] = exactly::<11>(edt)?;
        Ok(Self { at: Timestamp::decode_with_seconds(at)?, count: count([a, b, c, d])? })
    }
}

/// E2, E4: the counts at the half hours of one day, 0:00 to 23:30.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History<'a> {
    day: u16,
    counts: &'a [u8],
}

impl<'a> History<'a> {
    /// How many half hours a day has.
    pub const SLOTS: usize = 48;

    /// Reads the value of E2 or E4: the day and all counts are checked here.
    ///
    /// # Errors
    /// Wrong length or range.
    pub fn decode(edt: &'a [u8]) -> Result<Self, DecodeError> {
        let expected = 2 + 4 * Self::SLOTS;
        let Some(([d0, d1], counts)) = edt.split_first_chunk().filter(|_| edt.len() == expected) else {
            return Err(DecodeError::Length { expected, actual: edt.len() });
        };
        let day = u16::from_be_bytes([*d0, *d1]);
        if day > 99 && day != 0xFF {
            return Err(DecodeError::Range);
        }
        for bytes in counts.as_chunks().0 {
            count(*bytes)?;
        }
        Ok(Self { day, counts })
    }

    /// How many days ago the history is of; `None` if no day was ever set in E5.
    pub fn day(&self) -> Option<u8> {
        u8::try_from(self.day).ok().filter(|day| *day != 0xFF)
    }

    /// The counts, the one of 0:00 first; `None` where the meter has none, as for times to come.
    pub fn slots(&self) -> Slots<'a> {
        Slots { counts: self.counts }
    }
}

/// Iterates over the counts of a [`History`].
#[derive(Clone, Debug)]
pub struct Slots<'a> {
    counts: &'a [u8],
}

impl Iterator for Slots<'_> {
    type Item = Option<u32>;

    fn next(&mut self) -> Option<Self::Item> {
        let (bytes, rest) = self.counts.split_first_chunk()?;
        self.counts = rest;
        // Checked when it was decoded.
        Some(count(*bytes).unwrap_or(None))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.counts.len() / 4;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Slots<'_> {}
impl FusedIterator for Slots<'_> {}

/// EC, EE: the counts of both directions at half hours (EC, up to 12) or minutes (EE, up to 10), going back from a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairHistory<'a> {
    /// The time of the latest pair; `None` if no time was ever set in ED or EF.
    pub at: Option<Timestamp>,
    pairs: &'a [u8],
}

/// The most pairs that an answer of EC has.
const PAIRS_MAX: usize = 12;
const PAIR: usize = 8;

impl<'a> PairHistory<'a> {
    /// Reads the value of EC or EE.
    ///
    /// # Errors
    /// A length that disagrees with the number of pairs in it, or a wrong range.
    pub fn decode(edt: &'a [u8]) -> Result<Self, DecodeError> {
        let Some(([y0, y1, month, day, hour, minute, segments], pairs)) = edt.split_first_chunk() else {
            return Err(DecodeError::Length { expected: 7, actual: edt.len() });
        };
        let segments = usize::from(*segments);
        if segments > PAIRS_MAX {
            return Err(DecodeError::Range);
        }
        if pairs.len() != segments * PAIR {
            return Err(DecodeError::Length { expected: 7 + segments * PAIR, actual: edt.len() });
        }
        for bytes in pairs.as_chunks().0 {
            count(*bytes)?;
        }
        let bytes = [*y0, *y1, *month, *day, *hour, *minute, 0];
        let at = if bytes[..6] == [0xFF; 6] { None } else { Some(Timestamp::decode_with_seconds(bytes)?) };
        Ok(Self { at, pairs })
    }

    /// The pairs (normal, reverse), the latest first.
    pub fn pairs(&self) -> Pairs<'a> {
        Pairs { counts: Slots { counts: self.pairs } }
    }
}

/// Iterates over the counts of a [`PairHistory`].
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    counts: Slots<'a>,
}

impl Iterator for Pairs<'_> {
    type Item = (Option<u32>, Option<u32>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.counts.next()?, self.counts.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.counts.len() / 2;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Pairs<'_> {}
impl FusedIterator for Pairs<'_> {}

/// The value to set ED (at most 12 segments, minutes 0 or 30) or EF (at most 10) to; `None` for what neither takes.
pub const fn pair_history_request(at: Timestamp, segments: u8) -> Option<[u8; 7]> {
    if !at.is_possible() || segments == 0 || segments as usize > PAIRS_MAX {
        return None;
    }
    let [y0, y1] = at.year.to_be_bytes();
    Some([y0, y1, at.month, at.day, at.hour, at.minute, segments])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec;
    use std::vec::Vec;

    const NONE: [u8; 4] = [0xFF, 0xFF, 0xFF, 0xFE];

    #[test]
    fn days() {
        let mut edt = vec![0, 1];
        for slot in 0..48_u32 {
            edt.extend_from_slice(&if slot == 7 { NONE } else { slot.to_be_bytes() });
        }
        let history = History::decode(&edt).unwrap();
        assert_eq!((history.day(), history.slots().len()), (Some(1), 48));
        let slots: Vec<_> = history.slots().collect();
        assert_eq!((slots[0], slots[7], slots[47]), (Some(0), None, Some(47)));

        for length in 0..edt.len() {
            let error = DecodeError::Length { expected: 194, actual: length };
            assert_eq!(History::decode(&edt[..length]), Err(error));
        }
        edt[..2].copy_from_slice(&[0, 0xFF]);
        assert_eq!(History::decode(&edt).unwrap().day(), None);
        edt[1] = 100;
        assert_eq!(History::decode(&edt), Err(DecodeError::Range));
        edt[1] = 0;
        edt[190..].copy_from_slice(&[0xFF; 4]);
        assert_eq!(History::decode(&edt), Err(DecodeError::Range));
    }

    #[test]
    fn fixed_times() {
        let edt = [0x07, 0xE9, 5, 17, 12, 30, 0, 0, 0, 0x30, 0x39];
        let reading = FixedTime::decode(&edt).unwrap();
        assert_eq!((reading.at.to_string().as_str(), reading.count), ("2025-05-17 12:30:00", Some(12_345)));
        for (at, value) in [(2, 13), (2, 0), (3, 0), (3, 32), (4, 24), (5, 60), (6, 60), (7, 0xFF)] {
            let mut wrong = edt;
            wrong[at] = value;
            assert_eq!(FixedTime::decode(&wrong), Err(DecodeError::Range), "byte {at} {value}");
        }
        assert!(FixedTime::decode(&edt[..10]).is_err());
    }

    #[test]
    fn pairs() {
        let at = Timestamp { year: 2025, month: 5, day: 17, hour: 12, minute: 30, second: 0 };
        let mut edt = pair_history_request(at, 2).unwrap().to_vec();
        edt.extend_from_slice(&[0, 0, 0, 9, 0, 0, 0, 1]);
        assert_eq!(PairHistory::decode(&edt), Err(DecodeError::Length { expected: 23, actual: 15 }));
        edt.extend_from_slice(&[0, 0, 0, 8]);
        edt.extend_from_slice(&NONE);
        let history = PairHistory::decode(&edt).unwrap();
        assert_eq!(history.at, Some(at));
        let pairs: Vec<_> = history.pairs().collect();
        assert_eq!(pairs, [(Some(9), Some(1)), (Some(8), None)]);
        assert_eq!(PairHistory::decode(&edt[..6]), Err(DecodeError::Length { expected: 7, actual: 6 }));
        edt[..6].fill(0xFF);
        assert_eq!(PairHistory::decode(&edt).unwrap().at, None);
        edt[6] = 13;
        assert_eq!(PairHistory::decode(&edt), Err(DecodeError::Range));
        assert_eq!((pair_history_request(at, 0), pair_history_request(at, 13)), (None, None));
        assert_eq!(pair_history_request(Timestamp { month: 0, ..at }, 1), None);
    }
}
