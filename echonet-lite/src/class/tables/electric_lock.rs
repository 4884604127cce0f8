//! Electric lock (0x026F). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::Data;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{row, s, states};

/// Electric lock, class 0x026F.
pub static ELECTRIC_LOCK: Class =
    Class::new(0x026F, "electricLock", "A..", ["Electric lock", "電気錠"], [PROPERTIES, &[]]).inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name             get set inf   in     data names
    row(0xE0, "mainElectricLock",    [R_, R_, R_], "A..", &shared::TRUE_41,                                 "Lock setting1", "施錠設定1"),
    row(0xE1, "subElectricLock",     [O_, O_, O_], "A..", &shared::TRUE_41,                                 "Lock setting 2", "施錠設定2"),
    row(0xE2, "doorGuardLocked",     [O_, __, O_], "A..", &shared::TRUE_41,                                 "Lock status of door guard", "ドアガード施錠状態"),
    row(0xE3, "doorOpened",          [O_, __, O_], "A..", &shared::TRUE_41,                                 "Door open/close status", "扉開閉状態"),
    row(0xE4, "occupant",            [O_, __, O_], "A..", &shared::TRUE_41,                                 "Occupant/ non-occupant status", "在室・不在状態"),
    row(0xE5, "alarmStatus",         [O_, __, R_], "A..", &ALARM_STATUS,                                    "Alarm status", "警報状態"),
    row(0xE6, "autoLockMode",        [O_, O_, O_], "A..", &shared::TRUE_41,                                 "Auto lock mode setting", "自動施錠モード設定"),
    row(0xE7, "replaceBatteryLevel", [O_, O_, R_], "D..", &states(1, &[s(0x41, "true"), s(0x40, "false")]), "Battery level", "電池残量状態"),
];

static ALARM_STATUS: Data = states(
    1,
    &[s(0x40, "normal"), s(0x41, "breakOpen"), s(0x42, "doorOpen"), s(0x43, "manualUnlocked"), s(0x44, "tampered")],
);
