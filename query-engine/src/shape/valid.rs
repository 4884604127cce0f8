//! Validity of polygons, as Boost judges it: rings without spikes that do not cross, holes inside and beside each other, one connected inside.

use std::collections::HashMap;

use super::relate::Meeting;
use super::{Location, MAX_WORK, Position, Shape, ShapeError, Surface, is_between, subtract};
use crate::query::general;

/// The points of a ring.
type Points = Vec<[f64; 2]>;

/// Judges each ring by itself, without its edges' crossings.
pub(super) fn check_rings(rings: &[Points], surface: Surface) -> Result<(), ShapeError> {
    if rings.iter().any(|ring| ring.len() < 3) {
        return Err(invalid("Geometry has too few points"));
    }
    rings.iter().try_for_each(|ring| match spike(ring, surface) {
        Some(at) => Err(invalid(&format!("Geometry has spikes. A spike point was found with apex at {}", shown(at)))),
        None => Ok(()),
    })?;
    // Rings in the form of an eight have parts of opposite orientation.
    let is_flat = surface == Surface::Flat;
    if is_flat && rings.iter().any(|ring| area(ring) == 0.0) {
        return Err(invalid("Geometry has wrong orientation"));
    }
    Ok(())
}

fn invalid(why: &str) -> ShapeError {
    ShapeError::Invalid(why.to_owned())
}

fn shown([x, y]: [f64; 2]) -> String {
    format!("({}, {})", general(x), general(y))
}

/// A point at which a ring turns back on itself.
fn spike(ring: &Points, surface: Surface) -> Option<[f64; 2]> {
    let at = |number: usize| ring[number % ring.len()];
    (1..=ring.len()).map(|number| [at(number - 1), at(number), at(number + 1)]).find_map(|[before, point, after]| {
        let (way, back) = ([point[0] - before[0], point[1] - before[1]], [after[0] - point[0], after[1] - point[1]]);
        let turns_back = way[0] * back[0] + way[1] * back[1] < 0.0;
        let position = |point| surface.position(point);
        let is_straight = || surface.side(position(before), position(point), position(after)) == 0;
        (turns_back && is_straight()).then_some(point)
    })
}

/// Twice the area of a ring on the plane; negative if it turns right.
fn area(ring: &Points) -> f64 {
    let origin = ring[0];
    let moved = ring.iter().map(|[x, y]| [x - origin[0], y - origin[1]]);
    let next = moved.clone().cycle().skip(1);
    moved.zip(next).map(|(one, other)| one[0] * other[1] - one[1] * other[0]).sum()
}

/// Judges how the rings of a shape lie to themselves and to each other.
pub(super) fn check(shape: &Shape) -> Result<(), ShapeError> {
    let mut work = MAX_WORK;
    let mut touches = Touches::default();
    let found = shape
        .tree
        .pairs(&shape.tree, &mut work, |one, two| if one < two { touches.judge(shape, one, two) } else { None })?;
    if let Some(position) = found {
        let place = shown(shape.surface.coordinates(position));
        let why = "Geometry has invalid self-intersections. A self-intersection point was found at";
        return Err(invalid(&format!("{why} {place}")));
    }
    check_holes(shape, &mut work)?;
    if touches.has_circle() { Err(invalid("Geometry has disconnected interior")) } else { Ok(()) }
}

fn check_holes(shape: &Shape, work: &mut usize) -> Result<(), ShapeError> {
    let (outer, holes) = (&shape.rings[0], &shape.rings[1..]);
    // Rings may touch, but do not cross: any point or middle of an edge that is not on the other ring tells its side.
    let mut side = |of: &super::Ring, other: &super::Ring| {
        for (from, to) in of.edges() {
            for position in [from, shape.surface.middle(from, to)] {
                *work = work.checked_sub(other.points.len()).ok_or(ShapeError::TooComplex)?;
                let location = other.locate(shape.surface, position);
                if location != Location::Boundary {
                    return Ok(location);
                }
            }
        }
        Ok(Location::Boundary)
    };
    for hole in holes {
        if side(hole, outer)? != Location::Inside {
            return Err(invalid("Geometry has interior rings defined outside the outer boundary"));
        }
    }
    for (at, hole) in holes.iter().enumerate() {
        for other in &holes[at + 1..] {
            if side(hole, other)? == Location::Inside || side(other, hole)? == Location::Inside {
                return Err(invalid("Geometry has nested interior rings"));
            }
        }
    }
    Ok(())
}

