//! Illuminance sensor (0x00D0). Source: ECHONET device objects, Appendix release R.

use super::super_class::SUPER_CLASS;
use crate::class::data::Unit;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, RequiredC as RC};
use crate::class::table::{row, uint16};

/// Illuminance sensor, class 0x00D0.
pub static ILLUMINANCE_SENSOR: Class =
    Class::new(0x00D0, "illuminanceSensor", "A..", ["Illuminance sensor", "照度センサ"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name     get set inf   in     data names
    row(0xE0, "valueInLux",  [RC, __, O_], "A..", &uint16(0, 65533, Unit::Lux),     "Measured illuminance value 1", "照度計測値1"),
    row(0xE1, "valueInKlux", [RC, __, O_], "A..", &uint16(0, 65533, Unit::Kilolux), "Measured illuminance value 2", "照度計測値2"),
];
