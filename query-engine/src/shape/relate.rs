//! How two shapes lie to each other.

use super::{Location, MAX_WORK, Position, Relation, Shape, ShapeError, Surface, is_between};

/// How two edges meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// Not at all.
    Apart,
    /// At a point inside of both.
    Cross,
    /// At an end of one of them, or along a part.
    Touch,
}

type Edge = (Position, Position);

impl Surface {
    pub(super) fn meeting(self, (a, b): Edge, (c, d): Edge) -> Meeting {
        let sides = (self.side(a, b, c), self.side(a, b, d), self.side(c, d, a), self.side(c, d, b));
        let (one, two, three, four) = sides;
        // Where `c` lies left, `a` lies right of the other edge, unless they meet on the far side of the earth.
        if one != 0 && one == -two && three != 0 && three == -four && one == -three {
            return Meeting::Cross;
        }
        let touches = one == 0 && is_between(self, a, b, c)
            || two == 0 && is_between(self, a, b, d)
            || three == 0 && is_between(self, c, d, a)
            || four == 0 && is_between(self, c, d, b);
        if touches { Meeting::Touch } else { Meeting::Apart }
    }
}

impl Shape {
    /// True if the relation holds from this shape to that of a query.
    ///
    /// # Errors
    /// Both have so many edges near each other that it takes too long.
    pub(super) fn holds(&self, relation: Relation, query: &Self) -> Result<bool, ShapeError> {
        let mut work = MAX_WORK;
        match relation {
            Relation::Contains => query.lies_in(self, &mut work),
            Relation::Within => self.lies_in(query, &mut work),
            Relation::Intersects => self.meets(query, &mut work),
            Relation::Disjoint => Ok(!self.meets(query, &mut work)?),
        }
    }

    fn meets(&self, other: &Self, work: &mut usize) -> Result<bool, ShapeError> {
        if !self.bounds.meets(&other.bounds) {
            return Ok(false);
        }
        let found = self.tree.pairs(&other.tree, work, |one, two| {
            let meeting = self.surface.meeting(self.edge(one), other.edge(two));
            (meeting != Meeting::Apart).then_some(())
        })?;
        let first = |shape: &Self| shape.rings[0].points[0];
        Ok(found.is_some()
            || other.locate(first(self)) != Location::Outside
            || self.locate(first(other)) != Location::Outside)
    }

    /// True if all of it lies in `other`, and not on its boundary alone. Nothing lies in a point.
    fn lies_in(&self, other: &Self, work: &mut usize) -> Result<bool, ShapeError> {
        if other.is_point() || !self.bounds.meets(&other.bounds) {
            return Ok(false);
        }
        if self.is_point() {
            return Ok(other.locate(self.rings[0].points[0]) == Location::Inside);
        }
        let (mut own, mut others) = (vec![Vec::new(); self.tree_len()], vec![Vec::new(); other.tree_len()]);
        let crossing = self.tree.pairs(&other.tree, work, |one, two| {
            let (edge, border) = (self.edge(one), other.edge(two));
            match self.surface.meeting(edge, border) {
                Meeting::Apart => None,
                Meeting::Cross => Some(()),
                Meeting::Touch => {
                    note_touches(self.surface, edge, border, &mut own[one]);
                    note_touches(self.surface, border, edge, &mut others[two]);
                    None
                }
            }
        })?;
        if crossing.is_some() {
            return Ok(false);
        }
        // Where boundaries do not cross, the parts between their touches lie on one side of the other shape.
        let mut is_inside = false;
        for part in self.parts(&own) {
            spend(work, other)?;
            match other.locate(part) {
                Location::Outside => return Ok(false),
                Location::Inside => is_inside = true,
                Location::Boundary => {}
            }
        }
        for part in other.parts(&others) {
            spend(work, self)?;
            if self.locate(part) == Location::Inside {
                return Ok(false);
            }
        }
        Ok(is_inside || self.inner_point().is_some_and(|point| other.locate(point) == Location::Inside))
    }

    fn tree_len(&self) -> usize {
        self.point_count()
    }

    /// A position of each part of the boundary that lies on one side of another shape: one per ring, and one between touches.
    fn parts<'s>(&'s self, touches: &'s [Vec<Position>]) -> impl Iterator<Item = Position> + 's {
        let mut number = 0;
        self.rings
            .iter()
            .flat_map(move |ring| {
                let first = number;
                number += ring.points.len();
                (first..number).filter(move |at| *at == first || !touches[*at].is_empty())
            })
            .flat_map(move |at| {
                let (from, to) = self.edge(at);
                let distance = |position: &Position| {
                    let way = super::subtract(*position, from);
                    super::dot(way, way)
                };
                let mut ends = touches[at].clone();
                ends.extend([from, to]);
                ends.sort_by(|one, other| distance(one).total_cmp(&distance(other)));
                ends.dedup_by(|one, other| self.surface.is_same(*one, *other));
                ends.windows(2).map(|pair| self.surface.middle(pair[0], pair[1])).collect::<Vec<_>>()
            })
    }

    /// A position inside: in a corner, the nearer to it the less holes reach there.
    fn inner_point(&self) -> Option<Position> {
        /// Corners, and distances from each that are tried.
        const CORNERS: usize = 64;
        const HALVES: usize = 16;
        let points = &self.rings[0].points;
        (0..points.len()).take(CORNERS).find_map(|at| {
            let at = |step: usize| points[(at + step) % points.len()];
            let mut point = self.surface.middle(at(0), at(2));
            (0..HALVES).find_map(|_| {
                point = self.surface.middle(point, at(1));
                (self.locate(point) == Location::Inside).then_some(point)
            })
        })
    }
}

