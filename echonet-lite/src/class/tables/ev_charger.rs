//! EV Charger (0x02A1). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{field, raw, row, s, states, uint8, uint16, uint32};

/// EV Charger, class 0x02A1.
pub static EV_CHARGER: Class =
    Class::new(0x02A1, "evCharger", "G..", ["EV Charger", "電気自動車充電器"], [PROPERTIES, SUPERSEDED])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                get set inf   in      data names
    row(0xC5, "ratedChargeElectricPower",               [R_, __, O_], "G..",  &uint32(0, 999_999_999, Unit::Watt),          "Rated charge capacity", "定格充電能力"),
    row(0xC7, "chargeStatus",                           [R_, __, R_], "J..",  &CHARGE_STATUS,                               "Vehicle connection and chargeable status", "車両接続・充電可否状態").atomic(0xCD),
    row(0xC8, "minimumAndMaximumChargingElectricPower", [O_, __, O_], "G..",  &MINIMUM_AND_MAXIMUM_CHARGING_ELECTRIC_POWER, "Minimum/maximum charging electric energy", "最小最大充電電力値"),
    row(0xCA, "minimumAndMaximumChargingCurrent",       [O_, __, O_], "G..",  &MINIMUM_AND_MAXIMUM_CHARGING_CURRENT,        "Minimum/maximum charging electric current", "最小最大充電電流値"),
    row(0xCC, "equipmentType",                          [R_, __, O_], "R..",  &EQUIPMENT_TYPE,                              "Charger type", "充電器タイプ"),
    row(0xCD, "vehicleConnectionConfirmation",          [__, R_, O_], "G..",  &states(1, &[s(0x10, "connection")]),         "Vehicle connection confirmation", "車両接続確認"),
    row(0xCE, "chargeableCapacity",                     [R_, __, O_], "J..",  &uint32(0, 999_999_999, Unit::WattHour),      "Chargeable capacity of vehicle mounted battery", "車載電池の充電可能容量値"),
    row(0xCF, "remainingChargeableCapacity",            [R_, __, O_], "J..",  &uint32(0, 999_999_999, Unit::WattHour),      "Remaining chargeable capacity of vehicle mounted battery", "車載電池の充電可能残容量値"),
    row(0xD0, "usedCapacity1",                          [R_, __, O_], "G..",  &uint32(0, 999_999_999, Unit::WattHour),      "Used capacity of vehicle mounted battery 1", "車載電池の使用容量値1"),
    row(0xD2, "ratedVoltage",                           [O_, __, O_], "G..",  &uint16(0, 32766, Unit::Volt),                "Rated voltage", "定格電圧"),
    row(0xD3, "instantaneousElectricPower",             [O_, __, O_], "G..",  &uint32(0, 999_999_999, Unit::Watt),          "Measured instantaneous charging electric energy", "瞬時充電電力計測値"),
    row(0xD8, "cumulativeChargingElectricEnergy",       [O_, __, O_], "G..",  &CUMULATIVE_CHARGING_ELECTRIC_ENERGY,         "Measured cumulative amount of charging electric energy", "積算充電電力量計測値"),
    row(0xD9, "resetCumulativeChargingElectricEnergy",  [__, O_, __], "G..",  &shared::RESET_00,                            "Cumulative amount of charging electric energy reset setting", "積算充電電力量リセット設定"),
    row(0xDA, "operationMode",                          [R_, R_, R_], "G..",  &OPERATION_MODE,                              "Operation mode setting", "運転モード設定"),
    row(0xE2, "remainingCapacity1",                     [R_, __, O_], "G..",  &uint32(0, 999_999_999, Unit::WattHour),      "Remaining stored electricity of vehicle mounted battery1", "車載電池の電池残容量1"),
    row(0xE4, "remainingCapacity3",                     [R_, __, O_], "G..",  &uint8(0, 100, Unit::Percent),                "Remaining stored electricity of vehicle mounted battery3", "車載電池の電池残容量3"),
    row(0xE6, "vehicleId",                              [R_, __, O_], "J..",  &VEHICLE_ID,                                  "Vehicle ID", "車両ID"),
    row(0xE7, "targetChargingElectricEnergy",           [O_, O_, O_], "J..",  &uint32(0, 999_999_999, Unit::WattHour),      "Charging amount setting", "充電量設定値"),
    row(0xEB, "chargingElectricPower",                  [O_, O_, O_], "G..",  &uint32(0, 999_999_999, Unit::Watt),          "Charging electric energy setting", "充電電力設定値"),
    row(0xED, "chargingCurrent",                        [O_, O_, O_], "G..",  &uint16(0, 65533, Unit::Ampere).e(-1),        "Charging current setting", "充電電流設定値"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                                get set inf   in      data names
    row(0xC7, "chargeStatus",                           [R_, __, R_], "G..I", &CHARGE_STATUS_UNTIL_I,                       "Vehicle connection and chargeable status", "車両接続・充電可否状態").atomic(0xCD),
    row(0xCC, "equipmentType",                          [R_, __, O_], "G..Q", &EQUIPMENT_TYPE_UNTIL_Q,                      "Charger type", "充電器タイプ"),
];

