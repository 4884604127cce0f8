//! Floor heater (0x027B). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredC as RC};
use crate::class::table::{TIME, bitmap, flag, int8, level, ro, row, s, states, uint8, uint16};

/// Floor heater, class 0x027B.
pub static FLOOR_HEATER: Class =
    Class::new(0x027B, "floorHeater", "A..", ["Floor heater", "床暖房"], [PROPERTIES, SUPERSEDED])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                   get set inf   in      data names
    row(0x80, "operationStatus",           [R_, R_, R_], "A..",  &shared::ON_30,                      "Operation status", "動作状態"),
    row(0x90, "onTimerReservation",        [O_, O_, O_], "A..",  &shared::ON_41,                      "ON timer reservation setting", "ON タイマ予約設定"),
    row(0x91, "timeOfOnTimer",             [O_, O_, O_], "A..",  &TIME,                               "Time set by ON timer", "ON タイマ時刻設定値"),
    row(0x92, "relativeTimeOfOnTimer",     [O_, O_, O_], "A..",  &TIME,                               "Relative ON timer setting", "ON タイマ相対時間設定値"),
    row(0x94, "offTimerReservation",       [O_, O_, O_], "A..",  &shared::ON_41,                      "OFF timer reservation setting", "OFF タイマ予約設定"),
    row(0x95, "timeOfOffTimer",            [O_, O_, O_], "A..",  &TIME,                               "Time set by OFF timer", "OFF タイマ時刻設定値"),
    row(0x96, "relativeTimeOfOffTimer",    [O_, O_, O_], "A..",  &TIME,                               "Relative OFF timer setting", "OFF タイマ相対時間設定値"),
    row(0xD1, "maximumTargetTemperature2", [O_, __, R_], "M..",  &uint8(1, 15, Unit::None),           "Maximum temperature level", "温度設定2設定可能最大レベル"),
    row(0xE0, "targetTemperature1",        [RC, RC, O_], "A..",  &TARGET_TEMPERATURE1,                "Set temperature value", "温度設定1"),
    row(0xE1, "targetTemperature2",        [RC, RC, O_], "A..",  &TARGET_TEMPERATURE2,                "Set temperature level by 15 steps", "温度設定2"),
    row(0xE2, "measuredRoomTemperature",   [O_, __, O_], "A..",  &MEASURED_TEMPERATURE,               "Measured room temperature", "室内温度計測値"),
    row(0xE3, "measuredFloorTemperature",  [O_, __, O_], "C..",  &MEASURED_TEMPERATURE,               "Measured floor temperature", "床温度計測値"),
    row(0xE4, "controllableZone",          [O_, O_, O_], "A..",  &CONTROLLABLE_ZONE,                  "Zone change setting", "ゾーン切替え設定"),
    row(0xE5, "specialOperationMode",      [O_, O_, O_], "A..",  &SPECIAL_OPERATION_MODE,             "Special operation setting", "特殊運転設定"),
    row(0xE6, "dailyTimer",                [O_, O_, O_], "A..",  &DAILY_TIMER,                        "Daily timer setting", "デイリータイマー設定"),
    row(0xE7, "workedDailyTimer1",         [O_, O_, O_], "A..",  &HALF_HOURS,                         "Daily timer setting 1", "デイリータイマー1設定"),
    row(0xE8, "workedDailyTimer2",         [O_, O_, O_], "A..",  &HALF_HOURS,                         "Daily timer setting 2", "デイリータイマー2設定"),
    row(0xE9, "ratedPowerConsumption",     [O_, __, O_], "G..",  &uint16(0, 65533, Unit::Watt),       "Rated power consumption", "定格消費電力値"),
    row(0xEA, "powerMeasurementMethod",    [O_, __, O_], "G..",  &POWER_MEASUREMENT_METHOD,           "Power consumption measurement method", "消費電力計測方法"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                   get set inf   in      data names
    row(0xE3, "measuredFloorTemperature",  [O_, __, O_], "A..B", &MEASURED_FLOOR_TEMPERATURE_UNTIL_B, "Measured floor temperature", "床温度計測値"),
];

static TARGET_TEMPERATURE1: Data = Data::OneOf(&[uint8(0, 50, Unit::Celsius), states(1, &[s(0x41, "auto")])]);

static TARGET_TEMPERATURE2: Data = Data::OneOf(&[level(1, 0x31, 15), states(1, &[s(0x41, "auto")])]);

static MEASURED_TEMPERATURE: Data = Data::OneOf(&[int8(-127, 125, Unit::Celsius), states(1, &[ro(0x7E, "undefined")])]);

static CONTROLLABLE_ZONE: Data = bitmap(
    1,
    &[
        flag(0, 0b0000_0001, "zone0", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0000_0010, "zone1", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0000_0100, "zone2", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0000_1000, "zone3", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0001_0000, "zone4", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0010_0000, "zone5", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0100_0000, "zone6", &shared::BIT_TRUE_FALSE),
        flag(0, 0b1000_0000, "zone7", &shared::BIT_TRUE_FALSE),
    ],
);

