//! The sizes at which collections change their representation, from the configuration.

use crate::exec::core::Ctx;
use crate::types::{HashLimits, ListLimits, SetLimits, SortedSetLimits};

impl Ctx<'_> {
    /// For hashes.
    pub(super) fn hash_limits(&self) -> HashLimits {
        self.config().hash_limits()
    }

    /// For lists.
    pub(super) fn list_limits(&self) -> ListLimits {
        self.config().list_limits()
    }

    /// For sets.
    pub(super) fn set_limits(&self) -> SetLimits {
        self.config().set_limits()
    }

    /// For sorted sets.
    pub(super) fn sorted_set_limits(&self) -> SortedSetLimits {
        self.config().sorted_set_limits()
    }
}
