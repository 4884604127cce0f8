//! Boxes around edges, and trees of them, so that few pairs of edges are compared.

use super::{Position, ShapeError, Surface, dot, subtract};

/// Edges of a leaf, and boxes of a node.
const WIDTH: usize = 8;

/// A box with sides along the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    pub(super) low: Position,
    pub(super) high: Position,
}

impl Bounds {
    const EMPTY: Self = Self { low: [f64::INFINITY; 3], high: [f64::NEG_INFINITY; 3] };

    /// The box of an edge. An arc rises over its chord.
    pub(super) fn of_edge(surface: Surface, from: Position, to: Position) -> Self {
        let mut bounds = Self::EMPTY;
        bounds.add(from);
        bounds.add(to);
        let room = match surface {
            Surface::Flat => 0.0,
            Surface::Spherical => {
                let chord = subtract(to, from);
                1.0 - (1.0 - dot(chord, chord) / 4.0).max(0.0).sqrt() + 4.0 * f64::EPSILON
            }
        };
        Self { low: bounds.low.map(|part| part - room), high: bounds.high.map(|part| part + room) }
    }

    pub(super) fn add(&mut self, position: Position) {
        for ((low, high), part) in self.low.iter_mut().zip(&mut self.high).zip(position) {
            *low = low.min(part);
            *high = high.max(part);
        }
    }

    fn join(&mut self, other: &Self) {
        self.add(other.low);
        self.add(other.high);
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        (0..3).all(|axis| self.low[axis] <= other.high[axis] && other.low[axis] <= self.high[axis])
    }
}

/// Boxes of edges in their order, and boxes of these.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    /// The lowest level has the edges, the highest one box.
    levels: Vec<Vec<Bounds>>,
}

/// A box by its level and its place there.
type Place = (usize, usize);

impl Tree {
    pub(super) fn new(edges: impl Iterator<Item = Bounds>) -> Self {
        let mut levels = vec![edges.collect::<Vec<_>>()];
        while levels.last().is_some_and(|level| level.len() > 1) {
            let below = levels.last().map_or(&[][..], Vec::as_slice);
            let around = |boxes: &[Bounds]| {
                boxes.iter().fold(Bounds::EMPTY, |mut all, one| {
                    all.join(one);
                    all
                })
            };
            levels.push(below.chunks(WIDTH).map(around).collect());
        }
        Self { levels }
    }

    /// The box around all edges.
    pub(super) fn bounds(&self) -> Bounds {
        self.levels.last().and_then(|level| level.first()).copied().unwrap_or(Bounds::EMPTY)
    }

    pub(super) fn memory(&self) -> usize {
        self.levels.iter().map(|level| level.len() * size_of::<Bounds>()).sum()
    }

    fn top(&self) -> Place {
        (self.levels.len() - 1, 0)
    }

    fn bounds_at(&self, (level, at): Place) -> &Bounds {
        &self.levels[level][at]
    }

    /// The boxes inside of one; none of an edge.
    fn inside(&self, (level, at): Place) -> impl Iterator<Item = Place> + use<> {
        let below = level.checked_sub(1);
        let length = below.map_or(0, |below| self.levels[below].len());
        (at * WIDTH..length.min((at + 1) * WIDTH)).map(move |at| (below.unwrap_or(0), at))
    }

    /// Calls `visit` with the numbers of an edge of this tree and one of the other whose boxes meet, until it returns a value.
    ///
    /// # Errors
    /// The work is used up.
    pub(super) fn pairs<R>(
        &self,
        other: &Self,
        work: &mut usize,
        mut visit: impl FnMut(usize, usize) -> Option<R>,
    ) -> Result<Option<R>, ShapeError> {
        let mut open = vec![(self.top(), other.top())];
        while let Some((one, two)) = open.pop() {
            *work = work.checked_sub(1).ok_or(ShapeError::TooComplex)?;
            if !self.bounds_at(one).meets(other.bounds_at(two)) {
                continue;
            }
            match (one.0, two.0) {
                (0, 0) => {
                    if let Some(result) = visit(one.1, two.1) {
                        return Ok(Some(result));
                    }
                }
                (level, below) if level >= below => open.extend(self.inside(one).map(|one| (one, two))),
                _ => open.extend(other.inside(two).map(|two| (one, two))),
            }
        }
        Ok(None)
    }
}
