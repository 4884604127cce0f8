//! Sizes of header tables.

/// The overhead of a header table's entry beside its text (RFC 7541 section 4.1), and of a field in the size of a
/// header list (RFC 9113 section 6.5.2).
pub const OVERHEAD: usize = 32;

/// The size of header tables until settings say otherwise (RFC 9113 section 6.5.2).
pub const TABLE_SIZE: usize = 4096;

/// The largest header table that is kept: texts' lengths have 16 bits.
pub const MOST_TABLE_SIZE: usize = 65_535;
