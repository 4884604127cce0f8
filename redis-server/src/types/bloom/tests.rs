//! Filters against RedisBloom's, and what they promise.

use super::*;

/// Compares with RedisBloom 2.8 after `BF.RESERVE db 0.1 5` and eleven letters, which make it grow once.
#[test]
fn bits_and_numbers_are_those_of_redisbloom() {
    let mut filter = Bloom::new(0.1, 5, Some(2)).unwrap();
    for letter in b"abcdefghijk" {
        assert_eq!(filter.add(&[*letter]), Ok(true));
    }
    let parts: Vec<_> = filter.parts().collect();
    let bits: Vec<Vec<u8>> = parts.iter().map(|(_, bits)| bits.to_vec()).collect();
    let first = [0x30, 0xc5, 0xa0, 0x8c, 0x50, 0x9a, 0x29, 0x28];
    assert_eq!(bits[0], first);
    let rate = |at: usize| (parts[at].0.error, parts[at].0.bits_per_item.to_bits(), parts[at].0.hashes);
    assert_eq!(rate(0), (0.05, u64::from_le_bytes([0x4a, 0xf7, 0xd4, 0x9e, 0xde, 0xf0, 0x18, 0x40]), 5));
    assert_eq!(rate(1), (0.025, u64::from_le_bytes([0x0b, 0xd8, 0x1f, 0x78, 0x30, 0xb6, 0x1e, 0x40]), 6));
    let lines: Vec<String> = filter.lines().collect();
    assert_eq!(lines[0], "bytes:8 bits:64 hashes:5 hashwidth:64 capacity:5 size:5 ratio:0.05");
    assert_eq!(lines[1], "bytes:16 bits:128 hashes:6 hashwidth:64 capacity:10 size:6 ratio:0.025");
    let default = Bloom::new(0.01, 100, Some(2)).unwrap();
    assert_eq!((default.memory(), default.capacity()), (240, 100));
    let fixed = Bloom::new(0.01, 1000, None).unwrap();
    assert_eq!((fixed.memory(), fixed.growth()), (1296, None));
}

#[test]
fn nothing_is_forgotten_and_few_are_mistaken() {
    let mut filter = Bloom::new(0.01, 500, Some(2)).unwrap();
    let mut new = 0;
    for n in 0..20_000_u32 {
        new += u64::from(filter.add(format!("in {n}").as_bytes()).unwrap());
    }
    assert_eq!(filter.items(), new);
    assert!((0..20_000).all(|n| filter.contains(format!("in {n}").as_bytes())));
    let mistaken = (0..20_000).filter(|n| filter.contains(format!("out {n}").as_bytes())).count();
    // 200 are what the rate allows, and four times their deviation more.
    assert!(mistaken < 257, "{mistaken} of 20,000 at a rate of 1 %");
    assert!(filter.filters() > 4);
}

#[test]
fn limits_are_kept() {
    let mut fixed = Bloom::new(0.01, 2, None).unwrap();
    assert_eq!([fixed.add(b"a"), fixed.add(b"b"), fixed.add(b"a")], [Ok(true), Ok(true), Ok(false)]);
    assert_eq!(fixed.add(b"c"), Err(Refused::Full));
    for (error, capacity) in
        [(0.01, 1 << 40), (0.01, i64::MAX as u64), (1e-300, 1 << 33), (f64::MIN_POSITIVE, u64::MAX)]
    {
        assert_eq!(Bloom::new(error, capacity, Some(2)).map(|_| ()), Err(Refused::Size), "{error} {capacity}");
    }
    // A chain that could grow by far too much at once is refused when it should, and stays what it was.
    let mut steep = Bloom::new(0.01, 1, Some(u32::MAX)).unwrap();
    assert_eq!(steep.add(b"a"), Ok(true));
    assert_eq!(steep.add(b"b"), Err(Refused::Size));
    assert_eq!((steep.add(b"a"), steep.filters(), steep.items()), (Ok(false), 1, 1));
}

#[test]
fn dumps_are_loaded() {
    let mut filter = Bloom::new(0.001, 50, Some(2)).unwrap();
    (0..500_u32).for_each(|n| _ = filter.add(&n.to_le_bytes()));
    let mut copy = Bloom::of_header(&filter.header()).unwrap();
    let mut at = 0;
    while let Some(chunk) = filter.chunk(at) {
        assert!(copy.put_chunk(at, chunk));
        at += chunk.len() as u64;
    }
    assert!(copy == filter);
    assert!(!copy.put_chunk(at, b"x") && !copy.put_chunk(0, &vec![0; 1 << 20]), "there is no such place");
    // No head that is cut off, too long, or says what cannot be is believed.
    let header = filter.header();
    for len in 0..header.len() {
        assert!(Bloom::of_header(&header[..len]).is_none());
    }
    assert!(Bloom::of_header(&[&header[..], b"x"].concat()).is_none());
    for at in 0..header.len() {
        let mut damaged = header.clone();
        damaged[at] ^= 0xff;
        // The number of elements is said of all filters, and of each.
        assert!(at >= 8 || Bloom::of_header(&damaged).is_none(), "byte {at}");
        if let Some(damaged) = Bloom::of_header(&damaged) {
            assert!(damaged.memory() < 2 << 30);
            damaged.contains(b"any");
        }
    }
}

#[test]
fn rates_are_printed_as_c_does() {
    for (rate, expected) in [
        (0.5, "0.5"),
        (0.05, "0.05"),
        (0.0125, "0.0125"),
        (0.0001, "0.0001"),
        (0.00005, "5e-05"),
        (1.25e-10, "1.25e-10"),
        (0.123456789, "0.123457"),
    ] {
        assert_eq!(general(rate), expected);
    }
}
