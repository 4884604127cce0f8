//! The state of scripts that others see: the one that runs for too long, and figures for INFO.

use std::sync::Mutex;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};

use super::lock::lock;
use crate::command::OwnedArgs;
use crate::exec::core::clock::Tick;
use crate::protocol::error::Error;

/// It has changed nothing yet.
const CLEAN: u8 = 0;
/// It has run a command that writes: it is not killed any more.
const DIRTY: u8 = 1;
/// It will end at its next instruction.
const KILLED: u8 = 2;

/// Whether the script that runs may be killed, and a report on one that runs for too long.
#[derive(Debug, Default)]
pub(crate) struct Status {
    state: AtomicU8,
    is_function: AtomicBool,
    slow: Mutex<Option<Slow>>,
}

/// A script that runs for too long.
#[derive(Debug)]
pub(crate) struct Slow {
    /// The script's SHA-1, or the function's name.
    pub(crate) name: String,
    /// The command that runs it.
    pub(crate) command: OwnedArgs,
    /// When it began.
    pub(crate) began: Tick,
}

/// The error for calls that come while a script, or a function, runs for too long.
pub(super) fn busy_error(is_function: bool) -> Error {
    Error::Static(if is_function {
        "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
    } else {
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
    })
}

impl Status {
    /// A script begins.
    pub(super) fn begin(&self, is_function: bool) {
        self.state.store(CLEAN, SeqCst);
        self.is_function.store(is_function, Relaxed);
    }

    /// It takes too long: others are told of it from now on.
    pub(super) fn is_slow(&self, slow: Slow) {
        *lock(&self.slow) = Some(slow);
    }

    /// It has ended.
    pub(super) fn end(&self) {
        *lock(&self.slow) = None;
    }

    /// Whether it is a function.
    pub(crate) fn is_function(&self) -> bool {
        self.is_function.load(Relaxed)
    }

    /// Whether it must end.
    pub(super) fn is_killed(&self) -> bool {
        self.state.load(SeqCst) == KILLED
    }

    /// It is about to write; false if it was killed before.
    pub(super) fn begin_write(&self) -> bool {
        self.state.compare_exchange(CLEAN, DIRTY, SeqCst, SeqCst) != Err(KILLED)
    }

    /// It must end, whatever it has done: the server does.
    pub(crate) fn abort(&self) {
        self.state.store(KILLED, SeqCst);
    }

    /// `SCRIPT KILL` and `FUNCTION KILL`.
    ///
    /// # Errors
    /// The texts of the genuine server.
    pub(crate) fn kill(&self, wants_function: bool) -> Result<(), Error> {
        let slow = lock(&self.slow);
        if slow.is_none() {
            return Err(Error::Static("NOTBUSY No scripts in execution right now."));
        }
        if self.state.load(SeqCst) == DIRTY {
            return Err(UNKILLABLE);
        }
        if wants_function != self.is_function() {
            return Err(busy_error(self.is_function()));
        }
        match self.state.compare_exchange(CLEAN, KILLED, SeqCst, SeqCst) {
            Err(DIRTY) => Err(UNKILLABLE),
            _ => Ok(()),
        }
    }

    /// Calls `look` with the script that runs for too long, if one does.
    pub(crate) fn with_slow<R>(&self, look: impl FnOnce(Option<&Slow>) -> R) -> R {
        look(lock(&self.slow).as_ref())
    }
}

const UNKILLABLE: Error = Error::Static(
    "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script \
     termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
);

/// INFO's figures of scripts, as they were when the last one ended.
#[derive(Debug, Default)]
pub struct Figures {
    /// Scripts in the cache.
    pub scripts: AtomicU64,
    /// Functions of all libraries.
    pub functions: AtomicU64,
    /// Libraries.
    pub libraries: AtomicU64,
    /// Bytes of Lua for EVAL.
    pub eval_vm: AtomicU64,
    /// Bytes of Lua for functions.
    pub functions_vm: AtomicU64,
    /// Bytes of cached scripts.
    pub scripts_bytes: AtomicU64,
    /// Bytes of libraries.
    pub libraries_bytes: AtomicU64,
    /// Scripts of EVAL that had to make room for others.
    pub evicted: AtomicU64,
}
