//! Water flowmeter (0x0281). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{array, n, raw, ro, row, s, states, uint32};

/// Water flowmeter, class 0x0281.
pub static WATER_FLOW_METER: Class =
    Class::new(0x0281, "waterFlowMeter", "A..", ["Water flowmeter", "水流量メータ"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                           get set inf   in     data names
    row(0xD0, "waterFlowMeterClassification",      [O_, O_, O_], "A..", &WATER_FLOW_METER_CLASSIFICATION,                       "Water flowmeter classification", "水流量メータ区分"),
    row(0xD1, "ownerClassification",               [O_, O_, O_], "A..", &OWNER_CLASSIFICATION,                                  "Owner classification", "所有者区分"),
    row(0xE0, "cumulativeFlowingWater",            [R_, __, O_], "A..", &uint32(0, 999_999_999, Unit::CubicMetre).by(&[0xE1]),  "Measured cumulative amount of flowing water", "積算水流量計測値"),
    row(0xE1, "unitForCumulativeFlowingWater",     [R_, __, O_], "A..", &UNIT_FOR_CUMULATIVE_FLOWING_WATER,                     "Unit for measured Cumulative amounts of flowing water", "積算水流量計測値単位"),
    row(0xE2, "cumulativeFlowingWaterLog",         [O_, __, O_], "A..", &array(48, 48, 4, &CUMULATIVE_FLOWING_WATER_LOG_ITEM),  "Historical data of measured cumulative amount of flowing water", "積算水流量計測値履歴"),
    row(0xE3, "abnormalDetection",                 [O_, __, R_], "A..", &shared::TRUE_41,                                       "Detection of abnormal value in metering data", "検針データ異常検知状態"),
    row(0xE4, "securityDataInformation",           [O_, __, O_], "A..", &uint32(0, 4_294_967_295, Unit::None),                  "Security data information", "セキュリティデータ情報"),
    row(0xE5, "idNumber",                          [O_, O_, O_], "A..", &raw(6, 6),                                             "ID number setting", "ID番号設定"),
    row(0xE6, "verificationExpirationInformation", [O_, O_, O_], "A..", &raw(6, 6),                                             "Verification expiration information", "検定満期情報"),
    row(0xE7, "cumulativeFlowingWaterLog2",        [O_, __, O_], "P..", &array(48, 48, 4, &CUMULATIVE_FLOWING_WATER_LOG2_ITEM), "Historical data 2 of measured cumulative amount of flowing water", "積算水流量計測値履歴2"),
];

static WATER_FLOW_METER_CLASSIFICATION: Data =
    states(1, &[s(0x30, "runningWater"), s(0x31, "recycledWater"), s(0x32, "sewageWater"), s(0x33, "otherWater")]);

static OWNER_CLASSIFICATION: Data = states(
    1,
    &[
        s(0x30, "notSpecified"),
        s(0x31, "publicWaterworksCompany"),
        s(0x32, "privateSectorCompany"),
        s(0x33, "individual"),
    ],
);

static UNIT_FOR_CUMULATIVE_FLOWING_WATER: Data = Data::Numeric(&[
    n(0x00, 1, 0),
    n(0x01, 1, -1),
    n(0x02, 1, -2),
    n(0x03, 1, -3),
    n(0x04, 1, -4),
    n(0x05, 1, -5),
    n(0x06, 1, -6),
]);

static CUMULATIVE_FLOWING_WATER_LOG_ITEM: Data =
    Data::OneOf(&[uint32(0, 999_999_999, Unit::CubicMetre).e(-3), states(4, &[ro(0xFFFFFFFE, "noData")])]);

static CUMULATIVE_FLOWING_WATER_LOG2_ITEM: Data = Data::OneOf(&[
    uint32(0, 999_999_999, Unit::CubicMetre).by(&[0xE1]).no_codes(),
    states(4, &[ro(0xFFFFFFFE, "noData")]),
]);
