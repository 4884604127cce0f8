//! Subcommands that put load on a server.

use super::invalid::Invalid;
use super::load_args::LoadArgs;
use crate::scenario::Scenario;

/// A subcommand that puts load on a server.
pub trait Drive {
    /// The options that all such subcommands share.
    fn load_args(&self) -> &LoadArgs;

    /// The run.
    ///
    /// # Errors
    /// When the options make no sense together, or name what cannot be used.
    fn scenario(&self) -> Result<Scenario, Invalid>;
}

/// Reads a command line without its program's name. A subcommand that runs other command lines receives this function, because only the
/// parent module knows all subcommands.
pub(super) type ReadScenario = fn(&[String]) -> Result<Scenario, String>;
