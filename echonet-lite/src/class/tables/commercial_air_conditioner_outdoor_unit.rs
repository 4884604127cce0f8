//! Package-type commercial air conditioner (outdoor unit) (0x0157). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{field, row, s, states, uint8, uint32};

/// Package-type commercial air conditioner (outdoor unit), class 0x0157.
pub static COMMERCIAL_AIR_CONDITIONER_OUTDOOR_UNIT: Class = Class::new(
    0x0157,
    "commercialAirConditionerOutdoorUnit",
    "I..",
    ["Package-type commercial air conditioner (outdoor unit)", "業務用パッケージエアコン室外機 (設備用を除く)"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                           get set inf   in     data names
    row(0xAB, "specialState",                      [O_, __, O_], "I..", &shared::TRUE_41_FALSE_40,             "Special state", "特殊状態"),
    row(0xB8, "ratedPowerConsumption",             [O_, __, O_], "I..", &RATED_POWER_CONSUMPTION,              "Rated power consumption of outdoor unit", "室外機定格消費電力値"),
    row(0xBE, "outdoorTemperature",                [O_, __, O_], "I..", &shared::TEMPERATURE,                  "Measured outdoor unit temperature", "室外機温度計測値"),
    row(0xCA, "groupInformation",                  [R_, __, O_], "I..", &GROUP_INFORMATION,                    "Group information", "グループ情報"),
    row(0xDB, "powerConsumption",                  [R_, __, O_], "I..", &uint32(0, 4_294_967_293, Unit::Watt), "Measured power consumption of outdoor unit", "室外機消費電力計測値"),
    row(0xDD, "powerConsumptionWillBeSaved",       [R_, __, O_], "I..", &uint32(0, 4_294_967_293, Unit::Watt), "Possible power savings for outdoor units", "室外機節電可能消費電力"),
    row(0xDE, "powerConsumptionLimit",             [R_, R_, O_], "I..", &POWER_CONSUMPTION_LIMIT,              "Settings restricting power consumption of outdoor units", "室外機消費電力制限設定"),
    row(0xDF, "restrictedMinimumPowerConsumption", [O_, __, O_], "I..", &uint32(0, 4_294_967_293, Unit::Watt), "Minimum power consumption for restricted outdoor unit", "室外機抑制最低消費電力"),
];

static COOLING: Data = Data::OneOf(&[uint32(0, 4_294_967_293, Unit::Watt), states(4, &[s(0xFFFFFFFE, "unsupported")])]);

static RATED_POWER_CONSUMPTION: Data =
    Data::Object(&[field("cooling", &COOLING, "Cooling"), field("heating", &COOLING, "Heating")]);

static GROUP_INFORMATION: Data = Data::OneOf(&[uint8(1, 253, Unit::None), states(1, &[s(0x00, "noSetting")])]);

static POWER_CONSUMPTION_LIMIT: Data =
    Data::OneOf(&[uint32(1, 4_294_967_293, Unit::Watt), states(4, &[s(0x00000000, "canceling")])]);
