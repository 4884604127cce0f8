//! Switch (supporting JEM-A/HA terminals) (0x05FD). Source: ECHONET device objects, Appendix release R.

use super::super_class::SUPER_CLASS;
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::Optional as O_;
use crate::class::table::{raw, row};

/// Switch (supporting JEM-A/HA terminals), class 0x05FD.
pub static SWITCH: Class = Class::new(
    0x05FD,
    "switch",
    "A..",
    ["Switch (supporting JEM-A/HA terminals)", "スイッチ (JEM-A/HA端子対応)"],
    [PROPERTIES, &[]],
)
.inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name         get set inf   in     data names
    row(0xE0, "connectedDevice", [O_, O_, O_], "A..", &raw(12, 12), "Connected device", "接続機器"),
];
