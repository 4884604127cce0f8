//! Sums over two vectors.
//!
//! The crate has no `unsafe` code, so it cannot ask the processor for its features at run time; the compiler vectorises
//! these loops for the target it is given (`-C target-cpu`).

use std::ops::AddAssign;

/// Independent sums: floating-point addition is not associative, so one sum alone would be added one by one.
const LANES: usize = 16;

/// The sum of `term` over pairs of elements.
#[inline(always)]
pub(super) fn sum<T: Copy, S: Copy + Default + AddAssign>(one: &[T], other: &[T], term: impl Fn(T, T) -> S) -> S {
    let mut lanes = [S::default(); LANES];
    let (ones, others) = (one.as_chunks::<LANES>(), other.as_chunks::<LANES>());
    for (one, other) in ones.0.iter().zip(others.0) {
        for ((lane, one), other) in lanes.iter_mut().zip(one).zip(other) {
            *lane += term(*one, *other);
        }
    }
    let mut total = S::default();
    lanes.into_iter().for_each(|lane| total += lane);
    for (one, other) in ones.1.iter().zip(others.1) {
        total += term(*one, *other);
    }
    total
}

/// Bits that differ.
pub(super) fn hamming(one: &[u64], other: &[u64]) -> u32 {
    one.iter().zip(other).map(|(one, other)| (one ^ other).count_ones()).sum()
}