/// Looking for a position costs as much as a shape has edges.
fn spend(work: &mut usize, shape: &Shape) -> Result<(), ShapeError> {
    *work = work.checked_sub(shape.point_count()).ok_or(ShapeError::TooComplex)?;
    Ok(())
}

/// The ends of `border` that lie on an edge.
fn note_touches(surface: Surface, (from, to): Edge, border: Edge, touches: &mut Vec<Position>) {
    touches.extend([border.0, border.1].into_iter().filter(|end| is_between(surface, from, to, *end)));
    // An end of the edge on the border splits nothing, and yet begins a part.
    touches.extend([from, to].into_iter().filter(|end| is_between(surface, border.0, border.1, *end)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str, surface: Surface) -> Shape {
        Shape::parse(text.as_bytes(), surface).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The relations of RediSearch 2.10.5 for a shape of a document and one of a query.
    #[test]
    fn shapes_lie_to_each_other() {
        let check = |document: &str, query: &str, expected: &str| {
            for surface in [Surface::Flat, Surface::Spherical] {
                let (document, query) = (shape(document, surface), shape(query, surface));
                let relations = [
                    ("contains", Relation::Contains),
                    ("within", Relation::Within),
                    ("intersects", Relation::Intersects),
                    ("disjoint", Relation::Disjoint),
                ];
                let found = relations.iter().filter(|(_, relation)| document.holds(*relation, &query) == Ok(true));
                let names: Vec<_> = found.map(|(name, _)| *name).collect();
                assert_eq!(names.join(" "), expected, "{document:?} {query:?}");
            }
        };
        let square = "POLYGON((0 0,0 10,10 10,10 0,0 0))";
        let ring = "POLYGON((0 0,0 10,10 10,10 0,0 0),(2 2,2 8,8 8,8 2,2 2))";
        check("POINT(5 5)", square, "within intersects");
        check("POINT(0 5)", square, "intersects");
        check("POINT(0 0)", square, "intersects");
        check("POINT(11 5)", square, "disjoint");
        check("POINT(5 5)", "POINT(5 5)", "intersects");
        check("POINT(5 5)", "POINT(5 6)", "disjoint");
        check("POINT(5 5)", ring, "disjoint");
        check("POINT(2 5)", ring, "intersects");
        check(square, "POINT(5 5)", "contains intersects");
        check(square, "POINT(10 5)", "intersects");
        check(square, square, "contains within intersects");
        check(ring, ring, "contains within intersects");
        check(square, ring, "contains intersects");
        check("POLYGON((2 2,2 8,8 8,8 2,2 2))", ring, "intersects");
        check("POLYGON((3 3,3 7,7 7,7 3,3 3))", ring, "disjoint");
        check("POLYGON((1 1,1 9,9 9,9 1,1 1))", ring, "intersects");
        check("POLYGON((1 1,1 9,9 9,9 1,1 1),(2 2,2 8,8 8,8 2,2 2))", ring, "within intersects");
        check("POLYGON((0 0,0 5,5 0,0 0))", square, "within intersects");
        check("POLYGON((0 2,5 5,0 8,0 2))", square, "within intersects");
        check("POLYGON((0 2,-5 5,0 8,0 2))", square, "intersects");
        check("POLYGON((-1 2,5 5,-1 8,-1 2))", square, "intersects");
        check("POLYGON((20 0,20 10,30 10,30 0,20 0))", square, "disjoint");
        check("POLYGON((10 0,10 10,20 10,20 0,10 0))", square, "intersects");
        check("POLYGON((-1 -1,-1 11,11 11,11 -1,-1 -1))", square, "contains intersects");
        check("POLYGON((-1 4,-1 6,11 6,11 4,-1 4))", square, "intersects");
        check("POLYGON((10 10,20 10,20 20,10 10))", square, "intersects");
    }

    #[test]
    fn the_earth_is_round() {
        let holds = |document: &str, relation, query: &str| {
            let shapes = [document, query].map(|text| shape(text, Surface::Spherical));
            shapes[0].holds(relation, &shapes[1]).unwrap()
        };
        // An arc between places of the same latitude runs nearer to the pole.
        let strip = "POLYGON((0 49,90 49,90 50,0 50,0 49))";
        assert!(!holds("POINT(45 49.5)", Relation::Within, strip));
        assert!(holds("POINT(45 59)", Relation::Within, strip));
        // The date line, and a pole.
        let date_line = "POLYGON((170 -10,-170 -10,-170 10,170 10,170 -10))";
        assert!(holds("POINT(180 0)", Relation::Within, date_line));
        assert!(holds("POINT(-179 5)", Relation::Within, date_line));
        assert!(!holds("POINT(0 0)", Relation::Intersects, date_line));
        let arctic = "POLYGON((0 80,90 80,180 80,-90 80,0 80))";
        assert!(holds("POINT(0 90)", Relation::Within, arctic));
        assert!(holds("POINT(45 85)", Relation::Within, arctic));
        assert!(!holds("POINT(45 -85)", Relation::Intersects, arctic));
        assert!(holds("POLYGON((0 89,120 89,-120 89,0 89))", Relation::Within, arctic));
    }
}
