//! Refrigerator (0x03B7). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredO as RO};
use crate::class::table::{field, int8, raw, row, s, states, uint8, uint16};

/// Refrigerator, class 0x03B7.
pub static REFRIGERATOR: Class =
    Class::new(0x03B7, "refrigerator", "A..", ["Refrigerator", "冷凍冷蔵庫"], [PROPERTIES, &[]]).inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                           get set inf   in     data names
    row(0xA0, "quickFreeze",                       [O_, O_, O_], "A..", &QUICK,                                                 "Quick freeze function setting", "急速冷凍動作設定"),
    row(0xA1, "quickRefrigeration",                [O_, O_, O_], "A..", &QUICK,                                                 "Quick refrigeration function setting", "急速冷蔵動作設定"),
    row(0xA4, "icemaker",                          [O_, O_, O_], "A..", &ICEMAKER,                                              "Icemaker setting", "製氷許可設定"),
    row(0xA5, "icemakerStatus",                    [O_, __, O_], "A..", &states(1, &[s(0x41, "running"), s(0x42, "stopped")]),  "Icemaker operation status", "製氷動作状態"),
    row(0xA6, "icemakerTankStatus",                [O_, __, O_], "A..", &states(1, &[s(0x41, "normal"), s(0x42, "warning")]),   "Icemaker tank status", "製氷用給水タンク状態"),
    row(0xA8, "refrigeratorHumidification",        [O_, O_, O_], "A..", &shared::ON_41,                                         "Refrigerator compartment humidification function setting", "冷蔵室加湿動作設定"),
    row(0xA9, "vegetableHumidification",           [O_, O_, O_], "A..", &shared::ON_41,                                         "Vegetable compartment humidification function setting", "野菜室加湿動作設定"),
    row(0xAD, "deodorization",                     [O_, O_, O_], "A..", &shared::ON_41,                                         "Deodorization function setting", "脱臭動作設定"),
    row(0xB0, "doorOpenCloseStatus",               [RO, __, O_], "A..", &states(1, &[s(0x41, "anyOpen"), s(0x42, "allClose")]), "Door open/close status", "ドア開閉状態"),
    row(0xB1, "doorOpenWarning",                   [O_, __, R_], "A..", &shared::TRUE_41,                                       "Door open warning", "ドア開放警告状態"),
    row(0xB2, "refrigeratorCompartmentDoorStatus", [O_, __, O_], "A..", &DOOR,                                                  "Refrigerator compartment door status", "冷蔵室ドア開閉状態"),
    row(0xB3, "freezerCompartmentDoorStatus",      [O_, __, O_], "A..", &DOOR,                                                  "Freezer compartment door status", "冷凍室ドア開閉状態"),
    row(0xB4, "iceCompartmentDoorStatus",          [O_, __, O_], "A..", &DOOR,                                                  "Ice compartment door status", "氷温室ドア開閉状態"),
    row(0xB5, "vegetableCompartmentDoorStatus",    [O_, __, O_], "A..", &DOOR,                                                  "Vegetable compartment door status", "野菜室ドア開閉状態"),
    row(0xB6, "multiModeCompartmentDoorStatus",    [O_, __, O_], "A..", &DOOR,                                                  "Multi-refrigerating mode compartment door status", "切換室ドア開閉状態"),
    row(0xD1, "measuredRefrigeratorTemperature",   [O_, __, O_], "A..", &int8(-127, 126, Unit::Celsius),                        "Measured refrigerator compartment temperature", "冷蔵室温度計測値"),
    row(0xD2, "measuredFreezerTemperature",        [O_, __, O_], "A..", &int8(-127, 126, Unit::Celsius),                        "Measured freezer compartment temperature", "冷凍室温度計測値"),
    row(0xD3, "measuredIceTemperature",            [O_, __, O_], "A..", &int8(-127, 126, Unit::Celsius),                        "Measured subzero-fresh compartment temperature", "氷温室温度計測値"),
    row(0xD4, "measuredVegetableTemperature",      [O_, __, O_], "A..", &int8(-127, 126, Unit::Celsius),                        "Measured vegetable compartment temperature", "野菜室温度計測値"),
    row(0xD5, "measuredMultiModeTemperature",      [O_, __, O_], "A..", &int8(-127, 126, Unit::Celsius),                        "Measured multi-refrigerating mode compartment temperature", "切換室温度計測値"),
    row(0xD8, "compressorRotationSpeed",           [O_, __, O_], "A..", &COMPRESSOR_ROTATION_SPEED,                             "Compressor rotation speed", "圧縮機回転数レベル"),
    row(0xDA, "electricCurrentConsumption",        [O_, __, O_], "A..", &uint16(0, 65533, Unit::Ampere).e(-1),                  "Measured electric current consumption", "消費電流計測値"),
    row(0xDC, "ratedPowerConsumption",             [O_, __, O_], "A..", &uint16(0, 65533, Unit::Watt),                          "Rated power consumption", "定格消費電力値"),
    row(0xE0, "maximumAllowableTemperatureLevel",  [O_, __, O_], "A..", &MAXIMUM_ALLOWABLE_TEMPERATURE_LEVEL,                   "Maximum allowable temperature setting level", "設定可能温度レベル最大値"),
    row(0xE2, "refrigeratorTemperature",           [O_, O_, O_], "A..", &int8(-127, 126, Unit::Celsius),                        "Refrigerator compartment temperature setting", "冷蔵室温度設定値"),
    row(0xE3, "freezerTemperature",                [O_, O_, O_], "A..", &int8(-127, 126, Unit::Celsius),                        "Freezer compartment temperature setting", "冷凍室温度設定値"),
    row(0xE4, "iceTemperature",                    [O_, O_, O_], "A..", &int8(-127, 126, Unit::Celsius),                        "Ice compartment temperature setting", "氷温室温度設定値"),
    row(0xE5, "vegetableTemperature",              [O_, O_, O_], "A..", &int8(-127, 126, Unit::Celsius),                        "Vegetable compartment temperature setting", "野菜室温度設定値"),
    row(0xE6, "multiModeTemperature",              [O_, O_, O_], "A..", &int8(-127, 126, Unit::Celsius),                        "Multi-refrigerating mode compartment temperature setting", "切換室温度設定値"),
    row(0xE9, "refrigeratorTemperatureLevel",      [O_, O_, O_], "A..", &uint8(1, 255, Unit::None),                             "Refrigerator compartment temperature level setting", "冷蔵室温度レベル設定"),
    row(0xEA, "freezerTemperatureLevel",           [O_, O_, O_], "A..", &uint8(1, 255, Unit::None),                             "Freezer compartment temperature level setting", "冷凍室温度レベル設定"),
    row(0xEB, "iceTemperatureLevel",               [O_, O_, O_], "A..", &uint8(1, 255, Unit::None),                             "Ice compartment temperature level setting", "氷温室温度レベル設定"),
    row(0xEC, "vegetableTemperatureLevel",         [O_, O_, O_], "A..", &uint8(1, 255, Unit::None),                             "Vegetable compartment temperature level setting", "野菜室温度レベル設定"),
    row(0xED, "multiModeTemperatureLevel",         [O_, O_, O_], "A..", &uint8(1, 255, Unit::None),                             "Multi-refrigerating mode compartment temperature level setting", "切換室温度レベル設定"),
];

