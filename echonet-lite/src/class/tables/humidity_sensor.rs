//! Humidity sensor (0x0012). Source: ECHONET device objects, Appendix release R.

use super::super_class::SUPER_CLASS;
use crate::class::data::Unit;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{row, uint8};

/// Humidity sensor, class 0x0012.
pub static HUMIDITY_SENSOR: Class =
    Class::new(0x0012, "humiditySensor", "A..", ["Humidity sensor", "湿度センサ"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name get set inf   in     data names
    row(0xE0, "value", [R_, __, O_], "A..", &uint8(0, 100, Unit::Percent), "Measured value of relative humidity", "相対湿度計測値"),
];
