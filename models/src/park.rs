//! A task that sleeps until it is woken, and runs of models.

use std::sync::Arc;
use std::task::{Wake, Waker};

use shuttle::sync::{Condvar, Mutex};

/// Orders that are tried of each model: by chance, and with few changes at the worst places.
const RUNS: usize = 2000;

/// Changes from one thread to another that a fault may need.
const CHANGES: usize = 3;

/// Runs a model under both schedulers, the same orders each time.
pub(crate) fn model(of: fn()) {
    let runner = |scheduler| shuttle::Runner::new(scheduler, Default::default()).run(of);
    runner(shuttle::scheduler::RandomScheduler::new_from_seed(1, RUNS));
    let runner = |scheduler| shuttle::Runner::new(scheduler, Default::default()).run(of);
    runner(shuttle::scheduler::PctScheduler::new_from_seed(1, CHANGES, RUNS));
}

/// Whether somebody has woken a task that may sleep.
#[derive(Default)]
pub(crate) struct Park {
    is_woken: Mutex<bool>,
    changed: Condvar,
}

impl Park {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let park = Arc::new(Self::default());
        let waker = Waker::from(Arc::clone(&park));
        (park, waker)
    }

    /// Sleeps until the waker was used, since the last sleep.
    pub(crate) fn sleep(&self) {
        let woken = self.is_woken.lock().unwrap();
        *self.changed.wait_while(woken, |is_woken| !*is_woken).unwrap() = false;
    }
}

impl Wake for Park {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap() = true;
        self.changed.notify_all();
    }
}
