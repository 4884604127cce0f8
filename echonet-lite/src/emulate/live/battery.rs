//! Storage batteries that fill and empty as their operation mode says.

use core::time::Duration;
use std::borrow::ToOwned;
use std::vec;
use std::vec::Vec;

use super::Values;
use super::ledger::{DECIWATT_HOUR, Ledger, Power};
use crate::class::Class;

const CLASS: u16 = 0x027D;

const CAPACITY: u8 = 0xD0;
const POWER: u8 = 0xD3;
const MODE: u8 = 0xDA;
pub(super) const ACTUAL_MODE: u8 = 0xCF;
const REMAINING: u8 = 0xE2;
const PERCENT: u8 = 0xE4;
/// The energies that it has taken and given, each in all its units.
const TOTALS: [[u8; 2]; 2] = [[0xA8, 0xD8], [0xA9, 0xD6]];
/// The properties whose writes reset these.
const RESETS: [u8; 2] = [0xD9, 0xD7];
const CHARGEABLE: u8 = 0xA4;
const DISCHARGEABLE: u8 = 0xA5;

const RAPID_CHARGING: u8 = 0x41;
const CHARGING: u8 = 0x42;
const DISCHARGING: u8 = 0x43;
const STANDBY: u8 = 0x44;

/// Values that a battery has where nothing else is given: 5 kWh, in standby.
const USUAL: &[(u8, &[u8])] = &[(CAPACITY, &[0, 0, 0x13, 0x88]), (MODE, &[STANDBY])];
/// Its power where none is given.
const WATTS: i64 = 1000;
/// Watt-microseconds of a watt-hour.
const WATT_HOUR: u128 = 10 * DECIWATT_HOUR;
/// Watt-hours at which the counts begin anew.
const END: u128 = 1_000_000_000;

/// A battery, and the energy that is in it.
#[derive(Debug)]
pub(in crate::emulate) struct Battery {
    /// Charging is the normal direction.
    ledger: Ledger,
    /// The power of charging and discharging.
    watts: i64,
    mode: u8,
    remaining: u128,
    capacity: u128,
}

impl Battery {
    /// A battery at a moment; none if the class has none. The `given` values stay as they are.
    pub(super) fn new(class: &Class, values: &mut Values, given: &[u8], now: Duration) -> Option<Self> {
        if class.code.to_u16() != CLASS {
            return None;
        }
        for (epc, edt) in USUAL.iter().filter(|(epc, _)| !given.contains(epc)) {
            if let Some(value) = values.get_mut(epc) {
                (*edt).clone_into(value);
            }
        }
        let number = |epc: u8| Some(class.property(epc)?.decode(values.get(&epc)?).ok()?.number()?.raw);
        let whole = |epc: u8| number(epc).and_then(|number| u128::try_from(number).ok());
        let given_number = |epc: u8| whole(epc).filter(|_| given.contains(&epc));
        let capacity = whole(CAPACITY).unwrap_or(0) * WATT_HOUR;
        let percent = || capacity * given_number(PERCENT).unwrap_or(50) / 100;
        let remaining = given_number(REMAINING).map_or_else(percent, |energy| energy * WATT_HOUR);
        let energy = TOTALS.map(|[epc, _]| whole(epc).unwrap_or(0) * WATT_HOUR);
        let watts = number(POWER).filter(|_| given.contains(&POWER)).map_or(WATTS, |watts| watts.saturating_abs());
        let ledger = Ledger::new(Power::Fixed(0), now, energy);
        let mut battery = Self { ledger, watts, mode: STANDBY, remaining: remaining.min(capacity), capacity };
        battery.told(MODE, values);
        Some(battery)
    }

    pub(super) fn value(&self, epc: u8) -> Option<Vec<u8>> {
        let energy = |energy: u128| Some(((energy / WATT_HOUR % END) as u32).to_be_bytes().to_vec());
        if let Some(direction) = TOTALS.iter().position(|totals| totals.contains(&epc)) {
            return energy(self.ledger.energy()[direction]);
        }
        match epc {
            POWER => i32::try_from(self.ledger.watts()).ok().map(|watts| watts.to_be_bytes().to_vec()),
            REMAINING | DISCHARGEABLE => energy(self.remaining),
            CHARGEABLE => energy(self.capacity - self.remaining),
            // At most 100.
            PERCENT => Some(vec![(self.remaining * 100).checked_div(self.capacity).unwrap_or(0) as u8]),
            ACTUAL_MODE => Some(vec![if self.is_at_rest() { STANDBY } else { self.mode }]),
            _ => None,
        }
    }

