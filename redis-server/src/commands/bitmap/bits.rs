//! Bits in slices of bytes, the highest of the first byte first.

/// Bytes that are looked at together: four words, which the compiler turns into two vectors.
const BLOCK: usize = 32;

/// How many bits are set.
pub(super) fn count(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

/// Position of the first bit that is `bit`.
pub(super) fn find(bytes: &[u8], bit: bool) -> Option<u64> {
    let skipped = if bit { 0 } else { 0xff };
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let start = blocks.iter().take_while(|block| **block == [skipped; BLOCK]).count() * BLOCK;
    let index = start + bytes[start..].iter().position(|&byte| byte != skipped)?;
    Some(index as u64 * 8 + u64::from((bytes[index] ^ skipped).leading_zeros()))
}

/// The `width` (1 to 64) bits at `offset`; bits behind the end are 0.
pub(super) fn get(bytes: &[u8], offset: u64, width: u32) -> u64 {
    (window(bytes, offset) << (offset % 8) >> (u128::BITS - width)) as u64
}

/// Stores the low `width` (1 to 64) bits of `value` at `offset`, all of which must be inside `bytes`.
pub(super) fn set(bytes: &mut [u8], offset: u64, width: u32, value: u64) {
    let shift = u128::BITS - width - (offset % 8) as u32;
    let mask = (u128::from(u64::MAX) >> (u64::BITS - width)) << shift;
    let window = window(bytes, offset) & !mask | u128::from(value) << shift & mask;
    let first = (offset / 8) as usize;
    let touched = ((offset % 8) as usize + width as usize).div_ceil(8);
    bytes[first..first + touched].copy_from_slice(&window.to_be_bytes()[..touched]);
}

/// The 16 bytes from the one that holds bit `offset`, as far as there are any, and zeros.
fn window(bytes: &[u8], offset: u64) -> u128 {
    let rest = bytes.get((offset / 8) as usize..).unwrap_or_default();
    let mut window = [0; 16];
    let len = rest.len().min(window.len());
    window[..len].copy_from_slice(&rest[..len]);
    u128::from_be_bytes(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bit(bytes: &[u8], at: u64) -> bool {
        bytes[(at / 8) as usize] >> (7 - at % 8) & 1 == 1
    }

    #[test]
    fn finds_and_counts_what_a_loop_over_bits_does() {
        for len in [0, 1, 7, 8, 31, 32, 33, 100] {
            for at in 0..len * 8 {
                for one in [false, true] {
                    let mut bytes = vec![if one { 0 } else { 0xff }; len];
                    assert_eq!(find(&bytes, one), None);
                    bytes[at / 8] ^= 0x80 >> (at % 8);
                    bytes[len - 1] ^= u8::from(at != len * 8 - 1);
                    assert_eq!(find(&bytes, one), Some(at as u64), "{len} bytes, bit {at} is {one}");
                    let ones = (0..len as u64 * 8).filter(|&at| bit(&bytes, at)).count();
                    assert_eq!(count(&bytes), ones as u64);
                }
            }
        }
    }

    #[test]
    fn fields_of_every_width_at_every_place() {
        for width in 1..=64 {
            for offset in 0..30 {
                let value = 0x9e37_79b9_7f4a_7c15 >> (64 - width);
                for blank in [0, 0xff] {
                    let mut bytes = vec![blank; 12];
                    set(&mut bytes, offset, width, value);
                    assert_eq!(get(&bytes, offset, width), value, "{width} bits at {offset}");
                    let outside = (0..96).filter(|at| !(offset..offset + u64::from(width)).contains(at));
                    assert!(outside.into_iter().all(|at| bit(&bytes, at) == (blank == 0xff)), "{width} at {offset}");
                }
            }
        }
        assert_eq!(get(b"\xff", 4, 8), 0xf0, "bits behind the end are 0");
        assert_eq!(get(b"\xff", 8, 64), 0);
    }
}
