//! The server at rest: no window is open, no slow call is at work, and the journal has all that is in the data, of a
//! primary's stream too. Role changes need that, and the cuts of snapshots.
//!
//! Locks in their order: [`Units`](super::Units), then [`Alone`]. A thread that waits for the second lends the first to
//! the commands that it waits for.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use super::exclusive::{Alone, Exclusive, Hindered};
use super::units::BetweenUnits;

/// How long a thread waits between two tries, and for a unit that is run.
const NAP: Duration = Duration::from_millis(1);

/// The server is at rest until this is dropped.
#[derive(Debug)]
pub struct Still {
    alone: Alone,
    _units: BetweenUnits,
}

impl Deref for Still {
    type Target = Alone;

    fn deref(&self) -> &Alone {
        &self.alone
    }
}

impl Still {
    /// Waits for windows, and shortly for a unit that is run, but for no slow call. The caller is in no window.
    ///
    /// # Errors
    /// [`Hindered`]; a unit that is run counts as a slow call.
    pub fn stop(gate: &Arc<Exclusive>) -> Result<Self, Hindered> {
        let units = gate.units.lock_within(NAP).ok_or(Hindered::Slow)?;
        let alone = units.lend_during(|| gate.stop())?;
        Ok(Self { alone, _units: units })
    }

    /// For a thread that is at work without any other, as no client is served yet.
    pub fn before_service(gate: &Arc<Exclusive>) -> Self {
        Self { alone: gate.already_stopped(), _units: gate.units.lock() }
    }
}

/// Waits for windows, slow calls and scripts, as long as `goes_on` says nothing against it. Only a thread that serves nobody may call this.
///
/// # Errors
/// The error of `goes_on`.
pub fn stand_still(gate: &Arc<Exclusive>, goes_on: impl Fn() -> io::Result<()>) -> io::Result<Still> {
    loop {
        goes_on()?;
        let units = gate.units.lock();
        match units.lend_during(|| gate.stop_after_slow_calls()) {
            Ok(alone) => return goes_on().map(|()| Still { alone, _units: units }),
            // A script that takes long: a snapshot would show half of it.
            Err(_) => drop(units),
        }
        thread::sleep(NAP);
    }
}
