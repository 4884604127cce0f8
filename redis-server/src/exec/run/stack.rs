//! The stack of a command that runs alone, which it can leave for a while.
#![allow(unsafe_code, reason = "a coroutine's yielder has a lifetime that no thread-local can name")]

use std::cell::Cell;
use std::ptr;

use corosensei::Yielder;

use crate::clients::client::Client;

thread_local! {
    /// How the command of this thread leaves its stack for a while.
    static YIELDER: Cell<*const Yielder<(), Client>> = const { Cell::new(ptr::null()) };
}

/// Runs `work` on the stack of `yielder`'s coroutine; [`suspend`] leaves it.
pub(super) fn interruptible<R>(yielder: &Yielder<(), Client>, work: impl FnOnce() -> R) -> R {
    YIELDER.set(yielder);
    let result = work();
    YIELDER.set(ptr::null());
    result
}

/// Leaves the stack of the command of this thread, until it is resumed; `deputy` stands in for its client.
pub(in crate::exec) fn suspend(deputy: Client) {
    let yielder = YIELDER.replace(ptr::null());
    if !yielder.is_null() {
        // SAFETY: the pointer was set by `interruptible` on this very stack, whose frame has not returned, since it resets
        // the pointer when it does; other stacks that run in between set and reset it for themselves.
        unsafe { (*yielder).suspend(deputy) };
    }
    YIELDER.set(yielder);
}
