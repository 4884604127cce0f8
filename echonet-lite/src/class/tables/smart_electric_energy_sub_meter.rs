//! Smart electric energy meter for sub-metering (0x028D). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{DATE_TIME, array, field, int16, n, ro, row, states, uint8, uint16, uint32};

/// Smart electric energy meter for sub-metering, class 0x028D.
pub static SMART_ELECTRIC_ENERGY_SUB_METER: Class = Class::new(
    0x028D,
    "smartElectricEnergySubMeter",
    "N..",
    ["Smart electric energy meter for sub-metering", "スマート電力量サブメータ"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                              get set inf   in     data names
    row(0xD3, "coefficientForElectricEnergy",                         [O_, __, O_], "N..", &uint32(1, 999_999, Unit::None),      "Electric energy coefficient", "電力係数"),
    row(0xD4, "unitForCumulativeElectricEnergy",                      [R_, __, O_], "N..", &UNIT_FOR_CUMULATIVE_ELECTRIC_ENERGY, "Unit for cumulative amount of electric energy (normal and reverse directions)", "積算電力量単位（正方向、逆方向計測値）"),
    row(0xD7, "numberOfEffectiveDigitsCumulativeElectricEnergy",      [R_, __, O_], "N..", &uint8(1, 8, Unit::Digit),            "Number of effective digits for cumulative amounts of electric energy", "積算電力量有効桁数"),
    row(0xD8, "coefficientForElectricCurrent",                        [O_, __, O_], "N..", &uint16(1, 999, Unit::None),          "Electric current coefficient", "電流係数"),
    row(0xD9, "coefficientForVoltage",                                [O_, __, O_], "N..", &uint16(1, 999, Unit::None),          "Voltage coefficient", "電圧係数"),
    row(0xE0, "dayForTheHistoricalDataOfCumulativeElectricEnergy",    [R_, R_, O_], "N..", &shared::HISTORY_DAY,                 "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved", "積算履歴収集日"),
    row(0xE1, "normalDirectionCumulativeElectricEnergy",              [R_, __, O_], "N..", &ENERGY,                              "Measured cumulative amount of electric energy(normal direction)", "積算電力量計測値（正方向計測値）"),
    row(0xE2, "normalDirectionCumulativeElectricEnergyLog",           [R_, __, O_], "N..", &ENERGY_LOG,                          "Historical data of measured cumulative amounts of electric energy (normal direction)", "積算電力量計測値履歴（正方向計測値）").atomic(0xE0),
    row(0xE3, "reverseDirectionCumulativeElectricEnergy",             [R_, __, O_], "N..", &ENERGY,                              "Measured cumulative amount of electric energy (reverse direction)", "積算電力量計測値（逆方向計測値）"),
    row(0xE4, "reverseDirectionCumulativeElectricEnergyLog",          [R_, __, O_], "N..", &ENERGY_LOG,                          "Historical data of measured cumulative amounts of electric energy (reverse direction)", "積算電力量計測値履歴（逆方向計測値）").atomic(0xE0),
    row(0xE7, "instantaneousElectricPower",                           [R_, __, O_], "N..", &shared::POWER_OR_NO_DATA,            "Measured instantaneous electric power", "瞬時電力計測値"),
    row(0xE8, "instantaneousCurrent",                                 [R_, __, O_], "N..", &INSTANTANEOUS_CURRENT,               "Measured instantaneous currents", "瞬時電流計測値"),
    row(0xE9, "instantaneousVoltage",                                 [O_, __, O_], "N..", &INSTANTANEOUS_VOLTAGE,               "Measured instantaneous voltages", "瞬時電圧計測値"),
    row(0xEA, "normalDirectionCumulativeElectricEnergyAtEvery30Min",  [R_, __, O_], "N..", &ENERGY_AT,                           "Cumulative amounts of electric energy measured at fixed time(normal direction)", "定時積算電力量計測値（正方向計測値）"),
    row(0xEB, "reverseDirectionCumulativeElectricEnergyAtEvery30Min", [R_, __, O_], "N..", &ENERGY_AT,                           "Cumulative amounts of electric energy measured at fixed time(reverse direction)", "定時積算電力量計測値（逆方向計測値）"),
];

static UNIT_FOR_CUMULATIVE_ELECTRIC_ENERGY: Data = Data::Numeric(&[
    n(0x00, 1, 0),
    n(0x01, 1, -1),
    n(0x02, 1, -2),
    n(0x03, 1, -3),
    n(0x04, 1, -4),
    n(0x0A, 1, 1),
    n(0x0B, 1, 2),
]);

static ENERGY: Data =
    Data::OneOf(&[uint32(0, 99_999_999, Unit::KilowattHour).by(&[0xD3, 0xD4]), states(4, &[ro(0xFFFFFFFE, "noData")])]);

static ENERGY_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field("electricEnergy", &array(48, 48, 4, &ENERGY), "Measured cumulative amounts of electric energy"),
]);

static R_PHASE: Data =
    Data::OneOf(&[int16(-32767, 32765, Unit::Ampere).e(-1).by(&[0xD8]), states(2, &[ro(0x7FFE, "noData")])]);

static INSTANTANEOUS_CURRENT: Data =
    Data::Object(&[field("rPhase", &R_PHASE, "R Phase"), field("tPhase", &R_PHASE, "T Phase")]);

static R_S: Data = Data::OneOf(&[uint16(0, 65533, Unit::Volt).e(-1).by(&[0xD9]), states(2, &[ro(0xFFFE, "noData")])]);

static INSTANTANEOUS_VOLTAGE: Data =
    Data::Object(&[field("rS", &R_S, "Between R and S(N)"), field("sT", &R_S, "Between S(N) and T")]);

static ENERGY_AT: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field("electricEnergy", &ENERGY, "Cumulative amounts of electric energy measured"),
]);
