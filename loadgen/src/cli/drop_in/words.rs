//! The words of our command line.

/// Makes words of options, as they are wanted.
pub(super) struct Words(pub(super) Vec<String>);

impl Words {
    pub(super) fn new<const N: usize>(words: [&str; N]) -> Self {
        Self(words.map(str::to_owned).into())
    }

    /// An option without a value.
    pub(super) fn flag(&mut self, name: &str, wanted: bool) {
        if wanted {
            self.0.push(name.to_owned());
        }
    }

    /// An option with a value, in one word, so that a value may begin with `-`.
    pub(super) fn option(&mut self, name: &str, value: impl std::fmt::Display) {
        self.0.push(format!("{name}={value}"));
    }

    /// An option with a value, if there is one.
    pub(super) fn maybe<T: std::fmt::Display>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.option(name, value);
        }
    }
}
