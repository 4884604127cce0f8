//! Electrically operated rain sliding door/shutter (0x0263). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{level, row, s, span, states, uint8};

/// Electrically operated rain sliding door/shutter, class 0x0263.
pub static ELECTRIC_RAIN_DOOR: Class = Class::new(
    0x0263,
    "electricRainDoor",
    "D..",
    ["Electrically operated rain sliding door/shutter", "電動雨戸・シャッター"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                  get set inf   in     data names
    row(0x89, "faultDescription",         [O_, __, R_], "D..", &FAULT_DESCRIPTION,            "Fault description (Recoverable faults)", "異常内容(復帰可能な異常)"),
    row(0x90, "timerOperationMode",       [O_, O_, R_], "D..", &shared::TRUE_41,              "Timer operation setting", "タイマ動作設定"),
    row(0xD0, "openingSpeed",             [O_, O_, O_], "D..", &SPEED,                        "Opening speed setting", "開速度設定"),
    row(0xD1, "closingSpeed",             [O_, O_, O_], "D..", &SPEED,                        "Closing speed setting", "閉速度設定"),
    row(0xD2, "operationTime",            [O_, O_, O_], "D..", &uint8(0, 253, Unit::Second),  "Operation time", "動作時間設定値"),
    row(0xE0, "openCloseOperation",       [R_, R_, R_], "D..", &OPEN_CLOSE_OPERATION,         "Open/close operation setting", "開閉動作設定"),
    row(0xE1, "degreeOfOpening",          [O_, O_, O_], "D..", &uint8(0, 100, Unit::Percent), "Degree-of-opening setting", "開度レベル設定"),
    row(0xE2, "blindAngle",               [O_, O_, O_], "D..", &uint8(0, 180, Unit::Degree),  "Blind angle setting", "ブラインド角度設定値"),
    row(0xE3, "openCloseSpeed",           [O_, O_, O_], "D..", &SPEED,                        "Opening/closing speed setting", "開閉速度設定"),
    row(0xE5, "electricLock",             [O_, O_, O_], "D..", &shared::TRUE_41,              "Electric lock setting", "電気錠設定"),
    row(0xE8, "remoteOperation",          [O_, __, R_], "D..", &shared::TRUE_41,              "Remote operation setting status", "遠隔操作設定状態"),
    row(0xE9, "selectiveDegreeOfOpening", [O_, O_, R_], "D..", &SELECTIVE_DEGREE_OF_OPENING,  "Selective degree-of-opening setting", "選択開度動作設定"),
    row(0xEA, "openCloseStatus",          [O_, __, R_], "D..", &OPEN_CLOSE_STATUS,            "Open/closed status", "開閉状態"),
    row(0xED, "slitDegreeOfOpening",      [O_, O_, O_], "D..", &level(1, 0x31, 8),            "Slit degree-of-opening", "スリット開度設定"),
    row(0xEE, "oneTimeOpeningSpeed",      [O_, O_, O_], "D..", &SPEED_OR_NONE,                "One-time opening speed setting", "ワンタイム開速度設定"),
    row(0xEF, "oneTimeClosingSpeed",      [O_, O_, O_], "D..", &SPEED_OR_NONE,                "One-time closing speed setting", "ワンタイム閉速度設定"),
];

static FAULT_DESCRIPTION: Data = states(
    2,
    &[
        s(0x0000, "NoFault"),
        s(0x0001, "trunOffOrUnplug"),
        s(0x0002, "resetButton"),
        s(0x0003, "SetIncorrectly"),
        s(0x0004, "supply"),
        s(0x0005, "cleaning"),
        s(0x0006, "changingBattery"),
        s(0x0009, "userDefinable"),
        span(0x000A, 0x0013, "abnormalEventOrSafety"),
        span(0x0014, 0x001D, "switch"),
        span(0x001E, 0x003B, "SensorSystem"),
        span(0x003C, 0x0059, "component"),
        span(0x005A, 0x006E, "controlCircuitBoard"),
        span(0x006F, 0x03E8, "userDefinable"),
        s(0x03FF, "Fault"),
        s(0x0402, "obstacleCaught"),
        s(0x0502, "outageRecovery"),
        s(0x0602, "timeOut"),
        s(0x0702, "batteryLow"),
    ],
);

static SPEED: Data = states(1, &[s(0x41, "low"), s(0x42, "medium"), s(0x43, "high")]);

static OPEN_CLOSE_OPERATION: Data = states(1, &[s(0x41, "open"), s(0x42, "close"), s(0x43, "stop")]);

static SELECTIVE_DEGREE_OF_OPENING: Data = states(
    1,
    &[
        s(0x41, "degreeOfOpening"),
        s(0x42, "operationTimeOfOpening"),
        s(0x43, "operationTimeOfClosing"),
        s(0x44, "localSetting"),
        s(0x45, "slitDegreeOfOpening"),
    ],
);

static OPEN_CLOSE_STATUS: Data = states(
    1,
    &[s(0x41, "fullyOpen"), s(0x42, "fullyClosed"), s(0x43, "opening"), s(0x44, "closing"), s(0x45, "stoppedHalfway")],
);

static SPEED_OR_NONE: Data = states(1, &[s(0x41, "low"), s(0x42, "medium"), s(0x43, "high"), s(0x44, "none")]);
