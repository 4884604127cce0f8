//! The gates that one run includes: all, those named by `--only`, or none with `--list`.

use std::cell::Cell;
use std::process::Command;

use anyhow::{Result, bail};

/// A gate's name and its command.
pub(super) type Gate = (String, Command);

/// Which gates run.
pub(super) enum Selection {
    /// Every gate.
    All,
    /// The gates with these names; the cell counts those that were found.
    Only(Vec<String>, Cell<usize>),
    /// None: prints each name.
    List,
}

impl Selection {
    pub(super) fn new(only: &[String], list: bool) -> Self {
        match only {
            _ if list => Self::List,
            [] => Self::All,
            names => Self::Only(names.to_vec(), Cell::new(0)),
        }
    }

    /// Returns true if every gate runs.
    pub(super) fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Returns true if the gate runs. `--list` prints the name.
    pub(super) fn includes(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names, found) => {
                let is_named = names.iter().any(|other| other == name);
                found.set(found.get() + usize::from(is_named));
                is_named
            }
            Self::List => {
                println!("{name}");
                false
            }
        }
    }

    /// The gates among these that run.
    pub(super) fn of(&self, gates: Vec<Gate>) -> Vec<Gate> {
        gates.into_iter().filter(|(name, _)| self.includes(name)).collect()
    }

    /// The command of a gate, if the gate runs.
    pub(super) fn one(&self, name: &'static str, command: impl FnOnce() -> Command) -> Option<Gate> {
        self.includes(name).then(|| (name.to_owned(), command()))
    }

    /// Checks, after the last gate, that every name of `--only` was one.
    ///
    /// # Errors
    /// A name that no gate has.
    pub(super) fn finish(&self) -> Result<()> {
        if let Self::Only(names, found) = self
            && found.get() < names.len()
        {
            bail!("--only {}: expected names that `cargo xtask ci --list` prints", names.join(" --only "));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_gates_run_alone_and_an_unknown_name_is_an_error() {
        let gates = || -> Vec<Gate> { ["lints", "docs"].map(|name| (name.to_owned(), Command::new("true"))).into() };
        assert_eq!(Selection::new(&[], false).of(gates()).len(), 2);
        assert_eq!(Selection::new(&[], true).of(gates()).len(), 0);
        let only = Selection::new(&["docs".to_owned()], false);
        assert_eq!(only.of(gates()).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["docs"]);
        only.finish().unwrap();
        let unknown = Selection::new(&["docs".to_owned(), "dcos".to_owned()], false);
        assert_eq!(unknown.of(gates()).len(), 1);
        let error = unknown.finish().unwrap_err().to_string();
        assert_eq!(error, "--only docs --only dcos: expected names that `cargo xtask ci --list` prints");
    }
}
