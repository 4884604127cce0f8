//! Points and polygons on a plane or on the earth (GEOSHAPE): read, judged and compared.
//!
//! A position is three numbers: `(x, y, 1)` on the plane, a unit vector on the earth. The determinant of three positions then says on either on which side of the
//! line through two of them the third one lies. Lines on the earth are arcs of great circles. Boost's geodesics on the spheroid, which RediSearch uses,
//! keep within some metres of them where edges are as short as those of towns.

mod boxes;
mod index;
mod relate;
mod valid;
mod wkt;

use std::fmt;

pub(crate) use index::Shapes;

use boxes::{Bounds, Tree};

/// The most points of a shape: its parts are compared in pairs.
pub const MAX_SHAPE_POINTS: usize = 1 << 20;

/// Looks at parts of shapes of one comparison, after which it is given up: some hundred milliseconds.
const MAX_WORK: usize = 20_000_000;

/// The surface that shapes lie on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surface {
    /// Lines are straight (FLAT).
    Flat,
    /// Longitude and latitude in degrees; lines are arcs of great circles (SPHERICAL).
    #[default]
    Spherical,
}

/// How a shape lies to that of a query, with the number that FT.EXPLAIN shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// It has the query's shape in it.
    Contains = 1,
    /// It lies in the query's shape.
    Within,
    /// They have no point in common.
    Disjoint,
    /// They have a point in common.
    Intersects,
}

/// Why a text is no shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// It does not begin with POINT or POLYGON.
    Unknown,
    /// It is no WKT; the text says where.
    Syntax(String),
    /// The shape is not valid; the text says why.
    Invalid(String),
    /// It has more than [`MAX_SHAPE_POINTS`] points.
    TooManyPoints,
    /// Its edges lie so close together that they cannot be judged in bounded time.
    TooComplex,
}

impl Relation {
    /// The relation of a name, in any case of letters.
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        match name.to_ascii_lowercase().as_slice() {
            b"contains" => Some(Self::Contains),
            b"within" => Some(Self::Within),
            b"disjoint" => Some(Self::Disjoint),
            b"intersects" => Some(Self::Intersects),
            _ => None,
        }
    }
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown geometry type"),
            Self::Syntax(why) => f.write_str(why),
            Self::Invalid(why) => write!(f, "invalid geometry: {why}"),
            Self::TooManyPoints => write!(f, "a geometry has at most {MAX_SHAPE_POINTS} points"),
            Self::TooComplex => f.write_str("the geometry is too complex"),
        }
    }
}

impl std::error::Error for ShapeError {}

/// A position, see the module.
type Position = [f64; 3];

/// A closed line: the last point is joined to the first one, which is not repeated.
#[derive(Clone, Debug, PartialEq)]
struct Ring {
    points: Vec<Position>,
    /// A point that is surely outside, or, on the plane, the direction to one.
    outside: Position,
}

/// A point, or a polygon with holes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    surface: Surface,
    /// The outer ring and the holes; a point alone is a ring of one.
    rings: Vec<Ring>,
    bounds: Bounds,
    /// The boxes of the edges of all rings, one behind the other.
    tree: Tree,
}

impl Shape {
    /// Reads a shape in WKT.
    ///
    /// # Errors
    /// The text is no POINT or POLYGON, or the polygon is not valid: its edges cross, or its holes lie outside.
    pub(crate) fn parse(text: &[u8], surface: Surface) -> Result<Self, ShapeError> {
        let (is_point, mut rings) = wkt::parse(text)?;
        if rings.iter().flatten().flatten().any(|coordinate| !coordinate.is_finite()) {
            return Err(ShapeError::Invalid("Geometry has point(s) with invalid coordinate(s)".to_owned()));
        }
        if is_point {
            let point = rings.first().and_then(|ring| ring.first()).copied().unwrap_or_default();
            return Ok(Self::new(surface, vec![vec![point]]));
        }
        if rings.is_empty() {
            rings.push(Vec::new());
        }
        rings.iter_mut().for_each(open);
        valid::check_rings(&rings, surface)?;
        let shape = Self::new(surface, rings);
        valid::check(&shape)?;
        Ok(shape)
    }

    fn new(surface: Surface, rings: Vec<Vec<[f64; 2]>>) -> Self {
        let position = |point: &[f64; 2]| surface.position(*point);
        let ring = |points: &Vec<[f64; 2]>| Ring::new(surface, points.iter().map(position).collect());
        let rings: Vec<Ring> = rings.iter().map(ring).collect();
        let edges = || rings.iter().flat_map(Ring::edges);
        let tree = Tree::new(edges().map(|(from, to)| Bounds::of_edge(surface, from, to)));
        let mut shape = Self { surface, rings, bounds: tree.bounds(), tree };
        shape.bounds = shape.bounds_with_inside();
        shape
    }

