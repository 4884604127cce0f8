//! Multiple input pcs (0x02A5). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{TIME, array, field, int32, raw, row, uint8, uint32};

/// Multiple input pcs, class 0x02A5.
pub static MULTIPLE_INPUT_PCS: Class =
    Class::new(0x02A5, "multipleInputPCS", "K..", ["Multiple input pcs", "マルチ入力PCS"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                          get set inf   in     data names
    row(0x80, "operationStatus",                  [R_, O_, R_], "K..", &shared::ON_30,                                    "Operation status", "動作状態"),
    row(0x83, "id",                               [R_, __, O_], "K..", &raw(17, 17),                                      "Identification number", "識別番号"),
    row(0x89, "faultDescription",                 [R_, __, O_], "K..", &shared::FAULT_DESCRIPTION,                        "Fault description", "異常内容"),
    row(0x8C, "productCode",                      [R_, __, O_], "K..", &raw(12, 12),                                      "Product code", "商品コード"),
    row(0x97, "currentTime",                      [R_, O_, O_], "K..", &TIME,                                             "Current time setting", "現在時刻設定"),
    row(0x98, "currentDate",                      [R_, O_, O_], "K..", &Data::Date,                                       "Current date setting", "現在年月日設定"),
    row(0xD0, "powerSystemInterconnectionStatus", [R_, __, O_], "K..", &shared::INTERCONNECTION,                          "System interconnection status", "系統連系状態"),
    row(0xE0, "normalDirectionElectricEnergy",    [R_, __, O_], "K..", &ENERGY,                                           "Measured cumulative amount of electric energy (normal direction)", "積算電力量計測値(正方向)"),
    row(0xE3, "reverseDirectionElectricEnergy",   [R_, __, O_], "K..", &ENERGY,                                           "Measured cumulative amount of electric energy (reverse direction)", "積算電力量計測値(逆方向)"),
    row(0xE7, "instantaneousElectricPower",       [R_, __, O_], "K..", &int32(-2_147_483_647, 2_147_483_645, Unit::Watt), "Measured instantaneous electric power", "瞬時電力計測値"),
    row(0xE8, "connectedDeviceList",              [R_, __, O_], "K..", &CONNECTED_DEVICE_LIST,                            "List of connected devices", "接続機器リスト"),
];

static ENERGY: Data = uint32(0, 999_999_999, Unit::KilowattHour).e(-3);

static CONNECTED_DEVICE_LIST: Data = Data::Object(&[
    field("numberOfConnectedDeviceObjects", &uint8(1, 10, Unit::None), "Number of connected device objects"),
    field("connectedDeviceObjectList", &array(1, 10, 3, &raw(3, 3)), "connected device object list"),
]);
