//! Bidirectional high voltage smart electric energy meter (0x028F). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredC as RC};
use crate::class::table::{DATE_TIME, DATE_TIME_MINUTES, array, field, int32, n, raw, ro, row, states, uint8, uint32};

/// Bidirectional high voltage smart electric energy meter, class 0x028F.
pub static BIDIR_HV_SMART_ELECTRIC_ENERGY_METER: Class = Class::new(
    0x028F,
    "bidirHvSmartElectricEnergyMeter",
    "R..",
    ["Bidirectional high voltage smart electric energy meter", "双方向対応高圧スマート電力量メータ"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                                    get set inf   in     data names
    row(0x80, "operationStatus",                                            [R_, O_, R_], "R..", &shared::ON_30,                                             "Operation status", "動作状態"),
    row(0xC0, "routeBId",                                                   [RC, __, O_], "R..", &raw(16, 16),                                               "Route B Identification number", "Bルート識別番号"),
    row(0xC1, "monthlyMaximumElectricPowerDemand",                          [R_, __, O_], "R..", &MONTHLY_MAXIMUM_ELECTRIC_POWER_DEMAND,                     "Monthly maximum electric power demand (normal and reverse directions)", "月間最大需要電力(正方向、逆方向計測値)"),
    row(0xC2, "cumulativeMaximumElectricPowerDemand",                       [O_, __, O_], "R..", &CUMULATIVE_MAXIMUM_ELECTRIC_POWER_DEMAND,                  "Cumulative maximum electric power demand (normal and reverse directions)", "累積最大需要電力(正方向、逆方向計測値)"),
    row(0xC3, "averageElectricPowerDemand",                                 [R_, __, O_], "R..", &AVERAGE_ELECTRIC_POWER_DEMAND,                             "Electric power demand at fixed time (30-minute average electric power) (normal and reverse directions)", "定時需要電力(30分平均電力)(正方向、逆方向計測値)"),
    row(0xC4, "numberOfEffectiveDigitsOfElectricPowerDemand",               [R_, __, O_], "R..", &uint8(1, 8, Unit::Digit),                                  "Number of effective digits of electric power demand", "需要電力有効桁数"),
    row(0xC5, "unitOfElectricPowerDemand",                                  [R_, __, O_], "R..", &UNIT,                                                      "Unit of electric power demand", "需要電力単位"),
    row(0xC6, "normalDirectionElectricPoweDemandLog",                       [R_, __, O_], "R..", &NORMAL_DIRECTION_ELECTRIC_POWE_DEMAND_LOG,                 "Historical data of measured electric power demand (normal direction)", "需要電力計測値履歴(正方向計測値)").atomic(0xE1),
    row(0xC7, "unitOfCumulativeMaxElectricPowerDemand",                     [O_, __, O_], "R..", &UNIT,                                                      "Unit of cumulative maximum electric power demand", "累積最大需要電力単位"),
    row(0xC8, "reverseDirectionElectricPoweDemandLog",                      [R_, __, O_], "R..", &REVERSE_DIRECTION_ELECTRIC_POWE_DEMAND_LOG,                "Historical data of measured electric power demand (reverse direction)", "需要電力計測値履歴(逆方向計測値)").atomic(0xE1),
    row(0xCA, "cumulativeReactiveElectricEnergy",                           [O_, __, O_], "R..", &REACTIVE_ENERGY_AT,                                        "Measurement data of cumulative amount of reactive electric energy (lag) for power factor (normal and reverse directions)", "力測積算無効電力量(遅れ)計測値(正方向、逆方向計測値)"),
    row(0xCB, "cumulativeReactiveElectricEnergyAtEvery30Min",               [O_, __, O_], "R..", &REACTIVE_ENERGY_AT,                                        "Measurement data of cumulative amount of reactive electric energy (lag) at fixed time for power factor (normal and reverse directions)", "定時力測積算無効電力量(遅れ)計測値(正方向、逆方向計測値)"),
    row(0xCC, "numberOfEffectiveDigitsForCumulativeReactiveElectricEnergy", [O_, __, O_], "R..", &uint8(1, 8, Unit::Digit),                                  "Number of effective digits for cumulative amount of reactive electric energy", "積算無効電力量有効桁数"),
    row(0xCD, "unitForCumulativeReactiveElectricEnergy",                    [O_, __, O_], "R..", &UNIT,                                                      "Unit for cumulative amounts of reactive electric energy", "積算無効電力量単位"),
    row(0xCE, "normalDirectionCumulativeReactiveElectricEnergyLog",         [O_, __, O_], "R..", &NORMAL_DIRECTION_CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LOG,  "Historical data of measurement data of cumulative amount of reactive electric energy (lag) for power factor (normal direction)", "力測積算無効電力量(遅れ)計測値履歴(正方向計測値)").atomic(0xE1),
    row(0xCF, "reverseDirectionCumulativeReactiveElectricEnergyLog",        [O_, __, O_], "R..", &REVERSE_DIRECTION_CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LOG, "Historical data of measurement data of cumulative amount of reactive electric energy (lag) for power factor (reverse direction)", "力測積算無効電力量(遅れ)計測値履歴(逆方向計測値)").atomic(0xE1),
    row(0xD0, "cumulativeActiveElectricEnergyAtEvery1Min",                  [R_, __, O_], "R..", &ACTIVE_ENERGY_AT,                                          "One-minute measured cumulative amount of active electric energy (normal and reverse directions)", "1分積算有効電力量計測値(正方向、逆方向計測値)"),
    row(0xD1, "cumulativeReactiveElectricEnergyAtEvery1Min",                [O_, __, O_], "R..", &REACTIVE_ENERGY_AT,                                        "One-minute measurement data of cumulative amount of reactive electric energy (lag) for power factor (normal and reverse directions)", "1分力測積算無効電力量(遅れ)計測値(正方向、逆方向計測値)"),
    row(0xD3, "coefficient",                                                [R_, __, O_], "R..", &uint32(0, 999_999, Unit::None),                            "Coefficient", "係数"),
    row(0xD4, "multiplyingFactorForCoefficient",                            [R_, __, O_], "R..", &MULTIPLYING_FACTOR_FOR_COEFFICIENT,                        "Multiplying factor for coefficient", "係数の倍率"),
    row(0xD5, "cumulativeReactiveElectricEnergyLag",                        [O_, __, O_], "R..", &CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LAG,                   "Present values of measured cumulative amount of reactive electric energy (lag) (normal and reverse directions)", "積算無効電力量計測値(遅れ)現在値(正方向、逆方向計測値)"),
    row(0xD6, "cumulativeReactiveElectricEnergyLead",                       [O_, __, O_], "R..", &CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LEAD,                  "Present values of measured cumulative amount of reactive electric energy (lead) (normal and reverse directions)", "積算無効電力量計測値(進み)現在値(正方向、逆方向計測値)"),
    row(0xE0, "fixedDate",                                                  [R_, __, O_], "R..", &uint8(1, 31, Unit::None),                                  "Fixed date", "確定日"),
    row(0xE1, "dayForTheHistoricalDataOfCumulativeElectricEnergy",          [R_, R_, O_], "R..", &shared::HISTORY_DAY,                                       "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved", "積算履歴収集日"),
    row(0xE2, "cumulativeActiveElectricEnergy",                             [R_, __, O_], "R..", &ACTIVE_ENERGY_AT,                                          "Measured cumulative amount of active electric energy (normal and reverse directions)", "積算有効電力量計測値(正方向、逆方向計測値)"),
    row(0xE3, "cumulativeActiveElectricEnergyAtEvery30Min",                 [R_, __, O_], "R..", &ACTIVE_ENERGY_AT,                                          "Cumulative amounts of active electric energy at fixed time (normal and reverse directions)", "定時積算有効電力量計測値(正方向、逆方向計測値)"),
    row(0xE4, "cumulativeActiveElectricEnergyForPowerFactor",               [O_, __, O_], "R..", &ACTIVE_ENERGY_AT,                                          "Measurement data of cumulative amount of active electric energy for power factor (normal and reverse directions)", "力測積算有効電力量計測値(正方向、逆方向計測値)"),
    row(0xE5, "numberOfEffectiveDigitsForCumulativeActiveElectricEnergy",   [R_, __, O_], "R..", &uint8(1, 8, Unit::Digit),                                  "Number of effective digits for cumulative amount of active electric energy", "積算有効電力量有効桁数"),
    row(0xE6, "unitForCumulativeActiveElectricEnergy",                      [R_, __, O_], "R..", &UNIT,                                                      "Unit for cumulative amounts of active electric energy", "積算有効電力量単位"),
    row(0xE7, "normalDirectionCumulativeActiveElectricEnergyLog",           [R_, __, O_], "R..", &NORMAL_DIRECTION_CUMULATIVE_ACTIVE_ELECTRIC_ENERGY_LOG,    "Historical data of measured cumulative amount of active electric energy (normal direction)", "積算有効電力量計測値履歴(正方向計測値)").atomic(0xE1),
    row(0xE8, "reverseDirectionCumulativeActiveElectricEnergyLog",          [R_, __, O_], "R..", &REVERSE_DIRECTION_CUMULATIVE_ACTIVE_ELECTRIC_ENERGY_LOG,   "Historical data of measured cumulative amount of active electric energy (reverse direction)", "積算有効電力量計測値履歴(逆方向計測値)").atomic(0xE1),
    row(0xEA, "instantaneousElectricPower",                                 [R_, __, O_], "R..", &shared::POWER_OR_NO_DATA,                                  "Measured instantaneous electric energy", "瞬時電力計測値"),
    row(0xEB, "instantaneousCurrents2",                                     [R_, __, O_], "R..", &INSTANTANEOUS_CURRENTS2,                                   "Measured instantaneous currents 2", "瞬時電流計測値2"),
    row(0xED, "cumulativeActiveElectricEnergyLog2",                         [R_, __, O_], "R..", &CUMULATIVE_ACTIVE_ELECTRIC_ENERGY_LOG2,                    "Historical data of measured cumulative amount of active electric energy 2 (normal and reverse directions)", "積算有効電力量計測値履歴2(正方向、逆方向計測値)").atomic(0xEF),
    row(0xEE, "cumulativeReactiveElectricEnergyLog2",                       [O_, __, O_], "R..", &CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LOG2,                  "Historical data of measurement data of cumulative amount of reactive electric energy (lag) for power factor 2 (normal and reverse directions)", "力測積算無効電力量(遅れ)計測値履歴2(正方向、逆方向計測値)").atomic(0xEF),
    row(0xEF, "day2",                                                       [R_, R_, O_], "R..", &DAY2,                                                      "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved 2", "積算履歴収集日2"),
];

static NORMAL_DIRECTION: Data = Data::OneOf(&[
    uint32(0, 99_999_999, Unit::Kilowatt).by(&[0xC5, 0xD3, 0xD4]),
    states(4, &[ro(0xFFFFFFFE, "noData")]),
]);

static MONTHLY_MAXIMUM_ELECTRIC_POWER_DEMAND: Data = Data::Object(&[
    field("normalDirection", &NORMAL_DIRECTION, "Normal direction"),
    field("reverseDirection", &NORMAL_DIRECTION, "Reverse direction"),
]);

static CUMULATIVE_MAXIMUM_ELECTRIC_POWER_DEMAND_NORMAL_DIRECTION: Data = Data::OneOf(&[
    uint32(0, 99_999_999, Unit::Kilowatt).by(&[0xC7, 0xD3, 0xD4]).no_codes(),
    states(4, &[ro(0xFFFFFFFE, "noData")]),
]);

static CUMULATIVE_MAXIMUM_ELECTRIC_POWER_DEMAND: Data = Data::Object(&[
    field("normalDirection", &CUMULATIVE_MAXIMUM_ELECTRIC_POWER_DEMAND_NORMAL_DIRECTION, "Normal direction"),
    field("reverseDirection", &CUMULATIVE_MAXIMUM_ELECTRIC_POWER_DEMAND_NORMAL_DIRECTION, "Reverse direction"),
]);

static AVERAGE_ELECTRIC_POWER_DEMAND: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field("normalDirectionElectricPower", &NORMAL_DIRECTION, "Electric Power demand (normal direction)"),
    field("reverseDirectionElectricPower", &NORMAL_DIRECTION, "Electric Power demand (reverse direction)"),
]);

