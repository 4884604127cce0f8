//! The two forms of a property map on the wire (Part II, appendix 1).
//!
//! Fewer than 16 properties: their count and their codes. Otherwise 17 bytes: the count, then 16 bytes of bits, where
//! code 0x`ab` is bit `a` − 8 of byte 1 + `b`.

use core::fmt;

use super::PropertySet;

/// Longest property map.
pub const PROPERTY_MAP_MAX: usize = 17;

/// From this count on, a map is a bitmap.
const BITMAP_FROM: usize = 16;

/// Why bytes are not a property map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum MapError {
    /// The length is not what the count in the first byte needs.
    Length {
        /// The count in the first byte; 0 if there is none.
        count: u8,
        /// The length of the map.
        length: usize,
    },
    /// A list holds a code below 0x80.
    NotAProperty(u8),
    /// The count in the first byte is not the number of properties that follow.
    Count {
        /// The count in the first byte.
        count: u8,
        /// How many different properties follow.
        found: usize,
    },
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { count, length } => write!(f, "a property map of {count} cannot have {length} bytes"),
            Self::NotAProperty(epc) => write!(f, "{epc:#04X} in a property map is below 0x80"),
            Self::Count { count, found } => write!(f, "a property map says {count} and holds {found}"),
        }
    }
}

impl core::error::Error for MapError {}

impl PropertySet {
    /// Writes the map of the set: 1..=17 bytes, whose number is returned.
    pub fn encode_map(self, map: &mut [u8; PROPERTY_MAP_MAX]) -> usize {
        let count = self.len();
        *map = [0; PROPERTY_MAP_MAX];
        map[0] = count as u8;
        if count < BITMAP_FROM {
            for (byte, epc) in map[1..].iter_mut().zip(self) {
                *byte = epc;
            }
            return 1 + count;
        }
        for epc in self {
            map[1 + usize::from(epc & 0x0F)] |= 1 << ((epc >> 4) - 8);
        }
        PROPERTY_MAP_MAX
    }

    /// The set of a map of either form.
    ///
    /// # Errors
    /// Length or count that disagree with the content, or codes that are no properties. [`Self::decode_map_lenient`]
    /// takes such maps.
    pub fn decode_map(map: &[u8]) -> Result<Self, MapError> {
        let Some((&count, content)) = map.split_first() else { return Err(MapError::Length { count: 0, length: 0 }) };
        let expected = if usize::from(count) < BITMAP_FROM { usize::from(count) } else { PROPERTY_MAP_MAX - 1 };
        if content.len() != expected {
            return Err(MapError::Length { count, length: map.len() });
        }
        if usize::from(count) < BITMAP_FROM
            && let Some(&low) = content.iter().find(|&&epc| epc < 0x80)
        {
            return Err(MapError::NotAProperty(low));
        }
        let set = Self::of_content(usize::from(count) >= BITMAP_FROM, content);
        if set.len() != usize::from(count) {
            return Err(MapError::Count { count, found: set.len() });
        }
        Ok(set)
    }

    /// Reads as much as possible of a map that a peer sent. Real devices miscount: the bytes behind the count are
    /// believed, a bitmap is known by its 17 bytes, and codes below 0x80 are left out. Some list more than 15 codes: only
    /// a list has as many different codes as it counts.
    pub fn decode_map_lenient(map: &[u8]) -> Self {
        let Some((&count, content)) = map.split_first() else { return Self::EMPTY };
        let [list, bitmap] = [false, true].map(|bitmap| Self::of_content(bitmap, content));
        let [is_list, is_bitmap] = [list, bitmap].map(|set| set.len() == usize::from(count));
        let is_long = usize::from(count) >= BITMAP_FROM && map.len() >= PROPERTY_MAP_MAX;
        let is_long_list = is_list && !is_bitmap && list.len() == content.len();
        if is_long && !is_long_list { bitmap } else { list }
    }

    fn of_content(bitmap: bool, content: &[u8]) -> Self {
        if !bitmap {
            return Self::of(content);
        }
        let rows = (0x00..=0x0F).zip(content);
        rows.flat_map(|(low, &byte)| {
            (8..=0x0F).filter(move |high| byte & (1 << (high - 8)) != 0).map(move |high| high << 4 | low)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(epcs: &[u8], bytes: &[u8]) {
        let set = PropertySet::of(epcs);
        let mut map = [0; PROPERTY_MAP_MAX];
        let length = set.encode_map(&mut map);
        assert_eq!(&map[..length], bytes);
        assert_eq!(PropertySet::decode_map(bytes), Ok(set));
        assert_eq!(PropertySet::decode_map_lenient(bytes), set);
    }

    #[test]
    fn both_forms() {
        check(&[], b"\x00");
        check(&[0x80, 0xFF], b"\x02\x80\xff");
        let fifteen: [u8; 15] = core::array::from_fn(|i| 0xC0 + i as u8);
        check(&fifteen, b"\x0f\xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xcb\xcc\xcd\xce");
        let sixteen: [u8; 16] = core::array::from_fn(|i| 0xF0 + i as u8);
        check(&sixteen, &[&b"\x10"[..], &[0x80; 16]].concat());
        // Part II, appendix 1, example: 0x80 … in column order.
        check(
            &[0x80, 0x81, 0x82, 0x83, 0x88, 0x8A, 0x9D, 0x9E, 0x9F, 0xB0, 0xC0, 0xD0, 0xE0, 0xF0, 0xE1, 0xE7],
            b"\x10\xf9\x41\x01\x01\x00\x00\x00\x40\x01\x00\x01\x00\x00\x02\x02\x02",
        );
    }

    #[test]
    fn faults() {
        for (map, error) in [
            (&b""[..], MapError::Length { count: 0, length: 0 }),
            (b"\x02\x80", MapError::Length { count: 2, length: 2 }),
            (b"\x10\x80", MapError::Length { count: 16, length: 2 }),
            (b"\x01\x7f", MapError::NotAProperty(0x7F)),
            (b"\x02\x80\x80", MapError::Count { count: 2, found: 1 }),
            (b"\x10\x00\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", MapError::Count { count: 16, found: 0 }),
        ] {
            assert_eq!(PropertySet::decode_map(map), Err(error));
        }
        assert_eq!(PropertySet::decode_map_lenient(b"\x05\x80\x7f"), PropertySet::of(&[0x80]));
        let codes: [u8; 40] = core::array::from_fn(|i| (0x80 + i as u8) ^ 0x15);
        for count in 16..=40 {
            let mut list = [count as u8; 41];
            list[1..].copy_from_slice(&codes);
            let set = PropertySet::of(&codes[..count]);
            assert_eq!(PropertySet::decode_map_lenient(&list[..=count]), set, "{count} codes as a list");
        }
    }

    proptest! {
        #[test]
        fn every_set_survives(epcs in proptest::collection::vec(0x80_u8.., 0..128)) {
            let set = PropertySet::of(&epcs);
            let mut map = [0; PROPERTY_MAP_MAX];
            let length = set.encode_map(&mut map);
            prop_assert_eq!(PropertySet::decode_map(&map[..length]), Ok(set));
        }

        #[test]
        fn strict_decoding_matches_lenient_decoding_and_count(map in proptest::collection::vec(any::<u8>(), 0..20)) {
            let lenient = PropertySet::decode_map_lenient(&map);
            if let Ok(set) = PropertySet::decode_map(&map) {
                prop_assert_eq!(set, lenient);
                prop_assert_eq!(set.len(), usize::from(map[0]));
            }
        }
    }
}
