//! Places on the globe as numbers of 52 bits: latitude and longitude with their bits interleaved, so that what is near
//! each other mostly has the same first bits. The arithmetic follows Redis' own, operation by operation, because scores,
//! distances and the order of results show its last digits.

use std::ops::RangeInclusive;

/// The ends of the longitudes.
pub const LONGITUDES: (f64, f64) = (-180.0, 180.0);
/// The ends of the latitudes that can be encoded, those of the Mercator projection (EPSG:900913).
pub const LATITUDES: (f64, f64) = (-85.051_128_78, 85.051_128_78);
/// Bits of each half of a score.
pub const STEP_MAX: u32 = 26;

/// The quadratic mean radius of WGS-84, in meters.
const EARTH_RADIUS: f64 = 6_372_797.560_856;
/// Half of the circumference that the projection has, in meters.
const MERCATOR_MAX: f64 = 20_037_726.37;

/// A place in degrees.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// East of Greenwich.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

/// A cell of the grid that `step` bits of either half make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    bits: u64,
    step: u32,
}

/// The shape of a search area around a place. Lengths are in meters.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Everything up to this distance.
    Circle(f64),
    /// Everything up to half the width to either side, and half the height.
    Rect {
        /// From west to east.
        width: f64,
        /// From south to north.
        height: f64,
    },
    /// Everything between the straight lines, on a map whose degrees are all of one length, from each of these places to the
    /// next one, and from the last to the first.
    Polygon(Box<[Place]>),
}

/// The ends of an area in degrees.
#[derive(Clone, Copy, Debug)]
struct Area {
    longitude: (f64, f64),
    latitude: (f64, f64),
}

impl Place {
    /// Whether the place can be encoded.
    pub fn is_valid(self) -> bool {
        (LONGITUDES.0..=LONGITUDES.1).contains(&self.longitude) && (LATITUDES.0..=LATITUDES.1).contains(&self.latitude)
    }

    /// The score of a member at this place.
    pub fn score(self) -> u64 {
        Cell::around(self, LATITUDES, STEP_MAX).bits
    }

    /// The place of a member with this score: the middle of its cell.
    pub fn of_score(score: f64) -> Self {
        let area = Cell { bits: unsigned(score), step: STEP_MAX }.area();
        let middle = |ends: (f64, f64), most: (f64, f64)| f64::midpoint(ends.0, ends.1).min(most.1).max(most.0);
        Self { longitude: middle(area.longitude, LONGITUDES), latitude: middle(area.latitude, LATITUDES) }
    }

    /// The customary geohash of eleven letters; the last one says nothing, as 52 bits are ten and a bit.
    pub fn geohash(self) -> [u8; 11] {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let bits = Cell::around(self, (-90.0, 90.0), STEP_MAX).bits;
        let mut text = [ALPHABET[0]; 11];
        for (at, letter) in text[..10].iter_mut().enumerate() {
            *letter = ALPHABET[(bits >> (52 - (at + 1) * 5)) as usize & 31];
        }
        text
    }

