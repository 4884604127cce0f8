//! Instantaneous water heater (0x0272). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredO as RO};
use crate::class::table::{TIME, level, row, s, states, uint8, uint16};

/// Instantaneous water heater, class 0x0272.
pub static INSTANTANEOUS_WATER_HEATER: Class = Class::new(
    0x0272,
    "instantaneousWaterHeater",
    "A..",
    ["Instantaneous water heater", "瞬間式給湯器"],
    [PROPERTIES, SUPERSEDED],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                 get set inf   in      data names
    row(0x90, "onTimerReservation",                      [O_, O_, O_], "A..",  &shared::TRUE_41,               "ON timer reservation setting", "風呂自動ONタイマ予約設定"),
    row(0x91, "onTimerTime",                             [O_, O_, O_], "A..",  &TIME,                          "ON timer setting", "ONタイマ時刻設定値"),
    row(0x92, "onTimerRelativeTimeSettingValue",         [O_, O_, O_], "A..",  &TIME,                          "Set value of ON timer relative time", "風呂自動ONタイマ相対時間設定値"),
    row(0xD0, "hotWaterHeatingStatus",                   [R_, __, O_], "A..",  &shared::TRUE_41,               "Hot water heating status", "給湯器燃焼状態"),
    row(0xD1, "targetSuppliedWaterTemperature",          [O_, O_, O_], "A..",  &uint8(0, 100, Unit::Celsius),  "Set value of hot water temperature", "給湯温度設定値"),
    row(0xD2, "hotWaterWarmerSetting",                   [O_, O_, O_], "A..",  &shared::TRUE_41,               "Hot water warmer setting", "給湯保温設定"),
    row(0xD4, "bathWaterVolume4",                        [O_, O_, O_], "C..",  &uint8(1, 255, Unit::None),     "Bath water volume setting 4", "風呂湯量設定4"),
    row(0xD5, "maximumAllowableWaterVolume4",            [O_, __, O_], "C..",  &uint8(1, 255, Unit::None),     "Bath water volume setting 4 Maximum settable level", "風呂湯量設定4 設定可能最大レベル"),
    row(0xD6, "volume",                                  [O_, O_, O_], "F..",  &uint8(0, 100, Unit::Percent),  "Volume setting", "音量設定値"),
    row(0xD7, "mute",                                    [O_, O_, O_], "F..",  &shared::ON_30,                 "Mute setting", "ミュート設定"),
    row(0xDA, "targetAutomaticOeprationTime",            [O_, O_, O_], "A..",  &AUTOMATIC_OPERATION_TIME,      "Duration of Automatic operation setting", "自動運転時間設定値"),
    row(0xDB, "remainingAutomaticOperationTime",         [O_, __, O_], "A..",  &AUTOMATIC_OPERATION_TIME,      "Remaining Automatic operation time", "自動運転残時間"),
    row(0xE1, "targetBathWaterTemperature",              [O_, O_, O_], "A..",  &uint8(0, 100, Unit::Celsius),  "Set value of bath temperature", "風呂温度設定値"),
    row(0xE2, "bathWaterHeatingStatus",                  [R_, __, O_], "A..",  &shared::TRUE_41,               "Bath water heater status", "風呂給湯器燃焼状態"),
    row(0xE3, "automaticBathOperation",                  [RO, RO, O_], "A..",  &shared::TRUE_41,               "Bath Auto mode setting", "風呂自動モード設定"),
    row(0xE4, "targetBathAdditionalBoilupOperation",     [O_, O_, O_], "A..",  &shared::TRUE_41,               "Bath additional boil-up operation setting", "風呂追い炊き動作設定"),
    row(0xE5, "bathHotWaterAddition",                    [O_, O_, O_], "A..",  &shared::TRUE_41,               "Bath hot water adding operation setting", "風呂足し湯動作設定"),
    row(0xE6, "bathLukewarmWaterFunction",               [O_, O_, O_], "A..",  &shared::TRUE_41,               "Bath water temperature lowering operation setting", "風呂ぬるめ動作設定"),
    row(0xE7, "bathWaterVolume1",                        [O_, O_, O_], "A..",  &uint8(0, 253, Unit::Litre),    "Bath hot water volume setting 1", "風呂湯量設定1"),
    row(0xE8, "bathWaterVolume2",                        [O_, O_, O_], "A..",  &level(1, 0x31, 8),             "Bath hot water volume setting 2", "風呂湯量設定2"),
    row(0xE9, "bathroomPriority",                        [O_, __, O_], "E..",  &shared::TRUE_41,               "Bathroom priority setting", "浴室優先設定"),
    row(0xEA, "showerHotWaterSupplyStatus",              [O_, __, O_], "A..",  &shared::TRUE_41,               "Shower hot water supply status", "シャワー給湯状態"),
    row(0xEB, "kitchenHotWaterSupplyStatus",             [O_, __, O_], "A..",  &shared::TRUE_41,               "Kitchen hot water supply status", "台所給湯状態"),
    row(0xEC, "hotWaterWarmerOnTimerReservationSetting", [O_, O_, O_], "A..",  &shared::TRUE_41,               "Hot water warmer ON timer reservation setting", "給湯保温ONタイマ予約設定"),
    row(0xED, "targetHotWaterWarmerOnTimerTime",         [O_, O_, O_], "A..",  &TIME,                          "Set value of hot water warmer ON timer time", "給湯保温ONタイマ時刻設定値"),
    row(0xEE, "bathWaterVolume3",                        [O_, O_, O_], "A..",  &uint16(0, 65533, Unit::Litre), "Bath hot water volume setting 3", "風呂湯量設定3"),
    row(0xEF, "bathOperationStatus",                     [O_, __, R_], "E..",  &BATH_OPERATION_STATUS,         "Bath operation status monitor", "風呂動作状態監視"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                                 get set inf   in      data names
    row(0xE9, "bathroomPriority",                        [O_, O_, O_], "A..D", &shared::TRUE_41,               "Bathroom priority setting", "浴室優先設定"),
];

static AUTOMATIC_OPERATION_TIME: Data = Data::OneOf(&[TIME, states(2, &[s(0xFFFF, "limitless")])]);

static BATH_OPERATION_STATUS: Data =
    states(1, &[s(0x41, "runningHotWater"), s(0x42, "noOperation"), s(0x43, "keepingTemperature")]);
