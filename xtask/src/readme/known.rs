//! Data about commands beside their text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::blocks::Block;

/// The file `xtask/readme/known.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// Programs that serve until they are ended.
    pub(super) servers: Vec<String>,
    /// Words with which they do not.
    pub(super) at_once: Vec<String>,
    /// Programs that the tests fetch: where they are below the tests' folder of peers.
    pub(super) peers: BTreeMap<String, String>,
    #[serde(rename = "command")]
    commands: Vec<Rule>,
}

/// The rule of one command, or of all that begin alike.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    readme: String,
    /// How it begins.
    command: String,
    /// Why it is not run.
    pub(super) not_run: Option<String>,
    /// Commands before it, in bash.
    pub(super) before: Option<String>,
    /// It goes on while the next ones run; what it has printed is looked at when the block ends.
    #[serde(default)]
    pub(super) stays: bool,
    /// Its exit codes, 0 if nothing is said.
    pub(super) exit: Option<Vec<i32>>,
    /// Why what it prints differs from what is shown.
    pub(super) varies: Option<String>,
}

impl Known {
    /// # Errors
    /// When it cannot be read, or says of a command that is not run something else, too.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let known: Self = toml::from_str(&text).with_context(|| path.display().to_string())?;
        for rule in &known.commands {
            let is_more = rule.before.is_some() || rule.stays || rule.exit.is_some() || rule.varies.is_some();
            if rule.not_run.is_some() == is_more {
                bail!("{}: {}: expected `not_run` alone, or anything else", path.display(), rule.command);
            }
        }
        Ok(known)
    }

    /// The rule of a command; the longest beginning decides.
    pub(super) fn rule(&self, readme: &str, command: &str) -> Option<&Rule> {
        let fitting = self.commands.iter().filter(|rule| rule.fits(readme, command));
        fitting.max_by_key(|rule| rule.command.len())
    }

    /// # Errors
    /// When a rule fits no command any more.
    pub(super) fn check_used(&self, blocks: &[Block]) -> Result<()> {
        for rule in &self.commands {
            let mut all = blocks.iter().flat_map(|block| block.statements.iter().map(|one| (&block.readme, &one.text)));
            if !all.any(|(readme, text)| rule.fits(readme, text)) {
                bail!("xtask/readme/known.toml: {} has no command that begins with `{}`", rule.readme, rule.command);
            }
        }
        Ok(())
    }
}

impl Rule {
    fn fits(&self, readme: &str, command: &str) -> bool {
        self.readme == readme && command.starts_with(&self.command)
    }

    /// Whether it may end with this code.
    pub(super) fn allows(rule: Option<&Self>, code: i32) -> bool {
        rule.and_then(|rule| rule.exit.as_ref()).map_or(code == 0, |codes| codes.contains(&code))
    }
}
