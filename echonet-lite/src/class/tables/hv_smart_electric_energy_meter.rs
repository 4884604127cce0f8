//! High-voltage smart electric energy meter (0x028A). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{DATE_TIME, array, field, n, ro, row, states, uint8, uint32};

/// High-voltage smart electric energy meter, class 0x028A.
pub static HV_SMART_ELECTRIC_ENERGY_METER: Class = Class::new(
    0x028A,
    "hvSmartElectricEnergyMeter",
    "F..",
    ["High-voltage smart electric energy meter", "高圧スマート電力量メータ"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                                                              get set inf   in     data names
    row(0xC1, "monthlyMaximumElectricPowerDemand",                                                    [R_, __, O_], "F..", &MONTHLY_MAXIMUM_ELECTRIC_POWER_DEMAND,            "Monthly maximum electric power demand", "月間最大需要電力"),
    row(0xC2, "cumulativeMaximumElectricPowerDemand",                                                 [O_, __, O_], "F..", &uint32(0, 99_999_999, Unit::Kilowatt).no_codes(), "Cumulative maximum electric power demand", "累積最大需要電力"),
    row(0xC3, "averageElectricPowerDemand",                                                           [R_, __, O_], "F..", &AVERAGE_ELECTRIC_POWER_DEMAND,                    "Electric power demand at fixed time (30-minute average electric power)", "定時需要電力 (30分平均電力)"),
    row(0xC4, "numberOfEffectiveDigitsOfElectricPowerDemand",                                         [R_, __, O_], "F..", &uint8(1, 8, Unit::Digit),                         "Number of effective digits of electric power demand", "需要電力有効桁数"),
    row(0xC5, "unitOfElectricPowerDemand",                                                            [R_, __, O_], "F..", &shared::METER_UNIT,                               "Unit of electric power demand", "需要電力単位"),
    row(0xC6, "electricPowerDemandLog",                                                               [R_, __, O_], "F..", &ELECTRIC_POWER_DEMAND_LOG,                        "Historical data of measured electric power demand", "需要電力計測値履歴").atomic(0xE1),
    row(0xC7, "unitOfCumulativeMaxElectricPowerDemand",                                               [O_, __, O_], "F..", &shared::METER_UNIT,                               "Unit of cumulative maximum electric power demand", "累積最大需要電力単位"),
    row(0xCA, "cumulativeReactiveElectricEnergy",                                                     [O_, __, O_], "F..", &REACTIVE_ENERGY_AT,                               "Measurement data of reactive electric power consumption (lag) for power factor measurement", "力測積算無効電力量 (遅れ)計測値"),
    row(0xCB, "cumulativeReactiveElectricEnergyAtEvery30Min",                                         [O_, __, O_], "F..", &REACTIVE_ENERGY_AT,                               "Measurement data of cumulative amount of reactive electric power consumption (lag) at fixed time for power factor measurement", "定時力測積算無効電力量 (遅れ)計測値"),
    row(0xCC, "numberOfEffectiveDigitsForCumulativeReactiveElectricPowerConsumptionLagOfPowerFactor", [O_, __, O_], "F..", &uint8(1, 8, Unit::Digit),                         "Number of effective digits for measurement data of cumulative amount of reactive electric power consumption (lag) for power factor measurement", "力測積算無効電力量 (遅れ)有効桁数"),
    row(0xCD, "unitOfCumulativeReactiveElectricPowerConsumptionLag",                                  [O_, __, O_], "F..", &shared::METER_UNIT,                               "Unit of measurement data of cumulative amount of reactive electric power consumption (lag)", "力測積算無効電力量 (遅れ)単位"),
    row(0xCE, "cumulativeReactiveElectricEnergyLog",                                                  [O_, __, O_], "F..", &CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LOG,          "Historical data of measurement data of cumulative amount of reactive electric power consumption (lag) for power factor measurement", "力測積算無効電力量 (遅れ)計測値履歴").atomic(0xE1),
    row(0xD3, "coefficient",                                                                          [R_, __, O_], "F..", &uint32(0, 999_999, Unit::None),                   "Coefficient", "係数"),
    row(0xD4, "multiplyingFactorForCoefficient",                                                      [R_, __, O_], "F..", &MULTIPLYING_FACTOR_FOR_COEFFICIENT,               "Multiplying factor for coefficient", "係数の倍率"),
    row(0xE0, "fixedDate",                                                                            [R_, __, O_], "F..", &uint8(1, 31, Unit::None),                         "Fixed date", "確定日"),
    row(0xE1, "dayForTheHistoricalDataOfCumulativeElectricEnergy",                                    [R_, R_, O_], "F..", &shared::HISTORY_DAY,                              "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved", "積算履歴収集日"),
    row(0xE2, "cumulativeActiveElectricEnergy",                                                       [R_, __, O_], "F..", &ACTIVE_ENERGY_AT,                                 "Measured cumulative amounts of active electric energy", "積算有効電力量計測値"),
    row(0xE3, "cumulativeActiveElectricEnergyAtEvery30Min",                                           [R_, __, O_], "F..", &ACTIVE_ENERGY_AT,                                 "Cumulative amounts of active electric energy at fixed time", "定時積算有効電力量計測値"),
    row(0xE4, "cumulativeActiveElectricEnergyForPowerFactor",                                         [O_, __, O_], "F..", &ACTIVE_ENERGY_AT,                                 "Measurement data of cumulative amounts of active electric energy for power factor measurement", "力測積算有効電力量計測値"),
    row(0xE5, "numberOfEffectiveDigitsForCumulativeActiveElectricEnergy",                             [R_, __, O_], "F..", &uint8(1, 8, Unit::Digit),                         "Number of effective digits for cumulative amount of active electric energy", "積算有効電力量有効桁数"),
    row(0xE6, "unitOfCumulativeEffectiveElectricEnergy",                                              [R_, __, O_], "F..", &shared::METER_UNIT,                               "Unit of cumulative amounts of effective electric energy", "積算有効電力量単位"),
    row(0xE7, "activeElectricEnergyLog",                                                              [R_, __, O_], "F..", &ACTIVE_ELECTRIC_ENERGY_LOG,                       "Historical data of measured cumulative amount of active electric energy", "積算有効電力量計測値履歴").atomic(0xE1),
];

static MONTHLY_MAXIMUM_ELECTRIC_POWER_DEMAND: Data =
    Data::OneOf(&[uint32(0, 99_999_999, Unit::Kilowatt), states(4, &[ro(0xFFFFFFFE, "noData")])]);

static AVERAGE_ELECTRIC_POWER_DEMAND: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field("electricPower", &MONTHLY_MAXIMUM_ELECTRIC_POWER_DEMAND, "Electric Power demand"),
]);

