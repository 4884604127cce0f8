//! Fuel cell (0x027C). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{TIME, field, ro, row, s, states, uint8, uint16, uint32};

/// Fuel cell, class 0x027C.
pub static FUEL_CELL: Class =
    Class::new(0x027C, "fuelCell", "C..", ["Fuel cell", "燃料電池"], [PROPERTIES, SUPERSEDED]).inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                 get set inf   in      data names
    row(0xC1, "waterTemperatureInWaterHeater",           [O_, __, O_], "C..",  &uint8(0, 100, Unit::Celsius),                    "Measured temperature of water in water heater", "温水器湯温計測値"),
    row(0xC2, "ratedElectricPowerOfGeneration",          [R_, __, O_], "J..",  &uint16(0, 65533, Unit::Watt),                    "Rated power generation output", "定格発電出力"),
    row(0xC3, "heatCapacityOfStorageTank",               [O_, __, O_], "C..",  &uint16(0, 65533, Unit::Megajoule),               "Heating value of hot water storage tank", "貯湯槽熱量"),
    row(0xC4, "instantaneousElectricPowerOfGeneration",  [R_, __, O_], "C..",  &uint16(0, 65533, Unit::Watt),                    "Measured instantaneous power generation output", "瞬時発電電力計測値"),
    row(0xC5, "cumulativeElectricEnergyOfGeneration",    [R_, __, O_], "C..",  &ENERGY,                                          "Measured cumulative power generation output", "積算発電電力量計測値"),
    row(0xC6, "cumulativeEnergyGenerationOutputReset",   [__, O_, __], "P..",  &shared::RESET_00,                                "Cumulative energy generation output reset setting", "積算発電電力量リセット設定"),
    row(0xC7, "instantaneousGasConsumption",             [O_, __, O_], "C..",  &uint16(0, 65533, Unit::CubicMetrePerHour).e(-3), "Measured instantaneous gas consumption", "瞬時ガス消費量計測値"),
    row(0xC8, "cumulativeGasConsumption",                [O_, __, O_], "C..",  &uint32(0, 999_999_999, Unit::CubicMetre).e(-3),  "Measured cumulative gas consumption", "積算ガス消費量計測値"),
    row(0xC9, "cumulativeGasConsumptionReset",           [__, O_, __], "C..",  &shared::RESET_00,                                "Cumulative gas consumption reset setting", "積算ガス消費量リセット設定"),
    row(0xCA, "powerGenerationSetting",                  [O_, O_, O_], "D..",  &POWER_GENERATION_SETTING,                        "Power generation setting", "発電動作設定"),
    row(0xCB, "powerGenerationStatus",                   [R_, __, R_], "J..",  &POWER_GENERATION_STATUS,                         "Power generation status", "発電動作状態"),
    row(0xCC, "inHouseInstantaneousPowerConsumption",    [O_, __, O_], "C..",  &uint16(0, 65533, Unit::Watt),                    "Measured in-house instantaneous power consumption", "宅内瞬時消費電力計測値"),
    row(0xCD, "inHouseCumulativeEnergyConsumption",      [O_, __, O_], "P..",  &ENERGY,                                          "Measured in-house cumulative energy consumption", "宅内積算消費電力量計測値"),
    row(0xCE, "inHouseCumulativeEnergyConsumptionReset", [__, O_, __], "P..",  &shared::RESET_00,                                "In-house cumulative energy consumption reset", "宅内積算消費電力量リセット設定"),
    row(0xD0, "powerSystemInterconnectionStatus",        [R_, __, O_], "J..",  &shared::INTERCONNECTION,                         "System interconnected type", "系統連系状態"),
    row(0xD1, "requestedTimeOfGeneration",               [R_, R_, O_], "J..",  &REQUESTED_TIME_OF_GENERATION,                    "Power generation request time setting", "発電要請時刻設定"),
    row(0xD2, "powerGenerationMode",                     [R_, R_, O_], "J..",  &POWER_GENERATION_MODE,                           "Designated power generation status", "指定発電状態"),
    row(0xE1, "remainingHotWaterAmount",                 [O_, __, O_], "C..",  &uint16(0, 65533, Unit::Litre),                   "Measured remaining hot water amount", "残湯量計測値"),
    row(0xE2, "tankCapacity",                            [O_, __, O_], "C..",  &uint16(0, 65533, Unit::Litre),                   "Tank capacity", "タンク容量値"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                                 get set inf   in      data names
    row(0xC2, "ratedElectricPowerOfGeneration",          [O_, __, O_], "C..I", &uint16(0, 65533, Unit::Watt),                    "Rated power generation output", "定格発電量"),
    row(0xC6, "cumulativePowerGenerationOutputReset",    [__, O_, __], "C..N", &shared::RESET_00,                                "Cumulative power generation output reset setting", "積算発電電力量リセット設定"),
    row(0xCA, "powerGenerationSetting",                  [__, O_, O_], "C..C", &POWER_GENERATION_SETTING,                        "Power generation setting", "発電動作設定"),
    row(0xCB, "powerGenerationStatus",                   [O_, __, O_], "C..I", &POWER_GENERATION_STATUS,                         "Power generation status", "発電動作状態"),
    row(0xCD, "inHouseCumulativePowerConsumption",       [O_, __, O_], "C..N", &ENERGY,                                          "Measured in-house cumulative power consumption", "宅内積算消費電力量計測値"),
    row(0xCE, "inHouseCumulativePowerConsumptionReset",  [__, O_, __], "C..N", &shared::RESET_00,                                "In-house cumulative power consumption reset", "宅内積算消費電力量リセット設定"),
    row(0xD0, "powerSystemInterconnectionStatus",        [O_, __, O_], "B..I", &shared::INTERCONNECTION,                         "System interconnected type", "系統連系状態"),
];

static ENERGY: Data = uint32(0, 999_999_999, Unit::KilowattHour).e(-3);

static POWER_GENERATION_SETTING: Data = states(1, &[s(0x41, "generationOn"), s(0x42, "generationOff")]);

static POWER_GENERATION_STATUS: Data = states(
    1,
    &[s(0x41, "generating"), s(0x42, "stopped"), s(0x43, "starting"), s(0x44, "stopping"), s(0x45, "idling")],
);

static REQUESTED_TIME_OF_GENERATION: Data = Data::OneOf(&[
    Data::Object(&[field("startTime", &TIME, "Start time"), field("endTime", &TIME, "End time")]),
    states(4, &[ro(0xFFFFFFFF, "undefined")]),
]);

static POWER_GENERATION_MODE: Data = states(1, &[s(0x41, "maximumRating"), s(0x42, "loadFollowing")]);
