//! Frequency regulation (0x02A7). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredC as RC};
use crate::class::table::{
    TIME, array, bitmap, field, flag, int16, int32, raw, ro, row, s, states, uint8, uint16, uint32,
};

/// Frequency regulation, class 0x02A7.
pub static FREQUENCY_REGULATION: Class =
    Class::new(0x02A7, "frequencyRegulation", "R..", ["Frequency regulation", "周波数制御"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                             get set inf   in     data names
    row(0x8C, "productCode",                         [R_, __, O_], "R..", &raw(12, 12),                                         "Product code", "商品コード"),
    row(0x8D, "serialNumber",                        [R_, __, O_], "R..", &raw(12, 12),                                         "Production number", "製造番号"),
    row(0xC0, "controlPoint",                        [R_, O_, O_], "R..", &CONTROL_POINT,                                       "Control point", "制御ポイント"),
    row(0xC1, "frequencyRegulationParameter",        [R_, R_, O_], "R..", &FREQUENCY_REGULATION_PARAMETER,                      "Frequency regulation parameter setting", "周波数制御パラメータ設定"),
    row(0xC2, "emTargetPowerValue",                  [R_, R_, O_], "R..", &EM_TARGET_POWER_VALUE,                               "EM target power value", "EM電力目標値"),
    row(0xC3, "commandControlParameter",             [RC, RC, O_], "R..", &COMMAND_CONTROL_PARAMETER,                           "Command control parameter setting", "指令制御パラメータ設定"),
    row(0xC4, "autonomousControlParameter1",         [RC, RC, O_], "R..", &AUTONOMOUS_CONTROL_PARAMETER1,                       "Autonomous control parameter setting 1", "自端制御パラメータ設定1"),
    row(0xC5, "autonomousControlParameter2",         [O_, O_, O_], "R..", &AUTONOMOUS_CONTROL_PARAMETER2,                       "Autonomous control parameter setting 2", "自端制御パラメータ設定2"),
    row(0xC6, "autonomousControlParameter3",         [O_, O_, O_], "R..", &array(5, 5, 8, &AUTONOMOUS_CONTROL_PARAMETER3_ITEM), "Autonomous control parameter setting 3", "自端制御パラメータ設定3"),
    row(0xC7, "referenceFrequencyCorrectionValue",   [O_, O_, O_], "R..", &int16(-100, 100, Unit::Millihertz),                  "Correction value for reference frequency", "基準周波数補正値"),
    row(0xD0, "transmittableReceivableCycle",        [R_, __, O_], "R..", &uint16(0, 65535, Unit::Millisecond).e(1),            "Transmittable/receivable cycle", "送受信可能周期"),
    row(0xD1, "deviceType",                          [R_, __, O_], "R..", &raw(3, 3),                                           "Device type", "機器種別"),
    row(0xD2, "acMaxPower",                          [R_, __, O_], "R..", &AC_MAX_POWER,                                        "Values of AC max power", "最大電力値"),
    row(0xD3, "contractPower",                       [O_, __, O_], "R..", &uint32(0, 999_999_999, Unit::Watt),                  "Value of contract power", "契約電力値"),
    row(0xD4, "deviceControlPerformance",            [RC, __, O_], "R..", &DEVICE_CONTROL_PERFORMANCE,                          "Device control performance", "機器制御性能"),
    row(0xD5, "frequencyRegulationInformation",      [R_, __, R_], "R..", &FREQUENCY_REGULATION_INFORMATION,                    "Information of frequency regulation", "周波数制御情報"),
    row(0xD6, "informationOnControlContinuation",    [R_, __, O_], "R..", &raw(2, 2),                                           "Detailed information of whether the device can continue to control", "制御続行可否詳細情報"),
    row(0xD7, "emInformation",                       [R_, __, O_], "R..", &EM_INFORMATION,                                      "Information of EM", "EM情報"),
    row(0xD8, "pcsMeasuredInstantaneousValue",       [R_, __, O_], "R..", &PCS_MEASURED_INSTANTANEOUS_VALUE,                    "Measured instantaneous values of PCS", "PCS瞬時計測値"),
    row(0xD9, "responseInformation",                 [R_, __, O_], "R..", &RESPONSE_INFORMATION,                                "Response information", "応動情報"),
    row(0xDA, "powerCapability",                     [R_, __, O_], "R..", &POWER_CAPABILITY,                                    "Instantaneous input and output power capability value", "瞬時入出力可能電力値"),
    row(0xDB, "chargeableDischargeablePower",        [O_, __, O_], "R..", &CHARGEABLE_DISCHARGEABLE_POWER,                      "Instantaneous chargeable and dischargeable power values", "瞬時充放電可能電力値"),
    row(0xDC, "batteryStatus",                       [R_, __, O_], "R..", &BATTERY_STATUS,                                      "Battery status", "蓄電池状態"),
    row(0xDE, "cumulativeEnergy",                    [R_, __, O_], "R..", &CUMULATIVE_ENERGY,                                   "Cumulative electric energy measurement values", "積算電力量計測値"),
    row(0xDF, "cumulativeFrequencyRegulationEnergy", [O_, __, O_], "R..", &CUMULATIVE_FREQUENCY_REGULATION_ENERGY,              "Cumulative electric energy measurement by frequency regulation", "周波数制御積算電力量計測値"),
    row(0xE0, "emPlanInformation",                   [O_, __, O_], "R..", &PLAN_INFORMATION,                                    "EM planned information", "EM計画情報"),
    row(0xE1, "emPlan1",                             [O_, __, O_], "R..", &array(48, 48, 4, &EM_TARGET_POWER_VALUE),            "EM planned value 1", "EM計画値1"),
    row(0xE2, "emPlan2",                             [O_, __, O_], "R..", &array(48, 48, 4, &EM_TARGET_POWER_VALUE),            "EM planned value 2", "EM計画値2"),
    row(0xE3, "upSupplyPlanInformation",             [O_, __, O_], "R..", &PLAN_INFORMATION,                                    "Information of supply plan for regulation up", "上げ調整力供出計画情報"),
    row(0xE4, "upSupplyPlan1",                       [O_, __, O_], "R..", &array(48, 48, 4, &EM_TARGET_POWER_VALUE),            "Supply plan-1 for regulation up", "上げ調整力供出計画値1"),
    row(0xE5, "upSupplyPlan2",                       [O_, __, O_], "R..", &array(48, 48, 4, &EM_TARGET_POWER_VALUE),            "Supply plan-2 for regulation up", "上げ調整力供出計画値2"),
    row(0xE6, "downSupplyPlanInformation",           [O_, __, O_], "R..", &PLAN_INFORMATION,                                    "Information of supply plan for regulation down", "下げ調整力供出計画情報"),
    row(0xE7, "downSupplyPlan1",                     [O_, __, O_], "R..", &array(48, 48, 4, &EM_TARGET_POWER_VALUE),            "Supply plan-1 for regulation down", "下げ調整力供出計画値1"),
    row(0xE8, "downSupplyPlan2",                     [O_, __, O_], "R..", &array(48, 48, 4, &EM_TARGET_POWER_VALUE),            "Supply plan-2 for regulation down", "下げ調整力供出計画値2"),
];

static CONTROL_POINT: Data = states(1, &[s(0x30, "devicePoint"), s(0x31, "powerReceivingPoint")]);

static FREQUENCY_REGULATION_MODE: Data = bitmap(
    2,
    &[
        flag(0, 0b0000_0001, "commandControl", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0000_0010, "autonomousControl", &shared::BIT_TRUE_FALSE),
        flag(1, 0b0000_0001, "emPlannedValueControl", &shared::BIT_TRUE_FALSE),
        flag(1, 0b0000_0010, "emTargetValueControl", &shared::BIT_TRUE_FALSE),
    ],
);

static FREQUENCY_REGULATION_PARAMETER: Data = Data::Object(&[
    field("frequencyRegulationMode", &FREQUENCY_REGULATION_MODE, "frequency regulation mode"),
    field("noCommunicationWatchdogTimer", &uint16(0, 65535, Unit::Millisecond).e(1), "No-communication watchdog timer"),
]);

static EM_TARGET_POWER_VALUE: Data = int32(-999_999_999, 999_999_999, Unit::Watt);

static COMMAND_CONTROL_PARAMETER: Data = Data::Object(&[
    field("instructionNo", &uint32(0, 999_999_999, Unit::None), "Command control instruction number"),
    field("powerValue", &EM_TARGET_POWER_VALUE, "Power value for the instruction. (W)"),
]);

static POWER_CONTROL_RATE_NORMAL: Data = uint32(0, 999_999_999, Unit::WattPerMillihertz);

static AUTONOMOUS_CONTROL_PARAMETER1: Data = Data::Object(&[
    field("deadBandWidthPlus", &int16(0, 1000, Unit::Millihertz), "Width of dead band. (Plus side) (mHz)"),
    field("deadBandWidthMinus", &int16(0, 1000, Unit::Millihertz), "Width of dead band. (Minus side) (mHz)"),
    field("powerControlRateNormal", &POWER_CONTROL_RATE_NORMAL, "Rate of power control.  (Normal direction) (W/mHz)"),
    field("powerControlRateReverse", &POWER_CONTROL_RATE_NORMAL, "Rate of power control.  (Reverse direction) (W/mHz)"),
    field(
        "powerUpperLimitNormal",
        &int32(0, 999_999_999, Unit::Watt),
        "Power upper limit for autonomous control. (Normal direction) (W)",
    ),
    field(
        "powerUpperLimitReverse",
        &int32(0, 999_999_999, Unit::Watt),
        "Power upper limit for autonomous control. (Reverse direction) (W)",
    ),
    field(
        "abnormalFrequencyDeviationThreshold (mHz)",
        &uint16(0, 1000, Unit::Millihertz),
        "Abnormal frequency deviation threshold (mHz)",
    ),
]);

static RATE_LIMITER_NORMAL: Data = uint32(0, 999_999_999, Unit::WattPerSecond);

static AUTONOMOUS_CONTROL_PARAMETER2: Data = Data::Object(&[
    field("timeConstantLpf", &uint16(0, 65535, Unit::None), "Time constant for filter. (LPF)"),
    field("timeConstantHpf", &uint16(0, 65535, Unit::None), "Time constant for filter. (HPF)"),
    field("pIControlProportionalGain", &uint16(0, 65535, Unit::None), "PI control coefficient. (Proportional gain)"),
    field("pIControlIntegralGain", &uint16(0, 65535, Unit::None), "PI control coefficient. (Integral gain)"),
    field("rateLimiterNormal", &RATE_LIMITER_NORMAL, "Rate limiter. (Normal direction) (W/sec)"),
    field("rateLimiterReverse", &RATE_LIMITER_NORMAL, "Rate limiter. (Reverse direction) (W/sec)"),
]);

static AUTONOMOUS_CONTROL_PARAMETER3_ITEM: Data = Data::Object(&[
    field("powerBeforeCorrection", &EM_TARGET_POWER_VALUE, "Autonomous control power before correction"),
    field("powerAfterCorrection", &EM_TARGET_POWER_VALUE, "Autonomous control power after correction"),
]);

static AC_MAX_POWER: Data = Data::Object(&[
    field("input", &uint32(0, 999_999_999, Unit::Watt), "Maximum input power"),
    field("output", &uint32(0, 999_999_999, Unit::Watt), "Maximum output power"),
]);

static DEVICE_CONTROL_PERFORMANCE: Data = Data::Object(&[
    field("deadBandWidthUpperLimit", &uint16(0, 1000, Unit::Millihertz), "Upper limit of dead band width. (mHz)"),
    field("deadBandWidthLowerLimit", &uint16(0, 1000, Unit::Millihertz), "Lower limit of dead band width. (mHz)"),
    field("powerChangeRateUpperLimit", &POWER_CONTROL_RATE_NORMAL, "Upper limit of power change rate. (W/mHz)"),
    field("powerChangeRateLowerLimit", &POWER_CONTROL_RATE_NORMAL, "Lower limit of power change rate. (W/mHz)"),
    field("powerChangeSpeedUpperLimit", &RATE_LIMITER_NORMAL, "Upper limit of power change speed. (W/sec)"),
    field("powerChangeSpeedLowerLimit", &RATE_LIMITER_NORMAL, "Lower limit of power change speed. (W/sec)"),
]);

static FLAG: Data = states(0, &[s(0x00, "impossible"), s(0x01, "possible")]);

static POSSIBILITY_TO_PARTICIPATE: Data = bitmap(
    2,
    &[
        flag(0, 0b0000_0001, "commandControl", &FLAG),
        flag(0, 0b0000_0010, "autonomousControl", &FLAG),
        flag(1, 0b0000_0001, "emPlannedValueControl", &FLAG),
        flag(1, 0b0000_0010, "emTargetValueControl", &FLAG),
    ],
);

static FREQUENCY_REGULATION_STATUS: Data = bitmap(
    2,
    &[
        flag(0, 0b0000_0001, "commandControl", &shared::BIT_TRUE_FALSE),
        flag(0, 0b0000_0010, "autonomousControl", &shared::BIT_TRUE_FALSE),
        flag(1, 0b0000_0001, "emPlannedValueControl", &shared::BIT_TRUE_FALSE),
        flag(1, 0b0000_0010, "emTargetValueControl", &shared::BIT_TRUE_FALSE),
        flag(1, 0b1000_0000, "unableToControl", &shared::BIT_FALSE_TRUE),
    ],
);

static FREQUENCY_REGULATION_INFORMATION: Data = Data::Object(&[
    field(
        "possibilityToParticipate",
        &POSSIBILITY_TO_PARTICIPATE,
        "Possibility to participate in the frequency regulation service.",
    ),
    field("frequencyRegulationStatus", &FREQUENCY_REGULATION_STATUS, "frequency regulation status."),
]);

static CHARGE_START_TIME: Data = Data::OneOf(&[TIME, states(2, &[ro(0xFFFF, "invalid")])]);

static PEAK_CUT_POWER_THRESHOLD: Data =
    Data::OneOf(&[uint32(0, 999_999_999, Unit::Watt), states(4, &[ro(0xFFFFFFFF, "invalid")])]);

static PEAK_CUT_ENERGY_THRESHOLD: Data =
    Data::OneOf(&[uint32(0, 999_999_999, Unit::WattHour), states(4, &[ro(0xFFFFFFFF, "invalid")])]);

static EM_INFORMATION: Data = Data::Object(&[
    field("chargeStartTime", &CHARGE_START_TIME, "Charge start time in the HH:MM format."),
    field("chargeEndTime", &CHARGE_START_TIME, "Charge end time in the HH:MM format."),
    field("dischargeStartTime", &CHARGE_START_TIME, "Discharge start time in the HH:MM format."),
    field("dischargeEndTime", &CHARGE_START_TIME, "Discharge end time in the HH:MM format."),
    field("dischargeLowerLimit", &uint8(0, 100, Unit::Percent), "SOC of discharge lower limit. (%)"),
    field("chargeUpperLimit", &uint8(0, 100, Unit::Percent), "SOC of charge upper limit. (%)"),
    field("peakCutPowerThreshold", &PEAK_CUT_POWER_THRESHOLD, "Peak cut power threshold. (W)"),
    field("peakCutEnergyThreshold", &PEAK_CUT_ENERGY_THRESHOLD, "Peak cut electric energy threshold. (Wh)"),
    field("pvSurplusCharging", &shared::TRUE_41, "Existence of PV surplus charging."),
    field("pvReversePowerFlow", &shared::TRUE_41, "Existence of PV reverse power flow."),
    field("pcsPushUpEffect", &shared::TRUE_41, "Existence of PCS push-up effect."),
]);

static FREQUENCY: Data = Data::OneOf(&[uint16(0, 65533, Unit::Millihertz), states(2, &[ro(0xFFFF, "invalid")])]);

static POWER_AT_RECEIVING_POINT: Data =
    Data::OneOf(&[int32(-999_999_999, 999_999_999, Unit::Watt), states(4, &[s(0x7FFFFFFF, "invalid")])]);

static PCS_MEASURED_INSTANTANEOUS_VALUE: Data = Data::Object(&[
    field("frequency", &FREQUENCY, "Frequency measurement value. (mHz)"),
    field("powerAtDevicePoint", &EM_TARGET_POWER_VALUE, "Instantaneous power measurement value at device point. (W)"),
    field(
        "powerAtReceivingPoint",
        &POWER_AT_RECEIVING_POINT,
        "Instantaneous power measurement value at power receiving point. (W)",
    ),
]);

static EM_CONTROL_POWER: Data =
    Data::OneOf(&[int32(-999_999_999, 999_999_999, Unit::Watt), states(4, &[ro(0xFFFFFFFF, "invalid")])]);

static INSTRUCTION_NO: Data =
    Data::OneOf(&[uint32(0, 999_999_999, Unit::None), states(4, &[ro(0xFFFFFFFF, "invalid")])]);

static RESPONSE_INFORMATION: Data = Data::Object(&[
    field("acPower", &EM_TARGET_POWER_VALUE, "AC power measurement. (W)"),
    field("emControlPower", &EM_CONTROL_POWER, "Power value of EM control. (W)"),
    field("commandControlPower", &POWER_AT_RECEIVING_POINT, "Power value of command control. (W)"),
    field("autonomousControlPower", &POWER_AT_RECEIVING_POINT, "Power value of autonomous control. (W)"),
    field("instructionNo", &INSTRUCTION_NO, "Command control instruction number."),
    field("frequencyDeviation", &int16(-3000, 3000, Unit::Millihertz), "Grid frequency deviation. (mHz)"),
]);

static POWER_CAPABILITY: Data = Data::Object(&[
    field("input", &uint32(0, 999_999_999, Unit::Watt), "Instantaneous input power capability value."),
    field("output", &uint32(0, 999_999_999, Unit::Watt), "Instantaneous output power capability value."),
]);

static CHARGEABLE_DISCHARGEABLE_POWER: Data = Data::Object(&[
    field("chargeablePower", &uint32(0, 999_999_999, Unit::Watt), "Instantaneous chargeable power value. (W)"),
    field("dischargeablePower", &uint32(0, 999_999_999, Unit::Watt), "Instantaneous dischargeable power value. (W)"),
]);

static STORED_ENERGY_PERCENT: Data = Data::OneOf(&[uint8(0, 100, Unit::Percent), states(1, &[ro(0xFF, "invalid")])]);

static BATTERY_STATUS: Data = Data::Object(&[
    field(
        "chargeableEnergy",
        &uint32(0, 999_999_999, Unit::WattHour),
        "Chargeable electric energy value. (AC value) (Wh)",
    ),
    field(
        "dischargeableEnergy",
        &uint32(0, 999_999_999, Unit::WattHour),
        "Dischargeable electric energy value. (AC value) (Wh)",
    ),
    field("storedEnergy", &PEAK_CUT_ENERGY_THRESHOLD, "Remaining stored electricity. (DC value) (Wh)"),
    field("storedEnergyPercent", &STORED_ENERGY_PERCENT, "Remaining stored electricity. (State of charge) (%)"),
    field("healthState", &STORED_ENERGY_PERCENT, "State of Health. (%)"),
]);

static CUMULATIVE_ENERGY: Data = Data::Object(&[
    field(
        "inputEnergyAtDevicePoint",
        &uint32(0, 999_999_999, Unit::WattHour),
        "Measured cumulative amount of input electric energy for PCS. (Normal direction at device point) (Wh)",
    ),
    field(
        "outputEnergyAtDevicePoint",
        &uint32(0, 999_999_999, Unit::WattHour),
        "Measured cumulative amount of output electric energy by PCS. (Reverse direction at device point) (Wh)",
    ),
    field(
        "boughtEnergy",
        &PEAK_CUT_ENERGY_THRESHOLD,
        "Measured cumulative amount of electric energy bought from grid. (Wh)",
    ),
    field(
        "soldEnergy",
        &PEAK_CUT_ENERGY_THRESHOLD,
        "Measured cumulative amount of electric energy sold for grid. (Wh)",
    ),
    field("loadEnergy", &PEAK_CUT_ENERGY_THRESHOLD, "Measured cumulative amount of load electric energy. (Wh)"),
    field(
        "pvEnergy",
        &PEAK_CUT_ENERGY_THRESHOLD,
        "Measured cumulative amount of electric energy by PV. (DC value) (Wh)",
    ),
    field(
        "chargeEnergy",
        &PEAK_CUT_ENERGY_THRESHOLD,
        "Measured cumulative amount of charge electric energy to battery. (DC value) (Wh)",
    ),
    field(
        "dischargeEnergy",
        &PEAK_CUT_ENERGY_THRESHOLD,
        "Measured cumulative amount of discharge electric energy from battery. (DC value) (Wh)",
    ),
]);

static CUMULATIVE_FREQUENCY_REGULATION_ENERGY: Data = Data::Object(&[
    field(
        "emControlEnergy",
        &array(4, 4, 4, &uint32(0, 999_999_999, Unit::WattHour)),
        "Cumulative electric energy measurement by EM control (Wh)",
    ),
    field(
        "commandControlEnergy",
        &array(4, 4, 4, &PEAK_CUT_ENERGY_THRESHOLD),
        "Cumulative electric energy measurement by command control (Wh)",
    ),
    field(
        "autonomousControlEnergy",
        &array(4, 4, 4, &PEAK_CUT_ENERGY_THRESHOLD),
        "Cumulative electric energy measurement by autonomous control (Wh)",
    ),
]);

static FIRST_DATA_MM_DD: Data =
    Data::Object(&[field("mm", &uint8(1, 12, Unit::None), "MM"), field("dd", &uint8(1, 31, Unit::None), "DD")]);

static PLAN_INFORMATION: Data = Data::Object(&[
    field("updateId", &uint16(0, 65535, Unit::None), "Update ID"),
    field("numberOfData", &uint16(0, 96, Unit::None), "Number of data"),
    field("firstDataMmDd", &FIRST_DATA_MM_DD, "First data in the MMDD format."),
    field("firstDataHhMm", &TIME, "Hour and minute of first data in the HHMM format."),
]);
