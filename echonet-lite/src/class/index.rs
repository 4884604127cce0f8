//! The classes by code: a hash table made at compile time.

use super::Class;
use super::tables::ALL;
use crate::wire::ClassCode;

/// At most half of the slots are taken, so that a search soon ends.
const SLOTS: usize = (2 * ALL.len()).next_power_of_two();
/// A slot without a class: no place in `ALL`.
const EMPTY: u8 = u8::MAX;

/// Places in `ALL`.
static INDEX: [u8; SLOTS] = index();

pub(super) fn find(code: ClassCode) -> Option<&'static Class> {
    let mut slot = first_slot(code);
    loop {
        let class = ALL.get(usize::from(*INDEX.get(slot)?))?;
        if class.code == code {
            return Some(class);
        }
        slot = (slot + 1) % SLOTS;
    }
}

const fn index() -> [u8; SLOTS] {
    assert!(ALL.len() < EMPTY as usize, "a place must fit a slot");
    let mut index = [EMPTY; SLOTS];
    let mut place = 0;
    while place < ALL.len() {
        let mut slot = first_slot(ALL[place].code);
        while index[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        index[slot] = place as u8;
        place += 1;
    }
    index
}

/// Where the search for a code begins: its bits, spread by Fibonacci hashing.
const fn first_slot(code: ClassCode) -> usize {
    code.to_u16().wrapping_mul(0x9E37) as usize >> (16 - SLOTS.trailing_zeros())
}
