//! Mono functional lighting (0x0291). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::Unit;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{Optional as O_, Required as R_};
use crate::class::table::{row, uint8};

/// Mono functional lighting, class 0x0291.
pub static MONO_FUNCTIONAL_LIGHTING: Class =
    Class::new(0x0291, "monoFunctionalLighting", "F..", ["Mono functional lighting", "単機能照明"], [PROPERTIES, &[]])
        .inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name         get set inf   in     data names
    row(0x80, "operationStatus", [R_, R_, R_], "F..", &shared::ON_30,                "Operation status", "動作状態"),
    row(0xB0, "lightLevel",      [O_, O_, O_], "F..", &uint8(0, 100, Unit::Percent), "Light level Setting", "照明の明るさ設定"),
];
