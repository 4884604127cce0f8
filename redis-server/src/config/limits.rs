//! The sizes at which collections change their representation.

use super::{Config, settings};
use crate::types::{HashLimits, ListLimits, SetLimits, SortedSetLimits};

impl Config {
    /// For hashes.
    pub fn hash_limits(&self) -> HashLimits {
        HashLimits {
            max_listpack_entries: self.size(settings::HASH_MAX_LISTPACK_ENTRIES),
            max_listpack_value: self.size(settings::HASH_MAX_LISTPACK_VALUE),
        }
    }

    /// For lists.
    pub fn list_limits(&self) -> ListLimits {
        ListLimits { max_listpack_size: self.int(settings::LIST_MAX_LISTPACK_SIZE) }
    }

    /// For sets.
    pub fn set_limits(&self) -> SetLimits {
        SetLimits {
            max_intset_entries: self.size(settings::SET_MAX_INTSET_ENTRIES),
            max_listpack_entries: self.size(settings::SET_MAX_LISTPACK_ENTRIES),
            max_listpack_value: self.size(settings::SET_MAX_LISTPACK_VALUE),
        }
    }

    /// For sorted sets.
    pub fn sorted_set_limits(&self) -> SortedSetLimits {
        SortedSetLimits {
            max_listpack_entries: self.size(settings::ZSET_MAX_LISTPACK_ENTRIES),
            max_listpack_value: self.size(settings::ZSET_MAX_LISTPACK_VALUE),
        }
    }
}
