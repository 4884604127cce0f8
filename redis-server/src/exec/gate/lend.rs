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
    // - a worker, in a window (`Exclusive::enter`). Those that had begun when the keys were marked are over, as
    //   `Exclusive::enter_slow` waits for them; one that begins later asks `Exclusive::forbids` for all that it will lock and
    //   leaves out calls that want to change what is marked, or to look at what is marked to be changed; and `blocking` asks
    //   for keys that a window has locked, but not for itself.
    // - another slow call: of two whose marks forbid each other `Exclusive::enter_slow` lets the later one wait.
    // - a thread that is alone (`Exclusive::stop`), which no thread is while slow calls are at work.
    unsafe { view.lend(keys) };
}
