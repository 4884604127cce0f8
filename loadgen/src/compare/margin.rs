//! The margin of equivalence.

/// A ratio within this share of 1 makes no practical difference.
pub const MARGIN: f64 = 0.05;
