//! Emergency button (0x0003). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::row;

/// Emergency button, class 0x0003.
pub static EMERGENCY_BUTTON: Class =
    Class::new(0x0003, "emergencyButton", "A..", ["Emergency button", "非常ボタン"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name               get set inf   in     data names
    row(0xB1, "occurrenceOfEmergency", [R_, __, R_], "A..", &shared::TRUE_41,  "Emergency occurrence status", "非常発生状態"),
    row(0xBF, "reset",                 [__, O_, __], "A..", &shared::RESET_00, "Emergency occurrence status resetting", "非常発生状態リセット設定"),
];
