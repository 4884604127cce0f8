//! The product's `event_loop`.

use shuttle::sync::{Arc, Condvar, Mutex};

/// The descriptor that ends the loop's sleep: a write ends the present or the next wait.
#[derive(Clone, Default)]
pub struct OwnedFd(Arc<(Mutex<bool>, Condvar)>);

impl OwnedFd {
    /// Writes to it.
    pub fn write(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_one();
    }

    /// Waits until something is written.
    pub fn wait(&self) {
        let mut is_written = self.0.0.lock().unwrap();
        while !std::mem::take(&mut *is_written) {
            is_written = self.0.1.wait(is_written).unwrap();
        }
    }
}

/// Wake-ups.
pub mod task {
    include!(concat!(env!("OUT_DIR"), "/task.rs"));

    #[cfg(test)]
    mod tests;
}
