//! The containers around values.

use super::node::{Children, Node};

/// The holder of the root.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A container on the way to a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    /// Where it begins.
    pub(super) at: u32,
    /// The number of the container that it is in.
    pub(super) parent: u32,
    /// Containers around it, itself included.
    pub(super) depth: u32,
}

/// Where a value is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Where it begins.
    pub(super) at: u32,
    /// Where its member begins, if it is in an object.
    pub(super) member: u32,
    /// The number of the container that it is in.
    pub(super) holder: u32,
}

/// Values, and the containers that they are in.
#[derive(Debug, Default)]
pub(super) struct Matches {
    pub(super) places: Vec<Place>,
    pub(super) holders: Vec<Holder>,
}

/// Finds the containers around values by going down to each of them.
pub(super) fn locate(document: &[u8], found: &[u32]) -> Matches {
    let mut order: Vec<u32> = (0..found.len() as u32).collect();
    order.sort_unstable_by_key(|index| found[*index as usize]);
    let mut matches =
        Matches { places: vec![Place { at: 0, member: 0, holder: NOWHERE }; found.len()], holders: Vec::new() };
    let mut wanted = order.into_iter().peekable();
    // The root is in nothing.
    while wanted.next_if(|index| found[*index as usize] == 0).is_some() {}
    // Containers that are open, with what is left of their values.
    let mut open = Vec::new();
    let enter = |matches: &mut Matches, node: Node<'_>, parent: u32, depth: u32| {
        matches.holders.push(Holder { at: node.at() as u32, parent, depth });
        matches.holders.len() as u32 - 1
    };
    let root = Node::new(document, 0);
    if wanted.peek().is_some() {
        open.push((enter(&mut matches, root, NOWHERE, 1), Children::of(root)));
    }
    while let Some((holder, children)) = open.last_mut() {
        let holder = *holder;
        let (Some(_), Some((member, node))) = (wanted.peek(), children.next()) else {
            open.pop();
            continue;
        };
        let at = node.at() as u32;
        while let Some(index) = wanted.next_if(|index| found[*index as usize] == at) {
            matches.places[index as usize] = Place { at, member: member as u32, holder };
        }
        let has_more = wanted.peek().is_some_and(|index| (found[*index as usize] as usize) < node.end());
        if has_more {
            let depth = open.len() as u32 + 1;
            open.push((enter(&mut matches, node, holder, depth), Children::of(node)));
        }
    }
    matches
}
