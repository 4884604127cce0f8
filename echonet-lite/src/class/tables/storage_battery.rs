//! Storage battery (0x027D). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredC as RC};
use crate::class::table::{TIME, field, int16, int32, raw, row, s, states, uint8, uint16, uint32};

/// Storage battery, class 0x027D.
pub static STORAGE_BATTERY: Class =
    Class::new(0x027D, "storageBattery", "A..", ["Storage battery", "蓄電池"], [PROPERTIES, SUPERSEDED])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                          get set inf   in      data names
    row(0x83, "id",                                               [O_, __, O_], "H..",  &raw(17, 17),                                            "Identification number", "識別番号"),
    row(0x89, "faultDescription",                                 [R_, __, O_], "R..",  &shared::FAULT_DESCRIPTION,                              "Fault description", "異常内容"),
    row(0x8C, "productCode",                                      [R_, __, O_], "R..",  &raw(12, 12),                                            "Product code", "商品コード"),
    row(0x97, "currentTime",                                      [R_, O_, O_], "H..",  &TIME,                                                   "Current time setting", "現在時刻設定"),
    row(0x98, "currentDate",                                      [R_, O_, O_], "H..",  &Data::Date,                                             "Current date setting", "現在年月日設定"),
    row(0xA0, "acEffectiveChargingCapacity",                      [R_, __, O_], "H..",  &uint32(0, 999_999_999, Unit::WattHour),                 "AC effective capacity (charging)", "AC実効容量 (充電)"),
    row(0xA1, "acEffectiveDischargingCapacity",                   [R_, __, O_], "H..",  &uint32(0, 999_999_999, Unit::WattHour),                 "AC effective capacity (discharging)", "AC実効容量 (放電)"),
    row(0xA2, "acChargeableCapacity",                             [R_, __, O_], "H..",  &uint32(0, 999_999_999, Unit::WattHour),                 "AC chargeable capacity", "AC充電可能容量"),
    row(0xA3, "acDischargeableCapacity",                          [R_, __, O_], "H..",  &uint32(0, 999_999_999, Unit::WattHour),                 "AC dischargeable capacity", "AC放電可能容量"),
    row(0xA4, "acChargeableElectricEnergy",                       [R_, __, O_], "H..",  &uint32(0, 999_999_999, Unit::WattHour),                 "AC chargeable electric energy", "AC充電可能量"),
    row(0xA5, "acDischargeableElectricEnergy",                    [R_, __, O_], "H..",  &uint32(0, 999_999_999, Unit::WattHour),                 "AC dischargeable electric energy", "AC放電可能量"),
    row(0xA6, "acChargeUpperLimit",                               [O_, O_, O_], "H..",  &uint8(0, 100, Unit::Percent),                           "AC charge upper limit setting", "AC充電上限設定"),
    row(0xA7, "acDischargeLowerLimit",                            [O_, O_, O_], "H..",  &uint8(0, 100, Unit::Percent),                           "AC discharge lower limit setting", "AC放電下限設定"),
    row(0xA8, "acCumulativeChargingElectricEnergy",               [R_, __, O_], "H..",  &ENERGY,                                                 "AC measured cumulative charging electric energy", "AC積算充電電力量計測値"),
    row(0xA9, "acCumulativeDischargingElectricEnergy",            [R_, __, O_], "H..",  &ENERGY,                                                 "AC measured cumulative discharging electric energy", "AC積算放電電力量計測値"),
    row(0xAA, "acTargetChargingElectricEnergy",                   [R_, R_, R_], "H..",  &TARGET_ENERGY,                                          "AC charge amount setting value", "AC充電量設定値"),
    row(0xAB, "acTargetDischargingElectricEnergy",                [R_, R_, R_], "H..",  &TARGET_ENERGY,                                          "AC discharge amount setting value", "AC放電量設定値"),
    row(0xC1, "chargingMethod",                                   [R_, O_, R_], "M..",  &CHARGING_METHOD,                                        "Charging method", "充電方式"),
    row(0xC2, "dischargingMethod",                                [R_, O_, R_], "M..",  &DISCHARGING_METHOD,                                     "Discharging method", "放電方式"),
    row(0xC7, "acRatedElectricEnergy",                            [O_, __, O_], "H..",  &uint32(0, 999_999_999, Unit::WattHour),                 "AC rated electric energy", "AC定格電力量"),
    row(0xC8, "minimumAndMaximumChargingElectricPower",           [R_, __, O_], "H..",  &POWER_RANGE,                                            "Minimum/maximum charging electric power", "最小最大充電電力値"),
    row(0xC9, "minimumAndMaximumDischargingElectricPower",        [R_, __, O_], "H..",  &POWER_RANGE,                                            "Minimum/maximum discharging electric power", "最小最大放電電力値"),
    row(0xCA, "minimumAndMaximumChargingCurrent",                 [O_, __, O_], "B..",  &CURRENT_RANGE,                                          "Minimum/maximum charging current", "最小最大充電電流値"),
    row(0xCB, "minimumAndMaximumDischargingCurrent",              [O_, __, O_], "B..",  &CURRENT_RANGE,                                          "Minimum/maximum discharging current", "最小最大放電電流値"),
    row(0xCC, "reInterconnectionPermission",                      [O_, O_, O_], "H..",  &PERMISSION,                                             "Re-interconnection permission setting", "再連系許可設定"),
    row(0xCD, "operationPermission",                              [O_, O_, O_], "H..",  &PERMISSION,                                             "Operation permission setting", "運転許可設定"),
    row(0xCE, "independentOperationPermission",                   [O_, O_, O_], "H..",  &PERMISSION,                                             "Independent operation permission setting", "自立運転許可設定"),
    row(0xCF, "actualOperationMode",                              [R_, __, R_], "H..",  &OPERATION_MODE,                                         "Working operation status", "運転動作状態"),
    row(0xD0, "ratedElectricEnergy",                              [O_, __, O_], "A..",  &uint32(0, 999_999_999, Unit::WattHour),                 "Rated electric energy", "定格電力量"),
    row(0xD1, "ratedCapacity",                                    [O_, __, O_], "A..",  &uint16(0, 32766, Unit::AmpereHour).e(-1),               "Rated capacity", "定格容量"),
    row(0xD2, "ratedVoltage",                                     [O_, __, O_], "A..",  &uint16(0, 32766, Unit::Volt),                           "Rated voltage", "定格電圧"),
    row(0xD3, "instantaneousChargingAndDischargingElectricPower", [O_, __, O_], "A..",  &int32(-999_999_999, 999_999_999, Unit::Watt),           "Measured instantaneous charging/discharging electric energy", "瞬時充放電電力計測値"),
    row(0xD4, "instantaneousChargingAndDischargingCurrent",       [O_, __, O_], "A..",  &int16(-32767, 32766, Unit::Ampere).e(-1),               "Measured instantaneous charging/discharging current", "瞬時充放電電流計測値"),
    row(0xD5, "instantaneousChargingAndDischargingVoltage",       [O_, __, O_], "A..",  &int16(-32767, 32766, Unit::Volt),                       "Measured instantaneous charging/discharging voltage", "瞬時充放電電圧計測値"),
    row(0xD6, "cumulativeDischargingElectricEnergy",              [O_, __, O_], "A..",  &ENERGY,                                                 "Measured cumulative discharging electric energy", "積算放電電力量計測値"),
    row(0xD7, "resetCumulativeDischargingElectricEnergy",         [__, O_, __], "A..",  &shared::RESET_00,                                       "Measured cumulative discharging electric energy reset setting", "積算放電電力量リセット設定"),
    row(0xD8, "cumulativeChargingElectricEnergy",                 [O_, __, O_], "A..",  &ENERGY,                                                 "Measured cumulative charging electric energy", "積算充電電力量計測値"),
    row(0xD9, "resetCumulativeChargingElectricEnergy",            [__, O_, __], "A..",  &shared::RESET_00,                                       "Measured cumulative charging electric energy reset setting", "積算充電電力量リセット設定"),
    row(0xDA, "operationMode",                                    [R_, R_, R_], "H..",  &OPERATION_MODE,                                         "Operation mode setting", "運転モード設定"),
    row(0xDB, "powerSystemInterconnectionStatus",                 [R_, __, O_], "H..",  &shared::INTERCONNECTION,                                "System-interconnected type", "系統連系状態"),
    row(0xDC, "minimumAndMaximumChargingPowerAtIndependent",      [O_, __, O_], "C..",  &MINIMUM_AND_MAXIMUM_CHARGING_POWER_AT_INDEPENDENT,      "Minimum/maximum charging power (Independent)", "最小最大充電電力値 (独立時)"),
    row(0xDD, "minimumAndMaximumDischargingPowerAtIndependent",   [O_, __, O_], "C..",  &MINIMUM_AND_MAXIMUM_DISCHARGING_POWER_AT_INDEPENDENT,   "Minimum/maximum discharging power (Independent)", "最小最大放電電力値 (独立時)"),
    row(0xDE, "minimumAndMaximumChargingCurrentAtIndependent",    [O_, __, O_], "C..",  &MINIMUM_AND_MAXIMUM_CHARGING_CURRENT_AT_INDEPENDENT,    "Minimum/maximum charging current (Independent)", "最小最大充電電流値 (独立時)"),
    row(0xDF, "minimumAndMaximumDischargingCurrentAtIndependent", [O_, __, O_], "C..",  &MINIMUM_AND_MAXIMUM_DISCHARGING_CURRENT_AT_INDEPENDENT, "Minimum/maximum discharging current (Independent)", "最小最大放電電流値 (独立時)"),
    row(0xE0, "chargingAndDischargingAmount1",                    [O_, O_, O_], "B..",  &CHARGING_AND_DISCHARGING_AMOUNT1,                       "Charging/discharging amount setting 1", "充放電量設定値1"),
    row(0xE1, "chargingAndDischargingAmount2",                    [O_, O_, O_], "B..",  &CHARGING_AND_DISCHARGING_AMOUNT2,                       "Charging/discharging amount setting 2", "充放電量設定値2"),
    row(0xE2, "remainingCapacity1",                               [RC, __, O_], "A..",  &uint32(0, 999_999_999, Unit::WattHour),                 "Remaining stored electricity 1", "蓄電残量1"),
    row(0xE3, "remainingCapacity2",                               [RC, __, O_], "A..",  &uint16(0, 32766, Unit::AmpereHour).e(-1),               "Remaining stored electricity 2", "蓄電残量2"),
    row(0xE4, "remainingCapacity3",                               [RC, __, O_], "A..",  &uint8(0, 100, Unit::Percent),                           "Remaining stored electricity 3", "蓄電残量3"),
    row(0xE5, "batteryHealthState",                               [O_, __, O_], "A..",  &uint8(0, 100, Unit::Percent),                           "Battery state of health", "劣化状態"),
    row(0xE6, "batteryType",                                      [R_, __, O_], "A..",  &BATTERY_TYPE,                                           "Battery type", "蓄電池タイプ"),
    row(0xE7, "chargingAmount1",                                  [O_, O_, O_], "B..",  &uint32(0, 999_999_999, Unit::WattHour),                 "Charging amount setting 1", "充電量設定値1"),
    row(0xE8, "dischargingAmount1",                               [O_, O_, O_], "B..",  &uint32(0, 999_999_999, Unit::WattHour),                 "Discharging amount setting 1", "放電量設定値1"),
    row(0xE9, "chargingAmount2",                                  [O_, O_, O_], "B..",  &uint16(0, 32766, Unit::AmpereHour).e(-1),               "Charging amount setting 2", "充電量設定値2"),
    row(0xEA, "dischargingAmount2",                               [O_, O_, O_], "B..",  &uint16(0, 32766, Unit::AmpereHour).e(-1),               "Discharging amount setting 2", "放電量設定値2"),
    row(0xEB, "chargingPower",                                    [O_, O_, O_], "B..",  &uint32(0, 999_999_999, Unit::Watt),                     "Charging electric energy setting", "充電電力設定値"),
    row(0xEC, "dischargingPower",                                 [O_, O_, O_], "B..",  &uint32(0, 999_999_999, Unit::Watt),                     "Discharging electric energy setting", "放電電力設定値"),
    row(0xED, "chargingCurrent",                                  [O_, O_, O_], "B..",  &uint16(0, 65533, Unit::Ampere).e(-1),                   "Charging current setting", "充電電流設定値"),
    row(0xEE, "dischargingCurrent",                               [O_, O_, O_], "B..",  &uint16(0, 65533, Unit::Ampere).e(-1),                   "Discharging current setting", "放電電流設定値"),
    row(0xEF, "ratedVoltageAtIndependent",                        [O_, __, O_], "C..",  &uint16(0, 32766, Unit::Volt),                           "Rated voltage (Independent)", "定格電圧 (独立時)"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                                          get set inf   in      data names
    row(0xC8, "minimumAndMaximumChargingElectricPower",           [O_, __, O_], "B..G", &POWER_RANGE,                                            "Minimum/maximum charging electric power", "最小最大充電電力値"),
    row(0xC9, "minimumAndMaximumDischargingElectricPower",        [O_, __, O_], "B..G", &POWER_RANGE,                                            "Minimum/maximum discharging electric power", "最小最大放電電力値"),
    row(0xCF, "actualOperationMode",                              [R_, __, R_], "D..G", &ACTUAL_OPERATION_MODE_UNTIL_G,                          "Working operation status", "運転動作状態"),
    row(0xDA, "operationMode",                                    [R_, R_, R_], "A..A", &OPERATION_MODE_UNTIL_A,                                 "Operation mode setting", "運転モード設定"),
    row(0xDA, "operationMode",                                    [R_, R_, R_], "B..C", &ACTUAL_OPERATION_MODE_UNTIL_G,                          "Operation mode setting", "運転モード設定"),
    row(0xDA, "operationMode",                                    [R_, R_, R_], "D..G", &OPERATION_MODE_UNTIL_G,                                 "Operation mode setting", "運転モード設定"),
    row(0xDB, "powerSystemInterconnectionStatus",                 [O_, __, O_], "B..G", &shared::INTERCONNECTION,                                "System-interconnected type", "系統連系状態"),
    row(0xE0, "chargingAndDischargingAmount1",                    [O_, O_, O_], "A..A", &CHARGING_AND_DISCHARGING_AMOUNT1,                       "Charging/discharging amount setting 1", "充放電量指定1"),
    row(0xE1, "chargingAndDischargingAmount2",                    [O_, O_, O_], "A..A", &CHARGING_AND_DISCHARGING_AMOUNT2,                       "Charging/discharging amount setting 2", "充放電量指定2"),
];

