use super::*;
use crate::types::testing::Rng;

/// Where forms become dense by default.
const MAX_SPARSE: usize = 3000;

#[test]
fn both_forms_agree_and_estimate_well() {
    let mut rng = Rng::new(5);
    let (mut sparse, mut dense) = (empty(), empty());
    make_dense(&mut dense).unwrap();
    let mut check_at = 1;
    for added in 1..=100_000u64 {
        let element = (rng.next() ^ added).to_le_bytes();
        let changed = add(&mut sparse, &element, MAX_SPARSE).unwrap();
        assert_eq!(add_dense(&mut dense, &element), changed);
        if added == check_at {
            assert_eq!(encoding(&sparse), Some(if added < 1500 { Encoding::Sparse } else { Encoding::Dense }));
            let estimate = count(&sparse).unwrap();
            assert_eq!(count(&dense).unwrap(), estimate);
            // Six times the expected error: 1.04 / sqrt(16384).
            let error = estimate.abs_diff(added) as f64;
            assert!(error <= (added as f64 * 6.0 * 1.04 / 128.0).ceil(), "{added}: {estimate}");
            check_at *= 10;
        }
    }
    assert_eq!(encoding(&dense), Some(Encoding::Dense));
}

#[test]
fn sparse_forms_are_those_of_their_registers() {
    for seed in 1..5 {
        let mut rng = Rng::new(seed);
        let (mut bytes, mut model) = (empty(), [0; REGISTERS]);
        for _ in 0..2000 {
            let (index, value) = (rng.below(if seed % 2 == 0 { 64 } else { REGISTERS }), 1 + rng.below(4) as u8);
            let changed = raise(&mut bytes, index, value, usize::MAX).unwrap();
            assert_eq!(changed, model[index] < value);
            model[index] = model[index].max(value);
        }
        let mut registers = [0; REGISTERS];
        merge(&mut registers, &bytes).unwrap();
        assert_eq!(registers, model);
        assert_eq!(count_registers(&registers), count(&bytes).unwrap());
        assert_eq!(encoding(&bytes), Some(Encoding::Sparse));
        make_dense(&mut bytes).unwrap();
        assert!(dense_registers(&bytes).eq(model));
    }
}

#[test]
fn corrupt_hyperloglogs_are_detected_without_panics() {
    let mut rng = Rng::new(9);
    for _ in 0..2000 {
        let mut bytes = empty();
        for _ in 0..rng.below(30) {
            add(&mut bytes, &rng.next().to_le_bytes(), MAX_SPARSE).unwrap();
        }
        for _ in 0..1 + rng.below(4) {
            let at = HEADER + rng.below(bytes.len() - HEADER);
            match rng.below(3) {
                0 => bytes[at] = rng.next() as u8,
                1 => bytes.truncate(at),
                _ => bytes.push(rng.next() as u8),
            }
            if bytes.len() == HEADER {
                break;
            }
        }
        // No input causes a panic.
        let counted = count(&bytes);
        let _ = describe(&bytes);
        let mut copy = bytes.clone();
        let dense = make_dense(&mut copy);
        assert_eq!(counted.is_err(), dense.is_err());
        let _ = add(&mut bytes, b"x", MAX_SPARSE);
    }
    assert_eq!(encoding(b"HYLL"), None);
    assert_eq!(encoding(b"HYLL\x00\0\0\0\0\0\0\0\0\0\0\0"), None);
    assert_eq!(encoding(b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\0"), None);
    assert_eq!(count(b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0"), Err(Corrupt));
}

/// The smallest integer, as `llroundl` of infinity is, and such a count is not kept.
#[test]
fn registers_that_no_element_sets_count_as_in_the_genuine_server() {
    let mut bytes = empty();
    make_dense(&mut bytes).unwrap();
    bytes[HEADER..].fill(0xff);
    assert_eq!(count(&bytes).map(|count| count as i64), Ok(i64::MIN));
    set_cached(&mut bytes, Some(i64::MIN as u64));
    assert_eq!(cached(&bytes), None);
}
