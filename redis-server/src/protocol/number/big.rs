//! Just enough arithmetic on large natural numbers to read and print extended floats exactly.

use std::cmp::Ordering;

/// A natural number: digits of 32 bits, the least significant first, the last one not zero.
#[derive(Clone)]
pub(super) struct Big(Vec<u32>);

impl Big {
    pub(super) fn new(mut value: u128) -> Self {
        let mut digits = Vec::with_capacity(4);
        while value > 0 {
            digits.push(value as u32);
            value >>= 32;
        }
        Self(digits)
    }

    /// The number that these decimal digits say.
    pub(super) fn from_decimal(digits: impl Iterator<Item = u8>) -> Self {
        let mut big = Self::new(0);
        for digit in digits {
            big.multiply_add(10, u32::from(digit - b'0'));
        }
        big
    }

    pub(super) fn multiply_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for digit in &mut self.0 {
            carry += u64::from(*digit) * u64::from(factor);
            *digit = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    pub(super) fn multiply_by_power_of_ten(&mut self, exponent: u32) {
        for _ in 0..exponent / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        self.multiply_add(10u32.pow(exponent % 9), 0);
    }

    /// Divides, and returns the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut remainder = 0;
        for digit in self.0.iter_mut().rev() {
            let value = remainder << 32 | u64::from(*digit);
            *digit = (value / u64::from(divisor)) as u32;
            remainder = value % u64::from(divisor);
        }
        self.trim();
        remainder as u32
    }

    pub(super) fn shift_left(&mut self, bits: u32) {
        self.multiply_add(1 << (bits % 32), 0);
        if !self.0.is_empty() {
            self.0.splice(0..0, std::iter::repeat_n(0, bits as usize / 32));
        }
    }

    pub(super) fn bits(&self) -> u32 {
        self.0.last().map_or(0, |last| self.0.len() as u32 * 32 - last.leading_zeros())
    }

    /// The number as `top * 2^exponent`, cut to at most 128 bits, and whether something was cut off.
    pub(super) fn top(&self) -> (u128, i32, bool) {
        let cut = self.0.len().saturating_sub(4);
        let top = self.0[cut..].iter().rev().fold(0, |top, &digit| top << 32 | u128::from(digit));
        (top, cut as i32 * 32, self.0[..cut].iter().any(|&digit| digit != 0))
    }

    /// The whole quotient, which must be below 2^128, and whether a remainder is left.
    pub(super) fn quotient(mut self, divisor: &Self) -> (u128, bool) {
        let mut quotient = 0;
        let shift = self.bits().saturating_sub(divisor.bits());
        for bit in (0..=shift).rev() {
            let mut shifted = divisor.clone();
            shifted.shift_left(bit);
            if self.compare(&shifted).is_ge() {
                self.subtract(&shifted);
                quotient |= 1 << bit;
            }
        }
        (quotient, !self.0.is_empty())
    }

    pub(super) fn into_decimal(mut self) -> String {
        let mut groups = Vec::new();
        while !self.0.is_empty() {
            groups.push(self.divide(1_000_000_000));
        }
        let mut text = groups.pop().unwrap_or(0).to_string();
        for group in groups.iter().rev() {
            text += &format!("{group:09}");
        }
        text
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Subtracts a number that is not larger.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (index, digit) in self.0.iter_mut().enumerate() {
            let (difference, first) = digit.overflowing_sub(other.0.get(index).copied().unwrap_or(0));
            let (difference, second) = difference.overflowing_sub(u32::from(borrow));
            *digit = difference;
            borrow = first || second;
        }
        self.trim();
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}
