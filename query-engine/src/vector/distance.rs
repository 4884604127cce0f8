//! Sums over two vectors.
//!
//! Each sum is compiled several times, and the processor's features choose one at run time. All have the same order of
//! additions and no fused ones, so a distance does not depend on the processor.

use std::ops::AddAssign;

use multiversion::multiversion;

use super::element::{from_brain, from_half};

/// Independent sums: floating-point addition is not associative, so one sum alone would be added one by one.
const LANES: usize = 32;

/// Sums that are added up one by one in the end.
const LAST_LANES: usize = 8;

/// The sum of `term` over pairs of elements.
#[inline(always)]
fn sum<T: Copy, S: Copy + Default + AddAssign>(one: &[T], other: &[T], term: impl Fn(T, T) -> S) -> S {
    let mut lanes = [S::default(); LANES];
    let (ones, one_rest) = one.as_chunks::<LANES>();
    let (others, other_rest) = other.as_chunks::<LANES>();
    // Iterators over both are not inlined everywhere: the functions that call this one have features that the library's lack.
    for chunk in 0..ones.len().min(others.len()) {
        let (one, other) = (&ones[chunk], &others[chunk]);
        for lane in 0..LANES {
            lanes[lane] += term(one[lane], other[lane]);
        }
    }
    let mut total = added(&lanes);
    for at in 0..one_rest.len().min(other_rest.len()) {
        total += term(one_rest[at], other_rest[at]);
    }
    total
}

/// The sum of all lanes. A function of its own: merged with the loop that fills the lanes, its order of additions tears them into
/// vectors of two.
#[inline(never)]
fn added<S: Copy + Default + AddAssign>(lanes: &[S; LANES]) -> S {
    let mut last = [S::default(); LAST_LANES];
    for group in lanes.as_chunks::<LAST_LANES>().0 {
        for lane in 0..LAST_LANES {
            last[lane] += group[lane];
        }
    }
    let mut total = S::default();
    last.into_iter().for_each(|lane| total += lane);
    total
}

