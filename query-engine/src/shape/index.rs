//! The shapes of one field, by size and place.

use std::collections::{BTreeMap, HashMap};

use super::boxes::Bounds;
use super::{Relation, Shape};
use crate::index::postings::DocNumber;

/// Shapes of this size or smaller stand in cells of one size: some hundred metres on the earth.
const SMALLEST: i32 = -16;
/// Cells of a level are numbered in 40 bits.
const BITS: i32 = 40;

/// A level, and the place of a cell in it: z, y, x. Cells of level n are 2ⁿ wide.
type Cell = (i32, [i64; 3]);

/// Shapes in cells that are at least as large as they are, so that each shape stands in one cell and reaches into its neighbours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shapes {
    cells: BTreeMap<Cell, Vec<DocNumber>>,
    shapes: HashMap<DocNumber, Box<Shape>>,
    /// Shapes by level.
    levels: BTreeMap<i32, usize>,
}

impl Shapes {
    pub(crate) fn insert(&mut self, shape: Shape, number: DocNumber) {
        let cell = cell_of(&shape.bounds);
        self.cells.entry(cell).or_default().push(number);
        *self.levels.entry(cell.0).or_default() += 1;
        self.shapes.insert(number, Box::new(shape));
    }

    /// The documents whose shapes have a relation to that of a query, until it `is_over`. A pair of shapes that cannot be compared in bounded time counts as
    /// without any relation.
    pub(crate) fn related(&self, relation: Relation, query: &Shape, is_over: &dyn Fn() -> bool) -> Vec<DocNumber> {
        let holds = |number: &DocNumber| {
            !is_over() && self.shapes.get(number).is_some_and(|shape| shape.holds(relation, query) == Ok(true))
        };
        if relation == Relation::Disjoint {
            return self.shapes.keys().copied().filter(holds).collect();
        }
        let mut found = Vec::new();
        for (&level, &count) in &self.levels {
            let (low, high) = (place(&query.bounds.low, level), place(&query.bounds.high, level));
            let (low, high) = (low.map(|part| part - 1), high.map(|part| part + 1));
            let rows = (high[2] - low[2] + 1).saturating_mul(high[1] - low[1] + 1);
            let mut add = |from: [i64; 3], to: [i64; 3]| {
                let cells = self.cells.range((level, from)..=(level, to));
                let near = cells.filter(|((_, [z, y, x]), _)| {
                    (low[2]..=high[2]).contains(z) && (low[1]..=high[1]).contains(y) && (low[0]..=high[0]).contains(x)
                });
                found.extend(near.flat_map(|(_, numbers)| numbers).copied().filter(holds));
            };
            if usize::try_from(rows).is_ok_and(|rows| rows < count) {
                for z in low[2]..=high[2] {
                    (low[1]..=high[1]).for_each(|y| add([z, y, low[0]], [z, y, high[0]]));
                }
            } else {
                add([low[2], i64::MIN, i64::MIN], [high[2], i64::MAX, i64::MAX]);
            }
        }
        found
    }

    /// Shapes, one per document.
    pub(crate) fn count(&self) -> usize {
        self.shapes.len()
    }

    /// Removes the shape of a document that goes. Shapes are large, so they do not wait for compaction.
    pub(crate) fn remove(&mut self, number: DocNumber) {
        let Some(shape) = self.shapes.remove(&number) else { return };
        let cell = cell_of(&shape.bounds);
        if let Some(numbers) = self.cells.get_mut(&cell) {
            numbers.retain(|known| *known != number);
            if numbers.is_empty() {
                self.cells.remove(&cell);
            }
        }
        if let Some(count) = self.levels.get_mut(&cell.0) {
            *count -= 1;
            if *count == 0 {
                self.levels.remove(&cell.0);
            }
        }
    }

    /// Bytes in memory, without `self`. A tree's node is estimated as its entry and a third.
    pub(crate) fn memory(&self) -> usize {
        let cells = self.cells.len() * (size_of::<Cell>() + size_of::<Vec<DocNumber>>()) * 4 / 3;
        let shapes = self.shapes.values().map(|shape| size_of::<Shape>() + shape.memory());
        // In a cell, in the table.
        let each = size_of::<DocNumber>() + size_of::<(DocNumber, Box<Shape>)>() * 8 / 7;
        cells + self.shapes.len() * each + shapes.sum::<usize>()
    }
}

