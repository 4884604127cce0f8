//! Package-type commercial air conditioner (indoor unit) (except those for facilities) (0x0156). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{row, s, states, uint8};

/// Package-type commercial air conditioner (indoor unit) (except those for facilities), class 0x0156.
pub static COMMERCIAL_AIR_CONDITIONER_INDOOR_UNIT: Class = Class::new(
    0x0156,
    "commercialAirConditionerIndoorUnit",
    "I..",
    [
        "Package-type commercial air conditioner (indoor unit) (except those for facilities)",
        "業務用パッケージエアコン室内機 (設備用を除く)",
    ],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                      get set inf   in     data names
    row(0x80, "operationStatus",              [R_, R_, R_], "I..", &shared::ON_30,                   "Operation status", "動作状態"),
    row(0xAC, "thermostatState",              [R_, __, O_], "I..", &shared::TRUE_41,                 "Thermostat state", "サーモ状態"),
    row(0xAE, "automaticOperationModeStatus", [R_, __, O_], "I..", &AUTOMATIC_OPERATION_MODE_STATUS, "Current function (automatic operation mode)", "自動運転時運転モード状態"),
    row(0xB0, "operationMode",                [R_, R_, R_], "I..", &OPERATION_MODE,                  "Operation mode setting", "運転モード設定"),
    row(0xB3, "targetTemperature",            [R_, R_, R_], "I..", &uint8(0, 50, Unit::Celsius),     "Temperature setting", "温度設定値"),
    row(0xBB, "roomTemperature",              [O_, __, O_], "I..", &shared::TEMPERATURE,             "Measured indoor unit temperature", "室内機温度計測値"),
    row(0xCA, "groupInformation",             [R_, __, O_], "I..", &GROUP_INFORMATION,               "Group information", "グループ情報"),
    row(0xDB, "powerConsumption",             [O_, __, O_], "I..", &POWER_CONSUMPTION,               "Power consumption range for indoor units", "室内機消費電力範囲"),
];

static AUTOMATIC_OPERATION_MODE_STATUS: Data = states(
    1,
    &[s(0x42, "cooling"), s(0x43, "heating"), s(0x44, "dehumidification"), s(0x45, "circulation"), s(0x40, "other")],
);

static OPERATION_MODE: Data = states(
    1,
    &[s(0x41, "auto"), s(0x42, "cooling"), s(0x43, "heating"), s(0x44, "dehumidification"), s(0x45, "circulation")],
);

static GROUP_INFORMATION: Data = Data::OneOf(&[uint8(1, 253, Unit::None), states(1, &[s(0x00, "noSetting")])]);

static POWER_CONSUMPTION: Data = states(
    1,
    &[
        s(0x01, "less50W"),
        s(0x02, "less100W"),
        s(0x03, "less150W"),
        s(0x04, "less200W"),
        s(0x05, "200WOrMore"),
        s(0x00, "undefined"),
    ],
);
