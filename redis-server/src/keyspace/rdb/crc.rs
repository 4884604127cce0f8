//! The checksum of RDB: CRC-64 with the polynomial of David Jones, bits reflected.

/// 0xad93d23594c935a9 with its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

static TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// The checksum of `bytes`.
pub(super) fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, &byte| TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

#[test]
fn the_check_value_is_that_of_redis() {
    assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
}
