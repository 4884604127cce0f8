//! Electrically operated blind/shade (0x0260). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{row, s, span, states, uint8};

/// Electrically operated blind/shade, class 0x0260.
pub static ELECTRIC_BLIND_SHADE: Class = Class::new(
    0x0260,
    "electricBlindShade",
    "D..",
    ["Electrically operated blind/shade", "電動ブラインド・日よけ"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                  get set inf   in     data names
    row(0x89, "faultDescription",         [O_, __, R_], "D..", &FAULT_DESCRIPTION,            "Fault description (Recoverable faults)", "異常内容(復帰可能な異常)"),
    row(0x90, "timerOperationMode",       [O_, O_, R_], "D..", &shared::TRUE_41,              "Timer operation setting", "タイマ動作設定"),
    row(0xC2, "windDetection",            [O_, __, R_], "D..", &shared::TRUE_41,              "Wind detection status", "風検知状態"),
    row(0xC3, "sunlightDetection",        [O_, __, R_], "D..", &shared::TRUE_41,              "Sunlight detection status", "日差し検知状態"),
    row(0xD0, "openingSpeed",             [O_, O_, O_], "D..", &SPEED,                        "Opening (extension) speed setting", "開(張出し)速度設定"),
    row(0xD1, "closingSpeed",             [O_, O_, O_], "D..", &SPEED,                        "Closing (retraction) speed setting", "閉(収納)速度設定"),
    row(0xD2, "operationTime",            [O_, O_, O_], "D..", &uint8(0, 253, Unit::Second),  "Operation time", "動作時間設定値"),
    row(0xD4, "automaticOperation",       [O_, O_, R_], "D..", &shared::TRUE_41,              "Automatic operation setting", "自動動作設定"),
    row(0xE0, "openCloseOperation",       [R_, R_, R_], "D..", &OPEN_CLOSE_OPERATION,         "Open/close (extension/retraction) setting", "開閉(張出し/収納)動作設定"),
    row(0xE1, "degreeOfOpening",          [O_, O_, O_], "D..", &uint8(0, 100, Unit::Percent), "Degree-of-opening level", "開度レベル設定"),
    row(0xE2, "shadeAngle",               [O_, O_, O_], "D..", &uint8(0, 180, Unit::Degree),  "Shade angle setting", "ブラインド角度設定値"),
    row(0xE3, "openCloseSpeed",           [O_, O_, O_], "D..", &SPEED,                        "Open/close (extension/retraction) speed setting", "開閉(張出し/収納)速度設定"),
    row(0xE5, "electricLock",             [O_, O_, O_], "D..", &shared::TRUE_41,              "Electric lock setting", "電気錠設定"),
    row(0xE8, "remoteOperation",          [O_, __, R_], "D..", &shared::TRUE_41,              "Remote operation setting status", "遠隔操作設定状態"),
    row(0xE9, "selectiveDegreeOfOpening", [O_, O_, R_], "D..", &SELECTIVE_DEGREE_OF_OPENING,  "Selective opening (extension) operation setting", "選択開(張出し)度動作設定"),
    row(0xEA, "openCloseStatus",          [O_, __, R_], "D..", &OPEN_CLOSE_STATUS,            "Open/closed (extended/retracted) status", "開閉(張出し/収納)状態"),
    row(0xEE, "oneTimeOpeningSpeed",      [O_, O_, O_], "D..", &SPEED_OR_NONE,                "One-time opening (extension) speed setting", "ワンタイム開(張出し)速度設定"),
    row(0xEF, "oneTimeClosingSpeed",      [O_, O_, O_], "D..", &SPEED_OR_NONE,                "One-time closing (retraction) speed setting", "ワンタイム閉(収納)速度設定"),
];

static FAULT_DESCRIPTION: Data = states(
    2,
    &[
        s(0x0000, "noFault"),
        s(0x0001, "trunOffOrUnplug"),
        s(0x0002, "resetButton"),
        s(0x0003, "setIncorrectly"),
        s(0x0004, "supply"),
        s(0x0005, "cleaning"),
        s(0x0006, "changingBattery"),
        s(0x0009, "userDefinable"),
        span(0x000A, 0x0013, "abnormalEventOrSafety"),
        span(0x0014, 0x001D, "switch"),
        span(0x001E, 0x003B, "sensorSystem"),
        span(0x003C, 0x0059, "component"),
        span(0x005A, 0x006E, "controlCircuitBoard"),
        span(0x006F, 0x03E8, "userDefinable"),
        s(0x03FF, "fault"),
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
    ],
);

static OPEN_CLOSE_STATUS: Data = states(
    1,
    &[s(0x41, "fullyOpen"), s(0x42, "fullyClosed"), s(0x43, "opening"), s(0x44, "closing"), s(0x45, "stoppedHalfway")],
);

static SPEED_OR_NONE: Data = states(1, &[s(0x41, "low"), s(0x42, "medium"), s(0x43, "high"), s(0x44, "none")]);
