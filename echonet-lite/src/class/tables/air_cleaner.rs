//! Air cleaner (0x0135). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::row;

/// Air cleaner, class 0x0135.
pub static AIR_CLEANER: Class =
    Class::new(0x0135, "airCleaner", "A..", ["Air cleaner", "空気清浄器"], [PROPERTIES, &[]]).inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                        get set inf   in     data names
    row(0x80, "operationStatus",                [R_, R_, R_], "A..", &shared::ON_30,         "Operation status", "動作状態"),
    row(0xA0, "airFlowLevel",                   [O_, O_, O_], "A..", &shared::LEVEL_OR_AUTO, "Air flow rate setting", "風量設定"),
    row(0xC0, "airPollutionDetection",          [O_, __, O_], "A..", &shared::TRUE_41,       "Air pollution detection status", "空気汚れ検知状態"),
    row(0xC1, "smokeDetection",                 [O_, __, O_], "A..", &shared::TRUE_41,       "Smoke (cigarette) detection status", "煙 (タバコ) 検知状態"),
    row(0xC2, "opticalCatalystOperationStatus", [O_, O_, O_], "A..", &shared::TRUE_41,       "Optical catalyst operation setting", "光触媒動作設定"),
    row(0xE1, "filterChangeNotice",             [O_, __, O_], "A..", &shared::TRUE_41,       "Filter change notice", "フィルタ交換通知状態"),
];
