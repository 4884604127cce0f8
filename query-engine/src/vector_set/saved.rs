//! Sets to their parts and back, for files.

use super::{Element, Quantization, VectorSet, VectorSetError, VectorSetOptions};
use crate::vector::MAX_LEVEL;

/// An element of a set with its place in the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node<'n> {
    /// Its name.
    pub name: &'n [u8],
    /// JSON; empty if there is none.
    pub attributes: &'n [u8],
    /// The number by which others name it.
    pub id: u64,
    /// The vector as it is kept, little-endian: floats, a byte per element (Q8), or words of 64 bits.
    pub vector: Vec<u8>,
    /// The length of the vector as it was given, after the projection.
    pub length: f32,
    /// The greatest absolute element of a Q8 vector of length 1.
    pub range: f32,
    /// The numbers of its neighbours, from level 0 up.
    pub levels: Vec<Vec<u64>>,
}

impl VectorSet {
    /// All elements, for [`VectorSetBuilder`].
    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        self.index.labels().iter().filter_map(|label| self.node(*label))
    }

    /// An element as it is kept.
    #[must_use]
    pub fn node_of(&self, name: &[u8]) -> Option<Node<'_>> {
        self.node(*self.labels.get(name)?)
    }

    fn node(&self, id: u64) -> Option<Node<'_>> {
        let (element, (vector, range)) = (self.elements.get(&id)?, self.index.packed(id)?);
        let mut levels = self.index.links(id)?;
        levels.reverse();
        let Element { name, attributes, length } = element;
        Some(Node { name, attributes, id, vector, length: *length, range, levels })
    }
}

/// A set that is made of saved elements.
#[derive(Debug)]
pub struct VectorSetBuilder {
    set: VectorSet,
    links: Vec<Vec<Vec<u64>>>,
}

impl VectorSetBuilder {
    /// One of a set without elements.
    ///
    /// # Errors
    /// Those of [`VectorSet::new`].
    pub fn new(dimensions: usize, options: VectorSetOptions) -> Result<Self, VectorSetError> {
        Ok(Self { set: VectorSet::new(dimensions, options)?, links: Vec::new() })
    }

    /// Bytes of an element's vector.
    #[must_use]
    pub fn vector_size(&self) -> usize {
        self.set.format.packed_size().unwrap_or(0)
    }

    /// Adds an element; `None` if it fits no set, or another one has its name or number.
    pub fn push(&mut self, node: Node<'_>) -> Option<()> {
        let Node { name, attributes, id, vector, length, range, levels } = node;
        let set = &mut self.set;
        let is_new = !set.labels.contains_key(name) && !set.elements.contains_key(&id);
        if !is_new || !(1..=MAX_LEVEL + 1).contains(&levels.len()) {
            return None;
        }
        let range = if set.options.quantization == Quantization::Q8 { range } else { 1.0 };
        let vector = set.format.unpack(&vector, range)?;
        set.index.append(id, &vector).ok()?;
        set.last = set.last.max(id);
        set.name(name, id, length);
        set.set_attributes(name, attributes);
        self.links.push(levels);
        Some(())
    }

    /// The set; `None` if the links are no graph: each must go to an element on a level that both have, and back.
    #[must_use]
    pub fn finish(mut self) -> Option<VectorSet> {
        self.set.index.restore_links(&self.links)?;
        Some(self.set)
    }
}
