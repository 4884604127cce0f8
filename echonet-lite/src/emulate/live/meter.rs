//! Meters: the energy of their power, counted in their own units, and its histories.

use core::time::Duration;
use std::borrow::ToOwned;
use std::vec::Vec;

use super::Values;
use super::ledger::{Curve, DECIWATT_HOUR, Energies, HOUSE, Ledger, Power, SLOTS, SUN, begin, slot};
use crate::class::{Class, Data, Number, Unit};
use crate::emulate::Moment;

/// The code of "no data".
pub(super) const NO_DATA: u32 = 0xFFFF_FFFE;
/// The voltage of a phase, which currents follow from.
const VOLTS: i64 = 100;

/// The properties of a class of meters. Pairs are those of the normal and of the reverse direction.
#[derive(Debug)]
struct Row {
    class: u16,
    /// The instantaneous power.
    power: Option<u8>,
    /// The cumulative energies.
    totals: [Option<u8>; 2],
    /// The properties whose writes reset these.
    resets: [Option<u8>; 2],
    /// Their values at the half hours of a day, and the property that chooses the day.
    logs: [Option<u8>; 2],
    day: Option<u8>,
    /// Date, time and value at the last half hour.
    latest: [Option<u8>; 2],
    /// Date, time and both values at the last minute.
    minute: Option<u8>,
    /// The currents of both phases.
    currents: Option<u8>,
    /// The number of digits after which the count begins anew.
    digits: Option<u8>,
    /// The power of each hour, where nothing else is given.
    usual_power: (&'static Curve, i64),
    /// Values that a meter has where nothing else is given.
    usual: &'static [(u8, &'static [u8])],
}

/// A class without any of the properties.
const NONE: Row = Row {
    class: 0,
    power: None,
    totals: [None; 2],
    resets: [None; 2],
    logs: [None; 2],
    day: None,
    latest: [None; 2],
    minute: None,
    currents: None,
    digits: None,
    usual_power: (&HOUSE, 500),
    usual: &[],
};

static ROWS: [Row; 6] = [
    Row {
        class: 0x0288,
        power: Some(0xE7),
        totals: [Some(0xE0), Some(0xE3)],
        logs: [Some(0xE2), Some(0xE4)],
        day: Some(0xE5),
        latest: [Some(0xEA), Some(0xEB)],
        minute: Some(0xD0),
        currents: Some(0xE8),
        digits: Some(0xD7),
        usual: &[
            (0xD3, &[0, 0, 0, 1]),
            (0xD7, &[6]),
            (0xE0, &[0, 1, 0xE2, 0x40]),
            (0xE1, &[0x01]),
            (0xE3, &[0, 0, 0, 0]),
        ],
        ..NONE
    },
    Row {
        class: 0x0287,
        power: Some(0xC6),
        totals: [Some(0xC0), Some(0xC1)],
        logs: [Some(0xC3), Some(0xC4)],
        day: Some(0xC5),
        currents: Some(0xC7),
        // Eight channels of one direction and two of both, counted in hundredths of kilowatt-hours.
        usual: &[
            (0xB1, &[8]),
            (0xB2, &[1, 8]),
            (0xB4, &[1, 8]),
            (0xB6, &[1, 8]),
            (0xB8, &[2]),
            (0xB9, &[1, 2]),
            (0xBB, &[1, 2]),
            (0xBD, &[1, 2]),
            (0xC2, &[0x02]),
        ],
        ..NONE
    },
    Row {
        class: 0x028D,
        power: Some(0xE7),
        totals: [Some(0xE1), Some(0xE3)],
        logs: [Some(0xE2), Some(0xE4)],
        day: Some(0xE0),
        latest: [Some(0xEA), Some(0xEB)],
        currents: Some(0xE8),
        digits: Some(0xD7),
        usual: &[(0xD3, &[0, 0, 0, 1]), (0xD4, &[0x01]), (0xD7, &[6]), (0xE3, &[0, 0, 0, 0])],
        ..NONE
    },
    Row {
        class: 0x028E,
        power: Some(0xE9),
        totals: [Some(0xE0), Some(0xE2)],
        logs: [Some(0xE1), Some(0xE3)],
        day: Some(0xD5),
        latest: [Some(0xE6), Some(0xE7)],
        usual: &[(0xD4, &[0x02]), (0xD5, &[0, 0])],
        ..NONE
    },
    Row { class: 0x0280, totals: [Some(0xE0), None], ..NONE },
    Row {
        class: 0x0279,
        power: Some(0xE0),
        totals: [Some(0xE1), None],
        resets: [Some(0xE2), None],
        usual_power: (&SUN, 4000),
        ..NONE
    },
];

