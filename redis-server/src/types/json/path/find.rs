//! Evaluation of paths.
//!
//! The work is counted: a step for each value that is looked at. A path with several `..` can reach a value in as many
//! ways as its containers have subsets. A filter can search the whole document for each value. A path that takes too
//! many steps is refused. That limit grows with the document, and is far above the steps of a path with one `..`. The
//! paths of one call share it.

use super::{Segment, Selector};
use crate::types::json::document::{Json, Refused};
use crate::types::json::node::{Children, Kind, Node};

/// Steps for each byte of a document, and those that any document is worth.
const STEPS_PER_BYTE: usize = 32;
const LEAST_STEPS: usize = 1 << 20;

/// The steps that a call may make.
#[derive(Debug)]
pub struct Budget {
    most: usize,
    left: usize,
}

impl Default for Budget {
    /// Those for any document, however small.
    fn default() -> Self {
        Self { most: LEAST_STEPS, left: LEAST_STEPS }
    }
}

impl Budget {
    /// Adds those for a document that the call has not met before, or meets once more by name.
    pub fn add(&mut self, json: &Json) {
        let steps = STEPS_PER_BYTE * json.bytes.len();
        self.most = self.most.saturating_add(steps);
        self.left = self.left.saturating_add(steps);
    }

    fn spend(&mut self, steps: usize) -> Result<(), Refused> {
        self.left = self.left.checked_sub(steps).ok_or(Refused::Work(self.most))?;
        Ok(())
    }
}

/// Where the values begin that steps lead to from the root.
pub(super) fn values(document: &[u8], steps: &[Segment], budget: &mut Budget) -> Result<Vec<u32>, Refused> {
    // All values once, and more of a small document.
    let most = LEAST_STEPS + document.len();
    let mut found = Vec::new();
    let root = Node::new(document, 0);
    let is_all = Finder { root, budget }.walk(root, steps, &mut |node| {
        found.push(node.at() as u32);
        found.len() <= most
    })?;
    if is_all { Ok(found) } else { Err(Refused::Work(most)) }
}

/// Follows paths through a document.
pub(super) struct Finder<'a, 'b> {
    root: Node<'a>,
    budget: &'b mut Budget,
}

/// The callback for each value. It returns false to end the search.
type Take<'t, 'a> = dyn FnMut(Node<'a>) -> bool + 't;

impl<'a> Finder<'a, '_> {
    pub(super) fn root(&self) -> Node<'a> {
        self.root
    }

    /// Counts steps.
    pub(super) fn work(&mut self, steps: usize) -> Result<(), Refused> {
        self.budget.spend(steps)
    }

    /// The first value that steps lead to.
    pub(super) fn first(&mut self, from: Node<'a>, steps: &'a [Segment]) -> Result<Option<Node<'a>>, Refused> {
        let mut first = None;
        self.walk(from, steps, &mut |node| {
            first = Some(node);
            false
        })?;
        Ok(first)
    }

    /// Calls `take` with what steps lead to; whether it wants more. Recurses for each step and each container on the way, which a path's
    /// length and a document's depth bound.
    fn walk(&mut self, from: Node<'a>, steps: &'a [Segment], take: &mut Take<'_, 'a>) -> Result<bool, Refused> {
        self.work(1)?;
        let Some((step, rest)) = steps.split_first() else { return Ok(take(from)) };
        if !from.is_container() {
            return Ok(true);
        }
        if !self.select(from, &step.selector, rest, take)? {
            return Ok(false);
        }
        if step.is_deep {
            for (_, child) in Children::of(from) {
                if !self.walk(child, steps, take)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Applies one step to a container, and the rest of the steps to each match.
    fn select(
        &mut self,
        from: Node<'a>,
        selector: &'a Selector,
        rest: &'a [Segment],
        take: &mut Take<'_, 'a>,
    ) -> Result<bool, Refused> {
        match (selector, from.kind()) {
            (Selector::All, _) => {
                for (_, child) in Children::of(from) {
                    if !self.walk(child, rest, take)? {
                        return Ok(false);
                    }
                }
            }
            (Selector::Filter(filter), _) => {
                for (_, child) in Children::of(from) {
                    if filter.holds(self, child)? && !self.walk(child, rest, take)? {
                        return Ok(false);
                    }
                }
            }
            (Selector::Names(names), Kind::Object(members)) => {
                for name in names {
                    self.work(members.len() / 16)?;
                    if let Some(value) = from.member(name)
                        && !self.walk(value, rest, take)?
                    {
                        return Ok(false);
                    }
                }
            }
            (Selector::Indexes(indexes), Kind::Array(elements)) => {
                for &index in indexes {
                    self.work(elements.len() / 16)?;
                    if let Some(value) = place(index, elements.len()).and_then(|at| elements.clone().nth(at))
                        && !self.walk(value, rest, take)?
                    {
                        return Ok(false);
                    }
                }
            }
            (Selector::Slice { start, end, step }, Kind::Array(elements)) => {
                let (start, end) =
                    (bound(*start, elements.len()), end.map_or(elements.len(), |end| bound(end, elements.len())));
                self.work(elements.len() / 16)?;
                for value in elements.take(end).skip(start).step_by(*step) {
                    if !self.walk(value, rest, take)? {
                        return Ok(false);
                    }
                }
            }
            (Selector::Names(_) | Selector::Indexes(_) | Selector::Slice { .. }, _) => {}
        }
        Ok(true)
    }
}

/// The element that a place means; one that lies in front of the first is the first, as in RedisJSON.
fn place(index: i64, len: usize) -> Option<usize> {
    let at = bound(index, len);
    (at < len).then_some(at)
}

/// An end of a slice, within the array.
fn bound(index: i64, len: usize) -> usize {
    let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    if index < 0 { len.saturating_sub(distance) } else { distance.min(len) }
}
