//! The interface of a comparison to the process that makes it.

use crate::record::Outcome;

/// The surroundings of a comparison.
pub trait Surroundings {
    /// Runs a load from a command line without its program's name, `redis 127.0.0.1:7 GET a`.
    ///
    /// # Errors
    /// When the command line is wrong.
    fn run(&mut self, words: &[String]) -> Result<Outcome, String>;

    /// Whether it is to end now.
    fn interrupted(&self) -> bool;

    /// A message for waiting users.
    fn say(&mut self, text: &str);
}