/// A meter that counts.
#[derive(Debug)]
pub(in crate::emulate) struct Meter {
    pub(super) class: &'static Class,
    row: &'static Row,
    pub(super) ledger: Ledger,
}

impl Meter {
    /// A meter of a class at a moment; none if the class has no meters. The `given` values stay as they are.
    pub(super) fn new(class: &'static Class, values: &mut Values, given: &[u8], now: Duration) -> Option<Self> {
        let row = ROWS.iter().find(|row| row.class == class.code.to_u16())?;
        for (epc, edt) in row.usual.iter().filter(|(epc, _)| !given.contains(epc)) {
            if let Some(value) = values.get_mut(epc) {
                (*edt).clone_into(value);
            }
        }
        let mut meter = Self { class, row, ledger: Ledger::new(Power::Fixed(0), now, [0; 2]) };
        let energy = row.totals.map(|epc| epc.map_or(0, |epc| meter.told_energy(epc, values)));
        let (curve, whole) = row.usual_power;
        let given_power = row.power.filter(|epc| given.contains(epc));
        let power = given_power.map(|epc| Power::Fixed(meter.number(epc, values).unwrap_or(0)));
        meter.ledger = Ledger::new(power.unwrap_or(Power::Curve(curve, whole)), now, energy);
        Some(meter)
    }

    /// The value of a property that changes with time; none of other properties.
    pub(super) fn value(&self, epc: u8, values: &Values) -> Option<Vec<u8>> {
        let row = self.row;
        let direction = |of: [Option<u8>; 2]| of.iter().position(|one| *one == Some(epc));
        let is = |of: Option<u8>| of == Some(epc);
        if is(row.power) {
            return self.watts(epc);
        }
        if let Some(direction) = direction(row.totals) {
            let count = self.count(epc, self.ledger.energy()[direction], values)?;
            return Some(count.to_be_bytes().to_vec());
        }
        if let Some(direction) = direction(row.logs) {
            return self.log(epc, direction, values);
        }
        if let Some(direction) = direction(row.latest) {
            let slot = slot(self.ledger.at());
            let energies = self.ledger.reading(slot).map(|energies| energies[direction]);
            return Some([moment(begin(slot)), self.counts(epc, &[energies], values)].concat());
        }
        if is(row.minute) {
            let (begun, energies) = self.ledger.minute();
            return Some([moment(begun), self.counts(epc, &energies.map(Some), values)].concat());
        }
        if is(row.currents) {
            let phase = deciamperes(self.ledger.watts()).to_be_bytes();
            return Some([phase, phase].concat());
        }
        None
    }

    /// Other nodes or the plan have written a property.
    pub(super) fn told(&mut self, epc: u8, values: &Values) {
        let is = |of: &Option<u8>| *of == Some(epc);
        if is(&self.row.power)
            && let Some(watts) = self.number(epc, values)
        {
            self.ledger.set_power(Power::Fixed(watts));
        }
        if let Some(direction) = self.row.totals.iter().position(is) {
            self.ledger.set_energy(direction, self.told_energy(epc, values));
        }
        if let Some(direction) = self.row.resets.iter().position(is) {
            self.ledger.set_energy(direction, 0);
        }
    }

