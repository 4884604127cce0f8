//! A header of HTTP, or a pair of gRPC's metadata, as an option.

use std::str::FromStr;

/// A name and its value, given as `Name: value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) value: String,
}

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').ok_or("expected `Name: value`")?;
        Ok(Self { name: name.trim().to_owned(), value: value.trim().to_owned() })
    }
}