static ENERGY: Data = uint32(0, 999_999_999, Unit::KilowattHour).e(-3);

static TARGET_ENERGY: Data =
    Data::OneOf(&[uint32(1, 999_999_999, Unit::WattHour), states(4, &[s(0x00000000, "noSetting")])]);

static CHARGING_METHOD: Data = states(
    1,
    &[
        s(0x01, "maximum"),
        s(0x02, "surplus"),
        s(0x03, "designatedPower"),
        s(0x04, "designatedCurrent"),
        s(0x00, "other"),
    ],
);

static DISCHARGING_METHOD: Data = states(
    1,
    &[
        s(0x01, "maximum"),
        s(0x02, "loadFollowing"),
        s(0x03, "designatedPower"),
        s(0x04, "designatedCurrent"),
        s(0x00, "other"),
    ],
);

static POWER_RANGE: Data = Data::Object(&[
    field("minValue", &uint32(0, 999_999_999, Unit::Watt), "Minimum"),
    field("maxValue", &uint32(0, 999_999_999, Unit::Watt), "Maximum"),
]);

static CURRENT_RANGE: Data = Data::Object(&[
    field("minValue", &uint16(0, 32766, Unit::Ampere).e(-1), "Minimum"),
    field("maxValue", &uint16(0, 32766, Unit::Ampere).e(-1), "Maximum"),
]);

