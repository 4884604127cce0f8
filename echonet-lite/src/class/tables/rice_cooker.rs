//! Rice cooker (0x03BB). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::Data;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredO as RO};
use crate::class::table::{TIME, row, s, states};

/// Rice cooker, class 0x03BB.
pub static RICE_COOKER: Class =
    Class::new(0x03BB, "riceCooker", "A..", ["Rice cooker", "炊飯器"], [PROPERTIES, &[]]).inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                 get set inf   in     data names
    row(0x90, "reservation",             [O_, O_, O_], "A..", &shared::ON_41,                                           "Rice cooking reservation setting", "炊飯予約設定"),
    row(0x91, "reservationTime",         [O_, O_, O_], "A..", &TIME,                                                    "Rice cooking reservation time setting", "炊飯予約設定時刻設定値"),
    row(0x92, "reservationRelativeTime", [O_, O_, O_], "A..", &TIME,                                                    "Rice cooking reservation relative time setting", "炊飯予約設定相対時間設定値"),
    row(0xB0, "coverStatus",             [O_, __, O_], "A..", &states(1, &[s(0x41, "open"), s(0x42, "close")]),         "Cover closure status", "蓋開閉状態"),
    row(0xB1, "cookingStatus",           [R_, __, O_], "A..", &COOKING_STATUS,                                          "Rice cooking status", "炊飯状態"),
    row(0xB2, "cookingControl",          [RO, RO, O_], "A..", &states(1, &[s(0x41, "running"), s(0x42, "suspension")]), "Rice cooking control setting", "炊飯制御設定"),
    row(0xE1, "warmerOperation",         [O_, O_, O_], "A..", &shared::TRUE_41,                                         "Warmer setting", "保温設定"),
    row(0xE5, "innerPotRemoved",         [O_, __, O_], "A..", &shared::TRUE_41,                                         "Inner pot removal status", "内なべ取り外し状態"),
    row(0xE6, "coverRemoved",            [O_, __, O_], "A..", &shared::TRUE_41,                                         "Cover removal status", "蓋取り外し状態"),
];

static COOKING_STATUS: Data = states(
    1,
    &[s(0x41, "stop"), s(0x42, "preheating"), s(0x43, "cooking"), s(0x44, "steaming"), s(0x45, "completion")],
);
