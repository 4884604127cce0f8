//! Distributed generator's electric energy meter (0x028E). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredC as RC};
use crate::class::table::{DATE_TIME, TIME_HMS, array, field, raw, ro, row, s, states, uint16, uint32};

/// Distributed generator's electric energy meter, class 0x028E.
pub static DR_ELECTRIC_ENERGY_METER: Class = Class::new(
    0x028E,
    "drElectricEnergyMeter",
    "Q..",
    ["distributed generator's electric energy meter", "分散型電源電力量メータ"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                                  get set inf   in     data names
    row(0xD0, "deviceType",                                               [R_, __, O_], "Q..", &raw(3, 3),                                        "Device type", "機器種別"),
    row(0xD1, "deviceId",                                                 [R_, __, O_], "Q..", &raw(7, 7),                                        "Device ID", "機器ID"),
    row(0xD2, "toleranceClass",                                           [R_, __, O_], "Q..", &TOLERANCE_CLASS,                                  "Tolerance class", "公差階級"),
    row(0xD3, "retentionDaysOfCumulativeElectricEnergyLog",               [R_, __, O_], "Q..", &RETENTION_DAYS_OF_CUMULATIVE_ELECTRIC_ENERGY_LOG, "Number of days to retain historical data of measured cumulative amounts of electric energy", "積算電力量計測値履歴保持日数"),
    row(0xD4, "cumulativeAmountsOfElectricEnergyUnit",                    [R_, __, O_], "Q..", &shared::METER_UNIT,                               "Unit for cumulative amounts of electric energy", "積算電力量単位"),
    row(0xD5, "dayForTheHistoricalDataOfCumulativeElectricEnergy",        [RC, R_, O_], "Q..", &HISTORY_DAY,                                      "Day on which the historical data of measured cumulative amounts of electric energy is to be retrieved", "積算履歴収集日"),
    row(0xD6, "targetDeviceId",                                           [O_, __, O_], "Q..", &raw(17, 17),                                      "Identification number of device to be metered", "計量対象機器識別番号"),
    row(0xDA, "currentTime",                                              [RC, O_, O_], "Q..", &TIME_HMS,                                         "Current hour, minute, and second setting", "現在時分秒設定"),
    row(0xDB, "timeSynchronizationStatus",                                [R_, __, O_], "Q..", &TIME_SYNCHRONIZATION_STATUS,                      "Time synchronization status", "時刻同期状態"),
    row(0xE0, "acInputCumulativeElectricEnergy",                          [RC, __, O_], "Q..", &ENERGY,                                           "Measured cumulative amounts of electric energy (AC input)", "積算電力量計測値(交流入力)"),
    row(0xE1, "acInputCumulativeElectricEnergyLog",                       [RC, __, O_], "Q..", &ENERGY_LOG,                                       "Historical data of measured cumulative amounts of electric energy (AC input)", "積算電力量計測値履歴(交流入力)").atomic(0xD5),
    row(0xE2, "acOutputCumulativeElectricEnergy",                         [RC, __, O_], "Q..", &ENERGY,                                           "Measured cumulative amounts of electric energy (AC output)", "積算電力量計測値(交流出力)"),
    row(0xE3, "acOutputCumulativeElectricEnergyLog",                      [RC, __, O_], "Q..", &ENERGY_LOG,                                       "Historical data of measured cumulative amounts of electric energy (AC output)", "積算電力量計測値履歴(交流出力)").atomic(0xD5),
    row(0xE4, "independentOperationCumulativeElectricEnergy",             [O_, __, O_], "Q..", &ENERGY_OR_NO_DATA,                                "Measured cumulative amounts of electric energy (output during a power outage)", "積算電力量計測値(自立出力)"),
    row(0xE5, "independentOperationCumulativeElectricEnergyLog",          [O_, __, O_], "Q..", &ENERGY_LOG,                                       "Historical data of measured cumulative amounts of electric energy (output during a power outage )", "積算電力量計測値履歴(自立出力)").atomic(0xD5),
    row(0xE6, "acInputCumulativeElectricEnergyAtEvery30Min",              [RC, __, O_], "Q..", &ENERGY_AT,                                        "Cumulative amounts of electric energy measured at fixed time (AC input)", "定時積算電力量計測値(交流入力)"),
    row(0xE7, "acOutputCumulativeElectricEnergyAtEvery30Min",             [RC, __, O_], "Q..", &ENERGY_AT,                                        "Cumulative amounts of electric energy measured at fixed time (AC output)", "定時積算電力量計測値(交流出力)"),
    row(0xE8, "independentOperationCumulativeElectricEnergyAtEvery30Min", [O_, __, O_], "Q..", &ENERGY_AT,                                        "Cumulative amounts of electric energy measured at fixed time (output during a power outage)", "定時積算電力量計測値(自立出力)"),
    row(0xE9, "acInstantaneousElectricPower",                             [O_, __, O_], "Q..", &shared::POWER_OR_NO_DATA,                         "Measured instantaneous electric power (AC input/output)", "瞬時電力計測値(交流入出力)"),
    row(0xEA, "independentOperationInstantaneousElectricPower",           [O_, __, O_], "Q..", &shared::POWER_OR_NO_DATA,                         "Measured instantaneous electric power (output during a power outage)", "瞬時電力計測値(自立出力)"),
];

static TOLERANCE_CLASS: Data = states(
    1,
    &[
        s(0x01, "n1"),
        s(0x02, "n2"),
        s(0x03, "n3"),
        s(0x04, "n4"),
        s(0x05, "n5"),
        s(0x06, "n6"),
        s(0x07, "n7"),
        s(0xFF, "others"),
    ],
);

static RETENTION_DAYS_OF_CUMULATIVE_ELECTRIC_ENERGY_LOG: Data =
    Data::OneOf(&[uint16(0, 99, Unit::None), states(2, &[s(0xFFFF, "historyUnavailable")])]);

static HISTORY_DAY: Data = Data::OneOf(&[uint16(0, 99, Unit::None), states(2, &[s(0xFFFF, "initialValue")])]);

static TIME_SYNCHRONIZATION_STATUS: Data =
    states(1, &[s(0x00, "noSync"), s(0x01, "success"), s(0x02, "fail"), s(0xFF, "notImplemented")]);

static ENERGY: Data = uint32(0, 999_999_999, Unit::KilowattHour).by(&[0xD4]);

static ENERGY_OR_NO_DATA: Data =
    Data::OneOf(&[uint32(0, 999_999_999, Unit::KilowattHour).by(&[0xD4]), states(4, &[ro(0xFFFFFFFE, "noData")])]);

static ENERGY_LOG: Data = Data::Object(&[
    field(
        "day",
        &HISTORY_DAY,
        "Day on which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field("electricEnergy", &array(48, 48, 4, &ENERGY_OR_NO_DATA), "Measured cumulative amounts of electric energy"),
]);

static ENERGY_AT: Data = Data::Object(&[
    field("dateAndTime", &DATE_TIME, "Date and time of measurement"),
    field("electricEnergy", &ENERGY_OR_NO_DATA, "Cumulative amounts of electric energy measured"),
]);
