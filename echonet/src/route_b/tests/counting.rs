//! The bytes that a thread has in use, counted by the allocator.
#![allow(unsafe_code, reason = "an allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator with a counter.
struct Counting;

thread_local! {
    /// Other tests run on threads of their own.
    static IN_USE: Cell<isize> = const { Cell::new(0) };
}

/// The bytes that this thread has in use. A value that another thread frees counts as in use.
pub(super) fn in_use() -> isize {
    IN_USE.get()
}

fn add(bytes: isize) {
    // Fails while a thread ends, and then no test counts.
    let _ = IN_USE.try_with(|count| count.set(count.get() + bytes));
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract; counting has no effect
// on memory. `realloc` is the default one, by the two functions below.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size().cast_signed());
        // SAFETY: the caller's promises about `layout` are those that `System` wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        add(-layout.size().cast_signed());
        // SAFETY: `pointer` came from `System` with this layout, since `alloc` above gave it.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
