//! Energy that grows with power over time, and its readings at half hours.

use core::time::Duration;
use std::collections::VecDeque;

/// Percentages for the hours of a day.
pub(super) type Curve = [u16; 24];

/// A household, in percent of its usual power: little at night, most in the evening.
pub(super) const HOUSE: Curve =
    [45, 40, 35, 35, 35, 50, 90, 130, 120, 90, 80, 90, 120, 100, 80, 80, 90, 120, 180, 200, 190, 170, 120, 70];
/// The sun, in percent of the power at noon.
pub(super) const SUN: Curve = [0, 0, 0, 0, 0, 3, 15, 35, 55, 75, 90, 98, 100, 95, 82, 64, 42, 20, 4, 0, 0, 0, 0, 0];

/// Energies in both directions, in watt-microseconds, so that nothing is rounded.
pub(super) type Energies = [u128; 2];

/// Watt-microseconds of a tenth of a watt-hour, the smallest unit that a meter can count in.
pub(super) const DECIWATT_HOUR: u128 = 360_000_000;
/// Seconds of a half hour.
const HALF_HOUR: u64 = 1800;
/// Half hours of a day.
pub(super) const SLOTS: u64 = 48;
/// The readings that are kept: a history can be of today or one of the 99 days before.
const KEPT: usize = 100 * SLOTS as usize;

/// The power that flows, negative in the reverse direction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Power {
    /// A percentage of so many watts in each hour of the day.
    Curve(&'static Curve, i64),
    /// So many watts.
    Fixed(i64),
}

impl Power {
    pub(super) fn watts(self, at: Duration) -> i64 {
        match self {
            Self::Curve(curve, whole) => {
                let hour = at.as_secs() / 3600 % curve.len() as u64;
                whole * i64::from(curve[hour as usize]) / 100
            }
            Self::Fixed(watts) => watts,
        }
    }
}

/// The half hour of a moment, counted from 1970.
pub(super) fn slot(at: Duration) -> u64 {
    at.as_secs() / HALF_HOUR
}

/// The moment at which a half hour begins.
pub(super) fn begin(slot: u64) -> Duration {
    Duration::from_secs(slot * HALF_HOUR)
}

/// The energies that flow in a time.
fn flow(watts: i64, time: Duration) -> Energies {
    [watts.max(0), watts.min(0)].map(|watts| u128::from(watts.unsigned_abs()) * time.as_micros())
}

/// The energy that a power has become, and its readings.
#[derive(Debug)]
pub(super) struct Ledger {
    power: Power,
    /// The energy is that of this moment.
    at: Duration,
    energy: Energies,
    /// The half hour of the first reading. A reading is taken as its half hour begins; none is missing behind the first.
    first: u64,
    readings: VecDeque<Energies>,
}

impl Ledger {
    /// A ledger with an energy at a moment. The power flowed before, too: the readings show it, as far as there was energy.
    pub(super) fn new(power: Power, at: Duration, energy: Energies) -> Self {
        let mut ledger = Self { power, at, energy, first: slot(at) + 1, readings: VecDeque::new() };
        let (mut then, mut left) = (at, energy);
        while ledger.readings.len() < KEPT {
            let Some(before) = ledger.first.checked_sub(1) else { break };
            let flown = flow(power.watts(begin(before)), then.saturating_sub(begin(before)));
            let earlier = [0, 1].map(|direction| left[direction].checked_sub(flown[direction]));
            let [Some(forward), Some(reverse)] = earlier else { break };
            ledger.readings.push_front([forward, reverse]);
            (ledger.first, then, left) = (before, begin(before), [forward, reverse]);
        }
        ledger
    }

    /// Counts until a moment.
    pub(super) fn settle(&mut self, now: Duration) {
        while self.at < now {
            let next = begin(slot(self.at) + 1);
            let until = next.min(now);
            let flown = flow(self.power.watts(self.at), until - self.at);
            self.energy = [0, 1].map(|direction| self.energy[direction].saturating_add(flown[direction]));
            self.at = until;
            if until == next {
                self.readings.push_back(self.energy);
                if self.readings.len() > KEPT {
                    self.readings.pop_front();
                    self.first += 1;
                }
            }
        }
    }

