//! The parts that SINTERSTORE, ZUNIONSTORE and the like share.

use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Key, Object, Value};

/// Puts a computed collection of `len` elements in the place of what `key` holds, and answers `len`; an empty one
/// leaves no key behind.
pub(super) fn store(cx: &mut Ctx<'_>, key: &Key<'_>, len: usize, collection: Object, event: Event) {
    cx.reply.count(len);
    let old = if len > 0 { cx.db.replace(key, Value::Object(collection)) } else { cx.db.remove(key) };
    if len > 0 {
        cx.changed(key, event);
    } else if old.is_some() {
        cx.changed(key, Event::DEL);
    }
    if let Some(old) = old {
        let in_background = cx.config().is_on(settings::LAZYFREE_LAZY_SERVER_DEL);
        cx.discard(old, in_background);
    }
}
