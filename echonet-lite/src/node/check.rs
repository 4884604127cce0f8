//! Values that peers write, checked against the table of a class.

use super::Refused;
use crate::class::{Cause, Class, Value};

/// Whether the table of `class` allows `edt` to be written to property `epc`: its length, range, states and structure,
/// and that the state is no read-only one. Properties that the table does not have, such as a maker's own, are allowed.
/// One line makes it the rule for a device:
///
/// ```
/// use echonet_lite::class::GENERAL_LIGHTING;
/// use echonet_lite::node::{Object, PropertyAccess, Refused, check};
/// use echonet_lite::wire::Eoj;
///
/// struct Light { level: u8 }
///
/// impl Object for Light {
///     fn eoj(&self) -> Eoj {
///         GENERAL_LIGHTING.code.instance(1)
///     }
///     fn access(&self) -> &PropertyAccess {
///         const ACCESS: PropertyAccess = GENERAL_LIGHTING.offering(&[0xB0]);
///         &ACCESS
///     }
///     fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
///         // …
/// #       let _ = (epc, edt); Err(Refused::NoProperty)
///     }
///     fn check(&self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
///         check(&GENERAL_LIGHTING, epc, edt)
///     }
///     fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
///         // Only values that the class allows come here: of 0xB0, one byte of 0..=100.
///         match (epc, edt) {
///             (0xB0, &[level]) => self.level = level,
///             _ => return Err(Refused::NoProperty),
///         }
///         Ok(())
///     }
/// }
///
/// assert_eq!(Light { level: 0 }.check(0xB0, &[101]), Err(Refused::Value));
/// ```
///
/// # Errors
/// [`Refused::Length`] or [`Refused::Value`].
pub fn check(class: &Class, epc: u8, edt: &[u8]) -> Result<(), Refused> {
    let Some(property) = class.property(epc) else { return Ok(()) };
    match property.decode(edt) {
        // The codes of 6.2.2 report a measurement; a request cannot ask for one.
        Ok(Value::Overflow | Value::Underflow) => Err(Refused::Value),
        Ok(Value::State(state)) if state.is_read_only() => Err(Refused::Value),
        Ok(_) => Ok(()),
        Err(error) if matches!(error.cause, Cause::Length { .. }) => Err(Refused::Length),
        Err(_) => Err(Refused::Value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{GENERAL_LIGHTING, HOME_AIR_CONDITIONER};

    #[test]
    fn lengths_ranges_and_states() {
        for (class, epc, edt, expected) in [
            (&GENERAL_LIGHTING, 0x80, &[0x30][..], Ok(())),
            (&GENERAL_LIGHTING, 0x80, &[0x32], Err(Refused::Value)),
            (&GENERAL_LIGHTING, 0x80, &[], Err(Refused::Length)),
            (&GENERAL_LIGHTING, 0x80, &[0x30, 0x30], Err(Refused::Length)),
            (&GENERAL_LIGHTING, 0xB0, &[100], Ok(())),
            (&GENERAL_LIGHTING, 0xB0, &[101], Err(Refused::Value)),
            (&GENERAL_LIGHTING, 0xB1, &[0xFD], Err(Refused::Value)),
            (&GENERAL_LIGHTING, 0xC0, &[1, 2, 3], Ok(())),
            (&GENERAL_LIGHTING, 0xC0, &[1, 2], Err(Refused::Length)),
            (&GENERAL_LIGHTING, 0xF1, &[1, 2], Ok(())),
            (&HOME_AIR_CONDITIONER, 0xB3, &[50], Ok(())),
            (&HOME_AIR_CONDITIONER, 0xB3, &[51], Err(Refused::Value)),
            (&HOME_AIR_CONDITIONER, 0x81, &[0x08], Ok(())),
        ] {
            assert_eq!(check(class, epc, edt), expected, "{class} {epc:02X} {edt:02X?}");
        }
    }
}