/// The points at which rings touch each other.
#[derive(Default)]
struct Touches {
    /// Rings by point.
    rings: HashMap<[u64; 3], Vec<usize>>,
}

impl Touches {
    /// A point at which two edges meet although they must not.
    fn judge(&mut self, shape: &Shape, one: usize, two: usize) -> Option<Position> {
        let surface = shape.surface;
        let (edge, other) = (shape.edge(one), shape.edge(two));
        match surface.meeting(edge, other) {
            Meeting::Apart => None,
            Meeting::Cross => crossing(surface, edge, other).filter(|point| !is_pole(surface, *point)),
            Meeting::Touch => {
                let ((ring, at), (other_ring, other_at)) = (shape.place(one), shape.place(two));
                let length = shape.rings[ring].points.len();
                let follows = |before: usize, behind: usize| (before + 1) % length == behind;
                if ring == other_ring && (follows(at, other_at) || follows(other_at, at)) {
                    return self.judge_neighbours(surface, edge, other);
                }
                let ends = [other.0, other.1].into_iter().filter(|end| is_between(surface, edge.0, edge.1, *end));
                let own_ends = [edge.0, edge.1].into_iter().filter(|end| is_between(surface, other.0, other.1, *end));
                let mut points: Vec<Position> = ends.chain(own_ends).collect();
                points.dedup_by(|one, other| surface.is_same(*one, *other));
                if points.len() > 1 && !surface.is_same(points[0], points[1]) {
                    // They share a part.
                    return points.first().copied();
                }
                let point = *points.first()?;
                if ring == other_ring {
                    return Some(point);
                }
                let rings = self.rings.entry(point.map(|part| (part + 0.0).to_bits())).or_default();
                rings.extend([ring, other_ring]);
                let (path, other_path) = (path(shape, one, point), path(shape, two, point));
                crosses_path(surface, point, path, other_path).then_some(point)
            }
        }
    }

    /// Edges that follow each other share an end, and nothing else.
    fn judge_neighbours(
        &self,
        surface: Surface,
        edge: (Position, Position),
        other: (Position, Position),
    ) -> Option<Position> {
        let shared = |point: &Position| surface.is_same(*point, other.0) || surface.is_same(*point, other.1);
        let beyond =
            [edge.0, edge.1].into_iter().find(|end| !shared(end) && is_between(surface, other.0, other.1, *end));
        beyond.or_else(|| {
            let own = |point: &Position| surface.is_same(*point, edge.0) || surface.is_same(*point, edge.1);
            [other.0, other.1].into_iter().find(|end| !own(end) && is_between(surface, edge.0, edge.1, *end))
        })
    }

    /// True if rings are joined in a circle, which cuts the inside in two.
    fn has_circle(&self) -> bool {
        let mut groups: HashMap<usize, usize> = HashMap::new();
        for rings in self.rings.values() {
            let mut rings = rings.clone();
            rings.sort_unstable();
            rings.dedup();
            for pair in rings.windows(2) {
                let (one, other) = (first_of(&groups, pair[0]), first_of(&groups, pair[1]));
                if one == other {
                    return true;
                }
                groups.insert(one, other);
            }
        }
        false
    }
}

/// The ring that stands for the group of a ring.
fn first_of(groups: &HashMap<usize, usize>, mut ring: usize) -> usize {
    while let Some(&above) = groups.get(&ring) {
        ring = above;
    }
    ring
}