    /// The number that a property has.
    fn number(&self, epc: u8, values: &Values) -> Option<i64> {
        Some(self.class.property(epc)?.decode(values.get(&epc)?).ok()?.number()?.raw)
    }

    /// The energy that a cumulative property tells; 0 if it tells none.
    fn told_energy(&self, epc: u8, values: &Values) -> u128 {
        let count = self.number(epc, values).and_then(|count| u128::try_from(count).ok());
        let (unit, _) = self.scale(epc, values).unwrap_or((1, 1));
        count.unwrap_or(0) * unit * DECIWATT_HOUR
    }

    /// The unit that a property counts in, in tenths of watt-hours, and the number at which the count begins anew.
    fn scale(&self, epc: u8, values: &Values) -> Option<(u128, u128)> {
        let number = counter(self.class.property(epc)?.data)?;
        let factor = |epc: &u8| self.class.property(*epc)?.decode(values.get(epc)?).ok()?.number();
        let (mut unit, mut exponent) = (1, i32::from(number.exponent));
        for factor in number.coefficients.iter().filter_map(factor) {
            // A coefficient of 0 would count nothing.
            unit *= u128::from(factor.raw.max(1).unsigned_abs());
            exponent += i32::from(factor.exponent);
        }
        // A kilowatt-hour has 10⁴ tenths of watt-hours.
        unit *= 10_u128.pow(u32::try_from(exponent + 4).unwrap_or(0).min(12));
        let digits = self.row.digits.and_then(|epc| self.number(epc, values));
        let digits = digits.and_then(|digits| u32::try_from(digits).ok()).filter(|digits| (1..=8).contains(digits));
        let end = digits.map_or_else(|| u128::from(number.maximum.unsigned_abs()) + 1, |digits| 10_u128.pow(digits));
        Some((unit, end))
    }

    /// An energy as a property counts it.
    pub(super) fn count(&self, epc: u8, energy: u128, values: &Values) -> Option<u32> {
        let (unit, end) = self.scale(epc, values)?;
        u32::try_from(energy / DECIWATT_HOUR / unit % end).ok()
    }

    /// Several energies as a property counts them; "no data" for those that are not known.
    pub(super) fn counts(&self, epc: u8, energies: &[Option<u128>], values: &Values) -> Vec<u8> {
        let count = |energy: Option<u128>| energy.and_then(|energy| self.count(epc, energy, values));
        energies.iter().flat_map(|energy| count(*energy).unwrap_or(NO_DATA).to_be_bytes()).collect()
    }

    /// The power, in as many bytes as the property has.
    fn watts(&self, epc: u8) -> Option<Vec<u8>> {
        let number = self.class.property(epc)?.number()?;
        let bytes = self.ledger.watts().clamp(number.minimum, number.maximum).to_be_bytes();
        Some(bytes[bytes.len() - number.format.size()..].to_vec())
    }

    /// The day that was chosen, and the counts at its half hours.
    fn log(&self, epc: u8, direction: usize, values: &Values) -> Option<Vec<u8>> {
        let chosen = self.row.day?;
        let header = match values.get(&chosen)?[..] {
            [day] => [0, day],
            [high, low] => [high, low],
            _ => return None,
        };
        // A day that was never chosen is today.
        let day = self.number(chosen, values).and_then(|day| u64::try_from(day).ok()).unwrap_or(0);
        let today = slot(self.ledger.at()) / SLOTS;
        let first = today.checked_sub(day).map(|day| day * SLOTS);
        let energy = |of: Energies| of[direction];
        let energies: Vec<_> = (0..SLOTS).map(|slot| self.ledger.reading(first? + slot).map(energy)).collect();
        Some([header.to_vec(), self.counts(epc, &energies, values)].concat())
    }
}