    /// On the earth, the middle of an area stands higher than its edge: the ends of the axes may be inside.
    fn bounds_with_inside(&self) -> Bounds {
        let mut bounds = self.bounds;
        if self.surface == Surface::Spherical && !self.is_point() {
            for axis in 0..3 {
                for sign in [1.0, -1.0] {
                    let mut pole = [0.0; 3];
                    pole[axis] = sign;
                    if self.locate(pole) != Location::Outside {
                        bounds.add(pole);
                    }
                }
            }
        }
        bounds
    }

    fn is_point(&self) -> bool {
        self.rings[0].points.len() == 1
    }

    fn point_count(&self) -> usize {
        self.rings.iter().map(|ring| ring.points.len()).sum()
    }

    /// The ends of an edge by its number in [`Self::tree`].
    fn edge(&self, number: usize) -> (Position, Position) {
        let (ring, at) = self.place(number);
        let points = &self.rings[ring].points;
        (points[at], points[(at + 1) % points.len()])
    }

    /// The ring and the place in it of an edge by its number.
    fn place(&self, mut number: usize) -> (usize, usize) {
        for (at, ring) in self.rings.iter().enumerate() {
            match number.checked_sub(ring.points.len()) {
                Some(rest) => number = rest,
                None => return (at, number),
            }
        }
        (0, 0)
    }

    /// True if a position is in the shape.
    fn locate(&self, position: Position) -> Location {
        if self.is_point() {
            let is_it = self.surface.is_same(self.rings[0].points[0], position);
            return if is_it { Location::Boundary } else { Location::Outside };
        }
        let outer = self.rings[0].locate(self.surface, position);
        if outer != Location::Inside {
            return outer;
        }
        for hole in &self.rings[1..] {
            match hole.locate(self.surface, position) {
                Location::Inside => return Location::Outside,
                Location::Boundary => return Location::Boundary,
                Location::Outside => {}
            }
        }
        Location::Inside
    }

    /// Bytes in memory, without `self`.
    fn memory(&self) -> usize {
        self.point_count() * size_of::<Position>() + self.rings.len() * size_of::<Ring>() + self.tree.memory()
    }
}

/// Removes what closes a ring, and points that stand twice.
fn open(ring: &mut Vec<[f64; 2]>) {
    ring.dedup();
    while ring.len() > 1 && ring.first() == ring.last() {
        ring.pop();
    }
}

/// The place of a position in a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    Inside,
    Boundary,
    Outside,
}

impl Surface {
    /// The position of two coordinates: x and y, or longitude and latitude.
    fn position(self, [x, y]: [f64; 2]) -> Position {
        match self {
            Self::Flat => [x, y, 1.0],
            Self::Spherical => {
                let (longitude, latitude) = (x.to_radians(), y.to_radians());
                [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
            }
        }
    }

    /// The coordinates of a position.
    fn coordinates(self, [x, y, z]: Position) -> [f64; 2] {
        match self {
            Self::Flat => [x / z, y / z],
            Self::Spherical => [y.atan2(x).to_degrees(), z.atan2(x.hypot(y)).to_degrees()],
        }
    }

    /// The middle between two positions.
    fn middle(self, one: Position, other: Position) -> Position {
        let sum = add(one, other);
        match self {
            Self::Flat => sum.map(|part| part / 2.0),
            Self::Spherical => unit(sum),
        }
    }

    /// True if two positions are the same, as far as roundings tell.
    fn is_same(self, one: Position, other: Position) -> bool {
        (0..3).all(|axis| {
            let scale = match self {
                Self::Flat => one[axis].abs().max(other[axis].abs()),
                Self::Spherical => 4.0,
            };
            (one[axis] - other[axis]).abs() <= f64::EPSILON * scale
        })
    }

    /// 1 if `c` lies left of the line from `a` to `b`, −1 if right, 0 on it, as far as roundings tell.
    fn side(self, a: Position, b: Position, c: Position) -> i8 {
        let (ab, ac) = (subtract(b, a), subtract(c, a));
        let (value, error) = match self {
            Self::Flat => {
                let (one, other) = (ab[0] * ac[1], ab[1] * ac[0]);
                (one - other, 4.0 * f64::EPSILON * (one.abs() + other.abs()))
            }
            // Sines and cosines are rounded, so that no position lies exactly on the surface.
            Self::Spherical => (dot(a, cross(ab, ac)), 4.0 * f64::EPSILON * (length(ab) + length(ac))),
        };
        if value.abs() <= error { 0 } else { sign(value) }
    }
}

impl Ring {
    fn new(surface: Surface, points: Vec<Position>) -> Self {
        let outside = match surface {
            Surface::Flat => [1.0, 0.0, 0.0],
            Surface::Spherical => outside_of(&points),
        };
        Self { points, outside }
    }