    /// The middle of places: where the sum of their directions from the middle of the globe points.
    pub fn middle(places: &[Self]) -> Self {
        let direction = |place: &Self| {
            let (latitude, longitude) = (radians(place.latitude), radians(place.longitude));
            [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
        };
        let sum = |axis: usize| places.iter().map(|place| direction(place)[axis]).sum::<f64>();
        let (x, y, z) = (sum(0), sum(1), sum(2));
        Self { longitude: degrees(y.atan2(x)), latitude: degrees(z.atan2(x.hypot(y))) }
    }

    /// Meters to another place, along the great circle (haversine formula).
    pub fn distance(self, other: Self) -> f64 {
        let v = ((radians(other.longitude) - radians(self.longitude)) / 2.0).sin();
        if v == 0.0 {
            return latitude_distance(self.latitude, other.latitude);
        }
        let (here, there) = (radians(self.latitude), radians(other.latitude));
        let u = ((there - here) / 2.0).sin();
        let a = u * u + here.cos() * there.cos() * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }
}

/// A score as 64 bits, as the genuine server's processor cuts it off (x86-64), also where it is none of a place.
fn unsigned(score: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if score < HALF { signed(score) as u64 } else { signed(score - HALF) as u64 ^ 1 << 63 }
}

/// A score as a signed number, likewise: the lowest one is what does not fit.
pub fn signed(score: f64) -> i64 {
    const ENDS: RangeInclusive<f64> = -9_223_372_036_854_775_808.0..=9_223_372_036_854_774_784.0;
    if ENDS.contains(&score) { score as i64 } else { i64::MIN }
}

fn latitude_distance(one: f64, other: f64) -> f64 {
    EARTH_RADIUS * (radians(other) - radians(one)).abs()
}

fn radians(degrees: f64) -> f64 {
    degrees * (std::f64::consts::PI / 180.0)
}

fn degrees(radians: f64) -> f64 {
    radians / (std::f64::consts::PI / 180.0)
}

impl Cell {
    /// The cell that a place lies in.
    fn around(place: Place, latitudes: (f64, f64), step: u32) -> Self {
        let offset = |value: f64, ends: (f64, f64)| (value - ends.0) / (ends.1 - ends.0) * (1u64 << step) as f64;
        let latitude = offset(place.latitude, latitudes) as u32;
        let longitude = offset(place.longitude, LONGITUDES) as u32;
        Self { bits: spread(latitude) | spread(longitude) << 1, step }
    }

    fn area(self) -> Area {
        let ends = |part: u32, most: (f64, f64)| {
            let at = |part: u32| most.0 + f64::from(part) / (1u64 << self.step) as f64 * (most.1 - most.0);
            (at(part), at(part.wrapping_add(1)))
        };
        Area { latitude: ends(gather(self.bits), LATITUDES), longitude: ends(gather(self.bits >> 1), LONGITUDES) }
    }

    /// The neighbour so many cells to the east and to the north; the grid ends where it begins.
    fn neighbour(self, east: i64, north: i64) -> Self {
        let mask = u32::MAX >> (32 - self.step);
        // Where nothing is added, the genuine server leaves a half that is too large as it is: that of 180 degrees.
        let part = |bits: u64, by: i64| match by {
            0 => gather(bits),
            _ => gather(bits).wrapping_add_signed(by as i32) & mask,
        };
        Self { bits: spread(part(self.bits, north)) | spread(part(self.bits >> 1, east)) << 1, ..self }
    }

    /// The scores of places in the cell: the first one, and the first one behind.
    pub fn scores(self) -> (u64, u64) {
        let shift = 2 * (STEP_MAX - self.step);
        (self.bits << shift, (self.bits + 1) << shift)
    }
}

/// Puts a zero between the bits.
fn spread(value: u32) -> u64 {
    const MASKS: [u64; 5] = [
        0x0000_ffff_0000_ffff,
        0x00ff_00ff_00ff_00ff,
        0x0f0f_0f0f_0f0f_0f0f,
        0x3333_3333_3333_3333,
        0x5555_5555_5555_5555,
    ];
    let spread = |value: u64, (mask, shift): (&u64, u32)| (value | value << shift) & mask;
    MASKS.iter().zip([16, 8, 4, 2, 1]).fold(u64::from(value), spread)
}

/// Takes every other bit, the lowest first.
fn gather(value: u64) -> u32 {
    const MASKS: [u64; 5] = [
        0x3333_3333_3333_3333,
        0x0f0f_0f0f_0f0f_0f0f,
        0x00ff_00ff_00ff_00ff,
        0x0000_ffff_0000_ffff,
        0x0000_0000_ffff_ffff,
    ];
    let gather = |value: u64, (mask, shift): (&u64, u32)| (value | value >> shift) & mask;
    MASKS.iter().zip([1, 2, 4, 8, 16]).fold(value & 0x5555_5555_5555_5555, gather) as u32
}

impl Shape {
    /// Meters from the middle of the box around the shape to its edge that is farthest away.
    fn radius(&self) -> f64 {
        match self {
            Self::Circle(radius) => *radius,
            Self::Rect { width, height } => ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt(),
            Self::Polygon(corners) => {
                let Area { longitude, latitude } = area_of(corners);
                let widest = if latitude.0 * latitude.1 < 0.0 { 0.0 } else { latitude.0.abs().min(latitude.1.abs()) };
                let width = EARTH_RADIUS * radians(longitude.1 - longitude.0) * radians(widest).cos();
                (width / 2.0).hypot(latitude_distance(latitude.0, latitude.1) / 2.0)
            }
        }
    }