/// The number in a type that counts energy.
fn counter(data: &'static Data) -> Option<&'static Number> {
    match data {
        Data::Number(number) => Some(number).filter(|number| number.unit == Unit::KilowattHour),
        Data::OneOf(arms) => arms.iter().find_map(counter),
        Data::Array(array) => counter(array.items),
        Data::Object(fields) => fields.iter().find_map(|field| counter(field.data)),
        _ => None,
    }
}

/// The current of each of two phases, in tenths of amperes.
pub(super) fn deciamperes(watts: i64) -> i16 {
    const MOST: i64 = 32_765;
    (watts * 10 / (2 * VOLTS)).clamp(-MOST, MOST) as i16
}

/// Date and time, as properties have them.
fn moment(at: Duration) -> Vec<u8> {
    let ((year, month, day), (hour, minute, second)) = (Moment(at).date(), Moment(at).time());
    [&year.to_be_bytes()[..], &[month, day, hour, minute, second]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class;

    /// 2026-11-21 10:00:00.
    const START: Duration = Duration::from_secs(1_795_255_200);
    const HOUR: Duration = Duration::from_secs(3600);

    fn values(class: &'static Class) -> Values {
        let value = |spec: &class::PropertySpec| (spec.epc, crate::emulate::defaults::value(class, spec, [0; 3], 1));
        class.all_properties().map(value).collect()
    }

    fn meter(code: &str, given: &[(u8, &[u8])]) -> (Meter, Values) {
        let class = class::by_name(code).unwrap();
        let mut values = values(class);
        values.extend(given.iter().map(|(epc, edt)| (*epc, edt.to_vec())));
        let epcs: Vec<_> = given.iter().map(|(epc, _)| *epc).collect();
        let meter = Meter::new(class, &mut values, &epcs, START).unwrap();
        (meter, values)
    }

    fn number(meter: &Meter, values: &Values, epc: u8) -> u32 {
        let edt = meter.value(epc, values).unwrap();
        edt.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    #[test]
    fn counts_honour_unit_coefficient_and_digits() {
        // Unit, coefficient, digits, count before and after 10 hours of 1.5 kW.
        for (unit, coefficient, digits, before, after) in [
            (0x00, 1, 8, 100, 115),
            (0x01, 1, 8, 100, 250),
            (0x04, 1, 8, 100, 150_100),
            (0x01, 3, 8, 100, 150),
            (0x0A, 1, 8, 100, 101),
            (0x01, 0, 8, 100, 250),
            (0x01, 1, 3, 900, 50),
            (0x01, 1, 9, 99_999_999, 149),
        ] {
            let [a, b, c, d] = u32::to_be_bytes(coefficient);
            let before = u32::to_be_bytes(before);
            let given: [(u8, &[u8]); 5] = [
                (0xE1, &[unit]),
                (0xD3, &[a, b, c, d]),
                (0xD7, &[digits]),
                (0xE0, &before),
                (0xE7, &[0, 0, 0x05, 0xDC]),
            ];
            let (mut meter, values) = meter("0288", &given);
            assert_eq!(meter.value(0xE0, &values).unwrap(), before, "{unit:02X}");
            meter.ledger.settle(START + 10 * HOUR);
            assert_eq!(number(&meter, &values, 0xE0), after, "{unit:02X} × {coefficient}");
        }
    }

    #[test]
    fn histories_are_readings_of_the_count() {
        for (code, day, log, latest) in
            [("0288", 0xE5, 0xE2, 0xEA), ("028D", 0xE0, 0xE2, 0xEA), ("028E", 0xD5, 0xE1, 0xE6)]
        {
            let (mut meter, mut values) = meter(code, &[]);
            let spec = meter.class.property(log).unwrap();
            meter.ledger.settle(START + 50 * HOUR + HOUR / 4);
            // It is noon of the second day after the start.
            let wide = meter.class.property(day).unwrap().data.sizes().0 == 2;
            let mut slots = Vec::new();
            for ago in [2_u8, 1, 0] {
                values.insert(day, if wide { std::vec![0, ago] } else { std::vec![ago] });
                let edt = meter.value(log, &values).unwrap();
                assert!(spec.decode(&edt).is_ok(), "{code}: {edt:02X?}");
                assert_eq!(edt[..2], [0, ago]);
                slots.extend(edt[2..].as_chunks().0.iter().map(|bytes| u32::from_be_bytes(*bytes)));
            }
            let past = 48 * 2 + 25;
            assert!(slots[..past].is_sorted() && slots[0] < slots[past - 1], "{code}: {slots:?}");
            assert!(slots[past..].iter().all(|count| *count == NO_DATA), "{code}: {slots:?}");
            let reading = meter.value(latest, &values).unwrap();
            assert_eq!(reading[..7], [0x07, 0xEA, 11, 23, 12, 0, 0], "{code}");
            assert_eq!(reading[7..], slots[past - 1].to_be_bytes(), "{code}");
        }
    }

    #[test]
    fn a_written_power_or_count_holds_from_now_on() {
        let (mut meter, mut values) = meter("0288", &[]);
        values.insert(0xE7, (-3000_i32).to_be_bytes().to_vec());
        meter.told(0xE7, &values);
        values.insert(0xE0, std::vec![0, 0, 0, 7]);
        meter.told(0xE0, &values);
        meter.ledger.settle(START + HOUR);
        assert_eq!((number(&meter, &values, 0xE0), number(&meter, &values, 0xE3)), (7, 30));
        assert_eq!(meter.value(0xE7, &values).unwrap(), (-3000_i32).to_be_bytes());
        assert_eq!(meter.value(0xE8, &values).unwrap(), [(-150_i16).to_be_bytes(); 2].concat());
        // No data is no power.
        values.insert(0xE7, std::vec![0x7F, 0xFF, 0xFF, 0xFE]);
        meter.told(0xE7, &values);
        assert_eq!(meter.ledger.watts(), -3000);
        let minute = meter.value(0xD0, &values).unwrap();
        assert!(meter.class.property(0xD0).unwrap().decode(&minute).is_ok(), "{minute:02X?}");
    }

    #[test]
    fn the_sun_makes_energy_by_day() {
        let (mut meter, mut values) = meter("0279", &[]);
        let before = number(&meter, &values, 0xE1);
        meter.ledger.settle(START + 2 * HOUR);
        assert_eq!(number(&meter, &values, 0xE0), 4000);
        // 90 % and 98 % of 4 kW, in watt-hours.
        assert_eq!(number(&meter, &values, 0xE1) - before, 3600 + 3920);
        meter.ledger.settle(START + 14 * HOUR);
        assert_eq!(number(&meter, &values, 0xE0), 0);
        values.insert(0xE2, std::vec![0]);
        meter.told(0xE2, &values);
        assert_eq!(number(&meter, &values, 0xE1), 0);
    }

    #[test]
    fn every_value_is_one_that_the_class_allows() {
        for row in &ROWS {
            let (mut meter, values) = meter(&std::format!("{:04X}", row.class), &[]);
            let class = meter.class;
            for hours in [0, 1, 30] {
                meter.ledger.settle(START + HOUR * hours);
                for spec in class.all_properties() {
                    let Some(edt) = meter.value(spec.epc, &values) else { continue };
                    assert!(spec.decode(&edt).is_ok(), "{class} {:02X}: {edt:02X?}", spec.epc);
                }
            }
            let named = [row.power, row.day, row.minute, row.currents, row.digits];
            let pairs = [row.totals, row.resets, row.logs, row.latest];
            for epc in named.into_iter().chain(pairs.into_iter().flatten()).flatten() {
                assert!(class.property(epc).is_some(), "{class} {epc:02X}");
            }
        }
    }
}
