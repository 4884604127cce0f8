//! VOC sensor (0x001D). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::Unit;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{level, row, uint16};

/// VOC sensor, class 0x001D.
pub static VOC_SENSOR: Class =
    Class::new(0x001D, "vocSensor", "A..", ["VOC sensor", "VOCセンサ"], [PROPERTIES, &[]]).inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name        get set inf   in     data names
    row(0xB0, "thresholdLevel", [O_, O_, O_], "A..", &level(1, 0x31, 8),           "Detection threshold level", "検知閾値レベル設定"),
    row(0xB1, "detection",      [O_, __, R_], "A..", &shared::TRUE_41,             "VOC detection status", "VOC 検知状態"),
    row(0xE0, "value",          [R_, __, O_], "A..", &uint16(0, 65533, Unit::Ppm), "Measured value of VOC concentration", "VOC 濃度計測値"),
];
