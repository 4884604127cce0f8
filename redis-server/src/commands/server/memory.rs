//! `MEMORY`: what values take.

use crate::db::{StrRef, ValueRef};

/// Bytes of a value outside its entry's block.
pub(super) fn payload(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Str(StrRef::Shared(bytes)) => bytes.len(),
        ValueRef::Str(string) => string.len(),
        ValueRef::List(list) => list.memory(),
        ValueRef::Hash(hash) => hash.memory(),
        ValueRef::Set(set) => set.memory(),
        ValueRef::SortedSet(set) => set.memory(),
    }
}
