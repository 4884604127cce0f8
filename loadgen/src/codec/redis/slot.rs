//! Hash slots of Redis Cluster (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>).

/// How many there are.
pub(crate) const SLOTS: usize = 16_384;

/// The slot of a key: of what stands between its first `{` and the `}` behind it, if there is something, else of all of it.
pub(crate) fn slot(key: &[u8]) -> usize {
    let tag = memchr::memchr(b'{', key).map(|open| &key[open + 1..]);
    let tag = tag.and_then(|rest| Some(&rest[..memchr::memchr(b'}', rest)?])).filter(|tag| !tag.is_empty());
    usize::from(crc16(tag.unwrap_or(key))) % SLOTS
}

/// CRC-16/XMODEM: polynomial 0x1021, beginning with 0, nothing reflected.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| crc << 8 ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // The check value of CRC-16/XMODEM.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        #[track_caller]
        fn check(key: &str, same_as: &str) {
            assert_eq!(slot(key.as_bytes()), usize::from(crc16(same_as.as_bytes())) % SLOTS, "{key}");
        }
        check("", "");
        check("key:1", "key:1");
        check("{user1000}.following", "user1000");
        check("foo{}{bar}", "foo{}{bar}");
        check("foo{{bar}}zap", "{bar");
        check("foo{bar}{zap}", "bar");
        check("foo{bar", "foo{bar");
        check("foo}bar{x}", "x");
        // CLUSTER KEYSLOT somekey, and foo{hash_tag}, of the command's page.
        assert_eq!((slot(b"somekey"), slot(b"foo{hash_tag}")), (11_058, 2_515));
    }
}
