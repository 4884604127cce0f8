//! Television (0x0602). Source: ECHONET device objects, Appendix release R.

use super::shared;
use super::super_class::SUPER_CLASS;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_, RequiredO as RO};
use crate::class::table::{bitmap, field, flag, raw, row, s, states, uint8};

/// Television, class 0x0602.
pub static TV: Class =
    Class::new(0x0602, "tv", "A..", ["Television", "テレビ"], [PROPERTIES, &[]]).inherits(&SUPER_CLASS);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                       get set inf   in     data names
    row(0x80, "operationStatus",               [R_, RO, R_], "A..", &shared::ON_30,                                         "Operation status", "動作状態"),
    row(0xB0, "displayControlStatus",          [O_, O_, O_], "A..", &states(1, &[s(0x30, "enabled"), s(0x31, "disabled")]), "Display control setting", "表示制御設定"),
    row(0xB1, "stringSettingAcceptanceStatus", [RO, __, R_], "A..", &states(1, &[s(0x30, "ready"), s(0x31, "busy")]),       "Character string setting acceptance status", "文字列設定受付可能状態"),
    row(0xB2, "supportedCharacterCode",        [RO, __, O_], "A..", &SUPPORTED_CHARACTER_CODE,                              "Supported character codes", "表示可能文字コード"),
    row(0xB3, "characterStringPresented",      [O_, R_, O_], "A..", &CHARACTER_STRING_PRESENTED,                            "Character string to present to the user", "伝達文字列設定"),
    row(0xB4, "lengthOfStringAccepted",        [RO, __, O_], "A..", &LENGTH_OF_STRING_ACCEPTED,                             "Length of character string accepted", "受付け伝達文字列長"),
];

static FLAG: Data = states(0, &[s(0x00, "notImplemented"), s(0x01, "implemented")]);

static SUPPORTED_CHARACTER_CODE: Data = bitmap(
    2,
    &[
        flag(0, 0b0000_0001, "ansiX34Equipped", &FLAG),
        flag(0, 0b0000_0010, "shiftJisEquipped", &FLAG),
        flag(0, 0b0000_0100, "jisEquipped", &FLAG),
        flag(0, 0b0000_1000, "japaneseEucEquipped", &FLAG),
        flag(0, 0b0001_0000, "ucs4Equipped", &FLAG),
        flag(0, 0b0010_0000, "ucs2Equipped", &FLAG),
        flag(0, 0b0100_0000, "latin1Equipped", &FLAG),
        flag(0, 0b1000_0000, "utf8Equipped", &FLAG),
    ],
);

static CHARACTER_CODE: Data = states(
    1,
    &[
        s(0x01, "ansi_x3_4"),
        s(0x02, "shift_jis"),
        s(0x03, "jis"),
        s(0x04, "japanese_euc"),
        s(0x05, "ucs_4"),
        s(0x06, "ucs_2"),
        s(0x07, "latin_1"),
        s(0x08, "utf_8"),
    ],
);

static CHARACTER_STRING_PRESENTED: Data = Data::Object(&[
    field(
        "length",
        &uint8(0, 244, Unit::None),
        "Byte code sequence data length of the character string to present to the user converted to the hexadecimal format",
    ),
    field("characterCode", &CHARACTER_CODE, "Character code to use"),
    field("RFU", &states(1, &[s(0x00, "reserved")]), "reserved"),
    field(
        "characterString",
        &raw(1, 244),
        "Byte code sequence of the character string to present to the user (max.244 bytes)",
    ),
]);

static LENGTH_OF_STRING_ACCEPTED: Data = Data::Object(&[
    field("length", &uint8(0, 244, Unit::None), "data size of the string"),
    field("RFU", &states(1, &[s(0x00, "reserved")]), "reserved"),
]);
