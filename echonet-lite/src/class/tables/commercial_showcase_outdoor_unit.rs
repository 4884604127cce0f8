//! Commercial show case outdoor unit (0x03D4). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{int8, raw, row, s, states, uint8};

/// Commercial show case outdoor unit, class 0x03D4.
pub static COMMERCIAL_SHOWCASE_OUTDOOR_UNIT: Class = Class::new(
    0x03D4,
    "commercialShowcaseOutdoorUnit",
    "F..",
    ["Commercial show case outdoor unit", "業務用ショーケース向け室外機"],
    [PROPERTIES, SUPERSEDED],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                   get set inf   in      data names
    row(0xAA, "exceptionalStatus",         [O_, __, O_], "F..",  &states(1, &[s(0x41, "true"), s(0x40, "false")]), "Indicates that the showcase freezer is in an exceptional status.", "特殊状態"),
    row(0xB0, "operationMode",             [R_, R_, R_], "I..",  &OPERATION_MODE,                                  "Operation mode setting", "運転モード設定"),
    row(0xBE, "outdoorAirTemperature",     [O_, __, O_], "F..",  &int8(-127, 125, Unit::Celsius),                  "Used to acquire measurements of outdoor air temperature.", "外気温度計測値"),
    row(0xCA, "groupInformation",          [R_, O_, O_], "I..",  &GROUP_INFORMATION,                               "Group information", "グループ情報"),
    row(0xE2, "compressorOperationStatus", [O_, O_, O_], "F..",  &shared::ON_30,                                   "Indicates compressor ON/OFF status.", "コンプレッサ動作状態"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                   get set inf   in      data names
    row(0xB0, "operationMode",             [R_, R_, R_], "F..H", &OPERATION_MODE,                                  "Operation mode setting", "運転モード"),
    row(0xCA, "groupInformation",          [O_, O_, O_], "F..H", &raw(1, 1),                                       "Group information", "グループ情報"),
];

static OPERATION_MODE: Data = states(1, &[s(0x41, "cooling"), s(0x42, "nonCooling")]);

static GROUP_INFORMATION: Data = Data::OneOf(&[uint8(1, 253, Unit::None), states(1, &[s(0x00, "none")])]);
