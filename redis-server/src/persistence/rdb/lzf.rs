//! The compression of `liblzf`, both ways.
//!
//! A control byte below 32 announces that many bytes, plus one, as they are; any other, with one or two behind it, says
//! what is repeated: its length in the upper three bits, and how far back it stands.

/// Longest run of bytes as they are.
const LITERAL_MAX: usize = 32;
/// Farthest that a repetition looks back.
const BACK_MAX: usize = 1 << 13;
/// Longest repetition.
const REPEAT_MAX: usize = 255 + 9;
/// Shortest: below, it would save nothing.
const REPEAT_MIN: usize = 3;
/// Bits of the hash by which earlier bytes are found.
const HASH_BITS: u32 = 13;
/// After two to the power of this many places without a repetition, each step skips one more. A text without any repetition then needs a
/// quarter of the steps, and others lose little.
const PATIENCE: u32 = 5;

/// The compressor's table of hashes, kept from one text to the next to save allocations.
pub(super) struct Compressor {
    /// Where each hash was met last, plus `base`.
    seen: Box<[u32; 1 << HASH_BITS]>,
    /// The number of the text's first byte. Smaller numbers in `seen` belong to earlier texts.
    base: u32,
    out: Vec<u8>,
}

impl Default for Compressor {
    fn default() -> Self {
        Self { seen: Box::new([0; 1 << HASH_BITS]), base: 1, out: Vec::new() }
    }
}

impl Compressor {
    /// The text in fewer than `most` bytes; `None` where that cannot be had.
    pub(super) fn compress(&mut self, text: &[u8], most: usize) -> Option<&[u8]> {
        let len = u32::try_from(text.len()).ok()?;
        if self.base.checked_add(len).is_none() {
            self.seen.fill(0);
            self.base = 1;
        }
        self.out.clear();
        let (mut at, mut literal, mut misses) = (0, 0, 0);
        // The last three bytes become literals: a comparison needs a word of four bytes.
        while let Some(&word) = text.get(at..).and_then(<[u8]>::first_chunk::<4>) {
            let before = std::mem::replace(&mut self.seen[hash(word)], self.base + at as u32);
            let back = before.checked_sub(self.base).map(|before| at - before as usize);
            let len = match back {
                Some(back) if back <= BACK_MAX => common(&text[at - back..], &text[at..]),
                _ => 0,
            };
            if len < REPEAT_MIN {
                at += 1 + (misses >> PATIENCE);
                misses += 1;
                continue;
            }
            self.literals(&text[literal..at]);
            self.repeat(len, back.unwrap_or_default());
            at += len;
            (literal, misses) = (at, 0);
            if self.out.len() >= most {
                break;
            }
        }
        self.base += len;
        // Whether it was worth it is known before the rest is copied.
        if self.out.len() + text.len() - literal >= most {
            return None;
        }
        self.literals(&text[literal..]);
        (self.out.len() < most).then_some(&self.out)
    }

    fn literals(&mut self, bytes: &[u8]) {
        for run in bytes.chunks(LITERAL_MAX) {
            self.out.push(run.len() as u8 - 1);
            self.out.extend_from_slice(run);
        }
    }

    fn repeat(&mut self, len: usize, back: usize) {
        let (len, back) = (len - 2, back - 1);
        let high = (back >> 8) as u8;
        if len < 7 {
            self.out.push((len as u8) << 5 | high);
        } else {
            self.out.extend_from_slice(&[7 << 5 | high, (len - 7) as u8]);
        }
        self.out.push(back as u8);
    }
}

/// Of the first three bytes.
fn hash(word: [u8; 4]) -> usize {
    let bytes = u32::from_le_bytes(word) << 8;
    (bytes.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

/// How many bytes both begin with.
fn common(before: &[u8], here: &[u8]) -> usize {
    let most = here.len().min(REPEAT_MAX);
    let (before, here) = (&before[..most], &here[..most]);
    let mut len = 0;
    while let (Some(a), Some(b)) = (before[len..].first_chunk::<8>(), here[len..].first_chunk::<8>()) {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return len + differing.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    len + before[len..].iter().zip(&here[len..]).take_while(|(a, b)| a == b).count()
}

/// The `len` bytes that `bytes` stand for.
pub(super) fn expand(mut bytes: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    while let Some((&control, rest)) = bytes.split_first() {
        bytes = rest;
        if control < 32 {
            // That many bytes, plus one, as they are.
            let (literal, rest) = bytes.split_at_checked(usize::from(control) + 1)?;
            out.extend_from_slice(literal);
            bytes = rest;
        } else {
            let mut count = usize::from(control >> 5) + 2;
            if count == 9 {
                count += usize::from(*bytes.split_off_first()?);
            }
            let back = usize::from(control & 31) << 8 | usize::from(*bytes.split_off_first()?);
            let from = out.len().checked_sub(back + 1)?;
            // The source may overlap the bytes being written.
            for at in from..from + count {
                out.push(out[at]);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[test]
fn runs_and_literals_are_expanded() {
    assert_eq!(expand(&[0, b'a', 0xe0, 1, 0], 11), Some(vec![b'a'; 11]));
    assert_eq!(expand(&[2, b'a', b'b', b'c', 0x20, 2], 6), Some(b"abcabc".to_vec()));
    for bad in [&[5, b'a'][..], &[0x20, 0], &[0, b'a', 0x20, 1], &[0, b'a', 0xe0], &[0, b'a']] {
        assert_eq!(expand(bad, 4), None);
    }
}

#[test]
fn compressed_text_expands_to_the_original() {
    let mut compressor = Compressor::default();
    let mut rng = crate::types::testing::Rng::new(8);
    for round in 0..2000 {
        let (len, letters) = (rng.below(if round % 50 == 0 { 40_000 } else { 400 }), 1 + rng.below(9));
        let text: Vec<u8> = (0..len).map(|_| b'a' + rng.below(letters) as u8).collect();
        let Some(packed) = compressor.compress(&text, text.len()) else { continue };
        assert!(packed.len() < text.len());
        assert_eq!(expand(packed, text.len()).as_deref(), Some(&text[..]), "round {round}");
    }
    let mut noise: Vec<u8> = (0..4000).map(|_| rng.below(256) as u8).collect();
    assert_eq!(compressor.compress(&noise, noise.len()), None);
    noise.resize(8000, b'x');
    let packed = compressor.compress(&noise, noise.len()).expect("its second half is one byte");
    assert!(packed.len() < 4400, "{}: what repeats behind what does not is found", packed.len());
    assert_eq!(expand(packed, noise.len()), Some(noise));
    assert!(compressor.compress(&[b'x'; 1000], 50).is_some_and(|packed| packed.len() < 20));
    assert_eq!(compressor.compress(b"abcdefghijklmnopqrstuvwxyz", 26), None);
}