static UNIT: Data = Data::Numeric(&[
    n(0x00, 1, 0),
    n(0x01, 1, -1),
    n(0x02, 1, -2),
    n(0x03, 1, -3),
    n(0x04, 1, -4),
    n(0x0A, 1, 1),
    n(0x0B, 1, 2),
    n(0x0C, 1, 3),
    n(0x0D, 1, 4),
    n(0x0E, 1, 5),
]);

static NORMAL_DIRECTION_ELECTRIC_POWE_DEMAND_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field(
        "normalDirectionElectricPower",
        &array(48, 48, 4, &NORMAL_DIRECTION),
        "Electric power demand (normal direction)",
    ),
]);

static REVERSE_DIRECTION_ELECTRIC_POWE_DEMAND_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field(
        "reverseDirectionElectricPower",
        &array(48, 48, 4, &NORMAL_DIRECTION),
        "Electric power demand (reverse direction)",
    ),
]);

static REACTIVE_ENERGY_AT: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field(
        "normalDirectionCumulativeReactiveElectricEnergy",
        &shared::REACTIVE_ENERGY,
        "Cumulative amount of reactive electric energy (lag) (normal direction)",
    ),
    field(
        "reverseDirectionCumulativeReactiveElectricEnergy",
        &shared::REACTIVE_ENERGY,
        "Cumulative amount of reactive electric energy (lag) (reverse direction)",
    ),
]);

