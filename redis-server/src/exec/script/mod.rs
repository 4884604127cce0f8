//! Scripts and functions in Lua 5.1 (<https://redis.io/docs/latest/develop/programmability/>).
//!
//! One script runs at a time, alone with the data (see [`Exclusive`](crate::exec::gate::Exclusive)), on a stack of its own: one that takes longer than
//! `busy-reply-threshold` is interrupted every now and then, so that its worker can tell others that the server is busy, and
//! take a `SCRIPT KILL`. There are two Lua states, for EVAL and for functions, which all workers use in turn.
//!
//! `raw` holds what has no safe form: functions that raise Lua errors, and the way of a call through Lua's stack.

mod api;
mod call;
mod engine;
pub mod lib;
mod library;
mod raw;
mod shebang;
mod status;
mod task;
mod vm;

pub(crate) use call::nobody;
pub use engine::{Cache, Engine};
pub use library::{Function, Libraries, Library};
pub use shebang::ScriptFlags;
pub use status::Figures;
pub use task::{Interrupted, Spare, go_on, run_alone};

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use crate::command::Row;
use crate::command::{Args, Flags, Role};
use crate::protocol::error::Error;
use status::Status;

/// Digits of a script's name: its SHA-1.
pub const SHA_LEN: usize = 40;

/// A script's name.
pub type Sha = [u8; SHA_LEN];

/// The scripts of a server.
#[derive(Debug, Default)]
pub struct Scripts {
    /// The engine that runs scripts. Only a thread that is alone with the data takes it out.
    engine: Mutex<Option<Box<Engine>>>,
    /// The state of the running script, as others see it.
    pub(crate) status: Status,
    /// The figures for INFO.
    pub figures: Figures,
    /// Flags of scripts and functions that have declared some, by name; for admission.
    declared: RwLock<HashMap<Box<[u8]>, ScriptFlags>>,
    has_declared: AtomicBool,
    /// Whether scripts may call what they must not.
    allow_all: AtomicBool,
}

/// The SHA-1 of a script, in hexadecimal digits: its name.
pub fn sha1(bytes: &[u8]) -> Sha {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
    let mut sha = [0; SHA_LEN];
    for (byte, digits) in digest.as_ref().iter().zip(sha.chunks_exact_mut(2)) {
        digits.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    sha
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scripts {
    /// Calls `work` with the engine. The caller must be alone with the data.
    pub(crate) fn with_engine<R>(&self, work: impl FnOnce(&mut Engine) -> R) -> R {
        let mut engine = lock(&self.engine).take().unwrap_or_default();
        let result = work(&mut engine);
        self.figures.take(&engine);
        *lock(&self.engine) = Some(engine);
        result
    }

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
    fn declare(&self, name: &[u8], flags: ScriptFlags) {
        self.declared.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_ascii_lowercase().into(), flags);
        self.has_declared.store(true, Relaxed);
    }

    /// Forgets what those scripts and functions have declared that are not `kept`.
    fn undeclare(&self, kept: impl Fn(&[u8]) -> bool) {
        self.declared.write().unwrap_or_else(PoisonError::into_inner).retain(|name, _| kept(name));
    }
}
