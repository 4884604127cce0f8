//! Distribution boards: each circuit has a share of the whole, and a list tells those of a range.

use std::vec;
use std::vec::Vec;

use super::Values;
use super::meter::{Meter, NO_DATA, deciamperes};
use crate::wire::ClassCode;

/// The only meters that have circuits.
const CLASS: ClassCode = ClassCode::new(0x02, 0x87);

/// The most channels of a kind.
const MOST: u8 = 252;
/// The number of channels of one direction, and of both.
const CHANNELS: [u8; 2] = [0xB1, 0xB8];
/// The first and the last of the properties that each show one channel.
const SINGLE: core::ops::RangeInclusive<u8> = 0xD0..=0xEF;

#[derive(Clone, Copy)]
enum Quantity {
    Energy,
    BothEnergies,
    Current,
    Power,
}

/// Lists, the properties that choose their ranges, and what they measure.
const LISTS: [(u8, u8, Quantity); 6] = [
    (0xB3, 0xB2, Quantity::Energy),
    (0xB5, 0xB4, Quantity::Current),
    (0xB7, 0xB6, Quantity::Power),
    (0xBA, 0xB9, Quantity::BothEnergies),
    (0xBC, 0xBB, Quantity::Current),
    (0xBE, 0xBD, Quantity::Power),
];

/// The value of a property of circuits; none of other properties, nor of other meters.
pub(super) fn value(meter: &Meter, epc: u8, values: &Values) -> Option<Vec<u8>> {
    if meter.class.code != CLASS {
        return None;
    }
    if SINGLE.contains(&epc) {
        let channel = u16::from(epc - SINGLE.start()) + 1;
        let share = Share::of(channel, CHANNELS[0], values);
        let parts = [Quantity::Energy, Quantity::Current].map(|quantity| item(meter, epc, quantity, share, values));
        return Some(parts.concat());
    }
    let (_, range, quantity) = LISTS.iter().find(|(list, ..)| *list == epc)?;
    let &[start, count] = values.get(range)?.as_slice() else { return None };
    if !(1..=MOST).contains(&start) {
        return Some(vec![start, count]);
    }
    let is_duplex = epc > CHANNELS[1];
    let channels = u16::from(start)..u16::from(start) + u16::from(count);
    let share = |channel| Share::of(channel, CHANNELS[usize::from(is_duplex)], values);
    let items = channels.flat_map(|channel| item(meter, epc, *quantity, share(channel), values));
    Some([start, count].into_iter().chain(items).collect())
}

/// The part of the whole that goes through a circuit: so many of so many.
#[derive(Clone, Copy)]
struct Share(u16, u16);

impl Share {
    /// The share of a channel; none of a channel that the board does not have.
    fn of(channel: u16, number: u8, values: &Values) -> Option<Self> {
        let channels = values.get(&number)?.first().copied().filter(|channels| *channels <= MOST)?;
        let weight = |channel: u16| 1 + (channel - 1) % 5;
        let whole: u16 = (1..=u16::from(channels)).map(weight).sum();
        (1..=u16::from(channels)).contains(&channel).then(|| Self(weight(channel), whole))
    }

    fn of_energy(self, energy: u128) -> u128 {
        energy * u128::from(self.0) / u128::from(self.1)
    }

    fn of_power(self, watts: i64) -> i64 {
        watts * i64::from(self.0) / i64::from(self.1)
    }
}

