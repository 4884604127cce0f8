//! Bath heating status sensor (0x0016). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{level, row};

/// Bath heating status sensor, class 0x0016.
pub static BATH_HEATING_STATUS_SENSOR: Class = Class::new(
    0x0016,
    "bathHeatingStatusSensor",
    "A..",
    ["Bath heating status sensor", "風呂沸き上がりセンサ"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name        get set inf   in     data names
    row(0xB0, "thresholdLevel", [O_, O_, O_], "A..", &level(1, 0x31, 8), "Detection threshold level", "検知閾値レベル設定"),
    row(0xB1, "detection",      [R_, __, R_], "A..", &shared::TRUE_41,   "Bath heating detection status", "風呂沸き上がり検知状態"),
];
