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

/// The dot product with the roundings of Redis' vector sets: two sums, each of every second group of four products.
pub(super) fn dot_in_order(one: &[f32], other: &[f32]) -> f32 {
    let four = |one: &[f32; 4], other: &[f32; 4]| {
        one[0] * other[0] + one[1] * other[1] + one[2] * other[2] + one[3] * other[3]
    };
    let (eights, rest) = one.as_chunks::<8>();
    let (other_eights, other_rest) = other.as_chunks::<8>();
    let mut sums = [0.0_f32; 2];
    for (one, other) in eights.iter().zip(other_eights) {
        let (groups, other_groups) = (one.as_chunks::<4>().0, other.as_chunks::<4>().0);
        for (sum, (one, other)) in sums.iter_mut().zip(groups.iter().zip(other_groups)) {
            *sum += four(one, other);
        }
    }
    for (one, other) in rest.iter().zip(other_rest) {
        sums[0] += one * other;
    }
    sums[0] + sums[1]
}

/// Makes the length 1, with the roundings of Redis' vector sets. Returns what it was; 1 for a vector of zeros, which stays.
pub(crate) fn normalize(vector: &mut [f32]) -> f32 {
    let (fours, rest) = vector.as_chunks::<4>();
    let mut square = 0.0_f32;
    for four in fours {
        square += four[0] * four[0] + four[1] * four[1] + four[2] * four[2] + four[3] * four[3];
    }
    rest.iter().for_each(|element| square += element * element);
    if square == 0.0 {
        return 1.0;
    }
    let length = square.sqrt();
    vector.iter_mut().for_each(|element| *element /= length);
    length
}