    /// All edges, the closing one last. A point alone is an edge without length.
    fn edges(&self) -> impl Iterator<Item = (Position, Position)> {
        let next = self.points.iter().cycle().skip(1);
        self.points.iter().copied().zip(next.copied())
    }

    /// Counts how often the way from a position to the outside crosses the ring.
    fn locate(&self, surface: Surface, position: Position) -> Location {
        let mut is_inside = false;
        for (from, to) in self.edges() {
            if is_between(surface, from, to, position) {
                return Location::Boundary;
            }
            is_inside ^= match surface {
                Surface::Flat => crosses_ray(position, from, to),
                Surface::Spherical => crosses_way(position, self.outside, from, to),
            };
        }
        if is_inside { Location::Inside } else { Location::Outside }
    }
}

/// A position outside of a ring on the earth that fits into half of it: some way from the far side of its middle, so that the ways there from
/// positions near the middle have a direction.
fn outside_of(points: &[Position]) -> Position {
    let middle = unit(points.iter().copied().fold([0.0; 3], add));
    let aside = if middle[2].abs() < 0.9 { [0.0, 0.0, 1.0] } else { [1.0, 0.0, 0.0] };
    let across = unit(cross(middle, aside));
    unit([0, 1, 2].map(|axis| 0.3_f64.mul_add(across[axis], -middle[axis])))
}

/// True if the ray from `p` to the right crosses an edge. An end on the ray counts as above it.
fn crosses_ray(p: Position, from: Position, to: Position) -> bool {
    let (begins_above, ends_above) = (from[1] >= p[1], to[1] >= p[1]);
    let side = (to[0] - from[0]) * (p[1] - from[1]) - (to[1] - from[1]) * (p[0] - from[0]);
    begins_above != ends_above && (side > 0.0) == ends_above
}

/// True if the way from `p` to `outside` on the earth crosses an edge. An end on the way counts as left of it.
fn crosses_way(p: Position, outside: Position, from: Position, to: Position) -> bool {
    let side = |a, b, c| determinant(a, b, c) >= 0.0;
    let (left, right) = (side(p, outside, from), side(p, outside, to));
    if left == right {
        return false;
    }
    // The edge must have `p` on one side and the outside on the other, and not cross the way on the far side of the earth.
    side(from, to, p) != left && (determinant(from, to, outside) >= 0.0) == left
}

/// True if a position lies on the edge between two others.
fn is_between(surface: Surface, from: Position, to: Position, position: Position) -> bool {
    let (one, other) = (subtract(position, from), subtract(position, to));
    surface.is_same(from, position)
        || surface.is_same(to, position)
        || dot(one, other) <= 0.0 && surface.side(from, to, position) == 0
}

fn sign(value: f64) -> i8 {
    i8::from(value > 0.0) - i8::from(value < 0.0)
}

fn add(one: Position, other: Position) -> Position {
    [one[0] + other[0], one[1] + other[1], one[2] + other[2]]
}

fn subtract(one: Position, other: Position) -> Position {
    [one[0] - other[0], one[1] - other[1], one[2] - other[2]]
}

fn dot(one: Position, other: Position) -> f64 {
    one[0] * other[0] + one[1] * other[1] + one[2] * other[2]
}

fn cross(one: Position, other: Position) -> Position {
    [
        one[1] * other[2] - one[2] * other[1],
        one[2] * other[0] - one[0] * other[2],
        one[0] * other[1] - one[1] * other[0],
    ]
}

fn length(position: Position) -> f64 {
    dot(position, position).sqrt()
}

fn unit(position: Position) -> Position {
    let length = length(position);
    if length > 0.0 { position.map(|part| part / length) } else { [1.0, 0.0, 0.0] }
}

/// The volume that three positions span: its sign is the side of the third one.
fn determinant(a: Position, b: Position, c: Position) -> f64 {
    dot(a, cross(subtract(b, a), subtract(c, a)))
}
