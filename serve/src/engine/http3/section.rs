//! The field sections of requests (RFC 9204 section 4.5): which fields with a colon they have, and where. h3 decodes a section, but
//! takes the last of two `:path` and forgets where each stood.

/// Fields with a colon, and all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Method,
    Scheme,
    Authority,
    Path,
    /// `:status` of an answer, and `:protocol`, which is for those to whom it was offered (RFC 9220).
    Forbidden,
    /// Without a colon, or an unknown one, which h3 refuses.
    Other,
}

/// Names with a colon, as they are and in Huffman's code.
const NAMES: [(Name, &[u8], &[u8]); 6] = [
    (Name::Method, b":method", &[0xb9, 0x49, 0x53, 0x39, 0xe4]),
    (Name::Scheme, b":scheme", &[0xb8, 0x82, 0x4e, 0x5a, 0x4b]),
    (Name::Authority, b":authority", &[0xb8, 0x3b, 0x53, 0x39, 0xec, 0x32, 0x7d, 0x7f]),
    (Name::Path, b":path", &[0xb9, 0x58, 0xd3, 0x3f]),
    (Name::Forbidden, b":status", &[0xb8, 0x84, 0x8d, 0x36, 0xa3]),
    (Name::Forbidden, b":protocol", &[0xb9, 0x5d, 0x87, 0x49, 0xc8, 0x7a, 0x3f]),
];

/// Whether a request's head has each field with a colon once, before all others, and none of an answer's (RFC 9114
/// section 4.3). A section that cannot be read is for h3 to judge.
pub(super) fn is_request(section: &[u8]) -> bool {
    let (mut seen, mut is_over) = ([false; 4], false);
    for name in Names::of(section) {
        let place = match name {
            Name::Method => &mut seen[0],
            Name::Scheme => &mut seen[1],
            Name::Authority => &mut seen[2],
            Name::Path => &mut seen[3],
            Name::Forbidden => return false,
            Name::Other => {
                is_over = true;
                continue;
            }
        };
        if is_over || std::mem::replace(place, true) {
            return false;
        }
    }
    true
}

/// Whether a section has no field with a colon, as trailers.
pub(super) fn is_trailers(section: &[u8]) -> bool {
    Names::of(section).all(|name| name == Name::Other)
}

/// The names of a section, as far as it can be read.
struct Names<'a> {
    rest: &'a [u8],
}

impl<'a> Names<'a> {
    fn of(section: &'a [u8]) -> Self {
        let mut names = Self { rest: section };
        // The required insert count and the base.
        if names.integer(8).and_then(|_| names.integer(7)).is_none() {
            names.rest = &[];
        }
        names
    }

    /// A number whose first byte has so many bits of it (RFC 7541 section 5.1).
    fn integer(&mut self, bits: u32) -> Option<usize> {
        let (first, mut rest) = self.rest.split_first()?;
        let most = (1_usize << bits) - 1;
        let mut value = usize::from(*first) & most;
        if value == most {
            for shift in (0..).step_by(7) {
                let (byte, behind) = rest.split_first()?;
                rest = behind;
                let digits = usize::from(byte & 0x7f);
                value = digits.checked_shl(shift).filter(|part| part >> shift == digits)?.checked_add(value)?;
                if byte & 0x80 == 0 {
                    break;
                }
            }
        }
        self.rest = rest;
        Some(value)
    }

    /// A text whose first byte has so many bits of its length, and before them whether it is in Huffman's code.
    fn text(&mut self, bits: u32) -> Option<(bool, &'a [u8])> {
        let is_packed = self.rest.first()? >> bits & 1 == 1;
        let length = self.integer(bits)?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some((is_packed, text))
    }

    fn field(&mut self) -> Option<Name> {
        let first = *self.rest.first()?;
        match first {
            // An entry of the static table; the dynamic one has none.
            0xc0.. => self.integer(6).map(of_table),
            // A name of it, and a value.
            0x50..0x60 | 0x70..0x80 => {
                let name = of_table(self.integer(4)?);
                self.text(7).map(|_| name)
            }
            0x20..0x40 => {
                let (is_packed, text) = self.text(3)?;
                self.text(7)?;
                let is_it =
                    |(_, plain, packed): &&(Name, &[u8], &[u8])| text == if is_packed { *packed } else { *plain };
                Some(NAMES.iter().find(is_it).map_or(Name::Other, |(name, ..)| *name))
            }
            _ => None,
        }
    }
}

