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
mod document;
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

pub use build::Builder;
pub use document::{Json, MAX_BYTES, MAX_DEPTH, Refused};
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

impl Json {
    /// The document that a text is.
    ///
    /// # Errors
    /// It is none; the error says where and why.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        parse::document(text).map(Self::of)
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
