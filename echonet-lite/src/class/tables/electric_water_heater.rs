//! Electric water heater (0x026B). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredO as RO};
use crate::class::table::{
    TIME, array, bitmap, field, flag, int16, level, n, ro, row, s, states, uint8, uint16, uint32,
};

/// Electric water heater, class 0x026B.
pub static ELECTRIC_WATER_HEATER: Class =
    Class::new(0x026B, "electricWaterHeater", "A..", ["Electric water heater", "電気温水器"], [PROPERTIES, SUPERSEDED])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                 get set inf   in      data names
    row(0x90, "onTimerReservation",                      [O_, O_, O_], "A..",  &shared::TRUE_41,                                 "ON timer setting", "ONタイマ予約設定"),
    row(0x91, "onTimerTime",                             [O_, O_, O_], "A..",  &TIME,                                            "ON timer setting", "ONタイマ時刻設定値"),
    row(0xB0, "automaticWaterHeating",                   [R_, R_, R_], "I..",  &AUTOMATIC_WATER_HEATING,                         "Automatic water heating setting", "沸き上げ自動設定"),
    row(0xB1, "automaticWaterHeatingTemperatureControl", [O_, O_, O_], "A..",  &shared::TRUE_41,                                 "Automatic water temperature control setting", "沸き上げ湯温自動設定"),
    row(0xB2, "waterHeatingStatus",                      [R_, __, R_], "I..",  &shared::TRUE_41,                                 "Water heater status", "沸き上げ中状態"),
    row(0xB3, "targetWaterHeatingTemperature",           [O_, O_, O_], "A..",  &TARGET_WATER_HEATING_TEMPERATURE,                "Water heating temperature setting", "沸き上げ湯温設定値"),
    row(0xB4, "heatingStopDays",                         [O_, O_, O_], "D..",  &HEATING_STOP_DAYS,                               "Manual water heating stop days setting", "手動沸き上げ停止日数設定値"),
    row(0xB5, "relativeTimeHeatingOff",                  [O_, O_, O_], "D..",  &TIME,                                            "Relative time setting value for manual water heating OFF", "手動沸き上げOFFタイマ相対時間設定値"),
    row(0xB6, "tankOperationMode",                       [O_, O_, O_], "D..",  &TANK_OPERATION_MODE,                             "Tank operation mode setting", "タンク運転モード設定"),
    row(0xC0, "daytimeReheatingPermission",              [R_, R_, O_], "D..",  &shared::TRUE_41,                                 "Daytime reheating permission setting", "昼間沸き増し許可設定"),
    row(0xC1, "tankWaterTemperature",                    [O_, __, O_], "A..",  &uint8(0, 100, Unit::Celsius),                    "Measured temperature of water in water heater", "温水器湯温計測値"),
    row(0xC2, "alarmStatus",                             [O_, __, R_], "C..",  &ALARM_STATUS,                                    "Alarm status", "警報発生状態"),
    row(0xC3, "hotWaterSupplyStatus",                    [R_, __, R_], "D..",  &shared::TRUE_41,                                 "Hot water supply status", "給湯中状態"),
    row(0xC4, "relativeTimeKeepingTemperature",          [O_, O_, O_], "D..",  &TIME,                                            "Relative time setting for keeping bath temperature", "風呂保温運転相対時間設定値"),
    row(0xC7, "energyShiftParticipation",                [R_, R_, O_], "I..",  &states(1, &[s(0x01, "true"), s(0x00, "false")]), "Participation in energy shift", "エネルギーシフト参加状態"),
    row(0xC8, "standardTimeToStartHeating",              [R_, __, O_], "I..",  &STANDARD_TIME_TO_START_HEATING,                  "Standard time to start heating", "沸き上げ開始基準時刻"),
    row(0xC9, "numberOfEnergyShifts",                    [R_, __, O_], "I..",  &uint8(1, 2, Unit::None),                         "Number of energy shifts", "エネルギーシフト回数"),
    row(0xCA, "waterHeatingShiftTime1",                  [R_, R_, O_], "I..",  &WATER_HEATING_SHIFT_TIME1,                       "Daytime heating shift time 1", "昼間沸き上げシフト時刻1"),
    row(0xCB, "estimatedElectricEnergyAtShiftTime1",     [R_, __, O_], "I..",  &ESTIMATED_ELECTRIC_ENERGY_AT_SHIFT_TIME1,        "Expected electric energy at daytime heating shift time 1", "昼間沸き上げシフト時刻1での沸き上げ予測電力量"),
    row(0xCC, "electricEnergyConsumptionRate1",          [R_, __, O_], "I..",  &ELECTRIC_ENERGY_CONSUMPTION_RATE1,               "Consumption of electric energy per hour 1", "時間あたり消費電力量1"),
    row(0xCD, "waterHeatingShiftTime2",                  [R_, R_, O_], "I..",  &WATER_HEATING_SHIFT_TIME2,                       "Daytime heating shift time 2", "昼間沸き上げシフト時刻2"),
    row(0xCE, "estimatedElectricEnergyAtShiftTime2",     [R_, __, O_], "I..",  &ESTIMATED_ELECTRIC_ENERGY_AT_SHIFT_TIME2,        "Expected electric energy at daytime heating shift time 2", "昼間沸き上げシフト時刻2での沸き上げ予測電力量"),
    row(0xCF, "electricEnergyConsumptionRate2",          [R_, __, O_], "I..",  &ELECTRIC_ENERGY_CONSUMPTION_RATE2,               "Consumption of electric energy per hour 2", "時間あたり消費電力量2"),
    row(0xD1, "targetSuppliedWaterTemperature",          [O_, O_, O_], "A..",  &uint8(0, 100, Unit::Celsius),                    "Temperature of supplied water setting", "給湯温度設定値"),
    row(0xD3, "targetBathWaterTemperature",              [O_, O_, O_], "A..",  &uint8(0, 100, Unit::Celsius),                    "Bath water temperature setting", "風呂温度設定値"),
    row(0xD4, "bathWaterVolume4",                        [O_, O_, O_], "C..",  &uint8(1, 255, Unit::None),                       "Bath water volume setting4", "風呂湯量設定4"),
    row(0xD5, "maximumAllowableWaterVolume4",            [O_, __, O_], "C..",  &uint8(1, 255, Unit::None),                       "Bath water volume setting4 maximum settable level", "風呂湯量設定4設定可能最大レベル"),
    row(0xD6, "volume",                                  [O_, O_, O_], "F..",  &uint8(0, 100, Unit::Percent),                    "Volume setting", "音量設定値"),
    row(0xD7, "mute",                                    [O_, O_, O_], "F..",  &shared::ON_30,                                   "Mute setting", "ミュート設定"),
    row(0xD8, "remainingWaterVolume",                    [O_, __, O_], "F..",  &uint16(0, 65533, Unit::Litre),                   "Remaining hot water volume", "給湯可能湯量値"),
    row(0xD9, "surplusPowerPrediction",                  [O_, O_, O_], "H..",  &SURPLUS_POWER_PREDICTION,                        "Surplus electric energy power prediction value", "余剰電力量予測値"),
    row(0xDB, "winterRatedPower",                        [O_, __, O_], "A..",  &uint16(0, 65533, Unit::Watt),                    "Rated power consumption of H/P unit in wintertime", "冬季H/Pユニット定格消費電力"),
    row(0xDC, "betweenSeasonRatedPower",                 [O_, __, O_], "A..",  &uint16(0, 65533, Unit::Watt),                    "Rated power consumption of H/P unit in in-between seasons", "中間期H/Pユニット定格消費電力"),
    row(0xDD, "summerRatedPower",                        [O_, __, O_], "A..",  &uint16(0, 65533, Unit::Watt),                    "Rated power consumption of H/P unit in summertime", "夏季H/Pユニット定格消費電力"),
    row(0xE0, "targetWaterHeatingVolume",                [O_, O_, O_], "A..",  &uint8(0, 100, Unit::Percent),                    "Bath water volume setting", "沸き上げ湯量設定値"),
    row(0xE1, "remainingWater",                          [O_, __, O_], "A..",  &uint16(0, 65533, Unit::Litre),                   "Measured amount of water remaining in tank", "残湯量計測値"),
    row(0xE2, "tankCapacity",                            [O_, __, O_], "A..",  &uint16(0, 65533, Unit::Litre),                   "Tank capacity", "タンク容量値"),
    row(0xE3, "automaticBathOperation",                  [RO, RO, O_], "A..",  &shared::TRUE_41,                                 "Automatic Bath Water Heating Mode Setting", "風呂自動モード設定"),
    row(0xE4, "bathReheatingOperation",                  [O_, O_, O_], "D..",  &shared::TRUE_41,                                 "Manual bath reheating operation setting", "手動風呂追い焚き動作設定"),
    row(0xE5, "bathHotWaterAddition",                    [O_, O_, O_], "D..",  &shared::TRUE_41,                                 "Manual bath hot water addition function setting", "手動風呂足し湯動作設定"),
    row(0xE6, "bathLukewarmWaterFunction",               [O_, O_, O_], "D..",  &shared::TRUE_41,                                 "Manual lukewarm water temperature lowering function setting.", "手動風呂ぬるめ動作設定"),
    row(0xE7, "bathWaterVolume1",                        [O_, O_, O_], "A..",  &uint8(0, 253, Unit::Litre),                      "Bath water volume setting 1", "風呂湯量設定1"),
    row(0xE8, "bathWaterVolume2",                        [O_, O_, O_], "A..",  &level(1, 0x31, 8),                               "Bath water volume setting 2", "風呂湯量設定2"),
    row(0xE9, "bathroomPriority",                        [O_, __, O_], "D..",  &shared::TRUE_41,                                 "Bathroom priority setting", "浴室優先設定"),
    row(0xEA, "bathOperationStatusMonitor",              [O_, __, R_], "D..",  &BATH_OPERATION_STATUS_MONITOR,                   "Bath Operation Status Monitor", "風呂動作状態監視"),
    row(0xEE, "bathWaterVolume3",                        [O_, O_, O_], "A..",  &uint16(0, 65533, Unit::Litre),                   "Bath water volume setting 3", "風呂湯量設定3"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                                 get set inf   in      data names
    row(0xB0, "automaticWaterHeating",                   [R_, R_, O_], "A..H", &AUTOMATIC_WATER_HEATING,                         "Automatic water heating setting", "沸き上げ自動設定"),
    row(0xB2, "waterHeatingStatus",                      [O_, __, O_], "A..H", &shared::TRUE_41,                                 "Water heater status", "沸き上げ中状態"),
    row(0xC0, "daytimeReheatingPermission",              [O_, O_, O_], "A..C", &shared::TRUE_41,                                 "Daytime reheating permission setting", "昼間沸き増し許可設定"),
    row(0xE5, "bathHotWaterAddition",                    [O_, O_, O_], "A..C", &shared::TRUE_41,                                 "Addition of hot water function setting", "風呂足し湯動作設定"),
    row(0xE6, "bathLukewarmWaterFunction",               [O_, O_, O_], "A..C", &shared::TRUE_41,                                 "Slight bath water temperature lowering function setting", "風呂ぬるめ動作設定"),
];

