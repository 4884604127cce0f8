//! Names of scripts.

/// Digits of a script's name: its SHA-1.
pub const SHA_LEN: usize = 40;

/// A script's name.
pub type Sha = [u8; SHA_LEN];

/// The SHA-1 of a script, in hexadecimal digits: its name.
pub fn sha1(bytes: &[u8]) -> Sha {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
    let mut sha = [0; SHA_LEN];
    for (byte, digits) in digest.as_ref().iter().zip(sha.chunks_exact_mut(2)) {
        digits.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    sha
}
