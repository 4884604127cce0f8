//! Commercial showcase (0x03CE). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{int8, raw, row, s, states, uint8, uint16};

/// Commercial showcase, class 0x03CE.
pub static COMMERCIAL_SHOWCASE: Class = Class::new(
    0x03CE,
    "commercialShowcase",
    "F..",
    ["Commercial showcase", "業務用ショーケース"],
    [PROPERTIES, SUPERSEDED],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                               get set inf   in      data names
    row(0xB0, "operationMode",                         [R_, R_, R_], "I..",  &OPERATION_MODE,                                        "Operation mode setting", "運転モード設定"),
    row(0xBD, "dischargeTemperature",                  [O_, __, O_], "F..",  &int8(-127, 125, Unit::Celsius),                        "Used to acquire measurements of discharge temperature.", "吐出温度計測値"),
    row(0xCA, "groupInformation",                      [R_, O_, O_], "I..",  &GROUP_INFORMATION,                                     "Group information", "グループ情報"),
    row(0xD0, "showcaseType",                          [R_, __, O_], "I..",  &SHOWCASE_TYPE,                                         "This property indicates the type of the showcase.", "ショーケースタイプ情報"),
    row(0xD1, "doorType",                              [R_, __, O_], "I..",  &states(1, &[s(0x41, "open"), s(0x42, "closed")]),      "This property indicates the type of the showcase door.", "ドアタイプ情報"),
    row(0xD2, "refrigeratorType",                      [R_, __, O_], "I..",  &states(1, &[s(0x41, "separate"), s(0x42, "builtIn")]), "This property indicates refrigerator type, such as built-in or separate.", "冷凍機内蔵型か冷凍機別置型かを示すショーケース構成情報"),
    row(0xD3, "shapeType",                             [R_, __, O_], "I..",  &SHAPE_TYPE,                                            "This property indicates the shape of the showcase.", "ショーケース形状情報"),
    row(0xD4, "purposeType",                           [R_, __, O_], "I..",  &PURPOSE_TYPE,                                          "This property indicates the purpose of the showcase, either refrigeration or freezing.", "冷蔵用途か冷凍用途かを示す庫内温度帯情報"),
    row(0xE0, "internalLightingOperationStatus",       [R_, O_, R_], "F..",  &shared::ON_30,                                         "Indicates on/off status of lighting installed inside the showcase.", "庫内照明動作状態"),
    row(0xE1, "externalLightingOperationStatus",       [O_, O_, R_], "F..",  &shared::ON_30,                                         "Indicates ON/OFF status of lighting installed outside the showcase.", "庫外照明動作状態"),
    row(0xE2, "compressorOperationStatus",             [O_, O_, O_], "F..",  &shared::ON_30,                                         "Indicates on/off status of compressor when showcase and compressor are a single unit.", "コンプレッサ動作状態"),
    row(0xE3, "internalTemperature",                   [R_, __, O_], "F..",  &int8(-127, 125, Unit::Celsius),                        "Used to acquire internal temperature measurements inside the showcase.", "庫内温度計測値"),
    row(0xE4, "ratedElectricPowerForFreezing",         [O_, __, O_], "F..",  &uint16(0, 65533, Unit::Watt),                          "Indicates rated power consumption necessary when showcase is cooling.", "冷却時に要する定格消費電力 (冷凍能力値)"),
    row(0xE5, "ratedElectricPowerForDefrostingHeater", [O_, __, O_], "F..",  &uint16(0, 65533, Unit::Watt),                          "Indicates rated power consumption when heater is operating during showcase defrosting.", "霜取りヒータ稼働時の定格消費電力"),
    row(0xE6, "ratedElectricPowerForFanMotor",         [O_, __, O_], "F..",  &uint16(0, 65533, Unit::Watt),                          "Indicates rated power consumption when showcase is operating fan motor.", "ファンモータ稼働時の定格消費電力"),
    row(0xE7, "heaterOperationStatus",                 [R_, __, O_], "F..",  &shared::ON_30,                                         "Indicates on/off status of showcases with heater for hot function.", "ホット用ヒーター動作状態 (ヒーターモード)"),
    row(0xEB, "insideLightingType",                    [O_, __, O_], "I..",  &LIGHTING_TYPE,                                         "Indicates type of lighting installed inside the showcase.", "庫内照明タイプ"),
    row(0xEC, "outsideLightingType",                   [O_, __, O_], "I..",  &LIGHTING_TYPE,                                         "Indicates type of lighting installed outside the showcase.", "庫外照明タイプ"),
    row(0xED, "targetInsideBrightness",                [O_, O_, O_], "I..",  &uint8(0, 100, Unit::Percent),                          "Indicates lighting level in % installed inside of the showcase.", "庫内照明照度レベル設定"),
    row(0xEE, "targetOutsideBrightness",               [O_, O_, O_], "I..",  &uint8(0, 100, Unit::Percent),                          "Indicates lighting level in % installed outside of the showcase.", "庫外照明照度レベル設定"),
    row(0xEF, "targetInsideTemperature",               [R_, R_, O_], "I..",  &int8(-127, 126, Unit::Celsius),                        "Set temperature setting of inside the case and acquire the current setting.", "庫内温度設定値"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                               get set inf   in      data names
    row(0xB0, "operationMode",                         [R_, R_, R_], "F..H", &OPERATION_MODE_UNTIL_H,                                "Operation mode", "運転モード"),
    row(0xCA, "groupInformation",                      [O_, O_, O_], "F..H", &raw(1, 1),                                             "Group information", "グループ情報"),
];

static OPERATION_MODE: Data =
    states(1, &[s(0x41, "cooling"), s(0x42, "nonCooling"), s(0x43, "defrosting"), s(0x40, "other")]);

static GROUP_INFORMATION: Data = Data::OneOf(&[uint8(1, 253, Unit::None), states(1, &[s(0x00, "none")])]);

static SHOWCASE_TYPE: Data = states(1, &[s(0x41, "nonFluorocarbonInverter"), s(0x42, "inverter"), s(0x40, "other")]);

static SHAPE_TYPE: Data = states(
    1,
    &[
        s(0x41, "box"),
        s(0x42, "desktop"),
        s(0x43, "tripleGlass"),
        s(0x44, "quadrupleQuintupleGlass"),
        s(0x45, "reachIn"),
        s(0x46, "glassTop"),
        s(0x47, "multistageOpenAndCeilingBlowoff"),
        s(0x48, "multistageOpenAndBacksideBlowoff"),
        s(0x49, "flat"),
        s(0x4A, "walkIn"),
        s(0x40, "other"),
    ],
);

static PURPOSE_TYPE: Data = states(1, &[s(0x41, "refrigeration"), s(0x42, "freezing")]);

static LIGHTING_TYPE: Data =
    states(1, &[s(0x41, "fluorescent"), s(0x42, "led"), s(0x43, "noLighting"), s(0x40, "other")]);

static OPERATION_MODE_UNTIL_H: Data = states(
    1,
    &[s(0x41, "cooling"), s(0x42, "nonCooling"), s(0x43, "defrosting"), s(0x44, "draining"), s(0x40, "other")],
);
