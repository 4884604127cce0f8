//! Flags of commands for administrators.

use crate::command::Flags;

pub(super) const ANY_TIME: Flags = Flags::LOADING.and(Flags::STALE);

pub(super) const ADMIN: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(ANY_TIME);
