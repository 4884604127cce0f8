//! A packed document.

use std::fmt;

use super::node::{self, Node};

/// Containers in containers that a document may have: as many as RedisJSON takes.
pub const MAX_DEPTH: usize = 128;

/// Bytes that a packed document may have: twice the longest argument, as a number may take more bytes than its text.
pub const MAX_BYTES: usize = 1 << 30;

/// Why a document does not become what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Containers would stand in more than [`MAX_DEPTH`] others.
    Depth,
    /// It would have more than [`MAX_BYTES`].
    Size,
    /// The path makes one look at more values than so many, or at one more often than that.
    Work(usize),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth => write!(f, "the document would be deeper than {MAX_DEPTH} containers"),
            Self::Size => write!(f, "the document would be larger than {MAX_BYTES} bytes"),
            Self::Work(most) => write!(
                f,
                "the path makes one look at values more than {most} times, the most for a call on a document of this size"
            ),
        }
    }
}

impl std::error::Error for Refused {}

/// A document.
#[derive(Clone, PartialEq, Eq)]
pub struct Json {
    /// One value, packed.
    pub(super) bytes: Vec<u8>,
}

impl Default for Json {
    /// `null`
    fn default() -> Self {
        Self { bytes: vec![node::NULL] }
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root().to_text())
    }
}

impl Json {
    pub(super) fn of(mut bytes: Vec<u8>) -> Self {
        bytes.shrink_to_fit();
        Self { bytes }
    }

    /// The value that the document is.
    pub fn root(&self) -> Node<'_> {
        Node::new(&self.bytes, 0)
    }

    /// A copy of one value.
    pub fn copy_of(node: Node<'_>) -> Self {
        Self { bytes: node.raw().to_vec() }
    }

    /// Bytes that the document takes, wherever they are.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }
}
