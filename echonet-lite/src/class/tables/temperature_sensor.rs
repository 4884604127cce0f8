//! Temperature sensor (0x0011). Source: ECHONET device objects, Appendix release R.

use super::super_class::SUPER_CLASS;
use crate::class::data::Unit;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{int16, row};

/// Temperature sensor, class 0x0011.
pub static TEMPERATURE_SENSOR: Class =
    Class::new(0x0011, "temperatureSensor", "A..", ["Temperature sensor", "温度センサ"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name get set inf   in     data names
    row(0xE0, "value", [R_, __, O_], "A..", &int16(-2732, 32766, Unit::Celsius).e(-1), "Measured temperature value", "温度計測値"),
];
