//! Answers and notifications as typed values, by the tables of their classes.

use super::{Answer, Notification, Status};
use crate::class::{self, PropertySpec, Scaled, Value, ValueError};
use crate::wire::Eoj;

impl Answer {
    /// What the value of a property that was read means. `None` if it was not read, or the tables do not have it.
    pub fn value(&self, epc: u8) -> Option<Result<Value<'_>, ValueError>> {
        Some(property(self.eoj, epc)?.decode(self.get(epc)?))
    }

    /// What all values mean that were read and that the tables have.
    pub fn values(&self) -> impl Iterator<Item = (&'static PropertySpec, Result<Value<'_>, ValueError>)> {
        let read = self.outcomes().filter_map(|outcome| Some((outcome.epc, outcome.value?)));
        read.filter_map(|(epc, edt)| property(self.eoj, epc).map(|property| (property, property.decode(edt))))
    }

    /// A number that was read, multiplied with the properties that scale it: the energy of a meter (E0) by its coefficient
    /// (D3) and unit (E1). Ask for them together; one that the object does not have counts as 1.
    ///
    /// `None` if it was not read or is no number, or if what scales it was not asked for.
    pub fn quantity(&self, epc: u8) -> Option<Scaled> {
        let coefficients = property(self.eoj, epc)?.number()?.coefficients;
        let number = self.value(epc)?.ok()?.number()?;
        coefficients.iter().try_fold(number, |number, coefficient| {
            let outcome = self.outcomes().find(|outcome| outcome.epc == *coefficient)?;
            match outcome.status {
                Status::Done => number.times(self.value(*coefficient)?.ok()?.number()?),
                Status::Refused | Status::KnownRefused => Some(number),
                Status::Omitted => None,
            }
        })
    }
}

impl Notification {
    /// What the value of a property means. `None` if it is not there, or the tables do not have it.
    pub fn value(&self, epc: u8) -> Option<Result<Value<'_>, ValueError>> {
        Some(property(self.eoj, epc)?.decode(self.get(epc)?))
    }

    /// What all values mean that the tables have.
    pub fn values(&self) -> impl Iterator<Item = (&'static PropertySpec, Result<Value<'_>, ValueError>)> {
        let known = self.properties().map(|(epc, edt)| (property(self.eoj, epc), edt));
        known.filter_map(|(property, edt)| property.map(|property| (property, property.decode(edt))))
    }
}

fn property(eoj: Eoj, epc: u8) -> Option<&'static PropertySpec> {
    class::find(eoj.class_code())?.property(epc)
}
