//! Low-voltage smart electric energy meter (0x0288). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredC as RC};
use crate::class::table::{DATE_TIME, DATE_TIME_MINUTES, array, field, raw, ro, row, states, uint8, uint32};

/// Low-voltage smart electric energy meter, class 0x0288.
pub static LV_SMART_ELECTRIC_ENERGY_METER: Class = Class::new(
    0x0288,
    "lvSmartElectricEnergyMeter",
    "F..",
    ["Low-voltage smart electric energy meter", "低圧スマート電力量メータ"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                              get set inf   in     data names
    row(0xC0, "routeBId",                                             [RC, __, O_], "R..", &raw(16, 16),                                                "Route B Identification number", "Bルート識別番号"),
    row(0xD0, "cumulativeElectricEnergyAtEveryMinute",                [R_, __, O_], "R..", &CUMULATIVE_ELECTRIC_ENERGY_AT_EVERY_MINUTE,                 "One-minute measured cumulative amounts of electric energy measured (normal and reverse directions)", "1分積算電力量計測値（正方向、逆方向計測値）"),
    row(0xD3, "coefficient",                                          [O_, __, O_], "F..", &uint32(0, 999_999, Unit::None),                             "Coefficient", "係数"),
    row(0xD7, "numberOfEffectiveDigitsCumulativeElectricEnergy",      [R_, __, O_], "F..", &uint8(1, 8, Unit::Digit),                                   "Number of effective digits for cumulative amounts of electric energy", "積算電力量有効桁数"),
    row(0xE0, "normalDirectionCumulativeElectricEnergy",              [R_, __, O_], "F..", &ENERGY,                                                     "Measured cumulative amount of electric energy (normal direction)", "積算電力量計測値 (正方向計測値)"),
    row(0xE1, "unitForCumulativeElectricEnergy",                      [R_, __, O_], "F..", &shared::METER_UNIT,                                         "Unit for cumulative amounts of electric energy (normal and reverse directions)", "積算電力量単位 (正方向、逆方向計測値)"),
    row(0xE2, "normalDirectionCumulativeElectricEnergyLog1",          [R_, __, O_], "F..", &ENERGY_LOG,                                                 "Historical data of measured cumulative amounts of electric energy 1 (normal direction)", "積算電力量計測値履歴1 (正方向計測値)").atomic(0xE5),
    row(0xE3, "reverseDirectionCumulativeElectricEnergy",             [RC, __, O_], "F..", &ENERGY,                                                     "Measured cumulative amount of electric energy (reverse direction)", "積算電力量計測値 (逆方向計測値)"),
    row(0xE4, "reverseDirectionCumulativeElectricEnergyLog1",         [RC, __, O_], "F..", &ENERGY_LOG,                                                 "Historical data of measured cumulative amounts of electric energy 1 (reverse direction)", "積算電力量計測値履歴1 (逆方向計測値)").atomic(0xE5),
    row(0xE5, "dayForTheHistoricalDataOfCumulativeElectricEnergy1",   [R_, R_, O_], "F..", &shared::HISTORY_DAY,                                        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved 1", "積算履歴収集日1"),
    row(0xE7, "instantaneousElectricPower",                           [R_, __, O_], "F..", &shared::POWER_OR_NO_DATA,                                   "Measured instantaneous electric power", "瞬時電力計測値"),
    row(0xE8, "instantaneousCurrent",                                 [R_, __, O_], "F..", &shared::CURRENTS,                                           "Measured instantaneous currents", "瞬時電流計測値"),
    row(0xEA, "normalDirectionCumulativeElectricEnergyAtEvery30Min",  [R_, __, O_], "F..", &ENERGY_AT,                                                  "Cumulative amounts of electric energy measured at fixed time (normal direction)", "定時積算電力量計測値 (正方向計測値)"),
    row(0xEB, "reverseDirectionCumulativeElectricEnergyAtEvery30Min", [RC, __, O_], "F..", &ENERGY_AT,                                                  "Cumulative amounts of electric energy measured at fixed time (reverse direction)", "定時積算電力量計測値 (逆方向計測値)"),
    row(0xEC, "cumulativeElectricEnergyLog2",                         [O_, __, O_], "F..", &CUMULATIVE_ELECTRIC_ENERGY_LOG2,                            "Historical data of measured cumulative amounts of electric energy 2 (normal and reverse directions)", "積算電力量計測値履歴2 (正方向、逆方向計測値)").atomic(0xED),
    row(0xED, "dayForTheHistoricalDataOfCumulativeElectricEnergy2",   [O_, O_, O_], "F..", &DAY_FOR_THE_HISTORICAL_DATA_OF_CUMULATIVE_ELECTRIC_ENERGY2, "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved 2", "積算履歴収集日2"),
    row(0xEE, "cumulativeElectricEnergyLog3",                         [R_, __, O_], "R..", &CUMULATIVE_ELECTRIC_ENERGY_LOG3,                            "Historical data of measured cumulative amounts of electric energy 3 (normal and reverse directions)", "積算電力量計測値履歴3（正方向、逆方向計測値）").atomic(0xEF),
    row(0xEF, "dayForTheHistoricalDataOfCumulativeElectricEnergy3",   [R_, R_, O_], "R..", &DAY_FOR_THE_HISTORICAL_DATA_OF_CUMULATIVE_ELECTRIC_ENERGY3, "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved 3", "積算履歴収集日3"),
];

static ENERGY: Data = Data::OneOf(&[
    uint32(0, 99_999_999, Unit::KilowattHour).by(&[0xD3, 0xE1]).no_codes(),
    states(4, &[ro(0xFFFFFFFE, "noData")]),
]);

static CUMULATIVE_ELECTRIC_ENERGY_AT_EVERY_MINUTE: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field(
        "normalDirectionElectricEnergy",
        &ENERGY,
        "Cumulative amounts of electric energy measured (normal direction)",
    ),
    field(
        "reverseDirectionElectricEnergy",
        &ENERGY,
        "Cumulative amounts of electric energy measured (reverse direction)",
    ),
]);

