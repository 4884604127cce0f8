//! Objects whose values change with time: meters count the energy of their power, covers take time to move, batteries
//! fill and empty. They read no clock; the caller tells them the time since 1970.

mod battery;
mod board;
mod cover;
mod ledger;
mod meter;

use core::time::Duration;
use std::collections::BTreeMap;
use std::vec::Vec;

use battery::Battery;
use cover::Cover;
use meter::Meter;

use crate::class::Class;

/// The values of an object, by property.
pub(super) type Values = BTreeMap<u8, Vec<u8>>;

/// The part of an object that changes with time.
#[derive(Debug)]
pub(super) enum Live {
    Meter(Meter),
    Cover(Cover),
    Battery(Battery),
}

impl Live {
    /// An object of a class at a moment; none if nothing of such objects changes with time. The `given` values stay as they
    /// are; others become those of a usual device.
    pub(super) fn new(class: &'static Class, values: &mut Values, given: &[u8], now: Duration) -> Option<Self> {
        let meter = Meter::new(class, values, given, now).map(Self::Meter);
        let meter = meter.or_else(|| Battery::new(class, values, given, now).map(Self::Battery));
        meter.or_else(|| Cover::new(class, values, now).map(Self::Cover))
    }

    /// The value of a property that changes with time; none of other properties.
    pub(super) fn value(&self, epc: u8, values: &Values) -> Option<Vec<u8>> {
        match self {
            Self::Meter(meter) => meter.value(epc, values).or_else(|| board::value(meter, epc, values)),
            Self::Cover(cover) => cover.value(epc),
            Self::Battery(battery) => battery.value(epc),
        }
    }

    /// Other nodes or the plan have written a property.
    pub(super) fn told(&mut self, epc: u8, values: &Values) {
        match self {
            Self::Meter(meter) => meter.told(epc, values),
            Self::Cover(cover) => cover.told(epc, values),
            Self::Battery(battery) => battery.told(epc, values),
        }
    }

    /// Goes on to a moment.
    pub(super) fn advance(&mut self, now: Duration) {
        match self {
            Self::Meter(meter) => meter.ledger.settle(now),
            Self::Cover(cover) => cover.advance(now),
            Self::Battery(battery) => battery.advance(now),
        }
    }

    /// When something changes that is announced.
    pub(super) fn next(&self) -> Option<Duration> {
        match self {
            Self::Meter(_) => None,
            Self::Cover(cover) => cover.next(),
            Self::Battery(battery) => battery.next(),
        }
    }

    /// The property whose changes are announced.
    pub(super) fn announced(&self) -> Option<u8> {
        match self {
            Self::Meter(_) => None,
            Self::Cover(_) => Some(cover::STATUS),
            Self::Battery(_) => Some(battery::ACTUAL_MODE),
        }
    }

    /// True if objects of a class have something that changes with time.
    pub(super) fn is_of(class: &'static Class) -> bool {
        Self::new(class, &mut Values::new(), &[], Duration::ZERO).is_some()
    }
}
