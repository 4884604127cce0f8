//! Super class (0x0000). Source: ECHONET device objects, Appendix release R.

use super::shared;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{TIME, field, raw, row, s, states, uint8, uint16, uint32};

/// Super class, class 0x0000.
pub static SUPER_CLASS: Class =
    Class::new(0x0000, "common", "A..", ["Super class", "スーパークラス"], [PROPERTIES, SUPERSEDED]);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                               get set inf   in      data names
    row(0x80, "operationStatus",                       [R_, O_, R_], "A..",  &shared::ON_30,                                    "Operation status", "動作状態"),
    row(0x81, "installationLocation",                  [R_, R_, R_], "C..",  &Data::OneOf(&[raw(1, 1), raw(17, 17)]),           "Installation location", "設置場所"),
    row(0x82, "protocol",                              [R_, __, O_], "A..",  &raw(4, 4),                                        "Standard version information", "規格Version情報"),
    row(0x83, "id",                                    [O_, __, O_], "B..",  &raw(17, 17),                                      "Identification number", "識別番号"),
    row(0x84, "instantaneousElectricPowerConsumption", [O_, __, O_], "A..",  &uint16(0, 65533, Unit::Watt),                     "Measured instantaneous power consumption", "瞬時消費電力計測値"),
    row(0x85, "consumedCumulativeElectricEnergy",      [O_, __, O_], "A..",  &uint32(0, 999_999_999, Unit::KilowattHour).e(-3), "Measured cumulative electric energy consumption", "積算消費電力量計測値"),
    row(0x86, "manufacturerFaultCode",                 [O_, __, O_], "A..",  &raw(1, 255),                                      "Manufacturer's fault code", "メーカ異常コード"),
    row(0x87, "currentLimit",                          [O_, O_, O_], "A..",  &uint8(0, 100, Unit::Percent),                     "Current limit setting", "電流制限設定"),
    row(0x88, "faultStatus",                           [R_, __, R_], "A..",  &shared::TRUE_41,                                  "Fault status", "異常発生状態"),
    row(0x89, "faultDescription",                      [O_, __, O_], "A..",  &shared::FAULT_DESCRIPTION,                        "Fault description", "異常内容"),
    row(0x8A, "manufacturer",                          [R_, __, O_], "R..",  &raw(3, 3),                                        "Manufacturer code", "会員ID/メーカコード"),
    row(0x8B, "businessFacilityCode",                  [O_, __, O_], "A..",  &raw(3, 3),                                        "Business facility code", "事業場コード"),
    row(0x8C, "productCode",                           [O_, __, O_], "A..",  &raw(12, 12),                                      "Product code", "商品コード"),
    row(0x8D, "serialNumber",                          [O_, __, O_], "A..",  &raw(12, 12),                                      "Production number", "製造番号"),
    row(0x8E, "productionDate",                        [O_, __, O_], "A..",  &Data::Date,                                       "Production date", "製造年月日"),
    row(0x8F, "powerSaving",                           [O_, O_, O_], "A..",  &shared::TRUE_41,                                  "Power-saving operation setting", "節電動作設定"),
    row(0x93, "remoteControl",                         [O_, O_, O_], "H..",  &REMOTE_CONTROL,                                   "Remote control setting", "遠隔操作設定"),
    row(0x97, "currentTimeSetting",                    [O_, O_, O_], "A..",  &TIME,                                             "Current time setting", "現在時刻設定"),
    row(0x98, "currentDateAndTime",                    [O_, O_, O_], "A..",  &Data::Date,                                       "Current date setting", "現在年月日設定"),
    row(0x99, "powerLimit",                            [O_, O_, O_], "A..",  &uint16(0, 65533, Unit::Watt),                     "Power limit setting", "電力制限設定"),
    row(0x9A, "hourMeter",                             [O_, __, O_], "A..",  &HOUR_METER,                                       "Cumulative operating time", "積算運転時間"),
    row(0x9D, "statusChangeAnnouncementPropertyMap",   [R_, __, O_], "A..",  &raw(1, 17),                                       "Status change announcement property map", "状変アナウンスプロパティマップ"),
    row(0x9E, "setPropertyMap",                        [R_, __, O_], "A..",  &raw(1, 17),                                       "Set property map", "Setプロパティマップ"),
    row(0x9F, "getPropertyMap",                        [R_, __, O_], "A..",  &raw(1, 17),                                       "Get property map", "Getプロパティマップ"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                               get set inf   in      data names
    row(0x81, "installationLocation",                  [R_, R_, R_], "A..B", &raw(1, 1),                                        "Installation location", "設置場所"),
    row(0x83, "id",                                    [O_, O_, O_], "A..A", &raw(17, 17),                                      "Identification number", "識別番号"),
    row(0x8A, "manufacturer",                          [R_, __, O_], "A..Q", &raw(3, 3),                                        "manufacturer code", "メーカコード"),
    row(0x93, "locationInformation",                   [O_, O_, O_], "A..A", &raw(16, 16),                                      "Location information", "位置情報"),
    row(0x93, "locationInformation",                   [O_, O_, R_], "B..B", &raw(16, 16),                                      "Location information", "位置情報"),
    row(0x93, "remoteControl",                         [O_, O_, O_], "C..G", &shared::TRUE_41,                                  "Remote control setting", "遠隔操作設定"),
];

static REMOTE_CONTROL: Data = states(1, &[s(0x41, "true"), s(0x42, "false"), s(0x61, "true"), s(0x62, "false")]);

static UNIT: Data = states(1, &[s(0x41, "second"), s(0x42, "minute"), s(0x43, "hour"), s(0x44, "day")]);

static HOUR_METER: Data = Data::Object(&[
    field("unit", &UNIT, "Cumulative operating time"),
    field("time", &uint32(0, 4_294_967_295, Unit::None), "time"),
]);
