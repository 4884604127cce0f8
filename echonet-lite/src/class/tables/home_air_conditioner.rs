//! Home air conditioner (0x0130). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{RELATIVE_TIME, TIME, bitmap, field, flag, int8, level, ro, row, s, states, uint8, uint16};

/// Home air conditioner, class 0x0130.
pub static HOME_AIR_CONDITIONER: Class = Class::new(
    0x0130,
    "homeAirConditioner",
    "A..",
    ["Home air conditioner", "家庭用エアコン"],
    [PROPERTIES, SUPERSEDED],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                          get set inf   in      data names
    row(0x80, "operationStatus",                  [R_, R_, R_], "A..",  &shared::ON_30,                        "Operation status", "動作状態"),
    row(0x8F, "powerSavingOperation",             [R_, R_, R_], "D..",  &shared::TRUE_41,                      "Power-saving operation setting", "節電動作設定"),
    row(0x90, "onTimerReservation",               [O_, O_, O_], "A..",  &ON_TIMER_RESERVATION,                 "ON timer-based reservation setting", "ONタイマ予約設定"),
    row(0x91, "timeOfOnTimer",                    [O_, O_, O_], "A..",  &TIME,                                 "ON timer setting (time)", "ONタイマ時刻設定値"),
    row(0x92, "relativeTimeOfOnTimer",            [O_, O_, O_], "A..",  &RELATIVE_TIME,                        "ON timer setting (relative time)", "ONタイマ相対時間設定値"),
    row(0x94, "offTimerReservation",              [O_, O_, O_], "A..",  &OFF_TIMER_RESERVATION,                "OFF timer-based reservation setting", "OFFタイマ予約設定"),
    row(0x95, "timeOfOffTimer",                   [O_, O_, O_], "A..",  &TIME,                                 "OFF timer setting (time)", "OFFタイマ時刻設定値"),
    row(0x96, "relativeTimeOfOffTimer",           [O_, O_, O_], "A..",  &RELATIVE_TIME,                        "OFF timer setting (relative time)", "OFFタイマ相対時間設定値"),
    row(0xA0, "airFlowLevel",                     [R_, R_, R_], "D..",  &shared::LEVEL_OR_AUTO,                "Air flow rate setting", "風量設定"),
    row(0xA1, "automaticControlAirFlowDirection", [O_, O_, O_], "A..",  &AUTOMATIC_CONTROL_AIR_FLOW_DIRECTION, "Automatic control of air flow direction setting", "風向自動設定"),
    row(0xA3, "automaticSwingAirFlow",            [O_, O_, O_], "A..",  &AUTOMATIC_SWING_AIR_FLOW,             "Automatic swing of air flow setting", "風向スイング設定"),
    row(0xA4, "airFlowDirectionVertical",         [O_, O_, O_], "A..",  &AIR_FLOW_DIRECTION_VERTICAL,          "Air flow direction (vertical) setting", "風向上下設定"),
    row(0xA5, "airFlowDirectionHorizontal",       [O_, O_, O_], "A..",  &AIR_FLOW_DIRECTION_HORIZONTAL,        "Air flow direction (horizontal) setting", "風向左右設定"),
    row(0xAA, "specialState",                     [O_, __, O_], "A..",  &SPECIAL_STATE,                        "Special state", "特殊状態"),
    row(0xAB, "nonPriorityState",                 [O_, __, O_], "A..",  &shared::TRUE_41_FALSE_40,             "Non-priority state", "非優先状態"),
    row(0xB0, "operationMode",                    [R_, R_, R_], "A..",  &OPERATION_MODE,                       "Operation mode setting", "運転モード設定"),
    row(0xB1, "automaticTemperatureControl",      [O_, O_, O_], "A..",  &shared::TRUE_41,                      "Automatic temperature control setting", "温度自動設定"),
    row(0xB2, "highspeedOperation",               [O_, O_, O_], "A..",  &HIGHSPEED_OPERATION,                  "Normal/highspeed/silent operation setting", "急速動作モード設定"),
    row(0xB3, "targetTemperature",                [R_, R_, O_], "A..",  &TARGET_TEMPERATURE,                   "Set temperature value", "温度設定値"),
    row(0xB4, "relativeHumidityDehumidifying",    [O_, O_, O_], "A..",  &uint8(0, 100, Unit::Percent),         "Set value of relative humidity in dehumidifying mode", "除湿モード時相対湿度設定値"),
    row(0xB5, "targetTemperatureCooling",         [O_, O_, O_], "A..",  &TARGET_TEMPERATURE,                   "Set temperature value in cooling mode", "冷房モード時温度設定値"),
    row(0xB6, "targetTemperatureHeating",         [O_, O_, O_], "A..",  &TARGET_TEMPERATURE,                   "Set temperature value in heating mode", "暖房モード時温度設定値"),
    row(0xB7, "targetTemperatureDehumidifying",   [O_, O_, O_], "A..",  &TARGET_TEMPERATURE,                   "Set temperature value in dehumidifying mode", "除湿モード時温度設定値"),
    row(0xB8, "ratedPowerConsumption",            [O_, __, O_], "A..",  &RATED_POWER_CONSUMPTION,              "Rated power consumption", "定格消費電力値"),
    row(0xB9, "currentConsumption",               [O_, __, O_], "A..",  &uint16(0, 65533, Unit::Ampere).e(-1), "Measured value of current consumption", "消費電流計測値"),
    row(0xBA, "humidity",                         [O_, __, O_], "A..",  &HUMIDITY,                             "Measured value of room relative humidity", "室内相対湿度計測値"),
    row(0xBB, "roomTemperature",                  [R_, __, O_], "D..",  &shared::TEMPERATURE,                  "Measured value of room temperature", "室内温度計測値"),
    row(0xBC, "temperatureUserRemoteControl",     [O_, __, O_], "A..",  &uint8(0, 50, Unit::Celsius),          "Set temperature value of user remote control", "ユーザリモコン温度設定値"),
    row(0xBD, "airFlowTemperature",               [O_, __, O_], "A..",  &shared::TEMPERATURE,                  "Measured cooled air temperature", "吹き出し温度計測値"),
    row(0xBE, "outdoorTemperature",               [O_, __, O_], "A..",  &shared::TEMPERATURE,                  "Measured outdoor air temperature", "外気温度計測値"),
    row(0xBF, "relativeTemperature",              [O_, O_, O_], "A..",  &RELATIVE_TEMPERATURE,                 "Relative temperature setting", "相対温度設定値"),
    row(0xC0, "ventilationFunction",              [O_, O_, O_], "A..",  &VENTILATION_FUNCTION,                 "Ventilation function setting", "換気モード設定"),
    row(0xC1, "humidifierFunction",               [O_, O_, O_], "A..",  &shared::ON_41,                        "Humidifier function setting", "加湿モード設定"),
    row(0xC2, "ventilationAirFlowLevel",          [O_, O_, O_], "A..",  &shared::LEVEL_OR_AUTO,                "Ventilation air flow rate setting", "換気風量設定"),
    row(0xC4, "humidificationLevel",              [O_, O_, O_], "A..",  &shared::LEVEL_OR_AUTO,                "Degree of humidification setting", "加湿量設定"),
    row(0xC6, "airCleaningMethod",                [O_, __, O_], "A..",  &AIR_CLEANING_METHOD,                  "Mounted air cleaning method", "搭載空気清浄方法"),
    row(0xC7, "airPurifierFunction",              [O_, O_, O_], "A..",  &AIR_PURIFIER_FUNCTION,                "Air purifier function setting", "空気清浄機能モード設定"),
    row(0xC8, "airRefreshMethod",                 [O_, __, O_], "A..",  &AIR_REFRESH_METHOD,                   "Mounted air refresh method", "搭載リフレッシュ方法"),
    row(0xC9, "airRefresherFunction",             [O_, O_, O_], "A..",  &AIR_REFRESHER_FUNCTION,               "Air refresher function setting", "リフレッシュ機能モード設定"),
    row(0xCA, "selfCleaningMethod",               [O_, __, O_], "A..",  &SELF_CLEANING_METHOD,                 "Mounted self-cleaning method", "搭載自己洗浄方法"),
    row(0xCB, "selfCleaningFunction",             [O_, O_, O_], "A..",  &SELF_CLEANING_FUNCTION,               "Self-cleaning function setting", "自己洗浄機能モード設定"),
    row(0xCC, "specialFunction",                  [O_, O_, O_], "A..",  &SPECIAL_FUNCTION,                     "Special function setting", "特別運転モード設定"),
    row(0xCD, "componentsOperationStatus",        [O_, __, O_], "A..",  &COMPONENTS_OPERATION_STATUS,          "Operation status of components", "内部動作状態"),
    row(0xCE, "thermostatOverride",               [O_, O_, O_], "D..",  &THERMOSTAT_OVERRIDE,                  "Thermostat setting override function", "強制サーモモード設定"),
    row(0xCF, "airPurification",                  [O_, O_, O_], "A..",  &shared::ON_41,                        "Air purification mode setting", "空気清浄モード設定"),
    row(0xD0, "beepBuzzer",                       [__, O_, __], "H..",  &states(1, &[s(0x41, "buzzer")]),      "Buzzer", "ブザー"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                          get set inf   in      data names
    row(0xA0, "airFlowLevel",                     [O_, O_, O_], "A..C", &shared::LEVEL_OR_AUTO,                "Air flow rate setting", "風量設定"),
    row(0xBB, "roomTemperature",                  [O_, __, O_], "A..C", &shared::TEMPERATURE,                  "Measured value of room temperature", "室内温度計測値"),
    row(0xCE, "thermostatOverride",               [__, O_, __], "A..C", &THERMOSTAT_OVERRIDE,                  "Thermostat setting override function", "強制サーモモード設定"),
];

static ON_TIMER_RESERVATION: Data = states(
    1,
    &[
        s(0x41, "timeOnRelativeTimeOn"),
        s(0x42, "timeOffRelativeTimeOff"),
        s(0x43, "timeOnRelativeTimeOff"),
        s(0x44, "timeOffRelativeTimeOn"),
    ],
);

static OFF_TIMER_RESERVATION: Data = states(
    1,
    &[
        s(0x41, "timeBasedAndRelativeTimeBasedOn"),
        s(0x42, "bothOff"),
        s(0x43, "timeBasedOn"),
        s(0x44, "relativeTimeBasedOn"),
    ],
);

static AUTOMATIC_CONTROL_AIR_FLOW_DIRECTION: Data =
    states(1, &[s(0x41, "auto"), s(0x42, "nonAuto"), s(0x43, "autoVertical"), s(0x44, "autoHorizontal")]);

static AUTOMATIC_SWING_AIR_FLOW: Data =
    states(1, &[s(0x31, "off"), s(0x41, "vertical"), s(0x42, "horizontal"), s(0x43, "verticalAndHorizontal")]);

static AIR_FLOW_DIRECTION_VERTICAL: Data = states(
    1,
    &[s(0x41, "uppermost"), s(0x42, "lowermost"), s(0x43, "central"), s(0x44, "upperCenter"), s(0x45, "lowerCenter")],
);

static AIR_FLOW_DIRECTION_HORIZONTAL: Data = states(
    1,
    &[
        s(0x41, "rc_r"),
        s(0x42, "l_lc"),
        s(0x43, "lc_c_rc"),
        s(0x44, "l_lc_rc_r"),
        s(0x51, "r"),
        s(0x52, "rc"),
        s(0x54, "c"),
        s(0x55, "c_r"),
        s(0x56, "c_rc"),
        s(0x57, "c_rc_r"),
        s(0x58, "lc"),
        s(0x59, "lc_r"),
        s(0x5A, "lc_rc"),
        s(0x5B, "lc_rc_r"),
        s(0x5C, "lc_c"),
        s(0x5D, "lc_c_r"),
        s(0x5F, "lc_c_rc_r"),
        s(0x60, "l"),
        s(0x61, "l_r"),
        s(0x62, "l_rc"),
        s(0x63, "l_rc_r"),
        s(0x64, "l_c"),
        s(0x65, "l_c_r"),
        s(0x66, "l_c_rc"),
        s(0x67, "l_c_rc_r"),
        s(0x69, "l_lc_r"),
        s(0x6A, "l_lc_rc"),
        s(0x6C, "l_lc_c"),
        s(0x6D, "l_lc_c_r"),
        s(0x6E, "l_lc_c_rc"),
        s(0x6F, "l_lc_c_rc_r"),
    ],
);

static SPECIAL_STATE: Data =
    states(1, &[s(0x40, "normal"), s(0x41, "defrosting"), s(0x42, "preheating"), s(0x43, "heatRemoval")]);

static OPERATION_MODE: Data = states(
    1,
    &[
        s(0x41, "auto"),
        s(0x42, "cooling"),
        s(0x43, "heating"),
        s(0x44, "dehumidification"),
        s(0x45, "circulation"),
        s(0x40, "other"),
    ],
);

static HIGHSPEED_OPERATION: Data = states(1, &[s(0x41, "normal"), s(0x42, "highspeed"), s(0x43, "silent")]);

static TARGET_TEMPERATURE: Data = Data::OneOf(&[uint8(0, 50, Unit::Celsius), states(1, &[ro(0xFD, "undefined")])]);

static COOLING: Data = Data::OneOf(&[uint16(0, 65533, Unit::Watt), states(2, &[s(0xFFFE, "unsupported")])]);

static RATED_POWER_CONSUMPTION: Data = Data::Object(&[
    field("cooling", &COOLING, "Cooling"),
    field("heating", &COOLING, "Heating"),
    field("dehumidifying", &COOLING, "Dehumidifying"),
    field("circulation", &COOLING, "Circulation"),
]);

static HUMIDITY: Data = Data::OneOf(&[uint8(0, 100, Unit::Percent), states(1, &[ro(0xFD, "unmeasurable")])]);

static RELATIVE_TEMPERATURE: Data =
    Data::OneOf(&[int8(-127, 125, Unit::Celsius).e(-1), states(1, &[ro(0x7E, "unmeasurable")])]);

static VENTILATION_FUNCTION: Data =
    states(1, &[s(0x41, "onOutlet"), s(0x42, "off"), s(0x43, "onIntake"), s(0x44, "onOutletAndIntake")]);

static AIR_CLEANING_METHOD: Data = bitmap(
    1,
    &[
        flag(0, 0b0000_0001, "equippedElectronic", &shared::BIT_FALSE_TRUE),
        flag(0, 0b0000_0010, "equippedClusterIon", &shared::BIT_FALSE_TRUE),
    ],
);

static AIR_PURIFIER_FUNCTION: Data = bitmap(
    8,
    &[
        flag(0, 0b0000_0111, "levelOfElectronic", &level(0, 0x00, 8)),
        flag(0, 0b0000_1000, "modeOfElectronic", &shared::BIT_OFF_ON),
        flag(0, 0b0001_0000, "autoOfElectronic", &shared::BIT_FALSE_TRUE),
        flag(1, 0b0000_0111, "levelOfClusterIon", &level(0, 0x00, 8)),
        flag(1, 0b0000_1000, "modeOfClusterIon", &shared::BIT_OFF_ON),
        flag(1, 0b0001_0000, "autoOfClusterIon", &shared::BIT_FALSE_TRUE),
    ],
);

static AIR_REFRESH_METHOD: Data = bitmap(
    1,
    &[
        flag(0, 0b0000_0001, "equippedMinusIon", &shared::BIT_FALSE_TRUE),
        flag(0, 0b0000_0010, "equippedClusterIon", &shared::BIT_FALSE_TRUE),
    ],
);

static AIR_REFRESHER_FUNCTION: Data = bitmap(
    8,
    &[
        flag(0, 0b0000_0111, "levelOfMinusIon", &level(0, 0x00, 8)),
        flag(0, 0b0000_1000, "modeOfMinusIon", &shared::BIT_OFF_ON),
        flag(0, 0b0001_0000, "autoOfMinusIon", &shared::BIT_FALSE_TRUE),
        flag(1, 0b0000_0111, "levelOfClusterIon", &level(0, 0x00, 8)),
        flag(1, 0b0000_1000, "modeOfClusterIon", &shared::BIT_OFF_ON),
        flag(1, 0b0001_0000, "autoOfClusterIon", &shared::BIT_FALSE_TRUE),
    ],
);

static SELF_CLEANING_METHOD: Data = bitmap(
    1,
    &[
        flag(0, 0b0000_0001, "equippedOzone", &shared::BIT_FALSE_TRUE),
        flag(0, 0b0000_0010, "equippedDrying", &shared::BIT_FALSE_TRUE),
    ],
);

static SELF_CLEANING_FUNCTION: Data = bitmap(
    8,
    &[
        flag(0, 0b0000_0111, "levelOfOzone", &level(0, 0x00, 8)),
        flag(0, 0b0000_1000, "modeOfOzone", &shared::BIT_OFF_ON),
        flag(0, 0b0001_0000, "autoOfOzone", &shared::BIT_FALSE_TRUE),
        flag(1, 0b0000_0111, "levelOfDrying", &level(0, 0x00, 8)),
        flag(1, 0b0000_1000, "modeOfDrying", &shared::BIT_OFF_ON),
        flag(1, 0b0001_0000, "autoOfDrying", &shared::BIT_FALSE_TRUE),
    ],
);

static SPECIAL_FUNCTION: Data = states(
    1,
    &[
        s(0x40, "noSetting"),
        s(0x41, "clothesDryer"),
        s(0x42, "condensationSuppressor"),
        s(0x43, "miteAndMoldControl"),
        s(0x44, "activeDefrosting"),
    ],
);

static COMPONENTS_OPERATION_STATUS: Data = bitmap(
    1,
    &[flag(0, 0b0000_0001, "compressor", &shared::BIT_OFF_ON), flag(0, 0b0000_0010, "thermostat", &shared::BIT_OFF_ON)],
);

static THERMOSTAT_OVERRIDE: Data = states(1, &[s(0x40, "normal"), s(0x41, "on"), s(0x42, "off")]);
