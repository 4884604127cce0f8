//! The checksum of RDB: CRC-64 with the polynomial of David Jones, bits reflected.

/// 0xad93d23594c935a9 with its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// Bytes that are taken at once.
const LANES: usize = 8;

/// The effect of a byte on the checksum, by the number of bytes that follow it in one step: a check must run at the speed of the disk.
static TABLES: [[u64; 256]; LANES] = {
    let mut tables = [[0; 256]; LANES];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut lane = 1;
    while lane < LANES {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[lane - 1][byte];
            tables[lane][byte] = tables[0][(before & 0xff) as usize] ^ before >> 8;
            byte += 1;
        }
        lane += 1;
    }
    tables
};

/// A checksum in the making.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Crc64(u64);

impl Crc64 {
    /// Goes on with these bytes.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        let bytes = self.fold(bytes);
        self.0 = by_tables(self.0, bytes);
    }

    /// Goes on with most of the bytes where that is worthwhile, at the speed of memory, and returns the others.
    #[cfg(target_arch = "x86_64")]
    fn fold<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let (blocks, rest) = bytes.as_chunks::<{ folding::BLOCK }>();
        if blocks.len() < 2 || !is_x86_feature_detected!("pclmulqdq") {
            return bytes;
        }
        #[allow(unsafe_code, reason = "not every processor has the instructions")]
        // SAFETY: the processor has the instructions.
        let left = unsafe { folding::fold(self.0, blocks) };
        self.0 = by_tables(0, &left);
        rest
    }

    /// The checksum of all bytes so far.
    pub(super) fn value(self) -> u64 {
        self.0
    }
}

fn by_tables(crc: u64, bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<LANES>();
    let mut crc = crc;
    for chunk in chunks {
        let mixed = (crc ^ u64::from_le_bytes(*chunk)).to_le_bytes();
        crc = mixed.iter().rev().zip(&TABLES).fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)]);
    }
    rest.iter().fold(crc, |crc, &byte| TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

/// Many bytes at once, by multiplication without carry. The bits of a block are the coefficients of a polynomial. A
/// block that stands `n` bits before the end counts as its polynomial times x^n, modulo [`POLYNOMIAL`] (V. Gopal et
/// al., "Fast CRC computation for generic polynomials using PCLMULQDQ", Intel 2009).
#[cfg(target_arch = "x86_64")]
mod folding {
    use std::arch::x86_64::{
        __m128i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_unpackhi_epi64, _mm_xor_si128,
    };

    use super::POLYNOMIAL;

    /// Bytes that are folded onto the next ones together, so that a multiplication does not wait for the one before.
    pub(super) const BLOCK: usize = LANES * LANE;
    const LANES: usize = 4;
    /// Bytes of a register.
    const LANE: usize = 16;

    /// Factors that move a register by so many bytes.
    const BY_BLOCK: [u64; 2] = factors(BLOCK);
    const BY_LANE: [u64; 2] = factors(LANE);

    /// Those of a register's first eight bytes, which are farther from where they go to, and of its last ones. Bits are reflected, so that
    /// a product comes out multiplied by x.
    const fn factors(bytes: usize) -> [u64; 2] {
        [power(bytes * 8 + 63), power(bytes * 8 - 1)]
    }

    /// x^n modulo the polynomial.
    const fn power(n: usize) -> u64 {
        let (mut value, mut times) = (1 << 63, 0);
        while times < n {
            value = if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
            times += 1;
        }
        value
    }

    /// Sixteen bytes whose checksum, from 0 on, is that of these blocks from `crc` on.
    #[target_feature(enable = "pclmulqdq")]
    pub(super) fn fold(crc: u64, blocks: &[[u8; BLOCK]]) -> [u8; LANE] {
        let mut lanes = [_mm_set_epi64x(0, 0); LANES];
        for (at, block) in blocks.iter().enumerate() {
            for (number, (lane, bytes)) in lanes.iter_mut().zip(block.as_chunks::<LANE>().0).enumerate() {
                let first = at == 0 && number == 0;
                let next = register(u128::from_le_bytes(*bytes) ^ if first { u128::from(crc) } else { 0 });
                *lane = _mm_xor_si128(shifted(*lane, BY_BLOCK), next);
            }
        }
        let [first, others @ ..] = lanes;
        let all = others.into_iter().fold(first, |sum, lane| _mm_xor_si128(shifted(sum, BY_LANE), lane));
        let halves = [_mm_cvtsi128_si64(all), _mm_cvtsi128_si64(_mm_unpackhi_epi64(all, all))];
        let mut bytes = [0; LANE];
        bytes[..8].copy_from_slice(&halves[0].to_le_bytes());
        bytes[8..].copy_from_slice(&halves[1].to_le_bytes());
        bytes
    }

    /// The value of a register where it stands so much farther in front.
    #[target_feature(enable = "pclmulqdq")]
    fn shifted(lane: __m128i, [first, last]: [u64; 2]) -> __m128i {
        let factors = _mm_set_epi64x(last as i64, first as i64);
        _mm_xor_si128(_mm_clmulepi64_si128::<0x00>(lane, factors), _mm_clmulepi64_si128::<0x11>(lane, factors))
    }

    #[target_feature(enable = "sse2")]
    fn register(bytes: u128) -> __m128i {
        _mm_set_epi64x((bytes >> 64) as i64, bytes as i64)
    }
}

/// The checksum of `bytes`.
pub(super) fn crc64(bytes: &[u8]) -> u64 {
    let mut crc = Crc64::default();
    crc.update(bytes);
    crc.value()
}

#[test]
fn the_check_value_is_that_of_redis() {
    assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
}

#[test]
fn pieces_make_the_same_as_the_whole() {
    let bytes: Vec<u8> = (0..1000u32).map(|n| (n * n / 8) as u8).collect();
    for cut in [0, 1, 7, 8, 9, 63, 64, 127, 128, 129, 500, 1000] {
        let mut crc = Crc64::default();
        crc.update(&bytes[..cut]);
        crc.update(&bytes[cut..]);
        assert_eq!(crc.value(), crc64(&bytes), "cut at {cut}");
    }
}

#[test]
fn however_many_bytes_there_are_tables_find_the_same() {
    let bytes: Vec<u8> = (0..1100u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for end in 0..bytes.len() {
        let mut crc = Crc64(0x0123_4567_89ab_cdef);
        crc.update(&bytes[..end]);
        assert_eq!(crc.0, by_tables(0x0123_4567_89ab_cdef, &bytes[..end]), "{end} bytes");
    }
}
