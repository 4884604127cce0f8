//! JSON documents, packed: a document is one run of bytes, in which every value is a byte that says what it is and what it needs
//! behind it (`node`).
//!
//! A container knows how many bytes its content has, so it is stepped over at once; nothing points anywhere, so a document is copied and
//! freed as one block, however deep it is. Changes go through [`Edits`], which splice in other bytes and correct the heads of the
//! containers around them. Small documents take fewer bytes than their text. The price: an element is found by stepping over those in front
//! of it, and a change moves what stands behind it.
//!
//! ```
//! use redis_server::types::json::{Json, Path};
//!
//! let json = Json::parse(br#"{"a": [1, 2.5, "x"]}"#).unwrap();
//! let path = Path::parse(b"$.a[0:2]").unwrap();
//! let found: Vec<String> = json.find(&path).unwrap().map(|node| node.to_text()).collect();
//! assert_eq!(found, ["1", "2.5"]);
//! ```

mod build;
#[cfg(feature = "json")]
mod edit;
#[cfg(feature = "json")]
mod equal;
#[cfg(feature = "json")]
mod locate;
#[cfg(feature = "json")]
mod merge;
#[cfg_attr(not(feature = "json"), allow(dead_code, reason = "paths and edits need it"))]
mod node;
#[cfg(feature = "json")]
mod overlap;
mod parse;
#[cfg(feature = "json")]
mod path;
mod print;
#[cfg(test)]
#[cfg(feature = "json")]
mod tests;

use std::fmt;

pub use build::Builder;
#[cfg(feature = "json")]
pub use edit::Edits;
#[cfg(feature = "json")]
pub use merge::merge;
pub use node::{Elements, Kind, Members, Node, Number};
#[cfg(feature = "json")]
pub use overlap::change_within;
pub use parse::ParseError;
#[cfg(feature = "json")]
pub use path::{Budget, Path, PathError, Step};
pub use print::Style;

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
    bytes: Vec<u8>,
}

impl Json {
    /// The document that a text is.
    ///
    /// # Errors
    /// It is none; the error says where and why.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        parse::document(text).map(Self::of)
    }

    fn of(mut bytes: Vec<u8>) -> Self {
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

    /// A string, which is UTF-8.
    pub fn of_string(text: &[u8]) -> Self {
        Self::built(|out| out.string(text))
    }

    /// A number, which is finite.
    pub fn of_number(number: Number) -> Self {
        Self::built(|out| out.number(number))
    }

    /// `true` or `false`
    pub fn of_bool(value: bool) -> Self {
        Self::built(|out| out.boolean(value))
    }

    /// `[]`
    pub fn empty_array() -> Self {
        Self { bytes: build::Head::new(false, 0, 0).bytes().to_vec() }
    }

    /// `{}`
    pub fn empty_object() -> Self {
        Self { bytes: build::Head::new(true, 0, 0).bytes().to_vec() }
    }

    fn built(build: impl FnOnce(&mut Builder)) -> Self {
        let mut out = Builder::default();
        build(&mut out);
        out.finish()
    }

    /// Bytes that the document takes, wherever they are.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }
}

#[cfg(feature = "json")]
impl Json {
    /// The work that a call with this document may be.
    pub fn budget(&self) -> Budget {
        let mut budget = Budget::default();
        budget.add(self);
        budget
    }

    /// The values that a path matches, in the order of RFC 9535: a value in front of those inside of it.
    ///
    /// # Errors
    /// [`Refused::Work`].
    pub fn find<'a>(&'a self, path: &Path) -> Result<impl ExactSizeIterator<Item = Node<'a>> + use<'a>, Refused> {
        self.find_within(path, &mut self.budget())
    }

    /// [`Json::find`] by a call that follows several paths.
    ///
    /// # Errors
    /// [`Refused::Work`].
    pub fn find_within<'a>(
        &'a self,
        path: &Path,
        budget: &mut Budget,
    ) -> Result<impl ExactSizeIterator<Item = Node<'a>> + use<'a>, Refused> {
        let found = path.values(&self.bytes, budget)?;
        Ok(found.into_iter().map(|at| Node::new(&self.bytes, at as usize)))
    }

    /// The values that a path matches, each once, for changes.
    ///
    /// # Errors
    /// [`Refused::Work`].
    pub fn edit(&mut self, path: &Path) -> Result<Edits<'_>, Refused> {
        let mut budget = self.budget();
        self.edit_within(path, &mut budget)
    }

    /// [`Json::edit`] by a call that follows several paths.
    ///
    /// # Errors
    /// [`Refused::Work`].
    pub fn edit_within(&mut self, path: &Path, budget: &mut Budget) -> Result<Edits<'_>, Refused> {
        Edits::new(&mut self.bytes, path, budget)
    }
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
