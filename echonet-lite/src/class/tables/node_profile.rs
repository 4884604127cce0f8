//! Node profile (0x0EF0). Source: ECHONET device objects, Appendix release R.

use super::shared;
use crate::class::data::{Data, Unit};
use crate::class::device_class::Class;
use crate::class::property::PropertySpec;
use crate::class::property::Rule::{NotApplicable as __, Optional as O_, Required as R_};
use crate::class::table::{array, field, raw, row, uint8, uint16};

/// Node profile, class 0x0EF0.
pub static NODE_PROFILE: Class =
    Class::new(0x0EF0, "nodeProfile", "A..", ["Node profile", "ノードプロファイル"], [PROPERTIES, &[]]);

#[rustfmt::skip]
static PROPERTIES: &[PropertySpec] = &[
    // EPC    short name                             get set inf   in     data names
    row(0x80, "operatingStatus",                     [R_, __, R_], "A..", &shared::ON_30,               "Operating status", "動作状態"),
    row(0x82, "version",                             [R_, __, O_], "A..", &raw(4, 4),                   "Version information", "Version情報"),
    row(0x83, "id",                                  [R_, __, O_], "A..", &raw(17, 17),                 "Identification number", "識別番号"),
    row(0x88, "faultStatus",                         [O_, __, O_], "A..", &shared::TRUE_41,             "Fault status", "異常発生状態"),
    row(0x89, "faultDescription",                    [O_, __, O_], "A..", &uint16(0, 1004, Unit::None), "Fault description", "異常内容"),
    row(0x8A, "manufacturer",                        [R_, __, O_], "A..", &raw(3, 3),                   "Manufacturer code", "メーカコード"),
    row(0x8B, "businessFacilityCode",                [O_, __, O_], "A..", &raw(3, 3),                   "Business facility code", "事業場コード"),
    row(0x8C, "productCode",                         [O_, __, O_], "A..", &raw(12, 12),                 "Product code", "商品コード"),
    row(0x8D, "serialNumber",                        [O_, __, O_], "A..", &raw(12, 12),                 "Production number", "製造番号"),
    row(0x8E, "productionDate",                      [O_, __, O_], "A..", &Data::Date,                  "Production date", "製造年月日"),
    row(0x9D, "statusChangeAnnouncementPropertyMap", [R_, __, O_], "A..", &raw(1, 17),                  "Status change announcement property map", "状変アナウンスプロパティマップ"),
    row(0x9E, "setPropertyMap",                      [R_, __, O_], "A..", &raw(1, 17),                  "Set property map", "Setプロパティマップ"),
    row(0x9F, "getPropertyMap",                      [R_, __, O_], "A..", &raw(1, 17),                  "Get property map", "Getプロパティマップ"),
    row(0xBF, "uid",                                 [O_, O_, O_], "A..", &raw(2, 2),                   "Unique identifier data", "個体識別情報"),
    row(0xD3, "selfNodeInstances",                   [R_, __, O_], "A..", &raw(3, 3),                   "Number of self-node instances", "自ノードインスタンス数"),
    row(0xD4, "selfNodeClasses",                     [R_, __, O_], "A..", &uint16(1, 253, Unit::None),  "Number of self-node classes", "自ノードクラス数"),
    row(0xD5, "instanceListNotification",            [O_, __, R_], "A..", &INSTANCE_LIST_NOTIFICATION,  "Instance list notification", "インスタンスリスト通知"),
    row(0xD6, "selfNodeInstanceListS",               [R_, __, O_], "A..", &SELF_NODE_INSTANCE_LIST_S,   "Self-node instance list S", "自ノードインスタンスリストS"),
    row(0xD7, "selfNodeClassListS",                  [R_, __, O_], "A..", &SELF_NODE_CLASS_LIST_S,      "Self-node class list S", "自ノードクラスリストS"),
];

static INSTANCE_LIST_NOTIFICATION: Data = Data::Object(&[
    field("numberOfinstances", &uint8(0, 84, Unit::None), "Number of instances"),
    field("instanceList", &array(0, 84, 3, &raw(3, 3)), "Instance list"),
]);

static SELF_NODE_INSTANCE_LIST_S: Data = Data::Object(&[
    field("numberOfInstances", &uint8(0, 84, Unit::None), "Number of Instances"),
    field("instanceList", &array(0, 84, 3, &raw(3, 3)), "instance list"),
]);

static SELF_NODE_CLASS_LIST_S: Data = Data::Object(&[
    field("numberOfClasses", &uint8(1, 8, Unit::None), "Number of classes"),
    field("classList", &array(0, 8, 2, &raw(2, 2)), "Class list"),
]);