    /// Meters from the centre to a place in the shape; `None` for any other place.
    pub fn reach(&self, centre: Place, place: Place) -> Option<f64> {
        let is_inside = match self {
            Self::Circle(radius) => return Some(centre.distance(place)).filter(|distance| distance <= radius),
            Self::Rect { width, height } => {
                let level = Place { latitude: place.latitude, ..centre };
                latitude_distance(place.latitude, centre.latitude) <= height / 2.0
                    && place.distance(level) <= width / 2.0
            }
            Self::Polygon(corners) => surrounds(corners, place),
        };
        is_inside.then(|| centre.distance(place))
    }

    /// The box around the shape.
    fn bounds(&self, centre: Place) -> Area {
        let (width, height) = match self {
            Self::Circle(radius) => (*radius, *radius),
            Self::Rect { width, height } => (width / 2.0, height / 2.0),
            Self::Polygon(corners) => return area_of(corners),
        };
        let north = degrees(height / EARTH_RADIUS);
        // Degrees of longitude are shortest on the side of the pole that the centre does not lie on.
        let edge = if centre.latitude < 0.0 { centre.latitude - north } else { centre.latitude + north };
        let east = degrees(width / EARTH_RADIUS / radians(edge).cos());
        Area {
            longitude: (centre.longitude - east, centre.longitude + east),
            latitude: (centre.latitude - north, centre.latitude + north),
        }
    }

