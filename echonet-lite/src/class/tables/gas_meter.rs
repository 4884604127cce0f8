//! Gas meter (0x0282). Source: ECHONET device objects, Appendix release R.

use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{array, ro, row, states, uint32};

/// Gas meter, class 0x0282.
pub static GAS_METER: Class =
    Class::new(0x0282, "gasMeter", "A..", ["Gas meter", "ガスメータ"], [PROPERTIES, &[]]).inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                     get set inf   in     data names
    row(0xE0, "cumulativeGasConsumption",    [R_, __, O_], "A..", &CUMULATIVE_GAS_CONSUMPTION,                             "Cumulative amount of gas consumption measurement value", "積算ガス消費量計測値"),
    row(0xE2, "cumulativeGasConsumptionLog", [O_, __, O_], "A..", &array(48, 48, 4, &CUMULATIVE_GAS_CONSUMPTION_LOG_ITEM), "Cumulative amounts of gas consumption measurement log", "積算ガス消費量計測値履歴"),
];

static CUMULATIVE_GAS_CONSUMPTION: Data = uint32(0, 999_999_999, Unit::CubicMetre).e(-3);

static CUMULATIVE_GAS_CONSUMPTION_LOG_ITEM: Data =
    Data::OneOf(&[uint32(0, 999_999_999, Unit::CubicMetre).e(-3), states(4, &[ro(0xFFFFFFFE, "noData")])]);
