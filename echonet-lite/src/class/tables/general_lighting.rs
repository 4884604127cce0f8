//! General lighting (0x0290). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{TIME, field, raw, ro, row, s, states, uint8};

/// General lighting, class 0x0290.
pub static GENERAL_LIGHTING: Class =
    Class::new(0x0290, "generalLighting", "A..", ["General lighting", "一般照明"], [PROPERTIES, SUPERSEDED])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                              get set inf   in      data names
    row(0x80, "operationStatus",                      [R_, R_, R_], "A..",  &shared::ON_30,                 "Operation status", "動作状態"),
    row(0x90, "onTimerReservation",                   [O_, O_, O_], "A..",  &shared::TRUE_41,               "ON timer reservation setting", "ONタイマ予約設定"),
    row(0x91, "onTimerTime",                          [O_, O_, O_], "A..",  &TIME,                          "ON timer setting", "ONタイマ時刻設定値"),
    row(0x94, "offTimerReservation",                  [O_, O_, O_], "A..",  &shared::TRUE_41,               "OFF timer reservation setting", "OFFタイマ予約設定"),
    row(0x95, "timeOfOffTimer",                       [O_, O_, O_], "A..",  &TIME,                          "Time set by OFF timer", "OFFタイマ時刻設定値"),
    row(0xB0, "lightLevel",                           [O_, O_, O_], "A..",  &uint8(0, 100, Unit::Percent),  "Light level", "照明の明るさ設定"),
    row(0xB1, "lightColor",                           [O_, O_, O_], "N..",  &LIGHT_COLOR,                   "Light color setting", "光色設定"),
    row(0xB2, "lightLevelStep",                       [O_, O_, O_], "A..",  &raw(1, 1),                     "Light level step setting", "照明の明るさ段数設定"),
    row(0xB3, "lightColorLevelStep",                  [O_, O_, O_], "A..",  &raw(1, 1),                     "Light color step setting", "光色レベル段数設定"),
    row(0xB4, "maximumSpecifiableLevel",              [O_, __, O_], "A..",  &MAXIMUM_LEVELS,                "Maximum specifiable values", "設定可能レベル最大値"),
    row(0xB5, "maximumSettableLevelForNightLighting", [O_, __, O_], "C..",  &MAXIMUM_LEVELS,                "Maximum value of settable level for night lighting", "常夜灯設定可能レベル最大値"),
    row(0xB6, "operationMode",                        [R_, R_, O_], "C..",  &OPERATION_MODE,                "Lighting mode setting", "点灯モード設定"),
    row(0xB7, "lightLevelForMainLighting",            [O_, O_, O_], "C..",  &uint8(0, 100, Unit::Percent),  "Light level setting for main lighting", "通常灯モード時照明の明るさ設定"),
    row(0xB8, "lightLevelStepForMainLighting",        [O_, O_, O_], "C..",  &raw(1, 1),                     "Light level step setting for main lighting", "通常灯モード時照明の明るさ段数設定"),
    row(0xB9, "lightLevelForNightLighting",           [O_, O_, O_], "C..",  &uint8(0, 100, Unit::Percent),  "Light level setting for night lighting", "常夜灯モード時照明の明るさ設定"),
    row(0xBA, "lightLevelStepForNightLighting",       [O_, O_, O_], "C..",  &raw(1, 1),                     "Light level step setting for night lighting", "常夜灯モード時照明の明るさ段数設定"),
    row(0xBB, "lightColorForMainLighting",            [O_, O_, O_], "C..",  &LIGHT_COLOR_FOR_MAIN_LIGHTING, "Light color setting for main lighting", "通常灯モード時光色設定"),
    row(0xBC, "lightColorLevelStepForMainLighting",   [O_, O_, O_], "C..",  &raw(1, 1),                     "Light color level step setting for main lighting", "通常灯モード時光色レベル段数設定"),
    row(0xBD, "lightColorLevelForNightLighting",      [O_, O_, O_], "C..",  &LIGHT_COLOR_FOR_MAIN_LIGHTING, "Light color setting for night lighting", "常夜灯モード時光色設定"),
    row(0xBE, "lightColorLevelStepForNightLighting",  [O_, O_, O_], "C..",  &raw(1, 1),                     "Light color level step setting for night lighting", "常夜灯モード時光色レベル段数設定"),
    row(0xBF, "autoMode",                             [O_, __, O_], "C..",  &AUTO_MODE,                     "Lighting mode status in auto mode", "自動モード時点灯モード状態"),
    row(0xC0, "rgb",                                  [O_, O_, O_], "C..",  &RGB,                           "RGB setting for color lighting", "カラー灯モード時RGB設定"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                              get set inf   in      data names
    row(0xB1, "lightColor",                           [O_, O_, O_], "A..B", &LIGHT_COLOR_UNTIL_B,           "Light color setting", "光色設定"),
    row(0xB1, "lightColor",                           [O_, O_, O_], "C..M", &LIGHT_COLOR_FOR_MAIN_LIGHTING, "Light color setting", "光色設定"),
];

static LIGHT_COLOR: Data = states(
    1,
    &[
        s(0x41, "incandescent"),
        s(0x42, "white"),
        s(0x43, "daylightWhite"),
        s(0x44, "daylightColor"),
        s(0x40, "other"),
        ro(0xFD, "undefined"),
    ],
);

static LIGHT_LEVEL: Data = Data::OneOf(&[uint8(1, 255, Unit::None), states(1, &[s(0x00, "notLightLevel")])]);

static COLOR: Data = Data::OneOf(&[uint8(1, 255, Unit::None), states(1, &[s(0x00, "notColor")])]);

static MAXIMUM_LEVELS: Data = Data::Object(&[
    field("lightLevel", &LIGHT_LEVEL, "Byte 1: light level"),
    field("color", &COLOR, "Byte 2: light color"),
]);

static OPERATION_MODE: Data = states(1, &[s(0x41, "auto"), s(0x42, "normal"), s(0x43, "night"), s(0x45, "color")]);

static LIGHT_COLOR_FOR_MAIN_LIGHTING: Data = states(
    1,
    &[s(0x41, "incandescent"), s(0x42, "white"), s(0x43, "daylightWhite"), s(0x44, "daylightColor"), s(0x40, "other")],
);

static AUTO_MODE: Data = states(1, &[s(0x42, "normal"), s(0x43, "night"), s(0x44, "off"), s(0x45, "color")]);

static RGB: Data = Data::Object(&[
    field("red", &uint8(0, 255, Unit::None), "Byte 1: R"),
    field("green", &uint8(0, 255, Unit::None), "Byte 2: G"),
    field("blue", &uint8(0, 255, Unit::None), "Byte 3: B"),
]);

static LIGHT_COLOR_UNTIL_B: Data =
    states(1, &[s(0x41, "incandescent"), s(0x42, "white"), s(0x43, "daylightWhite"), s(0x44, "daylightColor")]);
