//! The checksum of RDB: CRC-64 with the polynomial of David Jones, bits reflected.

/// 0xad93d23594c935a9 with its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// Bytes that are taken at once.
const LANES: usize = 8;

/// What a byte does to the checksum when so many others follow it at once: files are checked at the speed of the disk.
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
        let (chunks, rest) = bytes.as_chunks::<LANES>();
        let mut crc = self.0;
        for chunk in chunks {
            let mixed = (crc ^ u64::from_le_bytes(*chunk)).to_le_bytes();
            crc = mixed.iter().rev().zip(&TABLES).fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)]);
        }
        for &byte in rest {
            crc = TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8;
        }
        self.0 = crc;
    }

    /// The checksum of all bytes so far.
    pub(super) fn value(self) -> u64 {
        self.0
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
    for cut in [0, 1, 7, 8, 9, 63, 500, 1000] {
        let mut crc = Crc64::default();
        crc.update(&bytes[..cut]);
        crc.update(&bytes[cut..]);
        assert_eq!(crc.value(), crc64(&bytes), "cut at {cut}");
    }
}