/// The point at which two edges cross.
fn crossing(surface: Surface, (a, b): (Position, Position), (c, d): (Position, Position)) -> Option<Position> {
    match surface {
        Surface::Flat => {
            let (ab, cd, ac) = (subtract(b, a), subtract(d, c), subtract(c, a));
            let part = (ac[0] * cd[1] - ac[1] * cd[0]) / (ab[0] * cd[1] - ab[1] * cd[0]);
            Some([part.mul_add(ab[0], a[0]), part.mul_add(ab[1], a[1]), 1.0])
        }
        Surface::Spherical => {
            let point = super::unit(super::cross(super::cross(a, b), super::cross(c, d)));
            let is_near = super::dot(point, super::add(a, b)) > 0.0;
            Some(if is_near { point } else { point.map(|part| -part) })
        }
    }
}

/// Boost lets meridians cross at a pole.
fn is_pole(surface: Surface, point: Position) -> bool {
    surface == Surface::Spherical && point[0].hypot(point[1]) < 1e-9
}

/// The points before and behind a point of a ring's edge.
fn path(shape: &Shape, edge: usize, point: Position) -> [Position; 2] {
    let (ring, at) = shape.place(edge);
    let points = &shape.rings[ring].points;
    let (from, to) = shape.edge(edge);
    if shape.surface.is_same(from, point) {
        return [points[(at + points.len() - 1) % points.len()], to];
    }
    if shape.surface.is_same(to, point) {
        return [from, points[(at + 2) % points.len()]];
    }
    [from, to]
}

/// True if `towards` lies left of the path through a point.
fn is_left(surface: Surface, point: Position, [before, behind]: [Position; 2], towards: Position) -> bool {
    let side = |one, other| surface.side(point, one, other);
    match side(behind, before) {
        turn if turn > 0 => side(behind, towards) > 0 && side(towards, before) > 0,
        turn if turn < 0 => !(side(before, towards) >= 0 && side(towards, behind) >= 0),
        _ => side(behind, towards) > 0,
    }
}