static SPECIAL_OPERATION_MODE: Data = states(1, &[s(0x41, "normal"), s(0x42, "modest"), s(0x43, "highPower")]);

static DAILY_TIMER: Data = states(1, &[s(0x40, "off"), s(0x41, "timer1"), s(0x42, "timer2")]);

static HALF_HOURS: Data = bitmap(
    6,
    &[
        flag(0, 0b0000_0001, "at0000", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0000_0010, "at0030", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0000_0100, "at0100", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0000_1000, "at0130", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0001_0000, "at0200", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0010_0000, "at0230", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0100_0000, "at0300", &shared::BIT_TRUE_FALSE),
        flag(0, 0b1000_0000, "at0330", &shared::BIT_TRUE_FALSE),
        flag(1, 0b0000_0001, "at0400", &shared::BIT_TRUE_FALSE),
        flag(1, 0b0000_0010, "at0430", &shared::BIT_TRUE_FALSE),
        flag(1, 0b0000_0100, "at0500", &shared::BIT_TRUE_FALSE),
        flag(1, 0b0000_1000, "at0530", &shared::BIT_TRUE_FALSE),
        flag(1, 0b0001_0000, "at0600", &shared::BIT_TRUE_FALSE),
        flag(1, 0b0010_0000, "at0630", &shared::BIT_TRUE_FALSE),
        flag(1, 0b0100_0000, "at0700", &shared::BIT_TRUE_FALSE),
        flag(1, 0b1000_0000, "at0730", &shared::BIT_TRUE_FALSE),
        flag(2, 0b0000_0001, "at0800", &shared::BIT_TRUE_FALSE),
        flag(2, 0b0000_0010, "at0830", &shared::BIT_TRUE_FALSE),
        flag(2, 0b0000_0100, "at0900", &shared::BIT_TRUE_FALSE),
        flag(2, 0b0000_1000, "at0930", &shared::BIT_TRUE_FALSE),
        flag(2, 0b0001_0000, "at1000", &shared::BIT_TRUE_FALSE),
        flag(2, 0b0010_0000, "at1030", &shared::BIT_TRUE_FALSE),
        flag(2, 0b0100_0000, "at1100", &shared::BIT_TRUE_FALSE),
        flag(2, 0b1000_0000, "at1130", &shared::BIT_TRUE_FALSE),
        flag(3, 0b0000_0001, "at1200", &shared::BIT_TRUE_FALSE),
        flag(3, 0b0000_0010, "at1230", &shared::BIT_TRUE_FALSE),
        flag(3, 0b0000_0100, "at1300", &shared::BIT_TRUE_FALSE),
        flag(3, 0b0000_1000, "at1330", &shared::BIT_TRUE_FALSE),
        flag(3, 0b0001_0000, "at1400", &shared::BIT_TRUE_FALSE),
        flag(3, 0b0010_0000, "at1430", &shared::BIT_TRUE_FALSE),
        flag(3, 0b0100_0000, "at1500", &shared::BIT_TRUE_FALSE),
        flag(3, 0b1000_0000, "at1530", &shared::BIT_TRUE_FALSE),
        flag(4, 0b0000_0001, "at1600", &shared::BIT_TRUE_FALSE),
        flag(4, 0b0000_0010, "at1630", &shared::BIT_TRUE_FALSE),
        flag(4, 0b0000_0100, "at1700", &shared::BIT_TRUE_FALSE),
        flag(4, 0b0000_1000, "at1730", &shared::BIT_TRUE_FALSE),
        flag(4, 0b0001_0000, "at1800", &shared::BIT_TRUE_FALSE),
        flag(4, 0b0010_0000, "at1830", &shared::BIT_TRUE_FALSE),
        flag(4, 0b0100_0000, "at1900", &shared::BIT_TRUE_FALSE),
        flag(4, 0b1000_0000, "at1930", &shared::BIT_TRUE_FALSE),
        flag(5, 0b0000_0001, "at2000", &shared::BIT_TRUE_FALSE),
        flag(5, 0b0000_0010, "at2030", &shared::BIT_TRUE_FALSE),
        flag(5, 0b0000_0100, "at2100", &shared::BIT_TRUE_FALSE),
        flag(5, 0b0000_1000, "at2130", &shared::BIT_TRUE_FALSE),
        flag(5, 0b0001_0000, "at2200", &shared::BIT_TRUE_FALSE),
        flag(5, 0b0010_0000, "at2230", &shared::BIT_TRUE_FALSE),
        flag(5, 0b0100_0000, "at2300", &shared::BIT_TRUE_FALSE),
        flag(5, 0b1000_0000, "at2330", &shared::BIT_TRUE_FALSE),
    ],
);

static POWER_MEASUREMENT_METHOD: Data = states(1, &[s(0x41, "node"), s(0x42, "class"), s(0x43, "instance")]);

static MEASURED_FLOOR_TEMPERATURE_UNTIL_B: Data =
    Data::OneOf(&[uint8(0, 50, Unit::Celsius), states(1, &[ro(0x7E, "undefined")])]);
