//! How many bytes all callers of one Redis may hold together: requests as they come, answers until their clients have
//! taken them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;

use super::failure::Failure;

/// Answers up to this size are not counted: counting them would cost more than they do. 4 KiB for each request that may
/// wait are 64 MiB for each worker at most.
pub(crate) const UNCOUNTED: usize = 4 * 1024;

/// Bytes that are held, and how many may be.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    most: usize,
}

impl Budget {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), most })
    }

    /// Whether nothing more can be held.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.held.load(Relaxed) >= self.most
    }

    /// No bytes yet.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { budget: Arc::clone(self), bytes: 0 }
    }

    /// Bytes that are there already and count from now on, whether there is room or not: bytes that grow ask for room
    /// before.
    pub(crate) fn hold(self: &Arc<Self>, bytes: Vec<u8>) -> Bytes {
        let mut share = self.share();
        if bytes.len() > UNCOUNTED {
            share.add(bytes.capacity());
        }
        share.keep(bytes)
    }
}

/// A part of a budget. It goes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// Makes it so many bytes, if it is less.
    ///
    /// # Errors
    /// When there is no room; it is what it was then.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Failure> {
        let more = bytes.saturating_sub(self.bytes);
        self.add(more);
        if more > 0 && self.budget.held.load(Relaxed) > self.budget.most {
            self.budget.held.fetch_sub(more, Relaxed);
            self.bytes -= more;
            return Err(Failure::Full);
        }
        Ok(())
    }

    fn add(&mut self, bytes: usize) {
        self.budget.held.fetch_add(bytes, Relaxed);
        self.bytes += bytes;
    }

    /// Gives all of it back.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.bytes > 0 {
            self.budget.held.fetch_sub(self.bytes, Relaxed);
            self.bytes = 0;
        }
    }

    /// Bytes that keep their part of the budget for as long as they live.
    pub(crate) fn keep(&mut self, bytes: Vec<u8>) -> Bytes {
        if self.bytes == 0 {
            return bytes.into();
        }
        let share = std::mem::replace(self, self.budget.share());
        Bytes::from_owner(Kept { bytes, _share: share })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}

struct Kept {
    bytes: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_bytes_return_to_the_budget() {
        let budget = Budget::new(10_000);
        let mut first = budget.share();
        assert_eq!(first.grow(8_000), Ok(()));
        assert_eq!(budget.share().grow(3_000), Err(Failure::Full));
        assert_eq!(first.grow(11_000), Err(Failure::Full));
        assert_eq!(first.grow(10_000), Ok(()));
        assert!(budget.is_full());
        let bytes = first.keep(vec![b'x'; 100]);
        let part = bytes.slice(10..20);
        drop((first, bytes));
        assert!(budget.is_full(), "a part holds the whole");
        drop(part);
        assert_eq!(budget.share().grow(10_000), Ok(()));
        let small = budget.hold(vec![0; 100]);
        assert_eq!(budget.held.load(Relaxed), 0);
        drop(small);
    }
}
