//! Controller (0x05FF). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_};
use crate::class::table::{raw, row, s, states, uint16};

/// Controller, class 0x05FF.
pub static CONTROLLER: Class =
    Class::new(0x05FF, "controller", "A..", ["Controller", "コントローラ"], [PROPERTIES, SUPERSEDED])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                   get set inf   in      data names
    row(0xC0, "controllerId",              [O_, __, O_], "G..",  &raw(1, 40),                   "Controller ID", "コントローラID"),
    row(0xC1, "numberOfDevices",           [O_, __, O_], "G..",  &uint16(0, 65533, Unit::None), "Number of devices controlled", "管理台数"),
    row(0xC2, "deviceListIndex",           [O_, O_, O_], "G..",  &uint16(0, 65533, Unit::None), "Index", "インデックス"),
    row(0xC3, "deviceId",                  [O_, __, O_], "G..",  &raw(1, 40),                   "Device ID", "機器ID"),
    row(0xC4, "deviceType",                [O_, __, O_], "G..",  &raw(2, 2),                    "Device type", "機種"),
    row(0xC5, "name",                      [O_, __, O_], "G..",  &raw(1, 64),                   "Name", "名称"),
    row(0xC6, "connectionStatus",          [O_, __, O_], "G..",  &CONNECTION_STATUS,            "Connection status", "接続状態"),
    row(0xC7, "businessCode",              [O_, __, O_], "I..",  &raw(3, 3),                    "Business code of the device to be controlled", "管理対象機器事業者コード"),
    row(0xC8, "productCode",               [O_, __, O_], "I..",  &raw(1, 12),                   "Product code of the device to be controlled", "管理対象機器商品コード"),
    row(0xC9, "manufactureDate",           [O_, __, O_], "I..",  &Data::Date,                   "Manufacture date of the device to be controlled", "管理対象機器製造年月日"),
    row(0xCA, "renewalDate",               [O_, __, O_], "I..",  &Data::Date,                   "Registered information renewal date of the device to be controlled", "管理対象機器登録情報更新年月日"),
    row(0xCB, "renewalVersionInformation", [O_, __, O_], "I..",  &uint16(0, 65533, Unit::None), "Registered information renewal version information of the device to be controlled", "管理対象機器登録情報更新バージョン情報"),
    row(0xCC, "place",                     [O_, __, O_], "I..",  &raw(1, 1),                    "Place to install device to be controlled", "管理対象機器設置場所"),
    row(0xCD, "faultStatusOfDevice",       [O_, __, O_], "I..",  &shared::TRUE_41,              "Fault status of device to be controlled", "管理対象機器異常発生状態"),
    row(0xCE, "setPropertyMapForDevice",   [O_, __, O_], "I..",  &raw(1, 17),                   "Set property map for device to be controlled", "管理対象機器Setプロパティマップ"),
    row(0xCF, "getPropertyMapForDevice",   [O_, __, O_], "I..",  &raw(1, 17),                   "Get property map for device to be controlled", "管理対象機器Getプロパティマップ"),
    row(0xE0, "address",                   [O_, __, O_], "I..",  &raw(1, 255),                  "Address of installation location", "設置住所"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                   get set inf   in      data names
    row(0xC7, "businessCode",              [O_, __, O_], "G..H", &raw(3, 3),                    "Business code of the device to be controlled", "管理機器事業者コード"),
    row(0xC8, "productCode",               [O_, __, O_], "G..H", &raw(1, 12),                   "Product code of the device to be controlled", "管理機器商品コード"),
    row(0xC9, "manufactureDate",           [O_, __, O_], "G..H", &Data::Date,                   "Manufacture date of the device to be controlled", "管理機器製造年月日"),
    row(0xCA, "renewalDate",               [O_, __, O_], "G..H", &Data::Date,                   "Registered information renewal date of the device to be controlled", "管理機器登録情報更新年月日"),
    row(0xCB, "renewalVersionInformation", [O_, __, O_], "G..H", &uint16(0, 65533, Unit::None), "Registered information renewal version information of the device to be controlled", "管理機器登録情報更新バージョン情報"),
];

static CONNECTION_STATUS: Data =
    states(1, &[s(0x41, "connected"), s(0x42, "disconnected"), s(0x43, "notRegistered"), s(0x44, "deleted")]);
