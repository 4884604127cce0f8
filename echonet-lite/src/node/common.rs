//! The properties that every device has.

use super::{PropertyAccess, Refused, put};

/// The values of the properties that the super class of all devices requires, except the property maps, which the node
/// does (Appendix, 2.1). A device keeps one of these and passes on what it does not know itself:
///
/// ```
/// use echonet_lite::class::temperature_sensor::{TEMPERATURE_SENSOR, VALUE, Value};
/// use echonet_lite::node::{CommonProperties, Object, PropertyAccess, Refused, show};
/// use echonet_lite::wire::Eoj;
///
/// struct Thermometer { common: CommonProperties, temperature: Value }
///
/// impl Object for Thermometer {
///     fn eoj(&self) -> Eoj {
///         TEMPERATURE_SENSOR.code.instance(1)
///     }
///     fn access(&self) -> &PropertyAccess {
///         const ACCESS: PropertyAccess = TEMPERATURE_SENSOR.mandatory();
///         &ACCESS
///     }
///     fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
///         match epc {
///             VALUE => show(&self.temperature, edt),
///             _ => self.common.get(epc, edt),
///         }
///     }
///     fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
///         self.common.set(epc, edt)
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonProperties {
    /// 0x80: whether it is on.
    pub on: bool,
    /// 0x81: where it is installed, as the specification's code; 0 is "not set".
    pub location: u8,
    /// 0x82: release of the device objects that it follows, as its letter.
    pub release: u8,
    /// 0x82: revision of that release; 0 for the release itself.
    pub revision: u8,
    /// 0x88: whether a fault has occurred.
    pub fault: bool,
    /// 0x8A: manufacturer code.
    pub maker: [u8; 3],
}

impl CommonProperties {
    /// The access to these properties: read all, write 0x80 and 0x81, announce changes of 0x80, 0x81 and 0x88.
    pub const ACCESS: PropertyAccess =
        PropertyAccess::new(&[0x80, 0x81, 0x82, 0x88, 0x8A], &[0x80, 0x81], &[0x80, 0x81, 0x88]);

    /// A device of this maker: on, without fault, at no known place, by release R, revision 4.
    pub const fn new(maker: [u8; 3]) -> Self {
        Self { on: true, location: 0, release: b'R', revision: 4, fault: false, maker }
    }

    /// As [`Object::get`](super::Object::get).
    ///
    /// # Errors
    /// [`Refused::NoProperty`] for all others.
    pub fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            0x80 => put(edt, &[if self.on { 0x30 } else { 0x31 }]),
            0x81 => put(edt, &[self.location]),
            0x82 => put(edt, &[0, 0, self.release, self.revision]),
            0x88 => put(edt, &[if self.fault { 0x41 } else { 0x42 }]),
            0x8A => put(edt, &self.maker),
            _ => Err(Refused::NoProperty),
        }
    }

    /// As [`Object::set`](super::Object::set): 0x80 and 0x81.
    ///
    /// # Errors
    /// Another property, length or value.
    pub fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        if !matches!(epc, 0x80 | 0x81) {
            return Err(Refused::NoProperty);
        }
        let &[value] = edt else { return Err(Refused::Length) };
        match (epc, value) {
            (0x80, 0x30) => self.on = true,
            (0x80, 0x31) => self.on = false,
            // 0x01 announces 16 bytes of coordinates, which are not kept.
            (0x81, location) if location != 0x01 => self.location = location,
            _ => return Err(Refused::Value),
        }
        Ok(())
    }

    /// Keeps a value that the device itself gives; false for a property that is not one of these, or another value than it can
    /// have.
    pub(super) fn store(&mut self, epc: u8, edt: &[u8]) -> bool {
        match (epc, edt) {
            (0x82, &[_, _, release, revision]) => (self.release, self.revision) = (release, revision),
            (0x88, &[code @ (0x41 | 0x42)]) => self.fault = code == 0x41,
            (0x8A, &[a, b, c]) => self.maker = [a, b, c],
            _ => return self.set(epc, edt).is_ok(),
        }
        true
    }
}
