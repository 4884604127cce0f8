//! The class tables: look-up, inheritance, access rules.

use echonet_lite::class::{self, Access, Class, Data, PropertySpec, Rule};
use echonet_lite::wire::ClassCode;

fn class(name: &str) -> &'static Class {
    class::by_name(name).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn every_class_is_there_and_found() {
    assert_eq!(class::all().len(), 199);
    let rows = class::all().iter().map(|class| class.properties.len() + class.superseded.len());
    assert_eq!(rows.sum::<usize>(), 1443);
    for class in class::all() {
        assert_eq!(class::find(class.code).map(|found| found.short_name), Some(class.short_name));
        assert_eq!(class::by_name(class.short_name).map(|found| found.code), Some(class.code));
        assert_eq!(class::by_name(&class.short_name.to_uppercase()).map(|found| found.code), Some(class.code));
        assert_eq!(class::by_name(&format!("0x{}", class.code)).map(|found| found.code), Some(class.code));
        assert_eq!(class::by_name(&class.code.to_string().to_lowercase()).map(|found| found.code), Some(class.code));
        for row in class.properties {
            assert_eq!(class.property(row.epc).map(|found| found.short_name), Some(row.short_name));
        }
    }
    assert!(class::find(ClassCode::new(0x01, 0xFF)).is_none());
    for name in ["", "0x", "nothing", "+130", "0x01301"] {
        assert!(class::by_name(name).is_none(), "{name}");
    }
}

#[test]
fn devices_inherit_from_the_super_class() {
    let air_conditioner = class("homeAirConditioner");
    let own = air_conditioner.property(0x80).expect("its own");
    assert_eq!((own.access.get, own.access.set, own.access.inf), (Rule::Required, Rule::Required, Rule::Required));
    let inherited = air_conditioner.property(0x8A).expect("the super class's");
    assert_eq!((inherited.short_name, inherited.name()), ("manufacturer", "Manufacturer code"));
    assert_eq!(air_conditioner.property(0xB3).map(|row| row.name_ja()), Some("温度設定値"));
    assert!(air_conditioner.property(0x7F).is_none() && air_conditioner.property(0xF0).is_none());
    assert!(class("nodeProfile").property(0x81).is_none(), "a profile is no device");
    let codes: Vec<u8> = class("temperatureSensor").all_properties().map(|row| row.epc).collect();
    assert!(codes.is_sorted() && codes.first() == Some(&0x80) && codes.last() == Some(&0xE0));
}

#[test]
fn properties_by_name_and_release() {
    let light = class("generalLighting");
    for name in ["lightColor", "LIGHTCOLOR", "b1", "0xB1"] {
        assert_eq!(light.property_by_name(name).map(|row| row.epc), Some(0xB1), "{name}");
    }
    assert!(light.property_by_name("1B1").is_none());
    let from = |release| light.property_at(0xB1, release).map(|row| row.releases.from());
    assert_eq!([from('A'), from('H'), from('R')], [Some('A'), Some('C'), Some('N')]);
    assert_eq!(light.property_at(0x93, 'A').map(|row| row.short_name), Some("locationInformation"));
    assert!(light.property_at(0xC0, 'A').is_none(), "colours came with release C");
    for class in class::all() {
        for row in class.properties {
            let found = class.property_by_name(row.short_name).map(|row| row.epc);
            assert_eq!(found, Some(row.epc), "{class} {}", row.short_name);
        }
    }
}

static TEXT: Data = Data::Text { minimum: 4, maximum: 6 };
static OWN: [PropertySpec; 2] = {
    let access = Access { get: Rule::Required, set: Rule::Optional, inf: Rule::IfPresent };
    [
        PropertySpec::new(0x80, ["operationStatus", "Operation status"], access, &TEXT),
        PropertySpec::new(0xF0, ["label", "Label"], access, &TEXT),
    ]
};

#[test]
fn classes_that_the_tables_do_not_have() {
    let custom = Class::custom(ClassCode::new(0x05, 0xF1), ["mine", "My class"], &OWN);
    assert_eq!((custom.short_name, custom.name(), custom.name_ja()), ("mine", "My class", "My class"));
    let codes: Vec<_> = custom.all_properties().map(|row| row.epc).collect();
    assert!(codes.contains(&0x80) && codes.contains(&0x8A) && codes.contains(&0xF0), "{codes:?}");
    assert!(custom.mandatory().get.contains(0xF0) && custom.mandatory().get.contains(0x82));
    assert_eq!(custom.property_by_name("LABEL").map(|row| row.epc), Some(0xF0));
    // A class of the tables keeps all but its own properties.
    let light = class("generalLighting");
    let other = light.with_properties(&OWN);
    assert_eq!((other.code, other.short_name, other.name()), (light.code, light.short_name, light.name()));
    assert!(other.property(0xB0).is_none() && other.property(0xF0).is_some() && other.property(0x8A).is_some());
    assert_eq!(other.superseded.len(), light.superseded.len());
}

#[test]
#[should_panic(expected = "sorted")]
fn properties_of_a_class_are_sorted() {
    static TWICE: [PropertySpec; 2] = [OWN[0], OWN[0]];
    let _ = class("generalLighting").with_properties(&TWICE);
}

#[test]
fn mandatory_properties() {
    let services = class("generalLighting").mandatory();
    assert_eq!(Vec::from_iter(services.get.iter()), [0x80, 0x81, 0x82, 0x88, 0x8A, 0x9D, 0x9E, 0x9F, 0xB6]);
    assert_eq!(Vec::from_iter(services.set.iter()), [0x80, 0x81, 0xB6]);
    assert_eq!(Vec::from_iter(services.announce.iter()), [0x80, 0x81, 0x88]);
    let profile = class("nodeProfile").mandatory();
    let listed = [0x80, 0x82, 0x83, 0x8A, 0x9D, 0x9E, 0x9F, 0xD3, 0xD4, 0xD6, 0xD7];
    assert_eq!(Vec::from_iter(profile.get.iter()), listed);
    assert_eq!(Vec::from_iter(profile.announce.iter()), [0x80, 0xD5]);
    let dimmable = class("generalLighting").offering(&[0xB0]);
    assert!(dimmable.get.contains(0xB0) && dimmable.set.contains(0xB0) && !dimmable.announce.contains(0xB0));
}