static AUTOMATIC_WATER_HEATING: Data =
    states(1, &[s(0x41, "auto"), s(0x43, "manualNoHeating"), s(0x42, "manualHeating")]);

static TARGET_WATER_HEATING_TEMPERATURE: Data =
    Data::OneOf(&[uint8(0, 100, Unit::Celsius), states(1, &[ro(0xFD, "undefined")])]);

static HEATING_STOP_DAYS: Data = Data::OneOf(&[uint8(0, 252, Unit::Day), states(1, &[s(0xFD, "infinite")])]);

static TANK_OPERATION_MODE: Data = states(1, &[s(0x41, "standard"), s(0x42, "saving"), s(0x43, "extra")]);

static FLAG: Data = states(0, &[s(0x01, "false"), s(0x00, "true")]);

static ALARM_STATUS: Data = bitmap(
    4,
    &[
        flag(0, 0b0000_0001, "noHotWater", &FLAG),
        flag(0, 0b0000_0010, "leaking", &FLAG),
        flag(0, 0b0000_0100, "freezing", &FLAG),
    ],
);

static STANDARD_TIME_TO_START_HEATING: Data =
    Data::Numeric(&[n(0x01, 1, 0), n(0x14, 20, 0), n(0x15, 21, 0), n(0x16, 22, 0), n(0x17, 23, 0), n(0x18, 24, 0)]);