static PERMISSION: Data = states(1, &[s(0x41, "permitted"), s(0x42, "prohibited")]);

static OPERATION_MODE: Data = states(
    1,
    &[
        s(0x41, "rapidCharging"),
        s(0x42, "charging"),
        s(0x43, "discharging"),
        s(0x44, "standby"),
        s(0x45, "test"),
        s(0x46, "auto"),
        s(0x48, "restart"),
        s(0x49, "capacityRecalculation"),
        s(0x40, "other"),
    ],
);

static MINIMUM_AND_MAXIMUM_CHARGING_POWER_AT_INDEPENDENT: Data = Data::Object(&[
    field("minValue", &uint32(0, 999_999_999, Unit::Watt), "Minimum charging power"),
    field("maxValue", &uint32(0, 999_999_999, Unit::Watt), "Maximum charging power"),
]);

static MINIMUM_AND_MAXIMUM_DISCHARGING_POWER_AT_INDEPENDENT: Data = Data::Object(&[
    field("minValue", &uint32(0, 999_999_999, Unit::Watt), "Minimum discharging power"),
    field("maxValue", &uint32(0, 999_999_999, Unit::Watt), "Maximum discharging power"),
]);

static MINIMUM_AND_MAXIMUM_CHARGING_CURRENT_AT_INDEPENDENT: Data = Data::Object(&[
    field("minValue", &uint16(0, 32766, Unit::Ampere).e(-1), "Minimum charging current"),
    field("maxValue", &uint16(0, 32766, Unit::Ampere).e(-1), "Maximum charging current"),
]);

