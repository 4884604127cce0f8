//! Places on the Earth, by a grid of longitude and latitude.

use std::collections::BTreeMap;

use super::postings::DocNumber;

/// Radius of the Earth in metres, as Redis' GEO commands have it.
const EARTH_RADIUS: f64 = 6_372_797.560_856;

/// Redis' limits: the area of Web Mercator, in degrees.
const MAX_LATITUDE: f64 = 85.051_128_78;
const MAX_LONGITUDE: f64 = 180.0;

/// Redis keeps 26 bits of each coordinate; distances are those of cells' centres.
const CELLS: f64 = (1u64 << 26) as f64;

/// A place in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// East is positive, −180 to 180.
    pub longitude: f64,
    /// North is positive, −85.05112878 to 85.05112878.
    pub latitude: f64,
}

impl Place {
    /// A place inside of Redis' limits.
    #[must_use]
    pub fn new(longitude: f64, latitude: f64) -> Option<Self> {
        let inside = longitude.abs() <= MAX_LONGITUDE && latitude.abs() <= MAX_LATITUDE;
        inside.then_some(Self { longitude, latitude })
    }

    /// Reads `longitude,latitude` or the same with a space.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (longitude, latitude) = text.split_once(',').or_else(|| text.split_once(' '))?;
        Self::new(longitude.trim().parse().ok()?, latitude.trim().parse().ok()?)
    }

    /// Metres to another place along the surface.
    #[must_use]
    pub fn distance(self, other: Self) -> f64 {
        let (latitude, other_latitude) = (self.latitude.to_radians(), other.latitude.to_radians());
        let u = ((other_latitude - latitude) / 2.0).sin();
        let v = ((other.longitude - self.longitude).to_radians() / 2.0).sin();
        2.0 * EARTH_RADIUS * (u * u + latitude.cos() * other_latitude.cos() * v * v).sqrt().min(1.0).asin()
    }

    /// The centre of the cell that Redis would keep.
    #[must_use]
    pub fn rounded(self) -> Self {
        let round = |value: f64, limit: f64| {
            let cell = ((value + limit) / (2.0 * limit) * CELLS).floor().min(CELLS - 1.0);
            let low = -limit + cell / CELLS * (2.0 * limit);
            let high = -limit + (cell + 1.0) / CELLS * (2.0 * limit);
            (low + high) / 2.0
        };
        Self { longitude: round(self.longitude, MAX_LONGITUDE), latitude: round(self.latitude, MAX_LATITUDE) }
    }
}

/// A circle on the surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Circle {
    /// Its centre.
    pub centre: Place,
    /// Its radius in metres.
    pub radius: f64,
}

impl Circle {
    /// Whether a place lies inside.
    #[must_use]
    pub fn contains(&self, place: Place) -> bool {
        self.centre.distance(place) <= self.radius
    }
}

/// Cells of the grid in a degree: 1.7 km in latitude, so that a city's query reads few places in vain.
const CELLS_PER_DEGREE: f64 = 64.0;

type Cell = (i32, i32);

fn cell(degrees: f64) -> i32 {
    (degrees * CELLS_PER_DEGREE).floor() as i32
}

/// The places of one field, by cells of a grid: row of latitude, column of longitude.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    cells: BTreeMap<Cell, Vec<(Place, DocNumber)>>,
}

impl Places {
    pub(crate) fn insert(&mut self, place: Place, number: DocNumber) {
        let place = place.rounded();
        self.cells.entry((cell(place.latitude), cell(place.longitude))).or_default().push((place, number));
    }

    /// The documents of a circle; one with several places may occur more than once.
    pub(crate) fn within(&self, circle: Circle) -> Vec<DocNumber> {
        let mut found = Vec::new();
        let degrees = (circle.radius / EARTH_RADIUS).to_degrees() + 1e-6;
        let (south, north) = (cell(circle.centre.latitude - degrees), cell(circle.centre.latitude + degrees));
        let (lowest, highest) = (cell(-MAX_LATITUDE), cell(MAX_LATITUDE));
        for row in south.max(lowest)..=north.min(highest) {
            for (west, east) in columns(circle.centre, degrees) {
                let places = self.cells.range((row, west)..=(row, east)).flat_map(|(_, places)| places);
                found.extend(places.filter(|(place, _)| circle.contains(*place)).map(|(_, number)| *number));
            }
        }
        found
    }

