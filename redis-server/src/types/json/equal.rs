//! Whether two values are the same.

use super::node::{Kind, Members, Node};

impl PartialEq for Node<'_> {
    /// As JSON has it, but that an integer is no double: objects with the same members in any order are equal.
    fn eq(&self, other: &Self) -> bool {
        // There is one form for each value; only members may come in another order.
        self.raw() == other.raw() || self.is_container() && is_same_in_any_order(*self, *other)
    }
}

fn is_same_in_any_order<'a>(one: Node<'a>, other: Node<'a>) -> bool {
    match (one.kind(), other.kind()) {
        (Kind::Array(ones), Kind::Array(others)) => ones.len() == others.len() && ones.eq(others),
        (Kind::Object(ones), Kind::Object(others)) => ones.len() == others.len() && sorted(ones) == sorted(others),
        _ => false,
    }
}

fn sorted(members: Members<'_>) -> Vec<(&[u8], Node<'_>)> {
    let mut members: Vec<_> = members.collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    members
}
