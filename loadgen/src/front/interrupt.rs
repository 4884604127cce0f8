//! Ctrl-C: the first one ends the run with the results so far, the second one ends the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit code of a process that was interrupted: 128 and SIGINT's number, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Whether the user wants the run to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes SIGINT and SIGTERM over from the system.
    pub(crate) fn install() -> io::Result<Self> {
        let interrupt = Self::default();
        let asked_before = Arc::<AtomicBool>::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: from the first line on no signal is lost, and the second handler sees what the third one did
            // at the last signal.
            flag::register(signal, Arc::clone(&interrupt.asked))?;
            flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&asked_before))?;
            flag::register(signal, Arc::clone(&asked_before))?;
        }
        Ok(interrupt)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Waits until the user ends it.
pub fn hold() {
    let Ok(interrupt) = Interrupt::install() else { return };
    while !interrupt.is_asked() {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
