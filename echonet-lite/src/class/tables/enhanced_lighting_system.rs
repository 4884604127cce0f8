//! Extended lighting system (0x02A4). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{array, ro, row, s, states, uint8, uint16};

/// Extended lighting system, class 0x02A4.
pub static ENHANCED_LIGHTING_SYSTEM: Class = Class::new(
    0x02A4,
    "enhancedLightingSystem",
    "J..",
    ["Extended lighting system", "拡張照明システム"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                        get set inf   in     data names
    row(0xB0, "lightLevel",                     [O_, O_, O_], "J..", &uint8(0, 100, Unit::Percent),                        "Light level setting", "照明の明るさ設定"),
    row(0xC0, "sceneId",                        [R_, R_, O_], "J..", &SCENE_ID,                                            "Scene control setting", "シーン制御設定"),
    row(0xC1, "maximumNumberOfSceneId",         [R_, __, O_], "J..", &uint8(1, 253, Unit::None),                           "Number that can assign scene control setting.", "シーン制御設定可能数"),
    row(0xC2, "powerConsumptionRateList",       [R_, __, O_], "J..", &array(1, 253, 1, &POWER_CONSUMPTION_RATE_LIST_ITEM), "Power consumption rate list", "電力消費率リスト"),
    row(0xC3, "powerConsumptionAtFullLighting", [R_, __, O_], "J..", &uint16(0, 65533, Unit::Watt),                        "Power consumption when fully lighted", "全灯時消費電力"),
    row(0xC4, "powerConsumptionWillBeSaved",    [R_, __, O_], "J..", &uint16(0, 65533, Unit::Watt),                        "Possible power savings", "節電可能消費電力"),
    row(0xC5, "powerConsumptionLimit",          [R_, R_, O_], "J..", &POWER_CONSUMPTION_LIMIT,                             "Power consumption limit setting", "消費電力制限設定"),
    row(0xC6, "automaticOperationControlling",  [O_, O_, O_], "K..", &shared::ON_30,                                       "Automatic operation controlling setting", "自動動作制御設定"),
    row(0xC7, "fadingControlChangeTime",        [O_, O_, O_], "K..", &uint16(0, 3600, Unit::Second),                       "Fading control change time setting", "フェード制御変化時間設定"),
];

static SCENE_ID: Data = Data::OneOf(&[uint8(1, 253, Unit::None), states(1, &[s(0x00, "noSetting")])]);

static POWER_CONSUMPTION_RATE_LIST_ITEM: Data =
    Data::OneOf(&[uint8(0, 100, Unit::Percent), states(1, &[ro(0xFF, "unknown")])]);

static POWER_CONSUMPTION_LIMIT: Data = Data::OneOf(&[uint16(0, 65533, Unit::Watt), states(2, &[s(0x0000, "cancel")])]);