static NORMAL_DIRECTION_CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field(
        "normalDirectionCumulativeReactiveElectricEnergy",
        &array(48, 48, 4, &shared::REACTIVE_ENERGY),
        "Cumulative amount of reactive electric energy (lag) (normal direction)",
    ),
]);

static REVERSE_DIRECTION_CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field(
        "reverseDirectionCumulativeReactiveElectricEnergy",
        &array(48, 48, 4, &shared::REACTIVE_ENERGY),
        "Cumulative amount of reactive electric energy (lag) (reverse direction)",
    ),
]);

static ACTIVE_ENERGY_AT: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field(
        "normalDirectionCumulativeActiveElectricEnergy",
        &shared::ACTIVE_ENERGY,
        "Cumulative amount of active electric energy (normal direction)",
    ),
    field(
        "reverseDirectionCumulativeActiveElectricEnergy",
        &shared::ACTIVE_ENERGY,
        "Cumulative amount of active electric energy (reverse direction)",
    ),
]);

static MULTIPLYING_FACTOR_FOR_COEFFICIENT: Data =
    Data::Numeric(&[n(0x00, 1, 0), n(0x01, 1, -1), n(0x02, 1, -2), n(0x03, 1, -3)]);

static CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LAG: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field(
        "normalDirectionCumulativeReactiveElectricEnergyLag",
        &shared::REACTIVE_ENERGY,
        "Cumulative amount of reactive electric energy (lag) (normal direction)",
    ),
    field(
        "reverseDirectionCumulativeReactiveElectricEnergyLag",
        &shared::REACTIVE_ENERGY,
        "Cumulative amount of reactive electric energy (lag) (reverse direction)",
    ),
]);

static CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LEAD: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field(
        "normalDirectionCumulativeReactiveElectricEnergyLead",
        &shared::REACTIVE_ENERGY,
        "Cumulative amount of reactive electric energy (lead) (normal direction)",
    ),
    field(
        "reverseDirectionCumulativeReactiveElectricEnergyLead",
        &shared::REACTIVE_ENERGY,
        "Cumulative amount of reactive electric energy (lead) (reverse direction)",
    ),
]);

static NORMAL_DIRECTION_CUMULATIVE_ACTIVE_ELECTRIC_ENERGY_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field(
        "normalDirectionCumulativeActiveElectricEnergy",
        &array(48, 48, 4, &shared::ACTIVE_ENERGY),
        "Cumulative amount of active electric energy (normal direction)",
    ),
]);

static REVERSE_DIRECTION_CUMULATIVE_ACTIVE_ELECTRIC_ENERGY_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field(
        "reverseDirectionCumulativeActiveElectricEnergy",
        &array(48, 48, 4, &shared::ACTIVE_ENERGY),
        "Cumulative amount of active electric energy (reverse direction)",
    ),
]);

static R_PHASE: Data =
    Data::OneOf(&[int32(-2_147_483_647, 2_147_483_645, Unit::Ampere).e(-1), states(4, &[ro(0x7FFFFFFE, "noData")])]);

static INSTANTANEOUS_CURRENTS2: Data =
    Data::Object(&[field("rPhase", &R_PHASE, "R phase"), field("tPhase", &R_PHASE, "T phase")]);

static CUMULATIVE_ACTIVE_ELECTRIC_ENERGY_ITEM: Data = Data::Object(&[
    field("normalDirectionCumulativeElectricEnergy", &shared::ACTIVE_ENERGY, "Normal direction"),
    field("reverseDirectionCumulativeElectricEnergy", &shared::ACTIVE_ENERGY, "Reverse direction"),
]);

static CUMULATIVE_ACTIVE_ELECTRIC_ENERGY_LOG2: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME_MINUTES, "Date and time for which the historical data is to be retrieved"),
    field("numberOfCollectionSegments", &uint8(1, 10, Unit::None), "Number of collection segments"),
    field(
        "cumulativeActiveElectricEnergy",
        &array(0, 10, 8, &CUMULATIVE_ACTIVE_ELECTRIC_ENERGY_ITEM),
        "Measured cumulative amount of active electric energy",
    ),
]);

static CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_ITEM: Data = Data::Object(&[
    field("normalDirectionCumulativeElectricEnergy", &shared::REACTIVE_ENERGY, "Normal direction"),
    field("reverseDirectionCumulativeElectricEnergy", &shared::REACTIVE_ENERGY, "Reverse direction"),
]);

static CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_LOG2: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME_MINUTES, "Date and time for which the historical data is to be retrieved"),
    field("numberOfCollectionSegments", &uint8(1, 10, Unit::None), "Number of collection segments"),
    field(
        "cumulativeReactiveElectricEnergy",
        &array(0, 10, 8, &CUMULATIVE_REACTIVE_ELECTRIC_ENERGY_ITEM),
        "Measured cumulative amounts of reactive electric energy (lag) for power factor",
    ),
]);

static DAY2: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME_MINUTES, "Date and time for which the historical data is to be retrieved"),
    field("numberOfCollectionSegments", &uint8(1, 10, Unit::None), "Number of collection segments"),
]);
