//! Human detection sensor (0x0007). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{level, row};

/// Human detection sensor, class 0x0007.
pub static HUMAN_DETECTION_SENSOR: Class =
    Class::new(0x0007, "humanDetectionSensor", "A..", ["Human detection sensor", "人体検知センサ"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name        get set inf   in     data names
    row(0xB0, "thresholdLevel", [O_, O_, O_], "A..", &level(1, 0x31, 8), "Detection threshold level", "検知閾値レベル設定"),
    row(0xB1, "detection",      [R_, __, R_], "A..", &shared::TRUE_41,   "Human detection status", "人体検知状態"),
];