/// True if two paths cross at the point that they share.
fn crosses_path(surface: Surface, point: Position, path: [Position; 2], other: [Position; 2]) -> bool {
    is_left(surface, point, path, other[0]) != is_left(surface, point, path, other[1])
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn verdict(text: &str, surface: Surface) -> String {
        Shape::parse(text.as_bytes(), surface).map_or_else(|error| error.to_string(), |_| "valid".to_owned())
    }

    /// The verdicts of RediSearch 2.10.5 on both surfaces; of crossings it says more.
    #[test]
    fn shapes_are_judged() {
        let check = |text: &str, expected: &str| {
            for surface in [Surface::Flat, Surface::Spherical] {
                let (found, expected) =
                    (verdict(text, surface), expected.replace("invalid:", "invalid geometry: Geometry has"));
                assert!(found.starts_with(&expected), "{text} {surface:?}: {found}");
            }
        };
        let few = "invalid: too few points";
        let crosses = "invalid: invalid self-intersections. A self-intersection point was found at (";
        check("POINT(nan 1)", "invalid: point(s) with invalid coordinate(s)");
        check("POINT(inf 1)", "invalid: point(s) with invalid coordinate(s)");
        check("POINT EMPTY", "valid");
        check("POLYGON EMPTY", few);
        check("POLYGON(()())", few);
        check("POLYGON((1 1))", few);
        check("POLYGON((1 1, 1 100, 1 1))", few);
        check("POLYGON((0 0,0 10,10 10,10 0,0 0),(1 1))", few);
        check("POLYGON((0 0,0 10,10 10,10 0))", "valid");
        check("POLYGON((0 0,0 10,10 10,10 10,10 0,0 0))", "valid");
        check(
            "POLYGON((1 1, 1 200, 1 100, 100 1, 1 1))",
            "invalid: spikes. A spike point was found with apex at (1, 200)",
        );
        check(
            "POLYGON((0 0,0 10,5 10,5 15,5 10,10 10,10 0,0 0))",
            "invalid: spikes. A spike point was found with apex at (5, 15)",
        );
        check("POLYGON((1 1, 1 100, 50 50, 50 -50, 1 150, 100 50, 1 1))", crosses);
        check("POLYGON((0 0,5 5,0 10,10 10,5 5,10 0,0 0))", crosses);
        // A horseshoe whose ends touch.
        check("POLYGON((0 0,0 10,10 10,10 0,5 0,5 -1,11 -1,11 11,-1 11,-1 -1,5 -1,5 0,0 0))", crosses);
        check("POLYGON((5 0,0 5,5 8,8 5,5 0,12 0,12 12,-2 12,-2 0,5 0))", crosses);
        check("POLYGON((0 0,0 10,10 10,10 0,0 0),(0 0,0 5,5 5,5 0,0 0))", crosses);
        check("POLYGON((0 0,0 10,10 10,10 0,0 0),(1 1,1 5,5 5,5 1,1 1),(4 4,4 8,8 8,8 4,4 4))", crosses);
        check("POLYGON((0 0,0 10,10 10,10 0,0 0),(1 1,1 5,5 5,5 1,1 1),(1 1,1 5,5 5,5 1,1 1))", crosses);
        check("POLYGON((0 0,0 10,10 10,10 0,0 0),(0 0,2 5,5 2,0 0))", "valid");
        check("POLYGON((0 0,0 10,10 10,10 0,0 0),(0 5,5 5,5 6,0 5))", "valid");
        check("POLYGON((0 0,0 10,10 10,10 0,0 0),(0 5,5 10,10 5,5 0,0 5))", "invalid: disconnected interior");
        let outside = "invalid: interior rings defined outside the outer boundary";
        let nested = "invalid: nested interior rings";
        check("POLYGON((1 1, 1 100, 100 100, 100 1, 1 1) (25 150, 75 150, 75 250, 25 250, 25 150))", outside);
        check(
            "POLYGON((1 1, 1 100, 100 100, 100 1, 1 1) (25 25, 75 25, 75 75, 25 75, 25 25) (49 49, 51 49, 51 51, 49 51, 49 49))",
            nested,
        );
        for text in ["POLYGON((1 1 1 100, 100 100, 100 1, 1 1))", "POLYGON((1 1, 1 100, 50 50, 50 -50, 1 1))"] {
            check(text, "valid");
        }
        let zero = "POLYGON((0 0,0 10,10 0,10 10,0 0))";
        assert_eq!(verdict(zero, Surface::Flat), "invalid geometry: Geometry has wrong orientation");
        assert_eq!(verdict("POLYGON((1 1, 1 , 100 100, 100 1, 1 1))", Surface::Spherical), "valid");
    }

    #[test]
    fn hostile_shapes_cost_a_bounded_time() {
        let ring = |count: usize, radius: &dyn Fn(usize) -> f64| {
            let point = |at: usize| {
                let angle = at as f64 / count as f64 * std::f64::consts::TAU;
                format!("{} {}", radius(at) * angle.cos(), radius(at) * angle.sin())
            };
            format!("POLYGON(({}))", (0..count).map(point).collect::<Vec<_>>().join(","))
        };
        let holes = "(1 1,1 2,2 2,1 1),".repeat(30_000);
        let comb = (0..50_000).map(|at| format!("{at} 0,{at} 1e9")).collect::<Vec<_>>().join(",");
        let began = Instant::now();
        for surface in [Surface::Flat, Surface::Spherical] {
            assert_eq!(verdict(&ring(300_000, &|_| 40.0), surface), "valid");
            // A star, of which each edge is near every other.
            let star = verdict(&ring(40_001, &|at| if at % 2 == 0 { 1e-3 } else { 40.0 }), surface);
            assert!(star == "valid" || star == "the geometry is too complex" || star.contains("self-inter"), "{star}");
            for text in [format!("POLYGON((0 0,0 50,50 50,50 0),{holes})"), format!("POLYGON(({comb}))")] {
                verdict(&text, surface);
            }
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
}
