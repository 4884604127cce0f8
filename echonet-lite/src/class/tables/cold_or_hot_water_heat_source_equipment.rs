//! Cold or hot water heat source equipment (0x027A). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredC as RC};
use crate::class::table::{TIME, field, level, raw, ro, row, s, states, uint8, uint16};

/// Cold or hot water heat source equipment, class 0x027A.
pub static COLD_OR_HOT_WATER_HEAT_SOURCE_EQUIPMENT: Class = Class::new(
    0x027A,
    "coldOrHotWaterHeatSourceEquipment",
    "A..",
    ["Cold or hot water heat source equipment", "冷温水熱源機"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                           get set inf   in     data names
    row(0x90, "onTimerReservation",                [O_, O_, O_], "A..", &shared::TRUE_41,                                      "ON timer reservation setting", "ONタイマ予約設定"),
    row(0x91, "timeOfOnTimer",                     [O_, O_, O_], "A..", &TIME,                                                 "ON timer setting", "ONタイマ時刻設定値"),
    row(0x92, "relativeTimeOfOnTimer",             [O_, O_, O_], "A..", &TIME,                                                 "Relative ON timer setting", "ONタイマ相対時間設定値"),
    row(0x94, "offTimerReservation",               [O_, O_, O_], "A..", &shared::TRUE_41,                                      "OFF timer reservation setting", "OFFタイマ予約設定"),
    row(0x95, "timeOfOffTimer",                    [O_, O_, O_], "A..", &TIME,                                                 "Time set by OFF timer", "OFFタイマ時刻設定値"),
    row(0x96, "relativeTimeOfOffTimer",            [O_, O_, O_], "A..", &TIME,                                                 "Relative OFF timer setting", "OFFタイマ相対時間設定値"),
    row(0xD1, "coldWaterTemperatue2MaximumLevel",  [O_, O_, R_], "M..", &uint8(33, 47, Unit::None),                            "Cold water temperature setting 2 Maximum allowable setting level", "冷水温設定2設定可能最大レベル"),
    row(0xD2, "warmWaterTemperatue2MaximumLevel",  [O_, O_, R_], "M..", &uint8(49, 63, Unit::None),                            "Warm water temperature setting 2 Maximum allowable setting level", "温水温設定2設定可能最大レベル"),
    row(0xE0, "operationMode",                     [O_, O_, O_], "A..", &states(1, &[s(0x41, "heating"), s(0x42, "cooling")]), "Operation mode setting", "運転モード設定"),
    row(0xE1, "waterTemperature1",                 [RC, RC, O_], "A..", &WATER_TEMPERATURE1,                                   "Water temperature setting 1", "水温設定1"),
    row(0xE2, "waterTemperature2",                 [RC, RC, O_], "A..", &WATER_TEMPERATURE2,                                   "Water temperature setting 2", "水温設定2"),
    row(0xE3, "outwardWaterTemperatureExit",       [O_, __, O_], "A..", &MEASURED_TEMPERATURE,                                 "Measured temperature of outward water (Exit water Temperature)", "往き水温計測値(出口水温)"),
    row(0xE4, "inwardWaterTemperatureEntrance",    [O_, __, O_], "A..", &MEASURED_TEMPERATURE,                                 "Measured temperature of inward water (Entrance water Temperature)", "戻り水温計測値(入口水温)"),
    row(0xE5, "specialOperation",                  [O_, O_, O_], "A..", &SPECIAL_OPERATION,                                    "Special operation setting", "特殊運転設定"),
    row(0xE6, "dailyTimer",                        [O_, O_, O_], "A..", &DAILY_TIMER,                                          "Daily timer setting", "デイリータイマー設定"),
    row(0xE7, "dailyTimer1",                       [O_, O_, O_], "A..", &raw(6, 6),                                            "Daily timer setting 1", "デイリータイマー1設定"),
    row(0xE8, "dailyTimer2",                       [O_, O_, O_], "A..", &raw(6, 6),                                            "Daily timer setting 2", "デイリータイマー2設定"),
    row(0xE9, "ratedPowerconsumption",             [O_, __, O_], "G..", &RATED_POWERCONSUMPTION,                               "Rated power consumption", "定格消費電力値"),
    row(0xEA, "powerConsumptionMeasurementMethod", [O_, __, O_], "G..", &POWER_CONSUMPTION_MEASUREMENT_METHOD,                 "Power consumption measurement method", "消費電力計測方法"),
];

static WATER_TEMPERATURE1: Data = Data::OneOf(&[uint8(0, 100, Unit::Celsius), states(1, &[s(0x71, "auto")])]);

static WATER_TEMPERATURE2: Data = Data::OneOf(&[level(1, 0x21, 15), level(1, 0x31, 15), states(1, &[s(0x41, "auto")])]);

static MEASURED_TEMPERATURE: Data = Data::OneOf(&[uint8(0, 100, Unit::Celsius), states(1, &[ro(0x7E, "undefined")])]);

static SPECIAL_OPERATION: Data = states(1, &[s(0x41, "normal"), s(0x42, "modest"), s(0x43, "highPower")]);

static DAILY_TIMER: Data = states(1, &[s(0x40, "timerOff"), s(0x41, "timer1"), s(0x42, "timer2")]);

static RATED_POWERCONSUMPTION: Data = Data::Object(&[
    field("heating", &uint16(0, 65533, Unit::Watt), "Rated power consumption of heater (hot water) mode in watts"),
    field("cooling", &uint16(0, 65533, Unit::Watt), "Rated power consumption of cooler (cold water) mode in watts"),
]);

static POWER_CONSUMPTION_MEASUREMENT_METHOD: Data =
    states(1, &[s(0x41, "nodeUnit"), s(0x42, "classUnit"), s(0x43, "instanceUnit")]);