static ELECTRIC_POWER_DEMAND_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field("electricPower", &array(48, 48, 4, &MONTHLY_MAXIMUM_ELECTRIC_POWER_DEMAND), "Electric power demand"),
]);

static REACTIVE_ENERGY_AT: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field(
        "reactiveElectricEnergy",
        &shared::REACTIVE_ENERGY,
        "Cumulative amount of reactive electric power consumption (lag)",
    ),
]);

static CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field(
        "reactiveElectricEnergy",
        &array(48, 48, 4, &shared::REACTIVE_ENERGY),
        "Measurement data of cumulative amount of reactive electric power consumption (lag)",
    ),
]);

static MULTIPLYING_FACTOR_FOR_COEFFICIENT: Data =
    Data::Numeric(&[n(0x00, 1, 0), n(0x01, 1, -1), n(0x02, 1, -2), n(0x03, 1, -3)]);

static ACTIVE_ENERGY_AT: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field("activeElectricEnergy", &shared::ACTIVE_ENERGY, "Cumulative amount of active electric energy"),
]);

static ACTIVE_ELECTRIC_ENERGY_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field(
        "activeElectricEnergy",
        &array(48, 48, 4, &shared::ACTIVE_ENERGY),
        "Measured cumulative amount of active electric energy",
    ),
]);