static QUICK: Data = states(1, &[s(0x41, "normal"), s(0x42, "quick"), s(0x43, "standby")]);

static ICEMAKER: Data = states(1, &[s(0x41, "enable"), s(0x42, "disable"), s(0x43, "standby")]);

static DOOR: Data = states(1, &[s(0x41, "open"), s(0x42, "close")]);

static COMPRESSOR_ROTATION_SPEED: Data = Data::Object(&[
    field("maximumRotationSpeed", &uint8(1, 255, Unit::None), "Maximum rotation speed level"),
    field("rotationSpeed", &uint8(0, 255, Unit::None), "Rotation speed level(Value 0 represents Stop)"),
]);

static MAXIMUM_ALLOWABLE_TEMPERATURE_LEVEL: Data = Data::Object(&[
    field("refrigeratorCompartmentLevel", &uint8(0, 255, Unit::None), "Refrigerator compartment"),
    field("freezerCompartmentLevel", &uint8(0, 255, Unit::None), "Freezer compartment"),
    field("iceCompartmentLevel", &uint8(0, 255, Unit::None), "Subzero-fresh compartment"),
    field("vegetableCompartmentLevel", &uint8(0, 255, Unit::None), "Vegetable compartment"),
    field("multiModeCompartmentLevel", &uint8(0, 255, Unit::None), "Multi-refrigerating mode compartment"),
    field("RFU", &raw(3, 3), "Reserved for future use"),
]);
