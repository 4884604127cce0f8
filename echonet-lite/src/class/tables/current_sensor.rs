//! Current sensor (0x0023). Source: ECHONET device objects, Appendix release R.

use super::super_class::SUPER_CLASS;
use crate::class::data::Unit;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, RequiredC as RC};
use crate::class::table::{int32, row, uint16, uint32};

/// Current sensor, class 0x0023.
pub static CURRENT_SENSOR: Class =
    Class::new(0x0023, "currentSensor", "A..", ["Current sensor", "電流センサ"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name       get set inf   in     data names
    row(0xE0, "unsignedValue", [RC, __, O_], "A..", &uint32(0, 4_294_967_293, Unit::Milliampere),             "Measured current value 1", "電流値計測値1"),
    row(0xE1, "ratedVoltage",  [O_, __, O_], "A..", &uint16(0, 65533, Unit::Volt),                            "Rated voltage to be measured", "計測対象定格電圧値"),
    row(0xE2, "signedValue",   [RC, __, O_], "A..", &int32(-2_147_483_647, 2_147_483_646, Unit::Milliampere), "Measured current value 2", "電流値計測値2"),
];