static WATER_HEATING_SHIFT_TIME1: Data = Data::OneOf(&[
    states(
        1,
        &[
            s(0x09, "at0900"),
            s(0x0A, "at1000"),
            s(0x0B, "at1100"),
            s(0x0C, "at1200"),
            s(0x0D, "at1300"),
            s(0x0E, "at1400"),
            s(0x0F, "at1500"),
            s(0x10, "at1600"),
            s(0x11, "at1700"),
        ],
    ),
    states(1, &[s(0x00, "cleared")]),
]);

static ESTIMATED_ELECTRIC_ENERGY_AT_SHIFT_TIME1: Data = Data::Object(&[
    field("at1000", &uint32(0, 4_294_967_293, Unit::WattHour), "10:00"),
    field("at1300", &uint32(0, 4_294_967_293, Unit::WattHour), "13:00"),
    field("at1500", &uint32(0, 4_294_967_293, Unit::WattHour), "15:00"),
    field("at1700", &uint32(0, 4_294_967_293, Unit::WattHour), "17:00"),
]);

static ELECTRIC_ENERGY_CONSUMPTION_RATE1: Data = Data::Object(&[
    field("at1000", &uint16(0, 65533, Unit::WattHour), "10:00"),
    field("at1300", &uint16(0, 65533, Unit::WattHour), "13:00"),
    field("at1500", &uint16(0, 65533, Unit::WattHour), "15:00"),
    field("at1700", &uint16(0, 65533, Unit::WattHour), "17:00"),
]);

