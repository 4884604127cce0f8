//! Cooking heater (0x03B9). Source: ECHONET device objects, Appendix release R.

use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredO as RO};
use crate::class::table::{TIME_HMS, field, level, row, s, states, uint8, uint16};

/// Cooking heater, class 0x03B9.
pub static COOKING_HEATER: Class =
    Class::new(0x03B9, "cookingHeater", "A..", ["Cooking heater", "クッキングヒータ"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                get set inf   in     data names
    row(0x96, "relativeTimeOfOffTimer", [O_, O_, O_], "A..", &RELATIVE_TIME_OF_OFF_TIMER,       "Relative time settings of off timers", "切タイマ相対時間設定値"),
    row(0xA1, "childLock",              [O_, O_, O_], "A..", &LOCK,                             "Child lock setting", "チャイルドロック設定"),
    row(0xA2, "radiantHeaterLock",      [O_, O_, O_], "A..", &LOCK,                             "Radiant heater lock setting", "ラジエントヒータロック設定"),
    row(0xB1, "heatingStatus",          [R_, __, O_], "A..", &HEATING_STATUS,                   "Heating status", "加熱状態"),
    row(0xB2, "heatingOperation",       [O_, O_, O_], "A..", &HEATING_OPERATION,                "Heating setting", "加熱設定"),
    row(0xB3, "allStop",                [__, RO, O_], "A..", &states(1, &[s(0x40, "allStop")]), "All stop setting", "一括停止設定"),
    row(0xE0, "heatingModesOfStoves",   [O_, O_, O_], "A..", &HEATING_MODES_OF_STOVES,          "Heating modes of stoves", "コンロ加熱モード設定"),
    row(0xE3, "heatingTemperature",     [O_, O_, O_], "A..", &HEATING_TEMPERATURE,              "Heating temperature setting", "加熱温度設定値"),
    row(0xE7, "heatingPower",           [O_, O_, O_], "A..", &HEATING_POWER,                    "Heating power setting", "加熱出力設定"),
];

static LEFT_STOVE: Data = Data::OneOf(&[TIME_HMS, states(3, &[s(0xFFFFFF, "noSetting")])]);

static RELATIVE_TIME_OF_OFF_TIMER: Data = Data::Object(&[
    field("leftStove", &LEFT_STOVE, "Relative time setting of the left stove off timer"),
    field("rightStove", &LEFT_STOVE, "Relative time setting of the right stove off timer"),
    field("farSideStove", &LEFT_STOVE, "Relative time setting of the far-side stove off timer"),
    field("roaster", &LEFT_STOVE, "Relative time setting of the roaster off timer"),
]);

static LOCK: Data = states(1, &[s(0x41, "true"), s(0x40, "false")]);

static HEATING_STATUS_LEFT_STOVE: Data = states(
    1,
    &[
        s(0x40, "standingBy"),
        s(0x41, "operating"),
        s(0x42, "temporarilyStopped"),
        s(0x50, "heatingProhibited"),
        s(0xFF, "unknown"),
    ],
);

static HEATING_STATUS: Data = Data::Object(&[
    field("leftStove", &HEATING_STATUS_LEFT_STOVE, "Heating status of the left stove"),
    field("rightStove", &HEATING_STATUS_LEFT_STOVE, "Heating status of the right stove"),
    field("farSideStove", &HEATING_STATUS_LEFT_STOVE, "Heating status of the far-side stove"),
    field("roaster", &HEATING_STATUS_LEFT_STOVE, "Heating status of the roaster"),
]);

static HEATING_OPERATION_LEFT_STOVE: Data = states(
    1,
    &[s(0x40, "stopHeating"), s(0x41, "startOrResumeHeating"), s(0x42, "temporarilyStopHeating"), s(0xFF, "noSetting")],
);

static HEATING_OPERATION: Data = Data::Object(&[
    field("leftStove", &HEATING_OPERATION_LEFT_STOVE, "Left stove setting"),
    field("rightStove", &HEATING_OPERATION_LEFT_STOVE, "Right stove setting"),
    field("farSideStove", &HEATING_OPERATION_LEFT_STOVE, "Far-side stove setting"),
    field("roaster", &HEATING_OPERATION_LEFT_STOVE, "Roaster setting"),
]);

static HEATING_MODES_OF_STOVES_LEFT_STOVE: Data = states(
    1,
    &[
        s(0x41, "heatingPowerControl"),
        s(0x42, "deepFrying"),
        s(0x43, "waterHeating"),
        s(0x44, "riceBoiling"),
        s(0x45, "stirFrying"),
        s(0xFF, "noSetting"),
    ],
);

static HEATING_MODES_OF_STOVES: Data = Data::Object(&[
    field("leftStove", &HEATING_MODES_OF_STOVES_LEFT_STOVE, "Heating mode of the left stove"),
    field("rightStove", &HEATING_MODES_OF_STOVES_LEFT_STOVE, "Heating mode of the right stove"),
    field("farSideStove", &HEATING_MODES_OF_STOVES_LEFT_STOVE, "Heating mode of the far-side stove"),
]);

static HEATING_TEMPERATURE_LEFT_STOVE: Data =
    Data::OneOf(&[uint8(50, 250, Unit::Celsius), states(1, &[s(0xFF, "noSetting")])]);

static HEATING_TEMPERATURE: Data = Data::Object(&[
    field("leftStove", &HEATING_TEMPERATURE_LEFT_STOVE, "Left stove temperature setting"),
    field("rightStove", &HEATING_TEMPERATURE_LEFT_STOVE, "Right stove temperature setting"),
    field("farSideStove", &HEATING_TEMPERATURE_LEFT_STOVE, "Far-side stove temperature setting"),
]);

static HEATING_POWER_LEFT_STOVE: Data = Data::OneOf(&[
    uint16(0, 10000, Unit::Watt),
    level(2, 0x3000, 17),
    states(
        2,
        &[
            s(0x4002, "veryLowFlame"),
            s(0x4004, "lowFlame"),
            s(0x4006, "mediumFlame"),
            s(0x4008, "highFlame"),
            s(0x400A, "highPower"),
            s(0xFFFF, "noSetting"),
        ],
    ),
]);

static HEATING_POWER: Data = Data::Object(&[
    field("leftStove", &HEATING_POWER_LEFT_STOVE, "Heating power of the left stove"),
    field("rightStove", &HEATING_POWER_LEFT_STOVE, "Heating power of the right stove"),
    field("farSideStove", &HEATING_POWER_LEFT_STOVE, "Heating power of the far-side stove"),
    field("roaster", &HEATING_POWER_LEFT_STOVE, "Heating power of the roaster"),
]);
