//! Random words for the grammar's tokens, from a seed alone.

/// A generator of random numbers (SplitMix64): the same seed gives the same commands on every machine.
pub(super) struct Draw(u64);

impl Draw {
    /// A generator for the case with this number.
    pub(super) fn new(seed: u64, case: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Whether something that happens `percent` times of a hundred happens now.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub(super) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A key: mostly one of those that are meant for this type, sometimes of another.
    pub(super) fn key(&mut self, kind: char) -> Vec<u8> {
        // Those of `y` are kept apart: see the table.
        if kind == 'y' {
            return format!("y{}", self.below(4)).into_bytes();
        }
        if self.chance(1) {
            return self.of(ODD_KEYS).to_vec();
        }
        let kind =
            if kind == '*' || self.chance(6) { self.of(&['s', 'l', 'S', 'h', 'z', 'x', 'p', 'g', 'b']) } else { kind };
        format!("{kind}{}", self.below(4)).into_bytes()
    }

    /// A field, member or element: few, so that they meet again; numbers, so that encodings change.
    pub(super) fn member(&mut self) -> Vec<u8> {
        match self.below(20) {
            0..8 => self.of(&[&b"a"[..], b"b", b"c", b"d", b"ab", b"abc", b"A", b"foo", b"bar"]).to_vec(),
            8..13 => self.below(12).to_string().into_bytes(),
            13..16 => self.below(700).to_string().into_bytes(),
            16 => self.int(),
            17 => self.of(&[&b""[..], b"\xff\x00\r\n", b"\0", b" ", b"-0", b"1.5", b"01"]).to_vec(),
            18 => {
                let len = self.of(&[63, 64, 65, 66]);
                self.repeated(len)
            }
            _ => format!("m{}", self.below(300)).into_bytes(),
        }
    }

    /// A value of a string.
    pub(super) fn value(&mut self) -> Vec<u8> {
        match self.below(16) {
            0..6 => self.member(),
            6..9 => self.int(),
            9 | 10 => self.float(),
            11 => self.of(&[&b""[..], b"\xff\xfe\x00\x01", b"\x80", b"hello world", b"3.0e3", b"0x10"]).to_vec(),
            12 => {
                let len = self.of(&[43, 44, 45, 100, 300]);
                self.repeated(len)
            }
            _ => (0..self.below(12)).map(|_| self.next() as u8).collect(),
        }
    }

    fn repeated(&mut self, len: usize) -> Vec<u8> {
        let unit = self.of(&[&b"x"[..], b"ab", b"7"]);
        unit.iter().copied().cycle().take(len).collect()
    }

    /// An integer, often at an edge.
    pub(super) fn int(&mut self) -> Vec<u8> {
        match self.below(10) {
            0..5 => self.below(12).to_string(),
            5 | 6 => format!("-{}", 1 + self.below(6)),
            7 => self.below(2000).to_string(),
            _ => self.of(EDGES).to_owned(),
        }
        .into_bytes()
    }

    /// A count of elements in a reply, never so large that the reply would be.
    pub(super) fn count(&mut self) -> Vec<u8> {
        let far = ["100", "1000", "-20", "9223372036854775808", "x", "", "1.0", "-9223372036854775808"];
        match self.below(10) {
            0..7 => self.below(8).to_string(),
            7 | 8 => format!("-{}", 1 + self.below(6)),
            _ => self.of(&far).to_owned(),
        }
        .into_bytes()
    }

    /// A double as Redis reads or refuses it.
    pub(super) fn float(&mut self) -> Vec<u8> {
        match self.below(12) {
            0..5 => self.below(9).to_string(),
            // Not "-0": see `EDGES`.
            5 => format!("-{}", 1 + self.below(8)),
            6..8 => format!("{}.{}", self.below(20), self.of(&["5", "25", "1", "3333333333333333"])),
            8 => self.of(&["1e3", "1e-7", "1.5e300", "-1e17", "123456789.123", "0.1", "0.2"]).to_owned(),
            _ => self.of(ODD_FLOATS).to_owned(),
        }
        .into_bytes()
    }

    /// A word that fits nowhere in particular.
    pub(super) fn junk(&mut self) -> Vec<u8> {
        match self.below(6) {
            0 => self.of(WORDS).as_bytes().to_vec(),
            1 => self.float(),
            2 => self.int(),
            3 => self.key('*'),
            // Not "*": XADD would make an identifier of the time.
            4 => self.of(&[&b""[..], b"nan", b"**", b"$", b"-", b"+", b"(", b"[a", b"(1", b"\xff"]).to_vec(),
            _ => self.member(),
        }
    }
}

const ODD_KEYS: &[&[u8]] = &[b"", b"\xff\x00", b"key with spaces", b"missing", b"{tag}1"];

// Not "-0": as a score it loses its sign in Redis' listpacks and keeps it in the skiplists that its SORT makes.
const EDGES: &[&str] = &[
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "4294967295",
    "4294967296",
    "2147483647",
    "-2147483648",
    "2147483648",
    "65536",
    "255",
    "256",
    "-129",
    "+1",
    "01",
    " 1",
    "1 ",
    "1.0",
    "1e3",
    "",
    "x",
];

// None that C finds to be out of range, such as 1e309: Redis' SORT takes such an error for one of its own, whichever command
// met it.
const ODD_FLOATS: &[&str] = &[
    "inf",
    "-inf",
    "+inf",
    "nan",
    "-nan",
    "infinity",
    "1e308",
    "-1.7e308",
    "0x1p3",
    "+5",
    ".5",
    "5.",
    "",
    "1,5",
    " 1",
    "1 ",
    "abc",
    "99999999999999999999",
    "0.30000000000000004",
    "(1",
    "17976931348623157e292",
];

/// Options of many commands: where one is given that does not belong there, the error should be the same.
const WORDS: &[&str] = &[
    "NX",
    "XX",
    "GT",
    "LT",
    "CH",
    "INCR",
    "GET",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "KEEPTTL",
    "PERSIST",
    "LIMIT",
    "COUNT",
    "WITHSCORES",
    "WITHVALUES",
    "REV",
    "BYSCORE",
    "BYLEX",
    "STORE",
    "ASC",
    "DESC",
    "ALPHA",
    "BY",
    "MATCH",
    "TYPE",
    "LEFT",
    "RIGHT",
    "BEFORE",
    "AFTER",
    "AGGREGATE",
    "SUM",
    "MIN",
    "MAX",
    "WEIGHTS",
    "MAXLEN",
    "MINID",
    "NOMKSTREAM",
    "STREAMS",
    "GROUP",
    "REPLACE",
    "DB",
    "ABSTTL",
    "RANK",
    "WITHDIST",
    "WITHCOORD",
    "WITHHASH",
    "ANY",
    "STOREDIST",
    "IDX",
    "LEN",
    "MINMATCHLEN",
    "BIT",
    "BYTE",
    "ASYNC",
    "JUSTID",
    "FORCE",
    "RETRYCOUNT",
    "IDLE",
    "TIME",
    "MKSTREAM",
    "ENTRIESREAD",
    "nx",
    "Get",
];
