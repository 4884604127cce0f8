//! A slow call borrows the keys that it has marked.
#![allow(unsafe_code, reason = "marks say who may touch what, and no compiler knows them")]

use crate::keyspace::{Access, Key, View};

/// Has the view borrow what `keys` hold. They must be those that the slow call under way has marked, on the database of the
/// view, which must be dropped before its marks are.
pub(in crate::exec) fn lend(view: &mut View<'_>, keys: &[(Key<'_>, Access)]) {
    if keys.is_empty() {
        return;
    }
    // SAFETY: every maker of a view of keys that others use too is one of these:
    // - a worker, in a window (`Exclusive::enter`). Windows that began before the keys were marked are over:
    //   `Exclusive::enter_slow` waits for them. A later window asks `Exclusive::forbids` about each key that it will
    //   lock. It leaves out calls that would change a marked key, or read a key that is marked to be changed.
    //   `blocking`, which serves waiters under the locks of a window, asks about their keys, too.
    // - another slow call: of two whose marks forbid each other `Exclusive::enter_slow` lets the later one wait.
    // - a thread that is alone (`Exclusive::stop`), which no thread is while slow calls are at work.
    unsafe { view.lend(keys) };
}
