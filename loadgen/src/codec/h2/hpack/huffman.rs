//! HPACK's Huffman code (RFC 7541, Appendix B). It is canonical: the lengths alone say it all.

/// Bits of each byte's code; the last one is EOS, which never occurs.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const SHORTEST: u32 = 5;
const LONGEST: u32 = 30;
const EOS: u16 = 256;

/// The code, both ways.
struct Code {
    /// By symbol.
    codes: [u32; 257],
    /// Symbols by length, then by number: the order of their codes.
    symbols: [u16; 257],
    /// By length: the first code, how many there are, and where they begin in `symbols`.
    runs: [(u32, u32, u16); LONGEST as usize + 1],
}

static CODE: Code = build();

const fn build() -> Code {
    let mut code = Code { codes: [0; 257], symbols: [0; 257], runs: [(0, 0, 0); LONGEST as usize + 1] };
    let (mut next, mut place, mut length) = (0, 0, SHORTEST);
    while length <= LONGEST {
        code.runs[length as usize] = (next, 0, place);
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as u32 == length {
                code.codes[symbol] = next;
                code.symbols[place as usize] = symbol as u16;
                code.runs[length as usize].1 += 1;
                next += 1;
                place += 1;
            }
            symbol += 1;
        }
        next <<= 1;
        length += 1;
    }
    code
}

/// How many bytes [`encode`] appends.
pub(super) fn encoded_length(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends a text in code, filled up with ones.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0);
    for &byte in text {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        bits = bits << length | u64::from(CODE.codes[usize::from(byte)]);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | 0xff >> count);
    }
}

/// Appends the text of a code. None if it holds EOS, or is filled up with anything but a few ones (RFC 7541, 5.2).
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (mut bits, mut count) = (0_u64, 0);
    for &byte in input {
        bits = bits << 8 | u64::from(byte);
        count += 8;
        while let Some((symbol, length)) = first_symbol(bits, count) {
            if symbol == EOS {
                return None;
            }
            out.push(symbol as u8);
            count -= length;
            bits &= (1 << count) - 1;
        }
    }
    (count < 8 && bits == (1 << count) - 1).then_some(())
}

/// The symbol that the highest of `count` bits begin with.
fn first_symbol(bits: u64, count: u32) -> Option<(u16, u32)> {
    for length in SHORTEST..=LONGEST.min(count) {
        let (first, number, place) = CODE.runs[length as usize];
        let behind = ((bits >> (count - length)) as u32).wrapping_sub(first);
        if behind < number {
            return Some((CODE.symbols[usize::from(place) + behind as usize], length));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_rfc() {
        #[track_caller]
        fn check(text: &str, expected: &[u8]) {
            let mut coded = Vec::new();
            encode(text.as_bytes(), &mut coded);
            assert_eq!(coded, expected, "{text}");
            assert_eq!(encoded_length(text.as_bytes()), expected.len());
            let mut decoded = Vec::new();
            decode(&coded, &mut decoded).unwrap();
            assert_eq!(decoded, text.as_bytes());
        }
        // RFC 7541, C.4 and C.6.
        check("www.example.com", &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]);
        check("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]);
        check("custom-value", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf]);
        check("private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]);
        check("302", &[0x64, 0x02]);
        check("", &[]);
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).rev().collect();
        let (mut coded, mut decoded) = (Vec::new(), Vec::new());
        encode(&all, &mut coded);
        decode(&coded, &mut decoded).unwrap();
        assert_eq!(decoded, all);
    }

    #[test]
    fn bad_ends_are_refused() {
        #[track_caller]
        fn check(input: &[u8]) {
            assert_eq!(decode(input, &mut Vec::new()), None, "{input:?}");
        }
        // EOS itself; a whole byte of filling; filling by zeros.
        check(&[0xff, 0xff, 0xff, 0xff]);
        check(&[0x64, 0x02, 0xff]);
        check(&[0b0000_0000]);
    }
}
