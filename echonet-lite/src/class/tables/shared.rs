//! Data that several classes share. Source: ECHONET device objects, Appendix release R.

#![cfg_attr(not(feature = "all-classes"), allow(dead_code, reason = "for the tables of classes that are off"))]

use crate::class::data::{Data, Unit};
use crate::class::table::{field, int8, int16, int32, level, n, ro, s, span, states, uint8, uint16, uint32};

/// 0x30 true, 0x31 false: operation status.
pub(super) static ON_30: Data = states(1, &[s(0x30, "true"), s(0x31, "false")]);

/// 0x41 true, 0x42 false.
pub(super) static TRUE_41: Data = states(1, &[s(0x41, "true"), s(0x42, "false")]);

/// 0x40 false, 0x41 true.
pub(super) static TRUE_41_FALSE_40: Data = states(1, &[s(0x40, "false"), s(0x41, "true")]);

/// 0x41 on, 0x42 off.
pub(super) static ON_41: Data = states(1, &[s(0x41, "on"), s(0x42, "off")]);

/// 0x00 resets.
pub(super) static RESET_00: Data = states(1, &[s(0x00, "reset")]);

/// A bit: false, true.
pub(super) static BIT_FALSE_TRUE: Data = states(0, &[s(0x00, "false"), s(0x01, "true")]);

/// A bit: false, true.
pub(super) static BIT_TRUE_FALSE: Data = states(0, &[s(0x01, "true"), s(0x00, "false")]);

/// A bit: off, on.
pub(super) static BIT_OFF_ON: Data = states(0, &[s(0x00, "off"), s(0x01, "on")]);

/// What is wrong, and what helps (0x89).
pub(super) static FAULT_DESCRIPTION: Data = states(
    2,
    &[
        s(0x0000, "noFault"),
        s(0x0001, "trunOffOrUnplug"),
        s(0x0002, "resetButton"),
        s(0x0003, "setIncorrectly"),
        s(0x0004, "supply"),
        s(0x0005, "cleaning"),
        s(0x0006, "changingBattery"),
        s(0x0007, "recoverOperationNoReuired"),
        s(0x0009, "userDefinable"),
        span(0x000A, 0x0013, "abnormalEventOrSafety"),
        span(0x0014, 0x001D, "switch"),
        span(0x001E, 0x003B, "sensorSystem"),
        span(0x003C, 0x0059, "component"),
        span(0x005A, 0x006E, "controlCircuitBoard"),
        span(0x006F, 0x03E8, "userDefinable"),
        s(0x03E9, "repairLocationUnkown"),
        s(0x03FF, "fault"),
    ],
);

/// A temperature that may be unmeasurable.
pub(super) static TEMPERATURE: Data =
    Data::OneOf(&[int8(-127, 125, Unit::Celsius), states(1, &[ro(0x7E, "unmeasurable")])]);

/// Eight levels, or automatic.
pub(super) static LEVEL_OR_AUTO: Data = Data::OneOf(&[level(1, 0x31, 8), states(1, &[s(0x41, "auto")])]);

/// Instantaneous power of a meter.
pub(super) static POWER_OR_NO_DATA: Data =
    Data::OneOf(&[int32(-2_147_483_647, 2_147_483_645, Unit::Watt), states(4, &[ro(0x7FFFFFFE, "noData")])]);

/// Instantaneous current of a meter, one phase.
pub(super) static CURRENT_OR_NO_DATA: Data =
    Data::OneOf(&[int16(-32767, 32765, Unit::Ampere).e(-1), states(2, &[ro(0x7FFE, "noData")])]);

/// Instantaneous currents of a meter.
pub(super) static CURRENTS: Data =
    Data::Object(&[field("rPhase", &CURRENT_OR_NO_DATA, "R phase"), field("tPhase", &CURRENT_OR_NO_DATA, "T phase")]);

/// Whether and how a generator is connected to the grid.
pub(super) static INTERCONNECTION: Data = states(
    1,
    &[s(0x00, "reversePowerFlowAcceptable"), s(0x01, "independent"), s(0x02, "reversePowerFlowNotAcceptable")],
);

/// The unit a meter counts in.
pub(super) static METER_UNIT: Data = Data::Numeric(&[
    n(0x00, 1, 0),
    n(0x01, 1, -1),
    n(0x02, 1, -2),
    n(0x03, 1, -3),
    n(0x04, 1, -4),
    n(0x0A, 1, 1),
    n(0x0B, 1, 2),
    n(0x0C, 1, 3),
    n(0x0D, 1, 4),
]);

/// How many days ago, in a history.
pub(super) static HISTORY_DAY_16: Data =
    Data::OneOf(&[uint16(0, 99, Unit::None), states(2, &[ro(0x00FF, "defaultValue")])]);

/// How many days ago the history to read starts.
pub(super) static HISTORY_DAY: Data = Data::OneOf(&[uint8(0, 99, Unit::None), states(1, &[ro(0xFF, "defaultValue")])]);

/// Cumulative reactive energy of a high-voltage meter.
pub(super) static REACTIVE_ENERGY: Data = Data::OneOf(&[
    uint32(0, 99_999_999, Unit::KilovarHour).by(&[0xCD, 0xD3, 0xD4]).no_codes(),
    states(4, &[ro(0xFFFFFFFE, "noData")]),
]);

/// Cumulative active energy of a high-voltage meter.
pub(super) static ACTIVE_ENERGY: Data = Data::OneOf(&[
    uint32(0, 99_999_999, Unit::KilowattHour).by(&[0xD3, 0xD4, 0xE6]).no_codes(),
    states(4, &[ro(0xFFFFFFFE, "noData")]),
]);
