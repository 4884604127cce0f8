//! Ventilation fan (0x0133). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{Optional as O_, Required as R_};
use crate::class::table::row;

/// Ventilation fan, class 0x0133.
pub static VENTILATION_FAN: Class =
    Class::new(0x0133, "ventilationFan", "A..", ["Ventilation fan", "換気扇"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                       get set inf   in     data names
    row(0x80, "operationStatus",               [R_, R_, R_], "A..", &shared::ON_30,         "Operation status", "動作状態"),
    row(0xA0, "airFlowLevel",                  [O_, O_, O_], "A..", &shared::LEVEL_OR_AUTO, "Set value of ventilation air flow rate", "換気風量設定"),
    row(0xBF, "automaticVentilationOperation", [O_, O_, O_], "A..", &shared::TRUE_41,       "Ventilation Auto setting", "換気自動設定"),
];
