//! Air conditioner ventilation fan (0x0134). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{array, level, ro, row, s, states, uint8, uint16};

/// Air conditioner ventilation fan, class 0x0134.
pub static AIR_CONDITIONER_VENTILATION_FAN: Class = Class::new(
    0x0134,
    "airConditionerVentilationFan",
    "A..",
    ["Air conditioner ventilation fan", "空調換気扇"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                      get set inf   in     data names
    row(0x80, "operationStatus",              [R_, R_, R_], "A..", &shared::ON_30,                          "Operation status", "動作状態"),
    row(0xA0, "airFlowLevel",                 [O_, O_, O_], "A..", &shared::LEVEL_OR_AUTO,                  "Set value of ventilation air flow rate", "換気風量設定"),
    row(0xB0, "ventilationModeAuto",          [O_, O_, O_], "M..", &shared::TRUE_41,                        "Ventilation mode automatic setting", "換気モード自動設定"),
    row(0xB1, "ventilationMethod",            [O_, O_, O_], "M..", &VENTILATION_METHOD,                     "Ventilation method setting", "換気方式設定"),
    row(0xB2, "ventilationMode",              [O_, O_, R_], "M..", &VENTILATION_MODE,                       "Ventilation mode setting", "換気モード設定"),
    row(0xB3, "highlowLevel",                 [O_, O_, O_], "M..", &level(1, 0x31, 8),                      "Cooling / heating high-low setting", "冷暖強弱設定"),
    row(0xB4, "targetHumidity",               [O_, O_, O_], "A..", &uint8(0, 100, Unit::Percent),           "Set value of room relative humidity", "室内相対湿度設定値"),
    row(0xB9, "currentConsumption",           [O_, __, O_], "M..", &uint16(0, 65533, Unit::Ampere).e(-1),   "Measured value of electric current consumption", "消費電流計測値"),
    row(0xBA, "humidity",                     [O_, __, O_], "A..", &HUMIDITY,                               "Measured value of room relative humidity", "室内相対湿度計測値"),
    row(0xBE, "outdoorTemperature",           [O_, __, O_], "M..", &shared::TEMPERATURE,                    "Measured value of outdoor air temperature", "外気温度計測値"),
    row(0xBF, "ventilationAuto",              [O_, O_, O_], "A..", &shared::TRUE_41,                        "Ventilation auto setting", "換気自動設定"),
    row(0xC0, "co2Concentration",             [O_, __, O_], "A..", &uint16(0, 65533, Unit::Ppm),            "Measured value of CO2 concentration", "CO2濃度計測値"),
    row(0xC1, "smokeDetection",               [O_, __, O_], "A..", &shared::TRUE_41,                        "Smoke (cigarette) detection status", "煙 (タバコ) 検知状態"),
    row(0xC2, "pollutionDetection",           [O_, __, O_], "A..", &shared::TRUE_41,                        "Pollution detection status", "汚れ検知状態"),
    row(0xCA, "outdoorHumidity",              [O_, __, O_], "M..", &HUMIDITY,                               "Measured value of outdoor relative humidity", "外気相対湿度計測値"),
    row(0xD0, "returnAirTemperature",         [O_, __, O_], "M..", &array(10, 10, 1, &shared::TEMPERATURE), "Measured value of return air temperature", "還気温度計測値"),
    row(0xD1, "returnAirHumidity",            [O_, __, O_], "M..", &array(10, 10, 1, &HUMIDITY),            "Measured value of return relative humidity", "還気相対湿度計測値"),
    row(0xD2, "chargingAirTemperature",       [O_, __, O_], "M..", &shared::TEMPERATURE,                    "Measured value of charging air temperature", "給気温度計測値"),
    row(0xD3, "chargingAirHumidity",          [O_, __, O_], "M..", &HUMIDITY,                               "Measured value of charging relative humidity", "給気相対湿度計測値"),
    row(0xD4, "dischargingAirTemperature",    [O_, __, O_], "M..", &shared::TEMPERATURE,                    "Measured value of discharging air temperature", "排気温度計測値"),
    row(0xD5, "dischargingAirHumidity",       [O_, __, O_], "M..", &HUMIDITY,                               "Measured value of discharging air relative humidity", "排気相対湿度計測値"),
    row(0xE0, "heatExchangerOperationStatus", [O_, O_, O_], "A..", &shared::TRUE_41,                        "Heat exchanger operation setting", "熱交換機動作設定"),
];

static VENTILATION_METHOD: Data = states(1, &[s(0x41, "blowing"), s(0x42, "airConditioning")]);

static VENTILATION_MODE: Data = states(
    1,
    &[
        s(0x41, "normal"),
        s(0x42, "heatExchange"),
        s(0x43, "cooling"),
        s(0x44, "heating"),
        s(0x45, "dehumidifying"),
        s(0x46, "humidifying"),
        s(0x40, "other"),
    ],
);

static HUMIDITY: Data = Data::OneOf(&[uint8(0, 100, Unit::Percent), states(1, &[ro(0xFD, "unmeasurable")])]);