impl Iterator for Names<'_> {
    type Item = Name;

    fn next(&mut self) -> Option<Name> {
        self.field()
    }
}

/// The name of an entry of the static table (RFC 9204 appendix A).
fn of_table(index: usize) -> Name {
    match index {
        0 => Name::Authority,
        1 => Name::Path,
        15..=21 => Name::Method,
        22 | 23 => Name::Scheme,
        24..=28 | 63..=71 => Name::Forbidden,
        _ => Name::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field whose name and value stand in the section as they are.
    fn literal(name: &str, value: &str) -> Vec<u8> {
        let mut field = match name.len() {
            length @ ..7 => vec![0x20 | length as u8],
            length => vec![0x27, length as u8 - 7],
        };
        field.extend_from_slice(name.as_bytes());
        field.push(value.len() as u8);
        field.extend_from_slice(value.as_bytes());
        field
    }

    fn section(fields: &[&[u8]]) -> Vec<u8> {
        [&[0, 0][..], &fields.concat()].concat()
    }

    #[test]
    fn heads_and_trailers() {
        let check = |fields: &[&[u8]], request, trailers| {
            let section = section(fields);
            assert_eq!((is_request(&section), is_trailers(&section)), (request, trailers), "{section:x?}");
        };
        let literals = |names: &[&str]| names.iter().map(|name| literal(name, "x")).collect::<Vec<_>>().concat();
        check(&[], true, true);
        check(&[&literals(&["accept", "x-long-name", "te"])], true, true);
        check(&[&literals(&[":method", ":scheme", ":authority", ":path", "accept"])], true, false);
        check(&[&literals(&[":path", ":authority", ":scheme", ":method"])], true, false);
        for twice in [":method", ":scheme", ":authority", ":path"] {
            check(&[&literals(&[twice, twice])], false, false);
            check(&[&literals(&["accept", twice])], false, false);
        }
        check(&[&literals(&[":status"])], false, false);
        check(&[&literals(&[":protocol"])], false, false);
        // The same name as it is, packed, in the table, and in the table with another value.
        for (name, plain, packed) in NAMES {
            let is_allowed = name != Name::Forbidden;
            let plain = literal(std::str::from_utf8(plain).unwrap(), "x");
            let packed = match packed.len() {
                length @ ..7 => [&[0x28 | length as u8][..], packed, &[0]].concat(),
                length => [&[0x2f, length as u8 - 7][..], packed, &[0]].concat(),
            };
            for field in [&plain, &packed] {
                check(&[field], is_allowed, false);
                check(&[field, &[0xdd]], is_allowed, false);
                check(&[&[0xdd], field], false, false);
            }
            check(&[&plain, &packed], false, false);
        }
        for (index, name) in [(0, ":authority"), (1, ":path"), (17, ":method"), (23, ":scheme")] {
            let plain = literal(name, "x");
            check(&[&[0xc0 | index]], true, false);
            check(&[&[0xc0 | index], &plain], false, false);
            if index < 15 {
                check(&[&[0x50 | index, 0], &plain], false, false);
            } else {
                check(&[&[0x7f, index - 15, 0], &plain], false, false);
            }
        }
        // 25 and 70 are `:status`, 99 is the last entry of the table.
        check(&[&[0xc0 | 25]], false, false);
        check(&[&[0xff, 70 - 63]], false, false);
        check(&[&[0xff, 99 - 63]], true, true);
    }

    /// Bytes that are no section, or end within a field, are read as far as they go, for h3 refuses them.
    #[test]
    fn truncated_and_malformed_sections_pass_to_h3() {
        let whole = section(&[&literal(":method", "GET"), &literal("accept", "*/*"), &[0xc1]]);
        for length in 0..whole.len() {
            assert!(is_request(&whole[..length]), "{length}");
        }
        assert!(!is_request(&whole));
        for odd in [&[0xff; 30][..], &[0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], &[0, 0, 0x10]]
        {
            assert!(is_request(odd) && is_trailers(odd), "{odd:x?}");
        }
    }
}
