//! Answers and notifications as typed values, by the tables of their classes.

use core::fmt;

use super::{Answer, Notification, Status};
use crate::class::{self, EdtError, Property, PropertySpec, SUPER_CLASS, Scaled, Value, ValueError};
use crate::wire::Eoj;

/// Why an object has no value of a property, or did not take it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PropertyError {
    /// The object is of a class that does not have the property: nothing was asked.
    OtherClass,
    /// The object refused.
    Refused,
    /// The object said nothing about it.
    Omitted,
    /// The answered bytes are no value of the property.
    Value(EdtError),
}

impl fmt::Display for PropertyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherClass => f.write_str("the object's class does not have the property"),
            Self::Refused => f.write_str("the object refused"),
            Self::Omitted => f.write_str("the object said nothing about the property"),
            Self::Value(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for PropertyError {}

/// Whether an object may have a property: every device has those of the super class.
pub(crate) fn has<P: Property>(eoj: Eoj) -> Result<(), PropertyError> {
    let is_common = P::CLASS == SUPER_CLASS.code && eoj.group() < 0x0E;
    if is_common || P::CLASS == eoj.class_code() { Ok(()) } else { Err(PropertyError::OtherClass) }
}

impl Answer {
    /// The value of a property that was read.
    ///
    /// ```no_run
    /// # use echonet_lite::controller::Answer;
    /// use echonet_lite::class::home_air_conditioner::{OperationMode, RoomTemperature};
    ///
    /// # fn print(answer: &Answer) -> Result<(), Box<dyn std::error::Error>> {
    /// let room: RoomTemperature = answer.read()?;
    /// if answer.read::<OperationMode>()? == OperationMode::Heating {
    ///     println!("heated to {room}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// It was not read, or is no value that the property has.
    pub fn read<P: Property>(&self) -> Result<P, PropertyError> {
        self.done::<P>(false)?;
        P::decode(self.get(P::EPC).ok_or(PropertyError::Omitted)?).map_err(PropertyError::Value)
    }

    /// Whether a property was written.
    ///
    /// # Errors
    /// Why not.
    pub fn written<P: Property>(&self) -> Result<(), PropertyError> {
        self.done::<P>(true)
    }

    fn done<P: Property>(&self, written: bool) -> Result<(), PropertyError> {
        has::<P>(self.eoj)?;
        let outcome = self.outcomes().find(|outcome| outcome.epc == P::EPC && outcome.written == written);
        match outcome.map_or(Status::Omitted, |outcome| outcome.status) {
            Status::Done => Ok(()),
            Status::Refused | Status::KnownRefused => Err(PropertyError::Refused),
            Status::Omitted => Err(PropertyError::Omitted),
        }
    }

    /// The typed value of a property that was read. `None` if it was not read, or the tables do not have it.
    pub fn value(&self, epc: u8) -> Option<Result<Value<'_>, ValueError>> {
        Some(property(self.eoj, epc)?.decode(self.get(epc)?))
    }

    /// The typed values of all properties that were read and that the tables have.
    pub fn values(&self) -> impl Iterator<Item = (&'static PropertySpec, Result<Value<'_>, ValueError>)> {
        let read = self.outcomes().filter_map(|outcome| Some((outcome.epc, outcome.value?)));
        read.filter_map(|(epc, edt)| property(self.eoj, epc).map(|property| (property, property.decode(edt))))
    }

    /// A number that was read, multiplied with the properties that scale it: the energy of a meter (E0) by its coefficient
    /// (D3) and unit (E1). Ask for them together; one that the object does not have counts as 1.
    ///
    /// `None` if it was not read or is no number, or if its coefficient was not asked for.
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
    /// The value of a property, `None` if the notification is not of such an object, or does not say it.
    pub fn read<P: Property>(&self) -> Option<Result<P, EdtError>> {
        has::<P>(self.eoj).ok()?;
        self.get(P::EPC).map(P::decode)
    }

    /// The typed value of a property. `None` if it is not there, or the tables do not have it.
    pub fn value(&self, epc: u8) -> Option<Result<Value<'_>, ValueError>> {
        Some(property(self.eoj, epc)?.decode(self.get(epc)?))
    }

    /// The typed values of all properties that the tables have.
    pub fn values(&self) -> impl Iterator<Item = (&'static PropertySpec, Result<Value<'_>, ValueError>)> {
        let known = self.properties().map(|(epc, edt)| (property(self.eoj, epc), edt));
        known.filter_map(|(property, edt)| property.map(|property| (property, property.decode(edt))))
    }
}

fn property(eoj: Eoj, epc: u8) -> Option<&'static PropertySpec> {
    class::find(eoj.class_code())?.property(epc)
}
