//! Why bytes are not a frame.

use core::fmt;

/// Where and why bytes are not a frame. Such a datagram is discarded without an answer (Part II, 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ParseError {
    /// Offset of the byte at fault, from the start of the frame; at most its length.
    pub offset: usize,
    /// The reason.
    pub cause: Cause,
}

/// The reasons for which a frame is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Cause {
    /// The bytes end inside a field.
    Truncated,
    /// EHD1 is not 0x10: another protocol.
    NotEchonetLite(u8),
    /// EHD2 is neither 0x81 nor 0x82.
    UnknownFormat(u8),
    /// ESV is no service that the specification knows.
    UnknownService(u8),
    /// OPC is 0 where at least one property is required.
    NoProperties,
    /// Bytes follow the last property that OPC announces.
    TrailingBytes,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: ", self.offset)?;
        match self.cause {
            Cause::Truncated => f.write_str("the frame ends inside a field"),
            Cause::NotEchonetLite(byte) => write!(f, "EHD1 is {byte:#04X}, not 0x10"),
            Cause::UnknownFormat(byte) => write!(f, "EHD2 is {byte:#04X}, neither 0x81 nor 0x82"),
            Cause::UnknownService(byte) => write!(f, "ESV {byte:#04X} is unknown"),
            Cause::NoProperties => f.write_str("OPC is 0"),
            Cause::TrailingBytes => f.write_str("bytes follow the last property"),
        }
    }
}

impl core::error::Error for ParseError {}
