//! Electric energy sensor (0x0022). Source: ECHONET device objects, Appendix release R.

use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{array, int16, int32, ro, row, states, uint16, uint32};

/// Electric energy sensor, class 0x0022.
pub static ELECTRIC_ENERGY_SENSOR: Class = Class::new(
    0x0022,
    "electricEnergySensor",
    "A..",
    ["Electric energy sensor", "電力量センサ"],
    [PROPERTIES, SUPERSEDED],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                   get set inf   in      data names
    row(0xE0, "cumulativeElectricEnergy",  [R_, __, O_], "A..",  &CUMULATIVE_ELECTRIC_ENERGY,                    "Cumulative amounts of electric energy", "積算電力量計測値"),
    row(0xE1, "mediumCapacitySensorValue", [O_, __, O_], "B..",  &int32(-999_999_999, 999_999_999, Unit::Watt),  "Medium-capacity sensor instantaneous electric energy", "中容量センサ瞬時電力値計測値"),
    row(0xE2, "smallCapacitySensorValue",  [O_, __, O_], "A..",  &int16(-32767, 32766, Unit::Watt).e(-1),        "Small-capacity sensor instantaneous electric energy", "小容量センサ瞬時電力値計測値"),
    row(0xE3, "largeCapacitySensorValue",  [O_, __, O_], "A..",  &int16(-32767, 32766, Unit::Kilowatt).e(-1),    "Large-capacity sensor instantaneous electric energy", "大容量センサ瞬時電力値計測値"),
    row(0xE4, "log",                       [O_, __, O_], "L..",  &array(48, 48, 4, &LOG_ITEM),                   "Cumulative amounts of electric energy measurement log", "積算電力量計測履歴情報"),
    row(0xE5, "effectiveVoltageValue",     [O_, __, O_], "A..",  &uint16(0, 65533, Unit::Volt),                  "Effective voltage value", "実効電圧値計測値"),
];

/// What earlier releases said.
#[rustfmt::skip]
static SUPERSEDED: &[PropertySpec] = &[
    // EPC    short name                   get set inf   in      data names
    row(0xE4, "log",                       [O_, __, O_], "A..K", &array(48, 48, 4, &CUMULATIVE_ELECTRIC_ENERGY), "Cumulative amounts of electric energy measurement log", "積算電力量計測履歴情報"),
];

static CUMULATIVE_ELECTRIC_ENERGY: Data = uint32(0, 999_999_999, Unit::KilowattHour).e(-3);

static LOG_ITEM: Data =
    Data::OneOf(&[uint32(0, 999_999_999, Unit::KilowattHour).e(-3), states(4, &[ro(0xFFFFFFFE, "noData")])]);
