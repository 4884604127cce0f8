//! The scripts of a server, as others see them.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError, RwLock};

use super::shebang::{self, ScriptFlags};
use super::status::{self, Figures, Status};
use crate::command::{Args, Flags, Role, Row};
use crate::protocol::error::Error;

/// The scripts of a server.
#[derive(Debug, Default)]
pub struct Scripts {
    /// The engine that runs scripts. Only a thread that is alone with the data takes it out. `engine.rs` knows its type.
    pub(super) engine: Mutex<Option<Box<dyn Any + Send>>>,
    /// The state of the running script, as others see it.
    pub(crate) status: Status,
    /// The figures for INFO.
    pub figures: Figures,
    /// Flags of scripts and functions that have declared some, by name; for admission.
    pub(super) declared: RwLock<HashMap<Box<[u8]>, ScriptFlags>>,
    pub(super) has_declared: AtomicBool,
    /// Whether scripts may call what they must not.
    pub(super) allow_all: AtomicBool,
}

impl Scripts {
    /// `DEBUG SET-DISABLE-DENY-SCRIPTS`: for tests, scripts may call every command.
    pub(crate) fn set_allow_all(&self, on: bool) {
        self.allow_all.store(on, Relaxed);
    }

    /// Whether scripts may call what they must not.
    pub(crate) fn allows_all(&self) -> bool {
        self.allow_all.load(Relaxed)
    }

    /// The error for calls that come while a script runs for too long.
    pub fn busy_error(&self) -> Error {
        status::busy_error(self.status.is_function())
    }

    /// The flags of a call that runs a script: those that the script has declared in place of the command's. A name that no
    /// script or function has keeps the command's: its call fails everywhere in the same way, also on a stale replica.
    pub fn flags_of_call(&self, row: &Row, args: Args<'_>) -> Flags {
        let flags = row.command.flags;
        let declared = match row.command.role {
            Role::Eval => shebang::parse(args.at(1)).ok().and_then(|shebang| shebang.flags),
            Role::EvalNamed if self.has_declared.load(Relaxed) => {
                let declared = self.declared.read().unwrap_or_else(PoisonError::into_inner);
                declared.get(args.at(1).to_ascii_lowercase().as_slice()).copied()
            }
            _ => None,
        };
        declared.map_or(flags, |declared| declared.instead_of(flags))
    }

    /// Remembers what a script or function has declared.
    pub(super) fn declare(&self, name: &[u8], flags: ScriptFlags) {
        self.declared.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_ascii_lowercase().into(), flags);
        self.has_declared.store(true, Relaxed);
    }

    /// Forgets what those scripts and functions have declared that are not `kept`.
    pub(super) fn undeclare(&self, kept: impl Fn(&[u8]) -> bool) {
        self.declared.write().unwrap_or_else(PoisonError::into_inner).retain(|name, _| kept(name));
    }
}