/// The bytes of one channel; "no data" without a share.
fn item(meter: &Meter, epc: u8, quantity: Quantity, share: Option<Share>, values: &Values) -> Vec<u8> {
    let energies = || meter.ledger.energy().map(|energy| share.map(|share| share.of_energy(energy)));
    let watts = share.map(|share| share.of_power(meter.ledger.watts()));
    match quantity {
        Quantity::Energy => meter.counts(epc, &energies()[..1], values),
        Quantity::BothEnergies => meter.counts(epc, &energies(), values),
        Quantity::Current => {
            let phase = watts.map_or([0x7F, 0xFE], |watts| deciamperes(watts).to_be_bytes());
            [phase, phase].concat()
        }
        Quantity::Power => {
            let watts = watts.and_then(|watts| i32::try_from(watts).ok());
            watts.map_or((NO_DATA & 0x7FFF_FFFF).to_be_bytes(), i32::to_be_bytes).to_vec()
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::class;

    fn board(channels: [u8; 2], watts: i32) -> (Meter, Values) {
        let class = class::by_name("0287").unwrap();
        let value = |spec: &class::PropertySpec| (spec.epc, crate::emulate::defaults::value(class, spec, [0; 3], 1));
        let mut values: Values = class.all_properties().map(value).collect();
        values.extend([
            (0xB1, vec![channels[0]]),
            (0xB8, vec![channels[1]]),
            (0xC0, vec![0, 0, 0, 0]),
            (0xC6, watts.to_be_bytes().to_vec()),
        ]);
        let start = Duration::from_secs(1_000_000_000);
        let mut meter = Meter::new(class, &mut values, &[0xB1, 0xB8, 0xC0, 0xC6], start).unwrap();
        meter.ledger.settle(start + Duration::from_secs(3600));
        (meter, values)
    }

    #[test]
    fn a_list_tells_the_range_that_was_chosen() {
        // Weights 1, 2, 3, 4: a tenth is 100 W, and after an hour 0.1 kWh.
        let (meter, mut values) = board([4, 2], 1000);
        for (range, expected) in [
            ([1, 2], &[1, 2, 0, 0, 0, 10, 0, 0, 0, 20][..]),
            ([4, 1], &[4, 1, 0, 0, 0, 40]),
            ([4, 2], &[4, 2, 0, 0, 0, 40, 0xFF, 0xFF, 0xFF, 0xFE]),
            ([0xFD, 0xFD], &[0xFD, 0xFD]),
        ] {
            values.insert(0xB2, range.to_vec());
            assert_eq!(value(&meter, 0xB3, &values).unwrap(), expected, "{range:?}");
        }
        values.insert(0xB6, vec![3, 2]);
        assert_eq!(value(&meter, 0xB7, &values).unwrap(), [3, 2, 0, 0, 1, 0x2C, 0, 0, 1, 0x90]);
        values.insert(0xB4, vec![4, 2]);
        assert_eq!(value(&meter, 0xB5, &values).unwrap(), [4, 2, 0, 20, 0, 20, 0x7F, 0xFE, 0x7F, 0xFE]);
        values.insert(0xB9, vec![2, 1]);
        assert_eq!(value(&meter, 0xBA, &values).unwrap()[..6], [2, 1, 0, 0, 0, 66]);
        assert_eq!(value(&meter, 0xD3, &values).unwrap(), [0, 0, 0, 40, 0, 20, 0, 20]);
        assert_eq!(value(&meter, 0xD4, &values).unwrap(), [0xFF, 0xFF, 0xFF, 0xFE, 0x7F, 0xFE, 0x7F, 0xFE]);
    }

    #[test]
    fn the_longest_lists_are_values_of_their_properties() {
        let (meter, mut values) = board([252, 252], 1000);
        for (list, range, quantity) in LISTS {
            let most = if matches!(quantity, Quantity::BothEnergies) { 30 } else { 60 };
            for start in [1, 252 - most + 1, 252] {
                values.insert(range, vec![start, most]);
                let edt = value(&meter, list, &values).unwrap();
                let decoded = class::by_name("0287").unwrap().property(list).unwrap().decode(&edt);
                assert!(decoded.is_ok(), "{list:02X} {start}: {decoded:?}");
            }
        }
        values.insert(0xB1, vec![0xFD]);
        values.insert(0xB2, vec![1, 1]);
        assert_eq!(value(&meter, 0xB3, &values).unwrap(), [1, 1, 0xFF, 0xFF, 0xFF, 0xFE]);
    }
}
