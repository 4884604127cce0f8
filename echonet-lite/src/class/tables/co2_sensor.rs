//! CO2 sensor (0x001B). Source: ECHONET device objects, Appendix release R.

use super::super_class::SUPER_CLASS;
use crate::class::data::Unit;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{row, uint16};

/// CO2 sensor, class 0x001B.
pub static CO2_SENSOR: Class =
    Class::new(0x001B, "co2Sensor", "A..", ["CO2 sensor", "CO2センサ"], [PROPERTIES, &[]]).inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name get set inf   in     data names
    row(0xE0, "value", [R_, __, O_], "A..", &uint16(0, 65533, Unit::Ppm), "Measured value of CO2 concentration", "CO2濃度計測値"),
];