/// The cell of a box's middle, of a level whose cells are at least as wide as the box.
fn cell_of(bounds: &Bounds) -> Cell {
    let axes = [0, 1, 2];
    let width = axes.map(|axis| bounds.high[axis] - bounds.low[axis]).into_iter().fold(0.0, f64::max);
    let farthest = axes.map(|axis| bounds.high[axis].abs().max(bounds.low[axis].abs())).into_iter().fold(0.0, f64::max);
    let exponent = |value: f64| if value > 0.0 { value.log2().ceil() as i32 } else { SMALLEST };
    // Cells of one level are not numbered beyond their bits.
    let level = exponent(width).max(SMALLEST).max(exponent(farthest) - BITS);
    let middle = axes.map(|axis| bounds.low[axis] / 2.0 + bounds.high[axis] / 2.0);
    (level, reversed(place(&middle, level)))
}

fn reversed([x, y, z]: [i64; 3]) -> [i64; 3] {
    [z, y, x]
}

/// The cell of a level that a position lies in.
fn place(position: &[f64; 3], level: i32) -> [i64; 3] {
    // Far away positions of a query stand behind all cells.
    let most = f64::from(1 << 30) * f64::from(1 << 20);
    position.map(|part| (part / f64::from(level).exp2()).floor().clamp(-most, most) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Surface;

    #[test]
    fn the_index_finds_what_a_scan_finds() {
        for surface in [Surface::Flat, Surface::Spherical] {
            let mut shapes = Shapes::default();
            let square = |x: f64, y: f64, size: f64| {
                let (x2, y2) = (x + size, y + size);
                let text = format!("POLYGON(({x} {y},{x} {y2},{x2} {y2},{x2} {y},{x} {y}))");
                Shape::parse(text.as_bytes(), surface).unwrap_or_else(|error| panic!("{text}: {error}"))
            };
            let mut all = HashMap::new();
            for number in 1..400_u64 {
                let (x, y) = ((number * 7919 % 340) as f64 - 170.0, (number * 104_729 % 140) as f64 - 70.0);
                let shape = match number % 5 {
                    0 => Shape::parse(format!("POINT({x} {y})").as_bytes(), surface).unwrap(),
                    size => square(x, y, [0.0001, 0.1, 1.0, 15.0][size as usize - 1]),
                };
                shapes.insert(shape.clone(), number);
                all.insert(number, shape);
            }
            (1..500).filter(|number| number % 7 == 0).for_each(|number| shapes.remove(number));
            all.retain(|number, _| number % 7 != 0);
            assert_eq!((shapes.count(), shapes.levels.values().sum::<usize>()), (all.len(), all.len()));
            for (x, y, size) in [(0.0, 0.0, 30.0), (-170.0, -70.0, 0.5), (100.0, 20.0, 60.0), (1.0, 1.0, 0.001)] {
                let query = square(x, y, size);
                for relation in [Relation::Contains, Relation::Within, Relation::Intersects, Relation::Disjoint] {
                    let mut found = shapes.related(relation, &query, &|| false);
                    found.sort_unstable();
                    let holds = |shape: &Shape| shape.holds(relation, &query) == Ok(true);
                    let mut expected: Vec<_> =
                        all.iter().filter(|(_, shape)| holds(shape)).map(|(at, _)| *at).collect();
                    expected.sort_unstable();
                    assert_eq!(found, expected, "{surface:?} {relation:?} {x} {y} {size}");
                }
            }
            assert!(shapes.related(Relation::Disjoint, &square(0.0, 0.0, 1.0), &|| true).is_empty());
        }
    }

    #[test]
    fn far_and_tiny_places_have_cells() {
        let mut shapes = Shapes::default();
        let texts = ["POINT(1e300 -1e300)", "POINT(1e-300 0)", "POINT(5e15 1)", "POLYGON((0 0,0 1e100,1e100 0,0 0))"];
        for (number, text) in texts.iter().enumerate() {
            shapes.insert(Shape::parse(text.as_bytes(), Surface::Flat).unwrap(), number as u64 + 1);
        }
        for (number, text) in texts.iter().enumerate() {
            let query = Shape::parse(text.as_bytes(), Surface::Flat).unwrap();
            let found = shapes.related(Relation::Intersects, &query, &|| false);
            assert!(found.contains(&(number as u64 + 1)), "{text}: {found:?}");
        }
    }
}
