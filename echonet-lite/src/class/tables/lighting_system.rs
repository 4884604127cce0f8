//! Lighting system (0x02A3). Source: ECHONET device objects, Appendix release R.

use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{row, s, states, uint8};

/// Lighting system, class 0x02A3.
pub static LIGHTING_SYSTEM: Class =
    Class::new(0x02A3, "lightingSystem", "I..", ["Lighting system", "照明システム"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                get set inf   in     data names
    row(0xB0, "lightLevel",             [O_, O_, O_], "I..", &uint8(0, 100, Unit::Percent), "Light level setting", "照明の明るさ設定"),
    row(0xC0, "sceneId",                [R_, R_, O_], "I..", &SCENE_ID,                     "Scene control setting", "シーン制御設定"),
    row(0xC1, "maximumNumberOfSceneId", [R_, __, O_], "I..", &uint8(0, 253, Unit::None),    "Number that can assign scene control setting", "シーン制御設定可能数"),
];

static SCENE_ID: Data = Data::OneOf(&[uint8(1, 253, Unit::None), states(1, &[s(0x00, "noSetting")])]);
