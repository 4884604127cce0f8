//! Household solar power generation (0x0279). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredC as RC};
use crate::class::table::{DATE_TIME, TIME, array, field, raw, ro, row, s, states, uint8, uint16, uint32};

/// Household solar power generation, class 0x0279.
pub static PV_POWER_GENERATION: Class = Class::new(
    0x0279,
    "pvPowerGeneration",
    "A..",
    ["Household solar power generation", "住宅用太陽光発電"],
    [PROPERTIES, SUPERSEDED],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                   get set inf   in      data names
    row(0x83, "id",                                        [R_, __, O_], "K..",  &raw(17, 17),                         "Identification number", "識別番号"),
    row(0x89, "faultDescription",                          [R_, __, O_], "R..",  &shared::FAULT_DESCRIPTION,           "Fault description", "異常内容"),
    row(0x8C, "productCode",                               [R_, __, O_], "R..",  &raw(12, 12),                         "Product code", "商品コード"),
    row(0x97, "currentTime",                               [RC, O_, O_], "K..",  &TIME,                                "Current time setting", "現在時刻設定"),
    row(0x98, "currentDate",                               [RC, O_, O_], "K..",  &Data::Date,                          "Current date setting", "現在年月日設定"),
    row(0xA0, "outputPowerControl1",                       [RC, RC, O_], "K..",  &uint8(0, 100, Unit::Percent),        "Output power control setting 1", "出力制御設定1"),
    row(0xA1, "outputPowerControl2",                       [RC, RC, O_], "K..",  &uint16(0, 65533, Unit::Watt),        "Output power control setting 2", "出力制御設定2"),
    row(0xA2, "surplusPurchaseControl",                    [RC, O_, O_], "K..",  &shared::TRUE_41,                     "Function to control purchase surplus electricity setting", "余剰買取制御機能設定"),
    row(0xB0, "outputPowerControlSchedule",                [RC, __, O_], "K..",  &OUTPUT_POWER_CONTROL_SCHEDULE,       "Output power controlling schedule", "出力制御スケジュール"),
    row(0xB1, "updateScheduleDateAndTime",                 [RC, __, R_], "K..",  &UPDATE_SCHEDULE_DATE_AND_TIME,       "Next access date and time", "次回アクセス日時"),
    row(0xB2, "surplusPurchaseControlType",                [RC, __, O_], "K..",  &shared::TRUE_41,                     "Function to control the type of surplus electricity purchase", "余剰買取制御機能タイプ"),
    row(0xB3, "outputPowerChangeTime",                     [O_, __, O_], "K..",  &uint16(0, 65533, Unit::Second),      "Output power change time setting value", "出力変化時間設定値"),
    row(0xB4, "upperLimitClip",                            [RC, __, O_], "K..",  &POWER_OR_NO_SETTING,                 "Upper limit clip setting value", "上限クリップ設定値"),
    row(0xC0, "operatingPowerFactor",                      [O_, __, O_], "K..",  &uint8(0, 100, Unit::Percent),        "Operation power factor setting value", "運転力率設定値"),
    row(0xC1, "contractType",                              [R_, R_, O_], "K..",  &CONTRACT_TYPE,                       "FIT contract type", "FIT契約タイプ"),
    row(0xC2, "selfConsumptionType",                       [R_, __, O_], "K..",  &SELF_CONSUMPTION_TYPE,               "Self-consumption type", "自家消費タイプ"),
    row(0xC3, "approvedCapacity",                          [RC, __, O_], "K..",  &POWER_OR_NO_SETTING,                 "Capacity approved by equipment", "設備認定容量"),
    row(0xC4, "conversionCoefficient",                     [RC, __, O_], "K..",  &uint8(0, 100, Unit::Percent),        "Conversion coefficient", "換算係数"),
    row(0xD0, "powerSystemInterconnectionStatus",          [R_, __, O_], "K..",  &POWER_SYSTEM_INTERCONNECTION_STATUS, "System-interconnected type", "系統連系状態"),
    row(0xD1, "outputPowerRestraintStatus",                [R_, __, O_], "K..",  &OUTPUT_POWER_RESTRAINT_STATUS,       "Output power restraint status", "出力抑制状態"),
    row(0xE0, "instantaneousElectricPowerGeneration",      [R_, __, O_], "A..",  &uint16(0, 65533, Unit::Watt),        "Measured instantaneous amount of electricity generated", "瞬時発電電力計測値"),
    row(0xE1, "cumulativeElectricEnergyOfGeneration",      [R_, __, O_], "A..",  &ENERGY,                              "Measured cumulative amount of electric energy generated", "積算発電電力量計測値"),
    row(0xE2, "resetCumulativeElectricEnergyOfGeneration", [__, O_, __], "A..",  &shared::RESET_00,                    "Resetting cumulative amount of electric energy generated", "積算発電電力量リセット設定"),
    row(0xE3, "cumulativeElectricEnergySold",              [O_, __, O_], "A..",  &ENERGY,                              "Measured cumulative amount of electric energy sold", "積算売電電力量計測値"),
    row(0xE4, "resetCumulativeElectricEnergySold",         [__, O_, __], "A..",  &shared::RESET_00,                    "Resetting cumulative amount of electric energy sold", "積算売電電力量リセット設定"),
    row(0xE5, "powerGenerationOutputLimit1",               [O_, O_, O_], "A..",  &uint8(0, 100, Unit::Percent),        "Power generation output limit setting 1", "発電電力制限設定1"),
    row(0xE6, "powerGenerationOutputLimit2",               [O_, O_, O_], "A..",  &uint16(0, 65533, Unit::Watt),        "Power generation output limit setting 2", "発電電力制限設定2"),
    row(0xE7, "limitElectricEnergySold",                   [O_, O_, O_], "A..",  &uint16(0, 65533, Unit::Watt),        "Limit setting for the amount of electricity sold", "売電電力制限設定"),
    row(0xE8, "ratedElectricPowerOfgeneration",            [R_, O_, O_], "K..",  &POWER_OR_NO_SETTING,                 "Rated power generation output (System-interconnected)", "定格発電電力値(系統連系時)"),
    row(0xE9, "ratedElectricPowerOfgenerationIndependent", [O_, O_, O_], "C..",  &uint16(0, 65533, Unit::Watt),        "Rated power generation output (Independent)", "定格発電電力値(独立時)"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                                   get set inf   in      data names
    row(0xD0, "powerSystemInterconnectionStatus",          [O_, __, O_], "A..J", &shared::INTERCONNECTION,             "System-interconnected type", "系統連系状態"),
    row(0xE8, "ratedElectricPowerOfgeneration",            [O_, O_, O_], "A..J", &uint16(0, 65533, Unit::Watt),        "Rated power generation output (System-interconnected)", "定格発電電力値(系統連系時)"),
];

static DATE: Data = Data::OneOf(&[Data::Date, states(4, &[ro(0xFFFFFFFF, "unknown")])]);

static POWER_CONTROL_RATIO_ITEM: Data = Data::OneOf(&[uint8(0, 100, Unit::Percent), states(1, &[ro(0xFF, "unknown")])]);

static OUTPUT_POWER_CONTROL_SCHEDULE: Data = Data::Object(&[
    field("date", &DATE, "Current date (YYYY: MM: DD)"),
    field(
        "powerControlRatio",
        &array(96, 96, 1, &POWER_CONTROL_RATIO_ITEM),
        "0x00-0x64 (0-100%) x 96 (values every 30 minutes, for 2 days)",
    ),
]);

static UPDATE_SCHEDULE_DATE_AND_TIME: Data =
    Data::OneOf(&[DATE_TIME, states(7, &[s(0xFFFFFFFFFFFFFF, "noControlNoSchedule")])]);

static POWER_OR_NO_SETTING: Data = Data::OneOf(&[uint16(0, 65533, Unit::Watt), states(2, &[ro(0xFFFF, "noSetting")])]);

static CONTRACT_TYPE: Data = states(1, &[s(0x41, "fit"), s(0x42, "non_fit"), s(0x43, "undefined")]);

static SELF_CONSUMPTION_TYPE: Data =
    states(1, &[s(0x41, "withSelfConsumption"), s(0x42, "withoutSelfConsumption"), s(0x43, "unknown")]);

static POWER_SYSTEM_INTERCONNECTION_STATUS: Data = states(
    1,
    &[
        s(0x00, "reversePowerFlowAcceptable"),
        s(0x01, "independent"),
        s(0x02, "reversePowerFlowNotAcceptable"),
        s(0x03, "unknown"),
    ],
);

static OUTPUT_POWER_RESTRAINT_STATUS: Data = states(
    1,
    &[
        s(0x41, "outputControl"),
        s(0x42, "exceptControl"),
        s(0x43, "reasonUnknown"),
        s(0x44, "notPowerRestraint"),
        s(0x45, "unknown"),
    ],
);

static ENERGY: Data = uint32(0, 999_999_999, Unit::KilowattHour).e(-3);