static CHARGE_STATUS: Data = states(
    1,
    &[
        s(0xFF, "undefined"),
        s(0x30, "notConnected"),
        s(0x40, "notChargeable"),
        s(0x41, "chargeable"),
        s(0x44, "unknown"),
    ],
);

static MINIMUM_AND_MAXIMUM_CHARGING_ELECTRIC_POWER: Data = Data::Object(&[
    field("minimumElectricPower", &uint32(0, 999_999_999, Unit::Watt), "Minimum charging electric energy"),
    field("maximumElectricPower", &uint32(0, 999_999_999, Unit::Watt), "Maximum charging electric energy"),
]);

static MINIMUM_AND_MAXIMUM_CHARGING_CURRENT: Data = Data::Object(&[
    field("minimumCurrent", &uint16(0, 32766, Unit::Ampere).e(-1), "Minimum charging current"),
    field("maximumCurrent", &uint16(0, 32766, Unit::Ampere).e(-1), "Maximum charging current"),
]);

static EQUIPMENT_TYPE: Data = states(
    1,
    &[
        s(0x10, "ac_no_communication"),
        s(0x11, "ac_cplt"),
        s(0x12, "ac_hlc_charge"),
        s(0x21, "dc_aa_charge"),
        s(0x31, "dc_bb_charge"),
        s(0x41, "dc_ee_charge"),
        s(0x51, "dc_ff_charge"),
    ],
);

static CUMULATIVE_CHARGING_ELECTRIC_ENERGY: Data = uint32(0, 999_999_999, Unit::KilowattHour).e(-3).no_codes();

static OPERATION_MODE: Data = states(1, &[s(0x42, "charge"), s(0x44, "standby"), s(0x47, "idle"), s(0x40, "other")]);

static VEHICLE_ID: Data = Data::Object(&[
    field(
        "dataSize",
        &uint8(0, 24, Unit::None),
        "Data size for vehicle ID information. 0x00 if no vehicle ID is available.",
    ),
    field("id", &raw(0, 24), "Vehicle ID informationdata specified for each vehicle."),
]);

static CHARGE_STATUS_UNTIL_I: Data =
    states(1, &[s(0xFF, "undefined"), s(0x30, "notConnected"), s(0x40, "notChargeable"), s(0x41, "chargeable")]);

static EQUIPMENT_TYPE_UNTIL_Q: Data = states(
    1,
    &[
        s(0x11, "ac_cplt"),
        s(0x12, "ac_hlc_charge"),
        s(0x21, "dc_aa_charge"),
        s(0x31, "dc_bb_charge"),
        s(0x41, "dc_ee_charge"),
        s(0x51, "dc_ff_charge"),
    ],
);
