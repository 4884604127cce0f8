//! Bathroom heater dryer (0x0273). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{TIME, int8, level, row, s, states, uint8};

/// Bathroom heater dryer, class 0x0273.
pub static BATHROOM_HEATER_DRYER: Class = Class::new(
    0x0273,
    "bathroomHeaterDryer",
    "A..",
    ["Bathroom heater dryer", "浴室暖房乾燥機"],
    [PROPERTIES, SUPERSEDED],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                    get set inf   in      data names
    row(0x90, "onTimerReservation1",        [O_, O_, O_], "A..",  &shared::TRUE_41,                "On timer reservation setting 1", "ONタイマ予約設定1"),
    row(0x91, "timeOfOnTimer",              [O_, O_, O_], "A..",  &TIME,                           "On timer setting value", "ONタイマ時刻設定値"),
    row(0x92, "timeOfOffTimer",             [O_, O_, O_], "A..",  &TIME,                           "On relative timer setting value", "ONタイマ相対時間設定値"),
    row(0x94, "offTimerReservation",        [O_, O_, O_], "A..",  &shared::TRUE_41,                "Off timer reservation setting", "OFFタイマ予約設定"),
    row(0x95, "relativeTimeOfOnTimer",      [O_, O_, O_], "A..",  &TIME,                           "OFF timer setting value", "OFFタイマ時刻設定値"),
    row(0x96, "relativeTimeOfOffTimer",     [O_, O_, O_], "A..",  &TIME,                           "Off relative timer setting value", "OFFタイマ相対時間設定値"),
    row(0xB0, "operationSetting",           [R_, R_, O_], "L..",  &OPERATION_SETTING,              "Operation setting", "運転設定"),
    row(0xB1, "ventilationSetting",         [O_, O_, O_], "A..",  &LEVELS,                         "Ventilation operation setting", "換気運転設定"),
    row(0xB2, "bathroomPrewarming",         [O_, O_, O_], "H..",  &LEVELS,                         "Bathroom prewarming operation setting", "入浴前予備暖房運転設定"),
    row(0xB3, "bathroomHeating",            [O_, O_, O_], "A..",  &LEVELS,                         "Bathroom heating operation setting", "入浴中暖房運転設定"),
    row(0xB4, "bathroomDrying",             [R_, R_, O_], "A..",  &LEVELS,                         "Bathroom drying operation setting", "乾燥運転設定"),
    row(0xB5, "coolAirCirculation",         [O_, O_, O_], "A..",  &LEVELS,                         "Cool air circulation operation setting", "涼風運転設定"),
    row(0xB6, "mistSauna",                  [O_, O_, O_], "L..",  &LEVELS,                         "Mist sauna operation setting", "ミストサウナ運転設定"),
    row(0xB7, "waterMist",                  [O_, O_, O_], "L..",  &LEVELS,                         "Water mist operation setting", "水ミスト運転設定"),
    row(0xBA, "bathroomHumidity",           [O_, __, O_], "A..",  &uint8(0, 100, Unit::Percent),   "Measured value of bathroom relative humidity", "浴室内相対湿度計測値"),
    row(0xBB, "bathroomTemperature",        [O_, __, O_], "A..",  &int8(-127, 125, Unit::Celsius), "Measured value of bathroom temperature", "浴室内温度計測値"),
    row(0xC2, "ventilationAirFlowLevel",    [O_, O_, O_], "A..",  &shared::LEVEL_OR_AUTO,          "Ventilation air flow rate setting", "換気風量設定"),
    row(0xCF, "filterCleaningReminderSign", [O_, O_, O_], "A..",  &shared::TRUE_41,                "Filter cleaning reminder sign setting", "フィルタサイン設定"),
    row(0xE0, "humanBodyDetectionStatus",   [O_, __, O_], "A..",  &shared::TRUE_41,                "Human body detection status", "人体検知状態"),
    row(0xE1, "onTimerReservation2",        [O_, O_, O_], "L..",  &ON_TIMER_RESERVATION2,          "On timer reservation setting 2", "ONタイマ予約設定2"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                    get set inf   in      data names
    row(0xB0, "operationSetting",           [R_, R_, O_], "A..K", &OPERATION_SETTING_UNTIL_K,      "Operation setting", "運転設定"),
    row(0xB2, "bathroomPrewarming",         [R_, R_, O_], "A..G", &LEVELS,                         "Bathroom prewarming operation setting", "入浴前予備暖房運転設定"),
    row(0xE1, "onTimerReservation2",        [O_, O_, O_], "A..K", &ON_TIMER_RESERVATION2_UNTIL_K,  "On timer reservation setting 2", "ONタイマ予約設定2"),
];

static OPERATION_SETTING: Data = states(
    1,
    &[
        s(0x10, "ventilation"),
        s(0x20, "prewarming"),
        s(0x30, "heating"),
        s(0x40, "drying"),
        s(0x50, "circulation"),
        s(0x60, "mistSauna"),
        s(0x61, "waterMist"),
        s(0x00, "stop"),
    ],
);

static LEVELS: Data = Data::OneOf(&[level(1, 0x31, 8), states(1, &[s(0x41, "auto"), s(0x42, "standard")])]);

static ON_TIMER_RESERVATION2: Data = states(
    1,
    &[
        s(0x10, "ventilationReservation"),
        s(0x20, "prewarmingReservation"),
        s(0x30, "heatingReservation"),
        s(0x40, "dryingReservation"),
        s(0x50, "circulationReservation"),
        s(0x60, "mistSaunaReservation"),
        s(0x61, "waterMistReservation"),
        s(0x00, "noReservation"),
    ],
);

static OPERATION_SETTING_UNTIL_K: Data = states(
    1,
    &[
        s(0x10, "ventilation"),
        s(0x20, "prewarming"),
        s(0x30, "heating"),
        s(0x40, "drying"),
        s(0x50, "circulation"),
        s(0x00, "stop"),
    ],
);

static ON_TIMER_RESERVATION2_UNTIL_K: Data = states(
    1,
    &[
        s(0x10, "ventilationReservation"),
        s(0x20, "prewarmingReservation"),
        s(0x30, "heatingReservation"),
        s(0x40, "dryingReservation"),
        s(0x50, "circulationReservation"),
        s(0x00, "noReservation"),
    ],
);
