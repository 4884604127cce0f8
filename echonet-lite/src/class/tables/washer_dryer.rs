//! Washer and dryer (0x03D3). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_};
use crate::class::table::{RELATIVE_TIME, TIME, level, raw, ro, row, s, states, uint8, uint16};

/// Washer and dryer, class 0x03D3.
pub static WASHER_DRYER: Class =
    Class::new(0x03D3, "washerDryer", "A..", ["Washer and dryer", "洗濯乾燥機"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                    get set inf   in     data names
    row(0x90, "onTimerReservationStatus",   [O_, O_, O_], "A..", &ENABLE_DISABLE,                                            "On timer reservation setting", "ONタイマ予約設定"),
    row(0x91, "onTimerAbsolute",            [O_, O_, O_], "A..", &TIME,                                                      "On timer setting", "ONタイマ時刻設定値"),
    row(0x92, "relativeTimeOfOnTimer",      [O_, O_, O_], "A..", &RELATIVE_TIME,                                             "Relative time-based on timer setting", "ONタイマ相対時間設定値"),
    row(0xB0, "doorOpenStatus",             [O_, __, O_], "A..", &states(1, &[s(0x41, "open"), s(0x42, "close")]),           "Door/cover open/close status", "扉・蓋開閉状態"),
    row(0xB2, "runningStatus",              [O_, O_, O_], "A..", &RUNNING_STATUS,                                            "Washer and dryer setting", "洗濯・乾燥設定"),
    row(0xD0, "washerDryerCycle1",          [O_, O_, O_], "A..", &WASHER_DRYER_CYCLE1,                                       "Washer and dryer cycle setting 1", "洗濯乾燥コース設定1"),
    row(0xD1, "washerDryerCycle2",          [O_, O_, O_], "A..", &WASHER_DRYER_CYCLE2,                                       "Washer and dryer cycle setting 2", "洗濯乾燥コース設定2"),
    row(0xD2, "dryerCycle",                 [O_, O_, O_], "A..", &DRYER_CYCLE,                                               "Drying cycle setting", "乾燥方法設定"),
    row(0xD3, "washerDryerCycleOptions1",   [O_, __, O_], "A..", &raw(12, 12),                                               "Washer and dryer cycle option list 1", "設定可能コース情報1"),
    row(0xD4, "washerDryerCycleOptions2",   [O_, __, O_], "A..", &raw(4, 4),                                                 "Washer and dryer cycle option list 2", "設定可能コース情報2"),
    row(0xD5, "washerDryerCycleOptions3",   [O_, __, O_], "A..", &raw(4, 4),                                                 "Washer and dryer cycle option list 3", "設定可能コース情報3"),
    row(0xD6, "waterFlowRate",              [O_, O_, O_], "A..", &STEPS,                                                     "Water flow rate setting", "水流設定"),
    row(0xD7, "spinDryingRotationSpeed",    [O_, O_, O_], "A..", &SPIN_DRYING_ROTATION_SPEED,                                "Rotation speed for spin drying setting", "脱水回転数設定値"),
    row(0xD8, "dryingDegree",               [O_, O_, O_], "A..", &STEPS,                                                     "Degree of drying setting", "乾燥度設定"),
    row(0xDB, "washingTimeRemaining",       [O_, __, O_], "A..", &TIME_REMAINING,                                            "Remaining washing time", "洗濯残り時間"),
    row(0xDC, "dryingTimeRemaining",        [O_, __, O_], "A..", &TIME_REMAINING,                                            "Remaining drying time", "乾燥残り時間"),
    row(0xDF, "onTimerElapsed",             [O_, __, O_], "A..", &TIME,                                                      "Elapsed time on the ON timer", "ONタイマ経過時間"),
    row(0xE1, "presoakingTime",             [O_, O_, O_], "A..", &DURATION,                                                  "Presoaking time setting", "つけおき行程時間設定値"),
    row(0xE2, "currentStage",               [O_, __, O_], "A..", &CURRENT_STAGE,                                             "Current stage of washer and dryer cycle", "洗濯乾燥遷移状態"),
    row(0xE3, "waterVolumeByLiter",         [O_, O_, O_], "A..", &WATER_VOLUME_BY_LITER,                                     "Water volume setting 1", "水量設定1"),
    row(0xE4, "waterVolumeByStep",          [O_, O_, O_], "A..", &STEPS,                                                     "Water volume setting 2", "水量設定2"),
    row(0xE5, "washingTime",                [O_, O_, O_], "A..", &DURATION,                                                  "Washing time setting", "洗い時間設定値"),
    row(0xE6, "rinsingCount",               [O_, O_, O_], "A..", &RINSING_COUNT,                                             "Number of times of rinsing setting", "すすぎ回数設定値"),
    row(0xE7, "rinsingProcess",             [O_, O_, O_], "A..", &raw(4, 4),                                                 "Rinsing process setting", "すすぎモード設定"),
    row(0xE8, "spinDryingTime",             [O_, O_, O_], "A..", &SPIN_DRYING_TIME,                                          "Spin drying time setting", "脱水時間設定値"),
    row(0xE9, "dryingTime",                 [O_, O_, O_], "A..", &DURATION,                                                  "Drying time setting", "乾燥時間設定値"),
    row(0xEA, "waterTemperature",           [O_, O_, O_], "A..", &WATER_TEMPERATURE,                                         "Warm water setting", "洗い温水設定値"),
    row(0xEB, "bathtubWaterRecycle",        [O_, O_, O_], "A..", &BATHTUB_WATER_RECYCLE,                                     "Bathtub water recycle setting", "風呂水設定"),
    row(0xEC, "wrinklingMinimization",      [O_, O_, O_], "A..", &ENABLE_DISABLE,                                            "Wrinkling minimization setting", "ソフトキープ設定"),
    row(0xED, "washingDryingTimeRemaining", [O_, __, O_], "A..", &Data::OneOf(&[TIME, states(2, &[ro(0xFFFF, "unknown")])]), "Time remaining to complete washer and dryer cycle", "洗濯乾燥残り時間"),
    row(0xEE, "doorLockStatus",             [O_, O_, O_], "A..", &shared::TRUE_41,                                           "Door/cover lock setting", "運転中扉・蓋ロック設定"),
    row(0xEF, "washerAndDryerCycle",        [O_, __, O_], "A..", &raw(24, 24),                                               "Washer and dryer cycle", "洗濯乾燥行程情報"),
];

static ENABLE_DISABLE: Data = states(1, &[s(0x41, "enable"), s(0x42, "disable")]);

static RUNNING_STATUS: Data = states(1, &[s(0x41, "run"), s(0x42, "pause"), s(0x43, "stop")]);

static WASHER_DRYER_CYCLE1: Data = states(
    1,
    &[
        s(0x21, "washDryStandard"),
        s(0x22, "washDrySilent"),
        s(0x23, "washDryHeavilySoiled"),
        s(0x24, "washDryHardToRemove"),
        s(0x25, "washDryPresoaking"),
        s(0x26, "washDryBlankets"),
        s(0x27, "washDrySoft"),
        s(0x28, "washDryDrymark"),
        s(0x29, "washDryCleanRinsing"),
        s(0x2A, "washDryIroning"),
        s(0x2B, "washDryHangDrying"),
        s(0x2C, "washDryThick"),
        s(0x2D, "washDryDisinfection"),
        s(0x2E, "washDryOilStrains"),
        s(0x2F, "washDryMemory"),
        s(0x30, "washDryDetergentSaving"),
        s(0x31, "washDryLightlySoiled"),
        s(0x32, "washDrySmallAmountQuick"),
        s(0x61, "washStandard"),
        s(0x62, "washSilent"),
        s(0x63, "washHeavilySoiled"),
        s(0x64, "washHardToRemove"),
        s(0x65, "washPresoaking"),
        s(0x66, "washBlankets"),
        s(0x67, "washSoft"),
        s(0x68, "washDrymark"),
        s(0x69, "washCleanRinsing"),
        s(0x6A, "washDisinfection"),
        s(0x6B, "washOilStrains"),
        s(0x6C, "washMemory"),
        s(0x6D, "washDetergentSaving"),
        s(0x6E, "washLightlySoiled"),
        s(0x6F, "washSmallAmountQuick"),
        s(0x7F, "washTankCleaning"),
        s(0xA1, "dryStandard"),
        s(0xA2, "dryBlankets"),
        s(0xA3, "drySoft"),
        s(0xA4, "dryDrymark"),
        s(0xA5, "dryIroning"),
        s(0xA6, "dryHangDrying"),
        s(0xA7, "dryThick"),
        s(0xA8, "dryDisinfection"),
        s(0xA9, "dryShrinkageMinimization"),
        s(0xAA, "dryFinishing"),
        s(0xAB, "dryStationaryDrying"),
        s(0xAC, "dryUserDefinedTime"),
        s(0xAD, "dryWarming"),
        s(0xBF, "dryTankDrying"),
    ],
);

static WASHER_DRYER_CYCLE2: Data = states(
    1,
    &[
        s(0x20, "washDryNoWash"),
        s(0x21, "washDryStandard"),
        s(0x22, "washDrySilent"),
        s(0x23, "washDryHeavilySoiled"),
        s(0x24, "washDryHardToRemove"),
        s(0x25, "washDryPresoaking"),
        s(0x26, "washDryBlankets"),
        s(0x27, "washDrySoft"),
        s(0x28, "washDryDrymark"),
        s(0x29, "washDryCleanRinsing"),
        s(0x2D, "washDryDisinfection"),
        s(0x2E, "washDryOilStrains"),
        s(0x2F, "washDryMemory"),
        s(0x30, "washDryDetergentSaving"),
        s(0x31, "washDryLightlySoiled"),
        s(0x32, "washDrySmallAmountQuick"),
        s(0x3F, "washDryTankCleaning"),
    ],
);

static DRYER_CYCLE: Data = states(
    1,
    &[
        s(0xA0, "dryNoDrying"),
        s(0xA1, "dryStandard"),
        s(0xA2, "dryBlankets"),
        s(0xA3, "drySoft"),
        s(0xA4, "dryDrymark"),
        s(0xA5, "dryIroning"),
        s(0xA6, "dryHangDrying"),
        s(0xA7, "dryThick"),
        s(0xA8, "dryDisinfection"),
        s(0xA9, "dryShrinkageMinimization"),
        s(0xAA, "dryFinishing"),
        s(0xAB, "dryStationaryDrying"),
        s(0xAC, "dryUserDefinedTime"),
        s(0xAD, "dryWarming"),
        s(0xAE, "dryHeaterCurrentLimit"),
        s(0xBF, "dryTankDrying"),
    ],
);

static STEPS: Data =
    Data::OneOf(&[level(1, 0x31, 16), level(1, 0xA0, 8), level(1, 0xC0, 8), states(1, &[s(0xFF, "auto")])]);

static SPIN_DRYING_ROTATION_SPEED: Data = Data::OneOf(&[
    uint16(0, 4095, Unit::RevolutionPerMinute),
    level(2, 0xA000, 2048),
    level(2, 0xC000, 2048),
    states(2, &[s(0xFFFF, "auto")]),
]);

static TIME_REMAINING: Data = Data::OneOf(&[RELATIVE_TIME, states(2, &[ro(0xFFFF, "unknown")])]);

static DURATION: Data =
    Data::OneOf(&[TIME, level(2, 0xA000, 60), level(2, 0xC000, 60), states(2, &[s(0xFFFF, "auto")])]);

static CURRENT_STAGE: Data = states(
    1,
    &[
        s(0x41, "washing"),
        s(0x42, "rinsing"),
        s(0x43, "spinDrying"),
        s(0x44, "suspended"),
        s(0x45, "washingCompleted"),
        s(0x51, "washingDryingCompleted"),
        s(0x52, "drying"),
        s(0x53, "wrinkleMinimizing"),
        s(0x54, "dryingWrinkleMinimizingCompleted"),
        s(0x61, "standby"),
        s(0x71, "1stRinsing"),
        s(0x72, "2ndRinsing"),
        s(0x73, "3rdRinsing"),
        s(0x74, "4thRinsing"),
        s(0x75, "5thRinsing"),
        s(0x76, "6thRinsing"),
        s(0x77, "7thRinsing"),
        s(0x78, "8thRinsing"),
        s(0x81, "1stSpinDrying"),
        s(0x82, "2ndSpinDrying"),
        s(0x83, "3rdSpinDrying"),
        s(0x84, "4thSpinDrying"),
        s(0x85, "5thSpinDrying"),
        s(0x86, "6thSpinDrying"),
        s(0x87, "7thSpinDrying"),
        s(0x88, "8thSpinDrying"),
        s(0x91, "preheatSpinDrying"),
    ],
);

static WATER_VOLUME_BY_LITER: Data =
    Data::OneOf(&[uint8(0, 127, Unit::Litre), level(1, 0xA0, 32), level(1, 0xC0, 32), states(1, &[s(0xFF, "auto")])]);

static RINSING_COUNT: Data = Data::OneOf(&[uint8(0, 8, Unit::None), states(1, &[s(0xFF, "auto")])]);

static SPIN_DRYING_TIME: Data =
    Data::OneOf(&[uint8(0, 59, Unit::Minute), level(1, 0xA0, 32), level(1, 0xC0, 32), states(1, &[s(0xFF, "auto")])]);

static WATER_TEMPERATURE: Data =
    Data::OneOf(&[uint8(0, 100, Unit::Celsius), states(1, &[s(0xFE, "noWarmWater"), s(0xFF, "auto")])]);

static BATHTUB_WATER_RECYCLE: Data = states(
    1,
    &[
        s(0x40, "none"),
        s(0x41, "washing"),
        s(0x42, "rinsingWithoutFinal"),
        s(0x43, "rinsing"),
        s(0x44, "washingRinsingWithoutFinal"),
        s(0x45, "washingRinsing"),
    ],
);
