//! EV charger and discharger (0x027E). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredC as RC};
use crate::class::table::{field, int16, int32, raw, row, s, states, uint8, uint16, uint32};

/// EV charger and discharger, class 0x027E.
pub static EV_CHARGER_DISCHARGER: Class = Class::new(
    0x027E,
    "evChargerDischarger",
    "D..",
    ["EV charger and discharger", "電気自動車充放電器"],
    [PROPERTIES, SUPERSEDED],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                   get set inf   in      data names
    row(0x89, "faultDescription",                          [R_, __, O_], "R..",  &shared::FAULT_DESCRIPTION,                                 "Fault description", "異常内容"),
    row(0x8C, "productCode",                               [R_, __, O_], "R..",  &raw(12, 12),                                               "Product code", "商品コード"),
    row(0xC0, "dischargeableCapacity1",                    [R_, __, O_], "D..",  &uint32(0, 999_999_999, Unit::WattHour),                    "Dischargeable capacity of vehicle mounted battery 1", "車載電池の放電可能容量値1"),
    row(0xC1, "dischargeableCapacity2",                    [O_, __, O_], "G..",  &uint16(0, 32766, Unit::AmpereHour).e(-1),                  "Dischargeable capacity of vehicle mounted battery 2", "車載電池の放電可能容量値2"),
    row(0xC2, "remainingDischargeableCapacity1",           [R_, __, O_], "D..",  &uint32(0, 999_999_999, Unit::WattHour),                    "Remaining dischargeable capacity of vehicle mounted battery 1", "車載電池の放電可能残容量1"),
    row(0xC3, "remainingDischargeableCapacity2",           [O_, __, O_], "G..",  &uint16(0, 32766, Unit::AmpereHour).e(-1),                  "Remaining dischargeable capacity of vehicle mounted battery 2", "車載電池の放電可能残容量2"),
    row(0xC4, "remainingDischargeableCapacity3",           [R_, __, O_], "D..",  &uint8(0, 100, Unit::Percent),                              "Remaining dischargeable capacity of vehicle mounted battery 3", "車載電池の放電可能残容量3"),
    row(0xC5, "ratedChargeElectricPower",                  [R_, __, O_], "D..",  &uint32(0, 999_999_999, Unit::Watt),                        "Rated charge capacity", "定格充電能力"),
    row(0xC6, "ratedDischargeElectricPower",               [R_, __, O_], "D..",  &uint32(0, 999_999_999, Unit::Watt),                        "Rated discharge capacity", "定格放電能力"),
    row(0xC7, "chargeDischargeStatus",                     [R_, __, R_], "J..",  &CHARGE_DISCHARGE_STATUS,                                   "Vehicle connection and chargeable/dischargeable status", "車両接続・充放電可否状態").atomic(0xCD),
    row(0xC8, "minimumAndMaximumChargingElectricPower",    [R_, __, O_], "D..",  &MINIMUM_AND_MAXIMUM_CHARGING_ELECTRIC_POWER,               "Minimum/maximum charging electric energy", "最小最大充電電力値"),
    row(0xC9, "minimumAndMaximumDischargingElectricPower", [R_, __, O_], "D..",  &MINIMUM_AND_MAXIMUM_DISCHARGING_ELECTRIC_POWER,            "Minimum/maximum discharging electric energy", "最小最大放電電力値"),
    row(0xCA, "minimumAndMaximumChargingCurrent",          [R_, __, O_], "D..",  &MINIMUM_AND_MAXIMUM_CHARGING_CURRENT,                      "Minimum/maximum charging current", "最小最大充電電流値"),
    row(0xCB, "minimumAndMaximumDischargingCurrent",       [R_, __, O_], "D..",  &MINIMUM_AND_MAXIMUM_DISCHARGING_CURRENT,                   "Minimum/maximum discharging current", "最小最大放電電流値"),
    row(0xCC, "equipmentType",                             [R_, __, O_], "G..",  &EQUIPMENT_TYPE,                                            "Charger/Discharger type", "充放電器タイプ"),
    row(0xCD, "vehicleConnectionConfirmation",             [__, R_, __], "G..",  &states(1, &[s(0x10, "confirmation")]),                     "Vehicle connection confirmation", "車両接続確認"),
    row(0xCE, "chargeableCapacity",                        [R_, __, O_], "J..",  &uint32(0, 999_999_999, Unit::WattHour),                    "Chargeable capacity of vehicle mounted battery", "車載電池の充電可能容量値"),
    row(0xCF, "remainingChargeableCapacity",               [R_, __, O_], "J..",  &uint32(0, 999_999_999, Unit::WattHour),                    "Remaining chargeable capacity of vehicle mounted battery", "車載電池の充電可能残容量値"),
    row(0xD0, "usedCapacity1",                             [R_, __, O_], "D..",  &uint32(0, 999_999_999, Unit::WattHour),                    "Used capacity of vehicle mounted battery 1", "車載電池の使用容量値1"),
    row(0xD1, "usedCapacity2",                             [O_, __, O_], "G..",  &uint16(0, 32766, Unit::AmpereHour).e(-1),                  "Used capacity of vehicle mounted battery 2", "車載電池の使用容量値2"),
    row(0xD2, "ratedVoltage",                              [O_, __, O_], "D..",  &uint16(0, 32766, Unit::Volt),                              "Rated voltage", "定格電圧"),
    row(0xD3, "instantaneousElectricPower",                [O_, __, O_], "D..",  &POWER,                                                     "Measured instantaneous charging/discharging electric energy", "瞬時充放電電力計測値"),
    row(0xD4, "instantaneousCurrent",                      [O_, __, O_], "D..",  &int16(-32767, 32766, Unit::Ampere).e(-1),                  "Measured instantaneous charging/discharging current", "瞬時充放電電流計測値"),
    row(0xD5, "instantaneousVoltage",                      [O_, __, O_], "D..",  &int16(-32767, 32766, Unit::Volt),                          "Measured instantaneous charging/discharging voltage", "瞬時充放電電圧計測値"),
    row(0xD6, "cumulativeDischargingElectricEnergy",       [O_, __, O_], "D..",  &ENERGY,                                                    "Measured cumulative amount of discharging electric energy", "積算放電電力量計測値"),
    row(0xD7, "resetCumulativeDischargingElectricEnergy",  [__, O_, __], "D..",  &shared::RESET_00,                                          "Cumulative amount of discharging electric energy reset setting", "積算放電電力量リセット設定"),
    row(0xD8, "cumulativeChargingElectricEnergy",          [O_, __, O_], "D..",  &ENERGY,                                                    "Measured cumulative amount of charging electric energy", "積算充電電力量計測値"),
    row(0xD9, "resetCumulativeChargingElectricEnergy",     [__, O_, __], "D..",  &shared::RESET_00,                                          "Cumulative amount of charging electric energy reset setting", "積算充電電力量リセット設定"),
    row(0xDA, "operationMode",                             [R_, R_, R_], "P..",  &OPERATION_MODE,                                            "Operation mode setting", "運転モード設定"),
    row(0xDB, "powerSystemInterconnectionStatus",          [O_, __, O_], "D..",  &shared::INTERCONNECTION,                                   "System interconnected type", "系統連系状態"),
    row(0xDC, "chargingMethod",                            [R_, O_, R_], "P..",  &CHARGING_METHOD,                                           "Charging method", "充電方式"),
    row(0xDD, "dischargingMethod",                         [R_, O_, R_], "P..",  &DISCHARGING_METHOD,                                        "Discharging method", "放電方式"),
    row(0xDE, "purchasingElectricPower",                   [O_, O_, O_], "N..",  &uint32(0, 999_999_999, Unit::Watt),                        "Purchasing electric power setting", "買電電力設定値"),
    row(0xDF, "reInterconnectionPermission",               [O_, O_, O_], "N..",  &states(1, &[s(0x41, "permitted"), s(0x42, "prohibited")]), "Re-interconnection permission setting", "再連系許可設定"),
    row(0xE0, "chargingDischargingElectricPower",          [O_, O_, O_], "P..",  &POWER,                                                     "Charging/Discharging electric power setting", "充放電電力設定値"),
    row(0xE1, "actualOperationMode",                       [O_, __, R_], "Q..",  &ACTUAL_OPERATION_MODE,                                     "Actual operation mode", "運転動作状態"),
    row(0xE2, "remainingCapacity1",                        [R_, __, O_], "D..",  &uint32(0, 999_999_999, Unit::WattHour),                    "Remaining stored electricity of vehicle mounted battery1", "車載電池の電池残容量1"),
    row(0xE3, "remainingCapacity2",                        [O_, __, O_], "G..",  &uint16(0, 32766, Unit::AmpereHour).e(-1),                  "Remaining stored electricity of vehicle mounted battery2", "車載電池の電池残容量2"),
    row(0xE4, "remainingCapacity3",                        [R_, __, O_], "D..",  &uint8(0, 100, Unit::Percent),                              "Remaining stored electricity of vehicle mounted battery3", "車載電池の電池残容量3"),
    row(0xE5, "maintenanceStatus",                         [O_, __, R_], "P..",  &MAINTENANCE_STATUS,                                        "Maintenance status", "メンテナンス状態"),
    row(0xE6, "vehicleId",                                 [R_, __, O_], "J..",  &VEHICLE_ID,                                                "Vehicle ID", "車両ID"),
    row(0xE7, "targetChargingElectricEnergy1",             [O_, O_, O_], "D..",  &uint32(0, 999_999_999, Unit::WattHour),                    "Charging amount setting 1", "充電量設定値1"),
    row(0xE9, "targetChargingElectricEnergy2",             [O_, O_, O_], "D..",  &uint16(0, 32766, Unit::AmpereHour).e(-1),                  "Charging amount setting 2", "充電量設定値2"),
    row(0xEA, "targetDischargingElectricEnergy",           [O_, O_, O_], "J..",  &uint32(0, 999_999_999, Unit::WattHour),                    "Discharging electric energy setting", "放電量設定値"),
    row(0xEB, "chargingElectricPower",                     [O_, O_, O_], "D..",  &uint32(0, 999_999_999, Unit::Watt),                        "Charging electric energy setting", "充電電力設定値"),
    row(0xEC, "dischargingElectricPower",                  [O_, O_, O_], "D..",  &uint32(0, 999_999_999, Unit::Watt),                        "Discharging electric energy setting", "放電電力設定値"),
    row(0xED, "chargingCurrent",                           [O_, O_, O_], "D..",  &uint16(0, 65533, Unit::Ampere).e(-1),                      "Charging current setting", "充電電流設定値"),
    row(0xEE, "dischargingCurrent",                        [O_, O_, O_], "D..",  &uint16(0, 65533, Unit::Ampere).e(-1),                      "Discharging current setting", "放電電流設定値"),
    row(0xEF, "ratedVoltageOfIndependentOperation",        [O_, __, O_], "D..",  &uint16(0, 32766, Unit::Volt),                              "Rated voltage (Independent)", "定格電圧 (独立時)"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                                   get set inf   in      data names
    row(0xC1, "dischargeableCapacity2",                    [RC, __, O_], "D..F", &uint16(0, 32766, Unit::AmpereHour).e(-1),                  "Dischargeable capacity of vehicle mounted battery 2", "車載電池の放電可能容量値2"),
    row(0xC3, "remainingDischargeableCapacity2",           [RC, __, O_], "D..F", &uint16(0, 32766, Unit::AmpereHour).e(-1),                  "Remaining dischargeable capacity of vehicle mounted battery 2", "車載電池の放電可能残容量2"),
    row(0xC7, "chargeDischargeStatus",                     [R_, __, R_], "D..F", &CHARGE_DISCHARGE_STATUS_UNTIL_F,                           "Vehicle connection and chargeable/dischargeable status", "車両接続・充放電可否状態").atomic(0xCD),
    row(0xC7, "chargeDischargeStatus",                     [R_, __, R_], "G..I", &CHARGE_DISCHARGE_STATUS_UNTIL_I,                           "Vehicle connection and chargeable/dischargeable status", "車両接続・充放電可否状態").atomic(0xCD),
    row(0xD1, "usedCapacity2",                             [RC, __, O_], "D..F", &uint16(0, 32766, Unit::AmpereHour).e(-1),                  "Used capacity of vehicle mounted battery 2", "車載電池の使用容量値2"),
    row(0xDA, "operationMode",                             [R_, R_, R_], "D..F", &OPERATION_MODE_UNTIL_F,                                    "Operation mode setting", "運転モード設定"),
    row(0xDA, "operationMode",                             [R_, R_, R_], "G..M", &OPERATION_MODE_UNTIL_M,                                    "Operation mode setting", "運転モード設定"),
    row(0xDA, "operationMode",                             [R_, R_, R_], "N..N", &OPERATION_MODE_UNTIL_N,                                    "Operation mode setting", "運転モード設定"),
    row(0xDC, "chargingMethod",                            [R_, O_, R_], "N..N", &CHARGING_METHOD_UNTIL_N,                                   "Charging method", "充電方式"),
    row(0xDD, "dischargingMethod",                         [R_, O_, R_], "N..N", &DISCHARGING_METHOD_UNTIL_N,                                "Discharging method", "放電方式"),
    row(0xE3, "remainingCapacity2",                        [RC, __, O_], "D..F", &uint16(0, 32766, Unit::AmpereHour).e(-1),                  "Remaining stored electricity of vehicle mounted battery2", "車載電池の電池残容量2"),
];

static CHARGE_DISCHARGE_STATUS: Data = states(
    1,
    &[
        s(0xFF, "undefined"),
        s(0x30, "notConnected"),
        s(0x40, "connected"),
        s(0x41, "chargeable"),
        s(0x42, "dischargeable"),
        s(0x43, "chargeableDischargeable"),
        s(0x44, "unknown"),
    ],
);

static MINIMUM_AND_MAXIMUM_CHARGING_ELECTRIC_POWER: Data = Data::Object(&[
    field("minimumElectricPower", &uint32(0, 999_999_999, Unit::Watt), "Minimum charging electric energy"),
    field("maximumElectricPower", &uint32(0, 999_999_999, Unit::Watt), "Maximum charging electric energy"),
]);

static MINIMUM_AND_MAXIMUM_DISCHARGING_ELECTRIC_POWER: Data = Data::Object(&[
    field("minimumElectricPower", &uint32(0, 999_999_999, Unit::Watt), "Minimum discharging electric energy"),
    field("maximumElectricPower", &uint32(0, 999_999_999, Unit::Watt), "Maximum discharging electric energy"),
]);

static MINIMUM_AND_MAXIMUM_CHARGING_CURRENT: Data = Data::Object(&[
    field("minimumCurrent", &uint16(0, 32766, Unit::Ampere).e(-1), "Minimum charging current"),
    field("maximumCurrent", &uint16(0, 32766, Unit::Ampere).e(-1), "Maximum charging current"),
]);

static MINIMUM_AND_MAXIMUM_DISCHARGING_CURRENT: Data = Data::Object(&[
    field("minimumCurrent", &uint16(0, 32766, Unit::Ampere).e(-1), "Minimum discharging current"),
    field("maximumCurrent", &uint16(0, 32766, Unit::Ampere).e(-1), "Maximum discharging current"),
]);

static EQUIPMENT_TYPE: Data = states(
    1,
    &[
        s(0x11, "ac_cplt"),
        s(0x12, "ac_hlc_charge"),
        s(0x13, "ac_hlc_chargedischarge"),
        s(0x21, "dc_aa_charge"),
        s(0x22, "dc_aa_chargedischarge"),
        s(0x23, "dc_aa_discharge"),
        s(0x31, "dc_bb_charge"),
        s(0x32, "dc_bb_chargedischarge"),
        s(0x33, "dc_bb_discharge"),
        s(0x41, "dc_ee_charge"),
        s(0x42, "dc_ee_chargedischarge"),
        s(0x43, "dc_ee_discharge"),
        s(0x51, "dc_ff_charge"),
        s(0x52, "dc_ff_chargedischarge"),
        s(0x53, "dc_ff_discharge"),
    ],
);

static POWER: Data = int32(-999_999_999, 999_999_999, Unit::Watt);

static ENERGY: Data = uint32(0, 999_999_999, Unit::KilowattHour).e(-3);

static OPERATION_MODE: Data = states(
    1,
    &[
        s(0x42, "charge"),
        s(0x43, "discharge"),
        s(0x44, "standby"),
        s(0x46, "chargingDischarging"),
        s(0x47, "idle"),
        s(0x48, "preparation"),
        s(0x49, "automatic"),
        s(0x40, "other"),
    ],
);

static CHARGING_METHOD: Data = states(
    1,
    &[
        s(0x00, "others"),
        s(0x01, "maximumChargingElectricPower"),
        s(0x02, "surplusElectricPower"),
        s(0x03, "designatedElectricPower"),
        s(0x04, "designatedElectricCurrent"),
        s(0x05, "designatedPurchasingElectricPower"),
        s(0x06, "v2G"),
    ],
);

static DISCHARGING_METHOD: Data = states(
    1,
    &[
        s(0x00, "others"),
        s(0x01, "maximumDischargingElectricPower"),
        s(0x02, "loadFollowing"),
        s(0x03, "designatedElectricPower"),
        s(0x04, "designatedElectricCurrent"),
        s(0x05, "designatedPurchasingElectricPower"),
        s(0x06, "v2G"),
    ],
);

static ACTUAL_OPERATION_MODE: Data = states(
    1,
    &[
        s(0x42, "charge"),
        s(0x43, "discharge"),
        s(0x44, "standby"),
        s(0x47, "idle"),
        s(0x48, "preparation"),
        s(0x40, "other"),
    ],
);

static MAINTENANCE_STATUS: Data = states(1, &[s(0x41, "necessary"), s(0x42, "notNecessary")]);

static VEHICLE_ID: Data = Data::Object(&[
    field("dataSize", &uint8(0, 24, Unit::None), "data size for vehicle ID information"),
    field("id", &raw(0, 24), "vehicle ID information data"),
]);

static CHARGE_DISCHARGE_STATUS_UNTIL_F: Data = states(
    1,
    &[
        s(0x30, "notConnected"),
        s(0x40, "connected"),
        s(0x41, "chargeable"),
        s(0x42, "dischargeable"),
        s(0x43, "chargeableDischargeable"),
    ],
);

static CHARGE_DISCHARGE_STATUS_UNTIL_I: Data = states(
    1,
    &[
        s(0x30, "notConnected"),
        s(0x40, "connected"),
        s(0x41, "chargeable"),
        s(0x42, "dischargeable"),
        s(0x43, "chargeableDischargeable"),
        s(0xFF, "undefined"),
    ],
);

static OPERATION_MODE_UNTIL_F: Data = states(
    1,
    &[
        s(0x41, "rapidCharge"),
        s(0x42, "charge"),
        s(0x43, "discharge"),
        s(0x44, "standby"),
        s(0x45, "test"),
        s(0x40, "other"),
    ],
);

static OPERATION_MODE_UNTIL_M: Data =
    states(1, &[s(0x42, "charge"), s(0x43, "discharge"), s(0x44, "standby"), s(0x47, "idle"), s(0x40, "other")]);

static OPERATION_MODE_UNTIL_N: Data = states(
    1,
    &[
        s(0x42, "charge"),
        s(0x43, "discharge"),
        s(0x44, "standby"),
        s(0x46, "chargingDischarging"),
        s(0x47, "idle"),
        s(0x40, "other"),
    ],
);

static CHARGING_METHOD_UNTIL_N: Data = states(
    1,
    &[
        s(0x00, "others"),
        s(0x01, "maximumChargingElectricPower"),
        s(0x02, "surplusElectricPower"),
        s(0x03, "designatedElectricPower"),
        s(0x04, "designatedElectricCurrent"),
        s(0x05, "designatedPurchasingElectricPower"),
    ],
);

static DISCHARGING_METHOD_UNTIL_N: Data = states(
    1,
    &[
        s(0x00, "others"),
        s(0x01, "maximumDischargingElectricPower"),
        s(0x02, "loadFollowing"),
        s(0x03, "designatedElectricPower"),
        s(0x04, "designatedElectricCurrent"),
        s(0x05, "designatedPurchasingElectricPower"),
    ],
);
