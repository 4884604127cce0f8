//! The types of a vector's elements, and how their bytes are read.

use std::fmt;

/// The type of a vector's elements (TYPE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// IEEE 754, 32 bits.
    Float32,
    /// IEEE 754, 64 bits.
    Float64,
    /// IEEE 754, 16 bits.
    Float16,
    /// The upper half of a 32-bit float.
    Bfloat16,
    /// −128 to 127.
    Int8,
    /// 0 to 255.
    Uint8,
}

impl ElementType {
    /// All types.
    pub const ALL: [Self; 6] = [Self::Float32, Self::Float64, Self::Float16, Self::Bfloat16, Self::Int8, Self::Uint8];

    /// Bytes of one element.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::Float64 => 8,
            Self::Float32 => 4,
            Self::Float16 | Self::Bfloat16 => 2,
            Self::Int8 | Self::Uint8 => 1,
        }
    }

    /// The type of a name as FT.CREATE has it, in any case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// The name as FT.INFO shows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "FLOAT32",
            Self::Float64 => "FLOAT64",
            Self::Float16 => "FLOAT16",
            Self::Bfloat16 => "BFLOAT16",
            Self::Int8 => "INT8",
            Self::Uint8 => "UINT8",
        }
    }
}

/// How far two vectors are apart (DISTANCE_METRIC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The square of the Euclidean distance.
    L2,
    /// 1 − inner product.
    InnerProduct,
    /// 1 − cosine of the angle. A vector of zeros has the distance 1 to all vectors.
    Cosine,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 3] = [Self::L2, Self::InnerProduct, Self::Cosine];

    /// The metric of a name as FT.CREATE has it, in any case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name().eq_ignore_ascii_case(name))
    }

    /// The name as FT.INFO shows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::L2 => "L2",
            Self::InnerProduct => "IP",
            Self::Cosine => "COSINE",
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The elements of a blob, whose length was checked.
pub(super) fn read<const SIZE: usize, T>(blob: &[u8], element: impl Fn([u8; SIZE]) -> T) -> Vec<T> {
    blob.as_chunks::<SIZE>().0.iter().map(|bytes| element(*bytes)).collect()
}

/// A half-precision float. Without branches, so that the compiler can convert several at once.
#[inline(always)]
pub(super) fn from_half(bits: u16) -> f32 {
    let (sign, rest) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff) << 13);
    // The exponent's bias is 15 instead of 127; a denormal becomes normal by a subtraction; infinity and NaN keep all ones.
    let normal = rest + (112 << 23);
    let denormal = (f32::from_bits(rest + (113 << 23)) - f32::from_bits(113 << 23)).to_bits();
    let finite = if rest < 1 << 23 { denormal } else { normal };
    let special = rest | 0x7f80_0000;
    f32::from_bits(sign | if rest >= 31 << 23 { special } else { finite })
}

/// The nearest half-precision float, to even if two are as near.
pub(super) fn to_half(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, rest) = ((bits >> 16 & 0x8000) as u16, bits & 0x7fff_ffff);
    if rest > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    // Beyond the middle between the greatest half and the next power of two.
    if rest >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    if rest < 113 << 23 {
        // Adding 0.5 leaves the denormal's bits, rounded, at the end of the mantissa.
        let shifted = f32::from_bits(rest) + 0.5;
        return sign | (shifted.to_bits() - 0.5_f32.to_bits()) as u16;
    }
    let odd = rest >> 13 & 1;
    sign | ((rest - (112 << 23) + 0xfff + odd) >> 13) as u16
}

/// The upper half of a float.
#[inline(always)]
pub(super) fn from_brain(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// The nearest float that has an upper half alone, to even if two are as near.
pub(super) fn to_brain(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_read_and_written() {
        for bits in 0..=u16::MAX {
            let value = from_half(bits);
            let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
            let size = match exponent {
                0 => mantissa * 2_f32.powi(-24),
                31 if mantissa == 0.0 => f32::INFINITY,
                31 => f32::NAN,
                _ => (1.0 + mantissa / 1024.0) * 2_f32.powi(exponent - 15),
            };
            let expected = if bits >> 15 == 1 { -size } else { size };
            assert!(value == expected || value.is_nan() && expected.is_nan(), "{bits:x}: {value} {expected}");
            if !value.is_nan() {
                assert_eq!(to_half(value), bits, "{bits:x}");
            }
        }
        for (value, expected) in [(65519.0, 0x7bff), (65520.0, 0x7c00), (2049.0, 0x6800), (2051.0, 0x6802)] {
            assert_eq!(to_half(value), expected, "{value}");
        }
        assert!(from_half(to_half(f32::NAN)).is_nan());
    }

    #[test]
    fn brain_floats_are_read_and_written() {
        for (value, expected) in [(1.0, 0x3f80), (1.003_906_3, 0x3f80), (1.011_718_8, 0x3f82), (f32::INFINITY, 0x7f80)]
        {
            assert_eq!(to_brain(value), expected, "{value}");
        }
        assert_eq!(from_brain(0xc000), -2.0);
        assert!(from_brain(to_brain(f32::NAN)).is_nan());
    }

    #[test]
    fn names_are_those_of_ft_create() {
        assert!(
            ElementType::ALL.into_iter().all(|kind| ElementType::parse(&kind.to_string().to_lowercase()) == Some(kind))
        );
        assert!(
            Metric::ALL.into_iter().all(|metric| Metric::parse(&metric.to_string().to_lowercase()) == Some(metric))
        );
        assert_eq!((ElementType::parse("FLOAT"), Metric::parse("")), (None, None));
    }
}
