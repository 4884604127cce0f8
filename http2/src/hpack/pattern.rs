//! The bits in a field's first byte that say how it is represented (RFC 7541 section 6).

pub(super) const INDEXED: u8 = 0x80;
pub(super) const WITH_INDEXING: u8 = 0x40;
pub(super) const SIZE_UPDATE: u8 = 0x20;
pub(super) const NEVER_INDEXED: u8 = 0x10;