static WATER_HEATING_SHIFT_TIME2: Data = Data::OneOf(&[
    states(
        1,
        &[
            s(0x0A, "at1000"),
            s(0x0B, "at1100"),
            s(0x0C, "at1200"),
            s(0x0D, "at1300"),
            s(0x0E, "at1400"),
            s(0x0F, "at1500"),
            s(0x10, "at1600"),
            s(0x11, "at1700"),
        ],
    ),
    states(1, &[s(0x00, "cleared")]),
]);

static ESTIMATED_ELECTRIC_ENERGY_AT_SHIFT_TIME2: Data = Data::Object(&[
    field("at1300", &uint32(0, 4_294_967_293, Unit::WattHour), "13:00"),
    field("at1500", &uint32(0, 4_294_967_293, Unit::WattHour), "15:00"),
    field("at1700", &uint32(0, 4_294_967_293, Unit::WattHour), "17:00"),
]);

static ELECTRIC_ENERGY_CONSUMPTION_RATE2: Data = Data::Object(&[
    field("at1300", &uint16(0, 65533, Unit::WattHour), "13:00"),
    field("at1500", &uint16(0, 65533, Unit::WattHour), "15:00"),
    field("at1700", &uint16(0, 65533, Unit::WattHour), "17:00"),
]);

static SURPLUS_ENERGY_PREDICTION_VALUE_ITEM: Data =
    Data::OneOf(&[int16(-32767, 32765, Unit::WattHour).e(1), states(2, &[s(0x8000, "invalid")])]);

static SURPLUS_POWER_PREDICTION: Data = Data::Object(&[
    field("month", &uint8(1, 12, Unit::None), "Base date and time: Month"),
    field("day", &uint8(1, 31, Unit::None), "Base date and time: Day"),
    field("hour", &uint8(0, 23, Unit::None), "Base date and time: Hour"),
    field(
        "surplusEnergyPredictionValue",
        &array(24, 24, 2, &SURPLUS_ENERGY_PREDICTION_VALUE_ITEM),
        "Surplus power prediction value in units of 1 hour",
    ),
]);

static BATH_OPERATION_STATUS_MONITOR: Data =
    states(1, &[s(0x41, "runningHotWater"), s(0x42, "noOperation"), s(0x43, "keepingTemperature")]);
