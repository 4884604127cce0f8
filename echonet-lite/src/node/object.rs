//! The trait that a device author implements.

use core::fmt;

pub use crate::wire::PropertyAccess;
use crate::wire::{EDT_MAX, Eoj};

/// An ECHONET object of a node: a light, a meter, an air conditioner.
///
/// The node has already found the object, checked [`access`](Self::access) and does the property maps 0x9D, 0x9E and
/// 0x9F; it calls [`get`](Self::get) and [`set`](Self::set) for the rest.
pub trait Object {
    /// Its name: class and instance, the latter 1..=127. Constant, and no other object of the node has it.
    fn eoj(&self) -> Eoj;

    /// Its properties, and the access of a peer to each. Usually a constant of the class.
    fn access(&self) -> &PropertyAccess;

    /// Writes the value of property `epc` into `edt`, which has 255 bytes, and returns its length. [`put`] does both.
    ///
    /// # Errors
    /// Any refusal becomes an SNA with this property's value empty.
    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused>;

    /// Whether `edt` may be written to property `epc`; asked before [`set`](Self::set) is called. The default allows
    /// everything; `node::check` asks the table of a class.
    ///
    /// # Errors
    /// Any refusal becomes an SNA that gives the value back.
    fn check(&self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        let _ = (epc, edt);
        Ok(())
    }

    /// Takes `edt` as the value of property `epc`.
    ///
    /// # Errors
    /// Any refusal becomes an SNA that gives the value back. Refuse values of a wrong length or out of range; nothing may
    /// have changed then.
    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused>;
}

/// Why an object refused to read or write a property. A peer sees only that it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refused {
    /// The object has no such property.
    NoProperty,
    /// The value has a length that the property does not have.
    Length,
    /// The value is out of range.
    Value,
    /// Not now: busy, locked, failed.
    NotNow,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoProperty => "it has no such property",
            Self::Length => "the value has a wrong length",
            Self::Value => "the value is out of range",
            Self::NotNow => "not now",
        })
    }
}

impl core::error::Error for Refused {}

/// Writes `value` at the start of `edt` and returns its length: the last line of most arms of an [`Object::get`].
///
/// # Errors
/// [`Refused::Length`] if `value` has more than 255 bytes, which no property can have.
pub fn put(edt: &mut [u8], value: &[u8]) -> Result<usize, Refused> {
    let fits = value.len() <= EDT_MAX;
    let Some(target) = edt.get_mut(..value.len()).filter(|_| fits) else { return Err(Refused::Length) };
    target.copy_from_slice(value);
    Ok(value.len())
}
