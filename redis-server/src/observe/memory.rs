//! How much memory the process uses: an allocator that counts, and what the system says.
#![allow(unsafe_code, reason = "a global allocator is unsafe by nature; this one only counts and hands on")]

mod allocator;
mod excess;

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

pub use allocator::{give_back, report as allocator_report, version as allocator_version};
pub use excess::{Excess, Wanted};

/// The allocator's memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct AllocatorPages {
    /// For data, in use or free.
    pub active: u64,
    /// In physical memory.
    pub resident: u64,
}

impl AllocatorPages {
    /// The pages now, while `used` bytes are in use. mimalloc does not count the pages that it has given back, so its pages are
    /// the resident memory that belongs to no file. Pages in use may never have been touched.
    pub fn now(used: u64) -> Self {
        let resident = resident_anonymous().max(1);
        Self { active: resident.max(used), resident }
    }
}

/// Bytes by which a thread's count may run ahead of the shared one: small enough for the sum to be true within
/// kilobytes, large enough for the shared line to be written once in a hundred allocations.
const FLUSH: i64 = 8 * 1024;

/// Bytes in use, without what threads have not reported yet.
static USED: AtomicI64 = AtomicI64::new(0);
/// The most that there were.
static PEAK: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// Bytes that this thread has allocated less freed since it last reported. Constant and without a destructor,
    /// so that it may be used by an allocator, at every moment of a thread's life.
    static UNREPORTED: Cell<i64> = const { Cell::new(0) };
    /// Those that it has reported.
    static REPORTED: Cell<i64> = const { Cell::new(0) };
}

/// An allocator that counts the bytes in use: `#[global_allocator] static A: Counting<Allocator> = Counting(Allocator);`
///
/// Each thread counts for itself; [`used`] is true to within 8 KiB per thread.
#[derive(Debug)]
pub struct Counting<A>(pub A);

// SAFETY: every call is handed to the inner allocator with its arguments unchanged, and its result is handed back
// unchanged; the counting beside it neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc`, which is the inner allocator's.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the inner allocator's.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's block comes from this allocator, hence from the inner one, with this layout.
        unsafe { self.0.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as for `dealloc`; the new size is the caller's promise.
        unsafe { self.0.realloc(block, layout, size) }
    }
}

/// Counts bytes that this thread has allocated, or freed.
#[inline]
pub(crate) fn count(bytes: i64) {
    UNREPORTED.with(|unreported| {
        let sum = unreported.get() + bytes;
        if sum.unsigned_abs() < FLUSH as u64 {
            unreported.set(sum);
        } else {
            unreported.set(0);
            flush(sum);
        }
    });
}

#[cold]
fn flush(bytes: i64) {
    REPORTED.with(|reported| reported.set(reported.get() + bytes));
    let used = USED.fetch_add(bytes, Relaxed) + bytes;
    if used > PEAK.load(Relaxed) {
        PEAK.fetch_max(used, Relaxed);
    }
}

/// Bytes in use by all threads; 0 when the process has another allocator.
#[inline]
pub fn used() -> u64 {
    u64::try_from(USED.load(Relaxed)).unwrap_or(0)
}

/// [`used`], with all that this thread has allocated and freed.
pub fn used_here() -> u64 {
    u64::try_from(USED.load(Relaxed) + UNREPORTED.with(Cell::get)).unwrap_or(0)
}

/// Bytes that this thread has allocated less freed since it began.
#[cfg(feature = "search")]
pub(crate) fn of_thread() -> i64 {
    REPORTED.with(Cell::get) + UNREPORTED.with(Cell::get)
}

/// The most bytes that were in use.
pub fn peak() -> u64 {
    u64::try_from(PEAK.load(Relaxed)).unwrap_or(0).max(used())
}

/// Bytes of the process that are in physical memory, as the system counts them; 0 where it does not say.
pub fn resident() -> u64 {
    kilobytes("/proc/self/status", "VmRSS:")
}

/// Of [`resident`] what is no file's: the allocator's memory, and stacks.
pub fn resident_anonymous() -> u64 {
    kilobytes("/proc/self/status", "RssAnon:")
}

/// Bytes of physical memory that the machine has; 0 where it does not say.
pub fn of_system() -> u64 {
    kilobytes("/proc/meminfo", "MemTotal:")
}

/// A line like `VmRSS:   1234 kB` of a file under /proc, in bytes.
fn kilobytes(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok());
    value.map_or(0, |kilobytes: u64| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use std::alloc::System;

    use super::*;

    #[test]
    fn counts_what_is_allocated_and_freed() {
        // Not installed: the counts are only those of this test, on a thread of its own.
        std::thread::spawn(|| {
            let allocator = Counting(System);
            let layout = Layout::from_size_align(1 << 20, 8).unwrap();
            // SAFETY: the layout is not empty; the block is freed once, with the layout of its last size.
            unsafe {
                let block = allocator.alloc(layout);
                assert_eq!(used(), 1 << 20);
                let block = allocator.realloc(block, layout, 3 << 20);
                assert_eq!(used(), 3 << 20);
                allocator.dealloc(block, Layout::from_size_align(3 << 20, 8).unwrap());
                let zeroed = allocator.alloc_zeroed(layout);
                assert_eq!(zeroed.read(), 0);
                allocator.dealloc(zeroed, layout);
            }
            assert_eq!((used(), peak()), (0, 3 << 20));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_system_knows_us() {
        assert!(resident() > 1 << 16);
        assert!(of_system() > resident());
    }
}