    pub(super) fn at(&self) -> Duration {
        self.at
    }

    pub(super) fn energy(&self) -> Energies {
        self.energy
    }

    pub(super) fn watts(&self) -> i64 {
        self.power.watts(self.at)
    }

    /// Another power flows from now on.
    pub(super) fn set_power(&mut self, power: Power) {
        self.power = power;
    }

    /// The energy of a direction is another one from now on.
    pub(super) fn set_energy(&mut self, direction: usize, energy: u128) {
        if let Some(counted) = self.energy.get_mut(direction) {
            *counted = energy;
        }
    }

    /// The energies at the beginning of a half hour, if it was within the time that is kept.
    pub(super) fn reading(&self, slot: u64) -> Option<Energies> {
        let at = usize::try_from(slot.checked_sub(self.first)?).ok()?;
        self.readings.get(at).copied()
    }

    /// The beginning of the current minute, and the energies then.
    pub(super) fn minute(&self) -> (Duration, Energies) {
        let begun = Duration::from_secs(self.at.as_secs() / 60 * 60);
        let flown = flow(self.power.watts(begun), self.at - begun);
        (begun, [0, 1].map(|direction| self.energy[direction].saturating_sub(flown[direction])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const KILOWATT_HOUR: u128 = 10_000 * DECIWATT_HOUR;

    #[test]
    fn energy_is_power_over_time_in_each_direction() {
        let start = HOUR * 24 * 365 + Duration::from_secs(100);
        let mut ledger = Ledger::new(Power::Fixed(2000), start, [0; 2]);
        // Many small steps and a large one count the same.
        (1..=3600).for_each(|second| ledger.settle(start + Duration::from_secs(second)));
        assert_eq!(ledger.energy(), [2 * KILOWATT_HOUR, 0]);
        ledger.set_power(Power::Fixed(-500));
        ledger.settle(start + HOUR * 5);
        assert_eq!((ledger.energy(), ledger.watts()), ([2 * KILOWATT_HOUR, 2 * KILOWATT_HOUR], -500));
        // A clock that steps back changes nothing.
        ledger.settle(start);
        assert_eq!(ledger.energy(), [2 * KILOWATT_HOUR, 2 * KILOWATT_HOUR]);
    }

    #[test]
    fn readings_reach_back_as_far_as_there_was_energy_and_no_further_than_is_kept() {
        let start = HOUR * 24 * 365 + HOUR / 2 + Duration::from_secs(900);
        let mut ledger = Ledger::new(Power::Fixed(1000), start, [KILOWATT_HOUR, 0]);
        let last = slot(start);
        assert_eq!(ledger.reading(last), Some([KILOWATT_HOUR * 3 / 4, 0]));
        assert_eq!(ledger.reading(last - 1), Some([KILOWATT_HOUR / 4, 0]));
        assert_eq!((ledger.reading(last - 2), ledger.reading(last + 1)), (None, None));
        ledger.settle(start + HOUR * 24 * 120);
        let last = slot(ledger.at());
        let least = last + 1 - KEPT as u64;
        assert_eq!(ledger.reading(last).unwrap()[0] - ledger.reading(last - 48).unwrap()[0], 24 * KILOWATT_HOUR);
        assert!(ledger.reading(least).is_some() && ledger.reading(least - 1).is_none());
        assert!(ledger.reading(last + 1).is_none());
    }

    #[test]
    fn a_moment_at_a_half_hour_has_its_reading_and_1970_has_no_past() {
        let ledger = Ledger::new(Power::Fixed(1000), begin(2), [KILOWATT_HOUR; 2]);
        assert_eq!(ledger.reading(2), Some([KILOWATT_HOUR; 2]));
        assert_eq!(ledger.reading(0), Some([0, KILOWATT_HOUR]));
        assert_eq!(ledger.minute(), (begin(2), [KILOWATT_HOUR; 2]));
        let house = Power::Curve(&HOUSE, 500);
        assert_eq!([2, 19].map(|hour| house.watts(HOUR * hour)), [175, 1000]);
        assert_eq!(Power::Curve(&SUN, 4000).watts(HOUR * 36), 4000);
    }
}