static ENERGY_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field("electricEnergy", &array(48, 48, 4, &ENERGY), "Measured cumulative amounts of electric energy"),
]);

static ENERGY_AT: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field("electricEnergy", &ENERGY, "Cumulative amounts of electric energy measured"),
]);

static ELECTRIC_ENERGY_ITEM: Data = Data::Object(&[
    field("normalDirectionElectricEnergy", &ENERGY, "Normal direction"),
    field("reverseDirectionElectricEnergy", &ENERGY, "Reverse direction"),
]);

static CUMULATIVE_ELECTRIC_ENERGY_LOG2: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME_MINUTES, "Date and time for which the historical data is to be retrieved"),
    field("numberOfCollectionSegments", &uint8(1, 12, Unit::None), "Number of collection segments"),
    field("electricEnergy", &array(0, 12, 8, &ELECTRIC_ENERGY_ITEM), "Measured cumulative amounts of electric energy"),
]);

static DAY_FOR_THE_HISTORICAL_DATA_OF_CUMULATIVE_ELECTRIC_ENERGY2: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME_MINUTES, "Date and time for which the historical data is to be retrieved"),
    field("numberOfCollectionSegments", &uint8(1, 12, Unit::None), "Number of collection segments"),
]);

static CUMULATIVE_ELECTRIC_ENERGY_LOG3: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME_MINUTES, "Date and time for which the historical data is to be retrieved"),
    field("numberOfCollectionSegments", &uint8(1, 10, Unit::None), "Number of collection segments"),
    field("electricEnergy", &array(0, 10, 8, &ELECTRIC_ENERGY_ITEM), "Measured cumulative amounts of electric energy"),
]);

static DAY_FOR_THE_HISTORICAL_DATA_OF_CUMULATIVE_ELECTRIC_ENERGY3: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME_MINUTES, "Date and time for which the historical data is to be retrieved"),
    field("numberOfCollectionSegments", &uint8(1, 10, Unit::None), "Number of collection segments"),
]);
