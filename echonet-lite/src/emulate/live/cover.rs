//! Blinds, shutters and doors that take time to open and to close.

use core::time::Duration;
use std::vec;
use std::vec::Vec;

use super::Values;
use crate::class::Class;

/// Blinds and shades, shutters, rain doors.
const CLASSES: [u16; 3] = [0x0260, 0x0261, 0x0263];

const OPERATION_TIME: u8 = 0xD2;
const OPERATION: u8 = 0xE0;
const DEGREE: u8 = 0xE1;
pub(super) const STATUS: u8 = 0xEA;

/// Positions are in millionths of the way.
const OPEN: u64 = 1_000_000;
const PERCENT: u64 = OPEN / 100;
/// The time of the whole way, where the operation time is not set.
const USUAL: Duration = Duration::from_secs(20);

/// A cover, and where it goes.
#[derive(Debug)]
pub(in crate::emulate) struct Cover {
    from: u64,
    since: Duration,
    to: u64,
    now: Duration,
    /// The time of the whole way.
    whole: Duration,
}

impl Cover {
    /// A cover at rest; none if the class has none.
    pub(super) fn new(class: &Class, values: &Values, now: Duration) -> Option<Self> {
        CLASSES.contains(&class.code.to_u16()).then(|| {
            let at = values.get(&DEGREE).and_then(|edt| degree(edt)).unwrap_or(OPEN);
            let mut cover = Self { from: at, since: now, to: at, now, whole: USUAL };
            cover.told(OPERATION_TIME, values);
            cover
        })
    }

    pub(super) fn value(&self, epc: u8) -> Option<Vec<u8>> {
        match epc {
            // At most 100.
            DEGREE => Some(vec![(self.position() / PERCENT) as u8]),
            STATUS => Some(vec![self.status()]),
            _ => None,
        }
    }

    /// Other nodes or the plan have written a property.
    pub(super) fn told(&mut self, epc: u8, values: &Values) {
        let Some(edt) = values.get(&epc) else { return };
        match (epc, &edt[..]) {
            (OPERATION, [0x41]) => self.go(OPEN),
            (OPERATION, [0x42]) => self.go(0),
            (OPERATION, [0x43]) => self.go(self.position()),
            (DEGREE, edt) => self.go(degree(edt).unwrap_or(self.to)),
            (OPERATION_TIME, [seconds @ 1..=253]) => {
                self.go(self.to);
                self.whole = Duration::from_secs((*seconds).into());
            }
            _ => {}
        }
    }

    pub(super) fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// When it arrives, while it moves.
    pub(super) fn next(&self) -> Option<Duration> {
        if self.position() == self.to {
            return None;
        }
        let way = u128::from(self.from.abs_diff(self.to));
        let micros = (self.whole.as_micros() * way).div_ceil(u128::from(OPEN));
        Some(self.since + Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
    }

    fn go(&mut self, to: u64) {
        (self.from, self.since, self.to) = (self.position(), self.now, to);
    }

    fn position(&self) -> u64 {
        let time = self.now.saturating_sub(self.since).as_micros();
        let moved = time * u128::from(OPEN) / self.whole.as_micros().max(1);
        let moved = u64::try_from(moved).unwrap_or(u64::MAX);
        if self.to > self.from {
            self.from.saturating_add(moved).min(self.to)
        } else {
            self.from.saturating_sub(moved).max(self.to)
        }
    }

    fn status(&self) -> u8 {
        match (self.position(), self.to) {
            (at, to) if at < to => 0x43,
            (at, to) if at > to => 0x44,
            (OPEN, _) => 0x41,
            (0, _) => 0x42,
            _ => 0x45,
        }
    }
}

/// The position that a degree of opening means.
fn degree(edt: &[u8]) -> Option<u64> {
    match edt {
        [percent @ 0..=100] => Some(u64::from(*percent) * PERCENT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class;

    const START: Duration = Duration::from_secs(1_000_000);

    #[test]
    fn a_cover_takes_time_and_can_be_stopped_half_way() {
        let mut values = Values::from([(DEGREE, vec![0]), (OPERATION_TIME, vec![10])]);
        let mut cover = Cover::new(class::by_name("0263").unwrap(), &values, START).unwrap();
        // Time, write, degree and status then, and the time of the arrival.
        for (millis, write, degree, status, next) in [
            (0, None, 0, 0x42, None),
            (1000, Some((OPERATION, 0x41)), 0, 0x43, Some(11_000)),
            (3500, None, 25, 0x43, Some(11_000)),
            (4000, Some((OPERATION, 0x43)), 30, 0x45, None),
            (9000, None, 30, 0x45, None),
            (9000, Some((OPERATION, 0x42)), 30, 0x44, Some(12_000)),
            (10_000, Some((OPERATION_TIME, 20)), 20, 0x44, Some(14_000)),
            (12_000, Some((DEGREE, 60)), 10, 0x43, Some(22_000)),
            (12_000, Some((DEGREE, 101)), 10, 0x43, Some(22_000)),
            (22_000, None, 60, 0x45, None),
            (22_000, Some((OPERATION, 0x41)), 60, 0x43, Some(30_000)),
            // A clock that steps back moves nothing.
            (21_000, None, 60, 0x43, Some(30_000)),
            (99_000, None, 100, 0x41, None),
        ] {
            cover.advance(START + Duration::from_millis(millis));
            if let Some((epc, code)) = write {
                values.insert(epc, vec![code]);
                cover.told(epc, &values);
            }
            let shown = [DEGREE, STATUS].map(|epc| cover.value(epc).unwrap()[0]);
            let next = next.map(|millis| START + Duration::from_millis(millis));
            assert_eq!((shown, cover.next()), ([degree, status], next), "{millis} ms, {write:02X?}");
        }
        assert!(Cover::new(class::by_name("0290").unwrap(), &values, START).is_none());
    }
}
