//! The sizes at which collections change their representation, from the configuration.

use crate::config::settings;
use crate::exec::Ctx;
use crate::types::{HashLimits, ListLimits, SetLimits, SortedSetLimits};

impl Ctx<'_> {
    /// For hashes.
    pub(super) fn hash_limits(&self) -> HashLimits {
        let config = &self.instance.config;
        HashLimits {
            max_listpack_entries: config.size(settings::HASH_MAX_LISTPACK_ENTRIES),
            max_listpack_value: config.size(settings::HASH_MAX_LISTPACK_VALUE),
        }
    }

    /// For lists.
    pub(super) fn list_limits(&self) -> ListLimits {
        ListLimits { max_listpack_size: self.instance.config.int(settings::LIST_MAX_LISTPACK_SIZE) }
    }

    /// For sets.
    pub(super) fn set_limits(&self) -> SetLimits {
        let config = &self.instance.config;
        SetLimits {
            max_intset_entries: config.size(settings::SET_MAX_INTSET_ENTRIES),
            max_listpack_entries: config.size(settings::SET_MAX_LISTPACK_ENTRIES),
            max_listpack_value: config.size(settings::SET_MAX_LISTPACK_VALUE),
        }
    }

    /// For sorted sets.
    pub(super) fn sorted_set_limits(&self) -> SortedSetLimits {
        let config = &self.instance.config;
        SortedSetLimits {
            max_listpack_entries: config.size(settings::ZSET_MAX_LISTPACK_ENTRIES),
            max_listpack_value: config.size(settings::ZSET_MAX_LISTPACK_VALUE),
        }
    }
}
