//! Files in the making.

use std::io::{self, Write};

/// A file in the making that takes its place when it is complete, and leaves nothing behind if it is dropped before.
pub trait Target: Write {
    /// Puts it in its place.
    ///
    /// # Errors
    /// The disk's.
    fn commit(self: Box<Self>) -> io::Result<()>;
}
