//! Watt-hour meter (0x0280). Source: ECHONET device objects, Appendix release R.

use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{array, n, ro, row, states, uint32};

/// Watt-hour meter, class 0x0280.
pub static WATT_HOUR_METER: Class =
    Class::new(0x0280, "wattHourMeter", "A..", ["Watt-hour meter", "電力量メータ"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                               get set inf   in     data names
    row(0xE0, "cumulativeElectricEnergy",              [R_, __, O_], "A..", &CUMULATIVE_ELECTRIC_ENERGY,                              "Cumulative amounts of electric energy measurement value", "積算電力量計測値"),
    row(0xE2, "cumulativeAmountsOfElectricEnergyUnit", [R_, __, O_], "A..", &Data::Numeric(&[n(0x01, 1, -1), n(0x02, 1, -2)]),        "Cumulative amounts of electric energy unit", "積算電力量単位"),
    row(0xE3, "cumulativeElectricEnergyLog1",          [O_, __, O_], "A..", &array(48, 48, 4, &CUMULATIVE_ELECTRIC_ENERGY_LOG1_ITEM), "Cumulative amounts of electric energy measurement log 1", "積算電力量計測値履歴1"),
];

static CUMULATIVE_ELECTRIC_ENERGY: Data = uint32(0, 99_999_999, Unit::KilowattHour).by(&[0xE2]).no_codes();

static CUMULATIVE_ELECTRIC_ENERGY_LOG1_ITEM: Data = Data::OneOf(&[
    uint32(0, 99_999_999, Unit::KilowattHour).by(&[0xE2]).no_codes(),
    states(4, &[ro(0xFFFFFFFE, "noData")]),
]);