/// A function of two vectors for each kind of processor.
macro_rules! sums {
    ($($(#[$doc:meta])* $name:ident: $element:ty => $sum:ty, $term:expr;)*) => {
        $(
            $(#[$doc])*
            #[multiversion(targets("x86_64+avx2+popcnt", "aarch64+neon"))]
            pub(super) fn $name(one: &[$element], other: &[$element]) -> $sum {
                sum(one, other, $term)
            }
        )*
    };
}

/// The square of a difference.
#[inline(always)]
fn square<T: Copy + std::ops::Sub<Output = T> + std::ops::Mul<Output = T>>(one: T, other: T) -> T {
    (one - other) * (one - other)
}

sums! {
    /// The inner product.
    f32_dot: f32 => f32, |one, other| one * other;
    /// The square of the Euclidean distance.
    f32_l2: f32 => f32, square;
    /// The inner product.
    f64_dot: f64 => f64, |one, other| one * other;
    /// The square of the Euclidean distance.
    f64_l2: f64 => f64, square;
    /// The inner product of half-precision floats.
    f16_dot: u16 => f32, |one, other| from_half(one) * from_half(other);
    /// The square of the Euclidean distance of half-precision floats.
    f16_l2: u16 => f32, |one, other| square(from_half(one), from_half(other));
    /// The inner product of brain floats.
    bf16_dot: u16 => f32, |one, other| from_brain(one) * from_brain(other);
    /// The square of the Euclidean distance of brain floats.
    bf16_l2: u16 => f32, |one, other| square(from_brain(one), from_brain(other));
    /// The inner product.
    i8_dot: i8 => i32, |one, other| i32::from(one) * i32::from(other);
    /// The square of the Euclidean distance.
    i8_l2: i8 => i32, |one, other| square(i32::from(one), i32::from(other));
    /// The inner product.
    u8_dot: u8 => i32, |one, other| i32::from(one) * i32::from(other);
    /// The square of the Euclidean distance.
    u8_l2: u8 => i32, |one, other| square(i32::from(one), i32::from(other));
    /// Bits that differ.
    hamming: u64 => u32, |one, other| (one ^ other).count_ones();
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

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// Vectors of each length around those of whole chunks.
    fn pairs<T>(random: &mut SmallRng, element: impl Fn(&mut SmallRng) -> T) -> Vec<[Vec<T>; 2]> {
        (0..=100).map(|length| [(); 2].map(|()| (0..length).map(|_| element(random)).collect())).collect()
    }

    #[test]
    fn sums_are_the_same_to_the_bit_on_each_processor() {
        let random = &mut SmallRng::seed_from_u64(3);
        for [one, other] in pairs(random, |random| random.random_range(-9.0_f32..9.0)) {
            assert_eq!(f32_dot(&one, &other).to_bits(), sum(&one, &other, |one, other| one * other).to_bits());
            assert_eq!(f32_l2(&one, &other).to_bits(), sum(&one, &other, square).to_bits());
        }
        for [one, other] in pairs(random, |random| random.random_range(-9.0_f64..9.0)) {
            assert_eq!(f64_dot(&one, &other).to_bits(), sum(&one, &other, |one, other| one * other).to_bits());
            assert_eq!(f64_l2(&one, &other).to_bits(), sum(&one, &other, square).to_bits());
        }
        // 0x3c00 is 1 as a half-precision float and 2^−7 as a brain float.
        for [one, other] in pairs(random, |random| 0x3c00 + random.random_range(0..0x0400_u16)) {
            let halves = |one, other| from_half(one) * from_half(other);
            assert_eq!(f16_dot(&one, &other).to_bits(), sum(&one, &other, halves).to_bits());
            let halves = |one, other| square(from_half(one), from_half(other));
            assert_eq!(f16_l2(&one, &other).to_bits(), sum(&one, &other, halves).to_bits());
            let brains = |one, other| from_brain(one) * from_brain(other);
            assert_eq!(bf16_dot(&one, &other).to_bits(), sum(&one, &other, brains).to_bits());
            let brains = |one, other| square(from_brain(one), from_brain(other));
            assert_eq!(bf16_l2(&one, &other).to_bits(), sum(&one, &other, brains).to_bits());
        }
    }

    #[test]
    fn sums_of_integers_are_exact() {
        let random = &mut SmallRng::seed_from_u64(4);
        for [one, other] in pairs(random, |random| random.random_range(i8::MIN..=i8::MAX)) {
            let products = one.iter().zip(&other).map(|(one, other)| i32::from(*one) * i32::from(*other));
            assert_eq!(i8_dot(&one, &other), products.sum());
            let squares = one.iter().zip(&other).map(|(one, other)| (i32::from(*one) - i32::from(*other)).pow(2));
            assert_eq!(i8_l2(&one, &other), squares.sum());
        }
        for [one, other] in pairs(random, |random| random.random_range(0..=u8::MAX)) {
            let products = one.iter().zip(&other).map(|(one, other)| i32::from(*one) * i32::from(*other));
            assert_eq!(u8_dot(&one, &other), products.sum());
            let squares = one.iter().zip(&other).map(|(one, other)| (i32::from(*one) - i32::from(*other)).pow(2));
            assert_eq!(u8_l2(&one, &other), squares.sum());
        }
        for [one, other] in pairs(random, |random| random.random_range(0..u64::MAX)) {
            assert_eq!(
                hamming(&one, &other),
                one.iter().zip(&other).map(|(one, other)| (one ^ other).count_ones()).sum()
            );
        }
    }

    #[test]
    fn floats_add_up_to_what_one_sum_gives_but_for_roundings() {
        for [one, other] in pairs(&mut SmallRng::seed_from_u64(5), |random| random.random_range(-9.0_f32..9.0)) {
            let exact: f64 = one.iter().zip(&other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum();
            assert!((f64::from(f32_dot(&one, &other)) - exact).abs() < 1e-3, "{} elements", one.len());
        }
    }
}