    /// Places, with those of documents that are gone and not yet compacted away.
    pub(crate) fn count(&self) -> usize {
        self.cells.values().map(Vec::len).sum()
    }

    pub(crate) fn retain(&mut self, is_live: impl Fn(DocNumber) -> bool) {
        self.cells.retain(|_, places| {
            places.retain(|(_, number)| is_live(*number));
            !places.is_empty()
        });
    }

    /// Bytes in memory, without `self`. A tree's node is estimated as its entry and a third.
    pub(crate) fn memory(&self) -> usize {
        let places = self.cells.values().map(|places| places.capacity() * size_of::<(Place, DocNumber)>());
        places.sum::<usize>() + self.cells.len() * (size_of::<Cell>() + size_of::<Vec<u8>>()) * 4 / 3
    }
}

/// The columns that a circle may touch: one span, or two where it crosses the date line. Near a pole it touches all.
fn columns(centre: Place, degrees: f64) -> impl Iterator<Item = (i32, i32)> {
    let farthest = centre.latitude.abs() + degrees;
    // Napier's rule: the meridian that touches a circle of angle `a` around latitude `b` is asin(sin a ÷ cos b) away.
    let spread = (degrees.to_radians().sin() / centre.latitude.to_radians().cos()).asin().to_degrees() + 1e-6;
    let (west, east) =
        if farthest < 90.0 { (centre.longitude - spread, centre.longitude + spread) } else { (-180.0, 180.0) };
    let main = (west.max(-MAX_LONGITUDE), east.min(MAX_LONGITUDE));
    let beyond_west = (west < -MAX_LONGITUDE).then_some((west + 360.0, MAX_LONGITUDE));
    let beyond_east = (east > MAX_LONGITUDE).then_some((-MAX_LONGITUDE, east - 360.0));
    let spans = [Some(main), beyond_west, beyond_east].into_iter().flatten();
    spans.map(|(west, east)| (cell(west), cell(east)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let check = |text: &str, expected: Option<(f64, f64)>| {
            assert_eq!(Place::parse(text), expected.and_then(|(lon, lat)| Place::new(lon, lat)), "{text}");
        };
        check("1.5,2.5", Some((1.5, 2.5)));
        check(" 1.5 , 2.5 ", Some((1.5, 2.5)));
        check("-180 85", Some((-180.0, 85.0)));
        for bad in ["", "1", "1,", "a,b", "181,0", "0,86", "nan,0"] {
            check(bad, None);
        }
    }

    /// Redis' documentation: Palermo to Catania is 166274.1516 m.
    #[test]
    fn distances_are_those_of_redis() {
        let palermo = Place::new(13.361389, 38.115556).expect("valid").rounded();
        let catania = Place::new(15.087269, 37.502669).expect("valid").rounded();
        assert!((palermo.distance(catania) - 166_274.151_6).abs() < 0.001, "{}", palermo.distance(catania));
    }

    #[test]
    fn circles_find_what_a_scan_finds() {
        let mut places = Places::default();
        let place = |number: u64| {
            let (x, y) = ((number * 7919 % 3600) as f64, (number * 104_729 % 1700) as f64);
            Place::new(x / 10.0 - 180.0, y / 10.0 - 85.0).expect("inside").rounded()
        };
        for number in 1..3000 {
            places.insert(place(number), number);
        }
        for (longitude, latitude, radius) in [
            (0.0, 0.0, 1e6),
            (179.9, 0.0, 2e6),
            (-179.9, 84.0, 5e5),
            (10.0, -84.9, 3e6),
            (5.0, 5.0, 0.0),
            (0.0, 0.0, 3e7),
        ] {
            let circle = Circle { centre: Place { longitude, latitude }, radius };
            let mut found = places.within(circle);
            found.sort_unstable();
            let expected: Vec<u64> = (1..3000).filter(|number| circle.contains(place(*number))).collect();
            assert_eq!(found, expected, "{circle:?}");
        }
    }
}
