//! Hybrid water heater (0x02A6). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{TIME, field, row, s, states, uint16};

/// Hybrid water heater, class 0x02A6.
pub static HYBRID_WATER_HEATER: Class =
    Class::new(0x02A6, "hybridWaterHeater", "L..", ["Hybrid water heater", "ハイブリッド給湯機"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                         get set inf   in     data names
    row(0xB0, "automaticWaterHeating",                           [O_, O_, R_], "L..", &AUTOMATIC_WATER_HEATING,                  "Automatic water heating setting", "沸き上げ自動設定"),
    row(0xB2, "waterHeatingStatus",                              [O_, __, R_], "L..", &shared::TRUE_41,                          "Water heating status", "給湯沸き上げ中状態"),
    row(0xB3, "heaterStatus",                                    [O_, __, R_], "L..", &shared::TRUE_41,                          "Heater status", "暖房沸き上げ中状態"),
    row(0xB6, "hotWaterSupplyModeForAuxiliaryHeatSourceMachine", [O_, O_, O_], "L..", &shared::TRUE_41,                          "Hot water supply mode setting for auxiliary heat source machine", "補助熱源機給湯モード設定"),
    row(0xB7, "heaterModeForAuxiliaryHeatSourceMachine",         [O_, O_, O_], "L..", &shared::TRUE_41,                          "Heater mode setting for auxiliary heat source machine.", "補助熱源機暖房モード設定"),
    row(0xB8, "linkageModeForSolarPowerGeneration",              [R_, R_, R_], "L..", &LINKAGE_MODE_FOR_SOLAR_POWER_GENERATION,  "Linkage mode setting for solar power generation", "太陽光発電連携モード設定"),
    row(0xB9, "solarPowerGenerationsUtilizationTime",            [O_, O_, O_], "L..", &SOLAR_POWER_GENERATIONS_UTILIZATION_TIME, "Solar power generations utilization time", "太陽光発電利用時間"),
    row(0xC3, "hotWaterSupplyStatus",                            [O_, __, R_], "L..", &shared::TRUE_41,                          "Hot water supply status", "給湯中状態"),
    row(0xE1, "remainingWater",                                  [O_, __, O_], "L..", &uint16(0, 65533, Unit::Litre),            "Measured amount of hot water remaining in tank", "残湯量計測値"),
    row(0xE2, "tankCapacity",                                    [O_, __, O_], "L..", &uint16(0, 65533, Unit::Litre),            "Tank capacity", "タンク容量値"),
];

static AUTOMATIC_WATER_HEATING: Data =
    states(1, &[s(0x41, "auto"), s(0x43, "manualNotHeating"), s(0x42, "manualHeating")]);

static LINKAGE_MODE_FOR_SOLAR_POWER_GENERATION: Data = states(
    1,
    &[
        s(0x41, "modeOff"),
        s(0x42, "householdConsumption"),
        s(0x43, "prioritizingElectricitySales"),
        s(0x44, "economicEfficiency"),
    ],
);

static SOLAR_POWER_GENERATIONS_UTILIZATION_TIME: Data =
    Data::Object(&[field("startTime", &TIME, "Start time"), field("endTime", &TIME, "End time")]);