static MINIMUM_AND_MAXIMUM_DISCHARGING_CURRENT_AT_INDEPENDENT: Data = Data::Object(&[
    field("minValue", &uint16(0, 32766, Unit::Ampere).e(-1), "Minimum discharging current"),
    field("maxValue", &uint16(0, 32766, Unit::Ampere).e(-1), "Maximum discharging current"),
]);

static CHARGING_AND_DISCHARGING_AMOUNT1: Data =
    Data::OneOf(&[uint32(1, 999_999_999, Unit::WattHour), int32(-999_999_999, -1, Unit::WattHour)]);

static CHARGING_AND_DISCHARGING_AMOUNT2: Data =
    Data::OneOf(&[int16(1, 32766, Unit::AmpereHour).e(-1), int16(-32767, -1, Unit::AmpereHour).e(-1)]);

static BATTERY_TYPE: Data = states(
    1,
    &[
        s(0x00, "unknown"),
        s(0x01, "lead"),
        s(0x02, "ni_mh"),
        s(0x03, "ni_cd"),
        s(0x04, "lib"),
        s(0x05, "zinc"),
        s(0x06, "alkaline"),
    ],
);

static ACTUAL_OPERATION_MODE_UNTIL_G: Data = states(
    1,
    &[
        s(0x41, "rapidCharging"),
        s(0x42, "charging"),
        s(0x43, "discharging"),
        s(0x44, "standby"),
        s(0x45, "test"),
        s(0x40, "other"),
    ],
);

static OPERATION_MODE_UNTIL_A: Data = states(
    1,
    &[s(0x41, "rapidCharging"), s(0x42, "charging"), s(0x43, "discharging"), s(0x44, "standby"), s(0x45, "test")],
);

static OPERATION_MODE_UNTIL_G: Data = states(
    1,
    &[
        s(0x41, "rapidCharging"),
        s(0x42, "charging"),
        s(0x43, "discharging"),
        s(0x44, "standby"),
        s(0x45, "test"),
        s(0x46, "auto"),
        s(0x40, "other"),
    ],
);
