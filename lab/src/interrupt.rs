//! Ctrl-C: what was started is ended before this program is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether the user wants it to end; while it lives, signals do no more than that.
pub(crate) struct Interrupt {
    came: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes the signals over from the system.
    ///
    /// # Errors
    /// When the system refuses.
    pub(crate) fn listen() -> Result<Self> {
        let interrupt = Self { came: Arc::default(), over: Arc::default() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // There is no second Ctrl-C that ends at once: programs would be left behind.
            flag::register_conditional_default(signal, Arc::clone(&interrupt.over))
                .and_then(|_| flag::register(signal, Arc::clone(&interrupt.came)))
                .context("signals cannot be handled")?;
        }
        Ok(interrupt)
    }

    /// Whether there was a signal.
    pub(crate) fn came(&self) -> bool {
        self.came.load(Ordering::Relaxed)
    }

    /// # Errors
    /// When there was a signal.
    pub(crate) fn check(&self) -> Result<()> {
        if self.came() {
            bail!("interrupted; what was measured before is kept, and --resume goes on behind it");
        }
        Ok(())
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
