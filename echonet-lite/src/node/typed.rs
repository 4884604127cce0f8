//! Values of typed properties in an [`Object`](super::Object)'s `get` and `set`.

use super::Refused;
use crate::class::{EdtError, Property};

/// Writes `value` at the start of `edt` and returns its length: an arm of [`Object::get`](super::Object::get).
///
/// # Errors
/// [`Refused::Length`] if there is no room, which the node always gives.
pub fn show(value: &impl Property, edt: &mut [u8]) -> Result<usize, Refused> {
    Ok(value.encode(edt)?)
}

/// Reads the value that a peer wants to write: an arm of [`Object::set`](super::Object::set).
///
/// # Errors
/// [`Refused::Length`] or [`Refused::Value`]: the property cannot have that value, or only tells it, such as "undefined".
pub fn accept<P: Property>(edt: &[u8]) -> Result<P, Refused> {
    let value = P::decode(edt)?;
    if value.is_settable() { Ok(value) } else { Err(Refused::Value) }
}

impl From<EdtError> for Refused {
    fn from(error: EdtError) -> Self {
        match error {
            EdtError::Value => Self::Value,
            EdtError::Length | EdtError::Room => Self::Length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::general_lighting::{LightColor, LightLevel};
    use crate::class::home_air_conditioner::{RoomTemperature, TargetTemperature};

    #[test]
    fn only_valid_settable_values_are_accepted() {
        assert_eq!(accept(&[50]), Ok(LightLevel::of::<50>()));
        assert_eq!(accept::<LightLevel>(&[101]), Err(Refused::Value));
        assert_eq!(accept::<LightLevel>(&[0, 50]), Err(Refused::Length));
        assert_eq!(accept(&[0x41]), Ok(LightColor::Incandescent));
        assert_eq!(accept::<LightColor>(&[0xFD]), Err(Refused::Value), "it can only be read");
        assert_eq!(accept::<TargetTemperature>(&[0xFD]), Err(Refused::Value), "it can only be read");
        assert_eq!(accept::<RoomTemperature>(&[0x7F]), Err(Refused::Value), "an overflow is no wish");
        assert_eq!(show(&LightLevel::MAX, &mut [0; 255]), Ok(1));
    }
}