    /// The cells that cover the shape around `centre`, in the order in which they are searched; none occurs twice in a row.
    pub fn cells(&self, centre: Place) -> Vec<Cell> {
        let bounds = self.bounds(centre);
        let centre = match self {
            Self::Circle(_) | Self::Rect { .. } => centre,
            // Its cells are those around the middle of its box.
            Self::Polygon(_) => Place {
                longitude: f64::midpoint(bounds.longitude.0, bounds.longitude.1),
                latitude: f64::midpoint(bounds.latitude.0, bounds.latitude.1),
            },
        };
        let mut step = step_for(self.radius(), centre.latitude);
        let mut cell = Cell::around(centre, LATITUDES, step);
        let falls_short = cell.neighbour(0, 1).area().latitude.1 < bounds.latitude.1
            || cell.neighbour(0, -1).area().latitude.0 > bounds.latitude.0
            || cell.neighbour(1, 0).area().longitude.1 < bounds.longitude.1
            || cell.neighbour(-1, 0).area().longitude.0 > bounds.longitude.0;
        if step > 1 && falls_short {
            step -= 1;
            cell = Cell::around(centre, LATITUDES, step);
        }
        let area = cell.area();
        let small = step >= 2;
        let without = |east: i64, north: i64| {
            small
                && (north < 0 && area.latitude.0 < bounds.latitude.0
                    || north > 0 && area.latitude.1 > bounds.latitude.1
                    || east < 0 && area.longitude.0 < bounds.longitude.0
                    || east > 0 && area.longitude.1 > bounds.longitude.1)
        };
        const AROUND: [(i64, i64); 8] = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let mut cells = vec![cell];
        for (east, north) in AROUND.into_iter().filter(|&(east, north)| !without(east, north)) {
            let neighbour = cell.neighbour(east, north);
            // Large cells may be their own neighbours. The first one is not compared with, as in the genuine server.
            if cells.len() == 1 || cells.last() != Some(&neighbour) {
                cells.push(neighbour);
            }
        }
        cells
    }
}

/// The box around places.
fn area_of(places: &[Place]) -> Area {
    let ends = |of: fn(&Place) -> f64| {
        let values = places.iter().map(of);
        (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
    };
    Area { longitude: ends(|place| place.longitude), latitude: ends(|place| place.latitude) }
}

/// Whether a line from a place to the east crosses the polygon's edges an odd number of times.
fn surrounds(corners: &[Place], place: Place) -> bool {
    let last = corners.last().into_iter();
    let edges = last.chain(corners).zip(corners);
    let crosses = |(from, to): &(&Place, &Place)| {
        (from.latitude > place.latitude) != (to.latitude > place.latitude) && {
            let share = (place.latitude - from.latitude) / (to.latitude - from.latitude);
            place.longitude < from.longitude + share * (to.longitude - from.longitude)
        }
    };
    edges.filter(crosses).count() % 2 == 1
}

/// Bits of either half at which cells are as large as the distance.
fn step_for(mut meters: f64, latitude: f64) -> u32 {
    if meters == 0.0 {
        return STEP_MAX;
    }
    let mut step: i32 = 1;
    while meters < MERCATOR_MAX {
        meters *= 2.0;
        step += 1;
    }
    step -= 2;
    // Cells become narrow towards the poles.
    step -= i32::from(latitude.abs() > 66.0) + i32::from(latitude.abs() > 80.0);
    step.clamp(1, STEP_MAX as i32) as u32
}

#[test]
fn places_survive_their_scores() {
    let check = |longitude: f64, latitude: f64, score: u64, geohash: &[u8; 11]| {
        let place = Place { longitude, latitude };
        assert_eq!(place.score(), score);
        let again = Place::of_score(score as f64);
        assert!(place.distance(again) < 0.6, "{again:?}");
        assert_eq!(&again.geohash(), geohash);
        assert_eq!(again.score(), score);
    };
    check(13.361_389, 38.115_556, 3_479_099_956_230_698, b"sqc8b49rny0");
    check(15.087_269, 37.502_669, 3_479_447_370_796_909, b"sqdtr74hyu0");
}

#[test]
fn everything_in_a_shape_lies_in_its_cells() {
    let mut rng = super::testing::Rng::new(11);
    let mut degrees = |most: f64| (rng.below(2_000_001) as f64 / 1_000_000.0 - 1.0) * most;
    for _ in 0..20_000 {
        // Close to the poles and at the edge of the map the genuine server misses places too.
        let centre = Place { longitude: degrees(150.0), latitude: degrees(60.0) };
        let place = Place { longitude: centre.longitude + degrees(3.0), latitude: centre.latitude + degrees(3.0) };
        let distance = centre.distance(place);
        let corners = [(-1.0, -1.0), (2.0, 0.0), (0.5, 0.2), (0.0, 3.0)].map(|(east, north)| Place {
            longitude: centre.longitude + east * degrees(3.0),
            latitude: centre.latitude + north * degrees(3.0),
        });
        let shapes = [
            Shape::Circle(distance),
            Shape::Rect { width: 3.0 * distance, height: 3.0 * distance },
            Shape::Polygon(corners.into()),
        ];
        for shape in shapes {
            if shape.reach(centre, place).is_none() {
                continue;
            }
            let score = place.score();
            let found = shape.cells(centre).iter().any(|cell| (cell.scores().0..cell.scores().1).contains(&score));
            assert!(found, "{centre:?} {place:?} {shape:?}");
        }
    }
}

#[test]
fn a_polygon_surrounds_what_lies_between_its_edges() {
    let corners = |corners: &[(f64, f64)]| -> Vec<Place> {
        corners.iter().map(|&(longitude, latitude)| Place { longitude, latitude }).collect()
    };
    let check = |polygon: &[(f64, f64)], (longitude, latitude): (f64, f64), expected: bool| {
        let place = Place { longitude, latitude };
        assert_eq!(surrounds(&corners(polygon), place), expected, "{polygon:?} {place:?}");
    };
    let square = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0)];
    check(&square, (5.0, 5.0), true);
    check(&square, (15.0, 5.0), false);
    check(&square, (-5.0, 5.0), false);
    check(&square, (5.0, -5.0), false);
    // With a notch from the east.
    let notched = [(-10.0, -10.0), (10.0, -10.0), (0.0, 0.0), (10.0, 10.0), (-10.0, 10.0)];
    check(&notched, (5.0, 2.0), false);
    check(&notched, (5.0, 7.0), true);
    check(&notched, (-5.0, 0.0), true);
    let middle = Place::middle(&corners(&[(170.0, 80.0), (-170.0, 80.0), (170.0, -80.0), (-170.0, -80.0)]));
    assert!((middle.longitude.abs() - 180.0).abs() < 1e-9 && middle.latitude.abs() < 1e-9, "{middle:?}");
}
