//! Power distribution board metering (0x0287). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{array, field, int16, ro, row, states, uint8, uint16, uint32};

/// Power distribution board metering, class 0x0287.
pub static POWER_DISTRIBUTION_BOARD_METERING: Class = Class::new(
    0x0287,
    "powerDistributionBoardMetering",
    "A..",
    ["Power distribution board metering", "分電盤メータリング"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                                                  get set inf   in     data names
    row(0xB0, "masterRatedCapacity",                                      [O_, __, O_], "E..", &uint8(0, 253, Unit::Ampere),                                "Master rated capacity", "主幹定格容量"),
    row(0xB1, "numberOfMeasurementChannelsSimplex",                       [O_, __, O_], "E..", &CHANNEL,                                                    "Number of measurement channels (simplex)", "計測チャンネル数 (片方向)"),
    row(0xB2, "channelRangeForCumulativeElectricPowerConsumptionSimplex", [O_, O_, O_], "E..", &CHANNEL_RANGE,                                              "Channel range specification for cumulative amount of electric power consumption measurement (simplex)", "積算電力量計測チャンネル範囲指定 (片方向)"),
    row(0xB3, "cumulativeElectricEnergyListSimplex",                      [O_, __, O_], "E..", &CUMULATIVE_ELECTRIC_ENERGY_LIST_SIMPLEX,                    "Measured cumulative amount of electric power consumption list (simplex)", "積算電力量計測値リスト (片方向)").atomic(0xB2),
    row(0xB4, "channelRangeForInstantaneousCurrentSimplex",               [O_, O_, O_], "E..", &CHANNEL_RANGE,                                              "Channel range specification for instantaneous current measurement (simplex)", "瞬時電流計測チャンネル範囲指定 (片方向)"),
    row(0xB5, "instantaneousCurrentListSimplex",                          [O_, __, O_], "E..", &CURRENT_LIST,                                               "Measured instantaneous current list (simplex)", "瞬時電流計測値リスト (片方向)").atomic(0xB4),
    row(0xB6, "channelRangeForInstantaneousPowerConsumptionSimplex",      [O_, O_, O_], "E..", &CHANNEL_RANGE,                                              "Channel range specification for instantaneous power consumption measurement (simplex)", "瞬時電力計測チャンネル範囲指定 (片方向)"),
    row(0xB7, "instantaneousElectricPowerListSimplex",                    [O_, __, O_], "E..", &POWER_LIST,                                                 "Measured instantaneous power consumption list (simplex)", "瞬時電力計測値リスト (片方向)").atomic(0xB6),
    row(0xB8, "numberOfMeasurementChannelsDuplex",                        [O_, __, O_], "E..", &CHANNEL,                                                    "Number of measurement channels (duplex)", "計測チャンネル数 (双方向)"),
    row(0xB9, "channelRangeForCumulativeElectricPowerConsumptionDuplex",  [O_, O_, O_], "E..", &CHANNEL_RANGE_FOR_CUMULATIVE_ELECTRIC_POWER_CONSUMPTION_DUPLEX, "Channel range specification for cumulative amount of electric power consumption measurement (duplex)", "積算電力量計測チャンネル範囲指定 (双方向)"),
    row(0xBA, "cumulativeElectricEnergyListDuplex",                       [O_, __, O_], "E..", &CUMULATIVE_ELECTRIC_ENERGY_LIST_DUPLEX,                     "Measured cumulative amount of electric power consumption list (duplex)", "積算電力量計測値リスト (双方向)").atomic(0xB9),
    row(0xBB, "channelRangeForInstantaneousCurrentDuplex",                [O_, O_, O_], "E..", &CHANNEL_RANGE,                                              "Channel range specification for instantaneous current measurement (duplex)", "瞬時電流計測チャンネル範囲指定 (双方向)"),
    row(0xBC, "instantaneousCurrentListDuplex",                           [O_, __, O_], "E..", &CURRENT_LIST,                                               "Measured instantaneous current list (duplex)", "瞬時電流計測値リスト (双方向)").atomic(0xBB),
    row(0xBD, "channelRangeForInstantaneousPowerConsumptionDuplex",       [O_, O_, O_], "E..", &CHANNEL_RANGE,                                              "Channel range specification for instantaneous power consumption measurement (duplex)", "瞬時電力計測チャンネル範囲指定 (双方向)"),
    row(0xBE, "instantaneousElectricPowerListDuplex",                     [O_, __, O_], "E..", &POWER_LIST,                                                 "Measured instantaneous power consumption list (duplex)", "瞬時電力計測値リスト (双方向)").atomic(0xBD),
    row(0xC0, "normalDirectionCumulativeElectricEnergy",                  [R_, __, O_], "A..", &ENERGY,                                                     "Measured cumulative amount of electric energy (normal direction)", "積算電力量計測値 (正方向)"),
    row(0xC1, "reverseDirectionCumulativeElectricEnergy",                 [R_, __, O_], "A..", &ENERGY,                                                     "Measured cumulative amount of electric energy (reverse direction)", "積算電力量計測値 (逆方向)"),
    row(0xC2, "unitForCumulativeElectricEnergy",                          [R_, __, O_], "A..", &shared::METER_UNIT,                                         "Unit for cumulative amounts of electric energy", "積算電力量単位"),
    row(0xC3, "normalDirectionCumulativeElectricEnergyLog",               [O_, __, O_], "A..", &ENERGY_LOG,                                                 "Historical data of measured cumulative amounts of electric energy (normal direction)", "積算電力量計測値履歴 (正方向)").atomic(0xC5),
    row(0xC4, "reverseDirectionCumulativeElectricEnergyLog",              [O_, __, O_], "A..", &ENERGY_LOG,                                                 "Historical data of measured cumulative amounts of electric energy (reverse direction)", "積算電力量計測値履歴 (逆方向)").atomic(0xC5),
    row(0xC5, "dayForTheHistoricalDataCumulativeElectricEnergy",          [O_, O_, O_], "A..", &shared::HISTORY_DAY,                                        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved", "積算履歴収集日"),
    row(0xC6, "instantaneousElectricPower",                               [O_, __, O_], "A..", &shared::POWER_OR_NO_DATA,                                   "Measured instantaneous amount of electric energy", "瞬時電力計測値"),
    row(0xC7, "instantaneousCurrent",                                     [O_, __, O_], "A..", &shared::CURRENTS,                                           "Measured instantaneous currents", "瞬時電流計測値"),
    row(0xC8, "instantaneousVoltage",                                     [O_, __, O_], "A..", &INSTANTANEOUS_VOLTAGE,                                      "Measured instantaneous voltages", "瞬時電圧計測値"),
    row(0xD0, "measurementChannel1",                                      [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 1", "計測チャンネル1"),
    row(0xD1, "measurementChannel2",                                      [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 2", "計測チャンネル2"),
    row(0xD2, "measurementChannel3",                                      [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 3", "計測チャンネル3"),
    row(0xD3, "measurementChannel4",                                      [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 4", "計測チャンネル4"),
    row(0xD4, "measurementChannel5",                                      [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 5", "計測チャンネル5"),
    row(0xD5, "measurementChannel6",                                      [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 6", "計測チャンネル6"),
    row(0xD6, "measurementChannel7",                                      [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 7", "計測チャンネル7"),
    row(0xD7, "measurementChannel8",                                      [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 8", "計測チャンネル8"),
    row(0xD8, "measurementChannel9",                                      [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 9", "計測チャンネル9"),
    row(0xD9, "measurementChannel10",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 10", "計測チャンネル10"),
    row(0xDA, "measurementChannel11",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 11", "計測チャンネル11"),
    row(0xDB, "measurementChannel12",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 12", "計測チャンネル12"),
    row(0xDC, "measurementChannel13",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 13", "計測チャンネル13"),
    row(0xDD, "measurementChannel14",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 14", "計測チャンネル14"),
    row(0xDE, "measurementChannel15",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 15", "計測チャンネル15"),
    row(0xDF, "measurementChannel16",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 16", "計測チャンネル16"),
    row(0xE0, "measurementChannel17",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 17", "計測チャンネル17"),
    row(0xE1, "measurementChannel18",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 18", "計測チャンネル18"),
    row(0xE2, "measurementChannel19",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 19", "計測チャンネル19"),
    row(0xE3, "measurementChannel20",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 20", "計測チャンネル20"),
    row(0xE4, "measurementChannel21",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 21", "計測チャンネル21"),
    row(0xE5, "measurementChannel22",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 22", "計測チャンネル22"),
    row(0xE6, "measurementChannel23",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 23", "計測チャンネル23"),
    row(0xE7, "measurementChannel24",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 24", "計測チャンネル24"),
    row(0xE8, "measurementChannel25",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 25", "計測チャンネル25"),
    row(0xE9, "measurementChannel26",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 26", "計測チャンネル26"),
    row(0xEA, "measurementChannel27",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 27", "計測チャンネル27"),
    row(0xEB, "measurementChannel28",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 28", "計測チャンネル28"),
    row(0xEC, "measurementChannel29",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 29", "計測チャンネル29"),
    row(0xED, "measurementChannel30",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 30", "計測チャンネル30"),
    row(0xEE, "measurementChannel31",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 31", "計測チャンネル31"),
    row(0xEF, "measurementChannel32",                                     [O_, __, O_], "A..", &MEASUREMENT_CHANNEL,                                        "Measurement channel 32", "計測チャンネル32"),
];

static CHANNEL: Data = Data::OneOf(&[uint8(1, 252, Unit::None), states(1, &[ro(0xFD, "undefined")])]);

static RANGE: Data = Data::OneOf(&[uint8(1, 60, Unit::None), states(1, &[ro(0xFD, "undefined")])]);

static CHANNEL_RANGE: Data = Data::Object(&[
    field("startChannel", &CHANNEL, "Acquisition start channel"),
    field("range", &RANGE, "Range from the acquisition start channel"),
]);

static ENERGY: Data = Data::OneOf(&[
    uint32(0, 99_999_999, Unit::KilowattHour).by(&[0xC2]).no_codes(),
    states(4, &[ro(0xFFFFFFFE, "noData")]),
]);

static CUMULATIVE_ELECTRIC_ENERGY_LIST_SIMPLEX: Data = Data::Object(&[
    field("startChannel", &CHANNEL, "Acquisition start channel"),
    field("range", &RANGE, "Range from the acquisition start channel"),
    field("electricEnergy", &array(0, 60, 4, &ENERGY), "Measured cumulative amount of electric power consumption"),
]);

static CURRENT_LIST: Data = Data::Object(&[
    field("startChannel", &CHANNEL, "Acquisition start channel"),
    field("range", &RANGE, "Range from the acquisition start channel"),
    field("instantaneousCurrent", &array(0, 60, 4, &shared::CURRENTS), "Measured instantaneous current"),
]);

static POWER_LIST: Data = Data::Object(&[
    field("startChannel", &CHANNEL, "Acquisition start channel"),
    field("range", &RANGE, "Range from the acquisition start channel"),
    field(
        "instantaneousElectricPower",
        &array(0, 60, 4, &shared::POWER_OR_NO_DATA),
        "Measured instantaneous power consumption",
    ),
]);

static CHANNEL_RANGE_FOR_CUMULATIVE_ELECTRIC_POWER_CONSUMPTION_DUPLEX_RANGE: Data =
    Data::OneOf(&[uint8(1, 30, Unit::None), states(1, &[ro(0xFD, "undefined")])]);

static CHANNEL_RANGE_FOR_CUMULATIVE_ELECTRIC_POWER_CONSUMPTION_DUPLEX: Data = Data::Object(&[
    field("startChannel", &CHANNEL, "Acquisition start channel"),
    field(
        "range",
        &CHANNEL_RANGE_FOR_CUMULATIVE_ELECTRIC_POWER_CONSUMPTION_DUPLEX_RANGE,
        "Range from the acquisition start channel",
    ),
]);

static CUMULATIVE_ELECTRIC_ENERGY_LIST_DUPLEX_ENERGY: Data = Data::Object(&[
    field(
        "normalDirectionElectricEnergy",
        &ENERGY,
        "Measured cumulative amount of electric power consumption (forward direction)",
    ),
    field(
        "reverseDirectionElectricEnergy",
        &ENERGY,
        "Measured cumulative amount of electric power consumption (reverse direction)",
    ),
]);

static ELECTRIC_ENERGY: Data = array(0, 30, 8, &CUMULATIVE_ELECTRIC_ENERGY_LIST_DUPLEX_ENERGY);

static CUMULATIVE_ELECTRIC_ENERGY_LIST_DUPLEX: Data = Data::Object(&[
    field("startChannel", &CHANNEL, "Acquisition start channel"),
    field(
        "range",
        &CHANNEL_RANGE_FOR_CUMULATIVE_ELECTRIC_POWER_CONSUMPTION_DUPLEX_RANGE,
        "Range from the acquisition start channel",
    ),
    field("electricEnergy", &ELECTRIC_ENERGY, "Measured cumulative amount of electric power consumption"),
]);

static ENERGY_LOG: Data = Data::Object(&[
    field(
        "day",
        &shared::HISTORY_DAY_16,
        "Day for which the historical data of measured cumulative amounts of electric energy is to be retrieved",
    ),
    field(
        "electricEnergy",
        &array(48, 48, 4, &ENERGY),
        "The historical data of measured cumulative amounts of electric energy (8 digits)",
    ),
]);

static INSTANTANEOUS_VOLTAGE: Data = Data::Object(&[
    field("rS", &uint16(0, 65533, Unit::Volt).e(-1), "Between R and S(N)"),
    field("sT", &uint16(0, 65533, Unit::Volt).e(-1), "Between S(N) and T"),
]);

static CURRENT_RPHASE: Data =
    Data::OneOf(&[int16(-32767, 32765, Unit::Ampere).e(-1), states(2, &[ro(0x7FFE, "noData")])]);

static MEASUREMENT_CHANNEL: Data = Data::Object(&[
    field("electricEnergy", &ENERGY, "Measured cumulative amount of electric power consumption"),
    field("currentRphase", &CURRENT_RPHASE, "Measured instantaneous current (R phase)"),
    field("currentTphase", &CURRENT_RPHASE, "Measured instantaneous current (T phase)"),
]);