    /// Other nodes or the plan have written a property.
    pub(super) fn told(&mut self, epc: u8, values: &Values) {
        if let (MODE, Some([mode])) = (epc, values.get(&epc).map(Vec::as_slice)) {
            self.mode = *mode;
            let watts = match self.mode {
                RAPID_CHARGING | CHARGING if self.remaining < self.capacity => self.watts,
                DISCHARGING if self.remaining > 0 => -self.watts,
                _ => 0,
            };
            self.ledger.set_power(Power::Fixed(watts));
        }
        if let Some(direction) = RESETS.iter().position(|reset| *reset == epc) {
            self.ledger.set_energy(direction, 0);
        }
    }

    pub(super) fn advance(&mut self, now: Duration) {
        if let Some(end) = self.next().filter(|end| *end <= now) {
            self.flow(end);
            self.ledger.set_power(Power::Fixed(0));
        }
        self.flow(now);
    }

    /// When it is full or empty, while it is charged or discharged.
    pub(super) fn next(&self) -> Option<Duration> {
        let watts = self.ledger.watts();
        let room = if watts > 0 { self.capacity - self.remaining } else { self.remaining };
        let micros = room.div_ceil(u128::from(watts.unsigned_abs()).max(1));
        (watts != 0).then(|| self.ledger.at() + Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)))
    }

    /// Energy flows until a moment.
    fn flow(&mut self, until: Duration) {
        let before = self.ledger.energy();
        self.ledger.settle(until);
        let [taken, given] = [0, 1].map(|direction| self.ledger.energy()[direction].saturating_sub(before[direction]));
        self.remaining = (self.remaining + taken).saturating_sub(given).min(self.capacity);
    }

    /// True if it is full or empty, so that the mode has no effect.
    fn is_at_rest(&self) -> bool {
        matches!(self.mode, RAPID_CHARGING | CHARGING | DISCHARGING) && self.ledger.watts() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class;

    const START: Duration = Duration::from_secs(1_000_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    fn battery(given: &[(u8, &[u8])]) -> (Battery, Values) {
        let class = class::by_name("027D").unwrap();
        let value = |spec: &class::PropertySpec| (spec.epc, crate::emulate::defaults::value(class, spec, [0; 3], 1));
        let mut values: Values = class.all_properties().map(value).collect();
        values.extend(given.iter().map(|(epc, edt)| (*epc, edt.to_vec())));
        let epcs: Vec<_> = given.iter().map(|(epc, _)| *epc).collect();
        let battery = Battery::new(class, &mut values, &epcs, START).unwrap();
        (battery, values)
    }

    #[test]
    fn a_battery_fills_and_empties_and_then_rests() {
        let power = 2000_i32.to_be_bytes();
        let (mut battery, mut values) = battery(&[(POWER, &power), (PERCENT, &[80])]);
        let number = |battery: &Battery, epc: u8| {
            battery.value(epc).unwrap().iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
        };
        let taken = number(&battery, 0xD8);
        // Minutes from the start, mode; percent, power and actual mode then, and the minutes until it is full or empty.
        for (minutes, mode, percent, watts, actual, next) in [
            (0, STANDBY, 80, 0, STANDBY, None),
            (60, CHARGING, 80, 2000, CHARGING, Some(90)),
            (75, CHARGING, 90, 2000, CHARGING, Some(90)),
            (600, CHARGING, 100, 0, STANDBY, None),
            (600, DISCHARGING, 100, -2000, DISCHARGING, Some(750)),
            (660, 0x46, 60, 0, 0x46, None),
            (660, DISCHARGING, 60, -2000, DISCHARGING, Some(750)),
            (9999, DISCHARGING, 0, 0, STANDBY, None),
        ] {
            battery.advance(START + HOUR / 60 * minutes);
            values.insert(MODE, vec![mode]);
            battery.told(MODE, &values);
            let shown = (number(&battery, PERCENT), number(&battery, POWER) as i32, number(&battery, ACTUAL_MODE));
            assert_eq!(shown, (percent, watts, u32::from(actual)), "{minutes} minutes, {mode:02X}");
            assert_eq!(
                battery.next(),
                next.map(|minutes| START + HOUR / 60 * minutes),
                "{minutes} minutes, {mode:02X}"
            );
        }
        assert_eq!(number(&battery, 0xD8) - taken, 1000);
        battery.told(0xD7, &values);
        assert_eq!((number(&battery, 0xD6), number(&battery, REMAINING)), (0, 0));
    }

    #[test]
    fn every_value_is_one_that_the_class_allows() {
        let (battery, _) = battery(&[]);
        for spec in class::by_name("027D").unwrap().all_properties() {
            let Some(edt) = battery.value(spec.epc) else { continue };
            assert!(spec.decode(&edt).is_ok(), "{:02X}: {edt:02X?}", spec.epc);
        }
        // Without a capacity it is always empty.
        let (mut empty, mut values) = self::battery(&[(CAPACITY, &[0; 4])]);
        values.insert(MODE, vec![CHARGING]);
        empty.told(MODE, &values);
        empty.advance(START + HOUR);
        assert_eq!((empty.value(PERCENT), empty.next()), (Some(vec![0]), None));
    }
}
