//! The faults of a node's objects that a certification would find, before any request.

use core::fmt;

use super::{Node, Object, Objects, PropertyAccess, Refused};
use crate::class::{self, PropertySpec, Rule};
use crate::wire::{ClassCode, EDT_MAX, Eoj};

/// Something that an object of a node does not do as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Fault {
    /// An instance is 1 to 127, and the node profile is the node's own.
    Name(Eoj),
    /// Another object before it has the same name, so that this one is never asked.
    Twin(Eoj),
    /// Its class requires a property that it does not have, or more access to it than it gives.
    Missing {
        /// The object.
        eoj: Eoj,
        /// The property.
        epc: u8,
        /// The missing access: to read, to write, to announce.
        access: Required,
    },
    /// Its class requires one of some properties, and it has none of them.
    Neither {
        /// The object.
        eoj: Eoj,
        /// The first of the properties.
        epc: u8,
    },
    /// A property is announced and can neither be read nor written: the map of what is announced (9D) is part of the two
    /// others together.
    OnlyAnnounced {
        /// The object.
        eoj: Eoj,
        /// The property.
        epc: u8,
    },
    /// Its property map says that a property can be read, and it refuses.
    Unreadable {
        /// The object.
        eoj: Eoj,
        /// The property.
        epc: u8,
        /// The refusal.
        refused: Refused,
    },
    /// The value of a property is none that its class has.
    Value {
        /// The object.
        eoj: Eoj,
        /// The property.
        epc: u8,
    },
}

/// The access that a class requires of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Required {
    /// To be read.
    Get,
    /// To be written.
    Set,
    /// To be announced when it changes.
    Announce,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(eoj) => write!(f, "{eoj} cannot be the name of an object: instances are 1 to 127"),
            Self::Twin(eoj) => write!(f, "{eoj} is the name of two objects, of which one is never asked"),
            Self::Missing { eoj, epc, access } => {
                let access = match access {
                    Required::Get => "read",
                    Required::Set => "written",
                    Required::Announce => "announced",
                };
                write!(f, "{eoj} {epc:02X}: the class requires it to be {access}")
            }
            Self::Neither { eoj, epc } => {
                write!(f, "{eoj} {epc:02X}: the class requires this property or one of its alternatives")
            }
            Self::OnlyAnnounced { eoj, epc } => {
                write!(f, "{eoj} {epc:02X}: is announced, and can neither be read nor written")
            }
            Self::Unreadable { eoj, epc, refused } => {
                write!(f, "{eoj} {epc:02X}: can be read by its property map, and is refused: {refused}")
            }
            Self::Value { eoj, epc } => write!(f, "{eoj} {epc:02X}: the value is none that the class has"),
        }
    }
}

impl core::error::Error for Fault {}

impl<O: Objects, const STORE: usize> Node<O, STORE> {
    /// Tells `found` what is wrong with the objects: names, properties that their classes require, property maps against what
    /// can be read, and values, as far as the tables of classes are there. An endpoint of a program that is built for
    /// debugging asks at its start; a microcontroller's program may in a test.
    pub fn validate(&self, mut found: impl FnMut(Fault)) {
        let objects = self.objects();
        for index in 0..objects.len() {
            let Some(object) = objects.get(index) else { continue };
            let eoj = object.eoj();
            if !(1..=127).contains(&eoj.instance()) || eoj.class_code() == ClassCode::NODE_PROFILE {
                found(Fault::Name(eoj));
            }
            let named = |before: usize| objects.get(before).is_some_and(|other| other.eoj() == eoj);
            if (0..index).any(named) {
                found(Fault::Twin(eoj));
            }
            let class = class::find(eoj.class_code());
            if let Some(class) = class {
                class.all_properties().for_each(|spec| find_missing(object, spec, &mut found));
                let has = object.access().get.union(object.access().set);
                for set in class.either.iter().filter(|set| set.intersection(has).is_empty()) {
                    set.iter().take(1).for_each(|epc| found(Fault::Neither { eoj, epc }));
                }
            }
            let PropertyAccess { get, set, announce } = *object.access();
            let only_announced = announce.difference(get).difference(set).difference(PropertyAccess::MAPS);
            only_announced.iter().for_each(|epc| found(Fault::OnlyAnnounced { eoj, epc }));
            for epc in object.access().get.difference(PropertyAccess::MAPS) {
                let spec = class.and_then(|class| class.property(epc));
                find_unreadable(object, epc, spec, &mut found);
            }
        }
    }
}

fn find_missing(object: &dyn Object, spec: &PropertySpec, found: &mut impl FnMut(Fault)) {
    // The node does the maps.
    if PropertyAccess::MAPS.contains(spec.epc) {
        return;
    }
    let (own, required) = (object.access(), spec.access);
    let rules: [(Rule, _, _); 3] = [
        (required.get, own.get, Required::Get),
        (required.set, own.set, Required::Set),
        (required.inf, own.announce, Required::Announce),
    ];
    for (rule, allowed, access) in rules {
        let is_there = own.get.contains(spec.epc) || own.set.contains(spec.epc);
        let is_required = if is_there { rule.is_required_if_present() } else { rule.is_required() };
        if is_required && !allowed.contains(spec.epc) {
            found(Fault::Missing { eoj: object.eoj(), epc: spec.epc, access });
        }
    }
}

fn find_unreadable(object: &dyn Object, epc: u8, spec: Option<&PropertySpec>, found: &mut impl FnMut(Fault)) {
    let (eoj, mut edt) = (object.eoj(), [0; EDT_MAX]);
    match object.get(epc, &mut edt) {
        // It may be able to at other times.
        Err(Refused::NotNow) => {}
        Err(refused) => found(Fault::Unreadable { eoj, epc, refused }),
        Ok(length) => match (edt.get(..length), spec) {
            (None, _) => found(Fault::Unreadable { eoj, epc, refused: Refused::Length }),
            (Some(edt), Some(spec)) if spec.decode(edt).is_err() => found(Fault::Value { eoj, epc }),
            (Some(_), _) => {}
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{CommonProperties, Config, Identity, put};
    use std::string::{String, ToString};
    use std::vec::Vec;

    struct Light {
        eoj: Eoj,
        access: PropertyAccess,
        level: u8,
    }

    impl Object for Light {
        fn eoj(&self) -> Eoj {
            self.eoj
        }

        fn access(&self) -> &PropertyAccess {
            &self.access
        }

        fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
            match epc {
                0xB0 => put(edt, &[self.level]),
                0xB6 => put(edt, &[0x42]),
                0xE0 => Err(Refused::NotNow),
                _ => CommonProperties::new([0, 0, 0x77]).get(epc, edt),
            }
        }

        fn set(&mut self, _: u8, _: &[u8]) -> Result<(), Refused> {
            Ok(())
        }
    }

    const WHOLE: PropertyAccess =
        CommonProperties::ACCESS.union(PropertyAccess::new(&[0xB0, 0xB6, 0xE0], &[0xB6], &[]));

    fn check(objects: Vec<Light>, expected: &[&str]) {
        let node = Node::new(Config::new(Identity::new([0, 0, 0x77], 1)), objects);
        let mut found: Vec<String> = Vec::new();
        node.validate(|fault| found.push(fault.to_string()));
        assert_eq!(found, expected);
    }

    fn light(instance: u8, access: PropertyAccess, level: u8) -> Light {
        Light { eoj: Eoj::new(0x02, 0x90, instance), access, level }
    }

    #[test]
    fn a_whole_node_has_no_faults() {
        check([light(1, WHOLE, 50), light(2, WHOLE, 100)].into(), &[]);
        // Of a class that no table has, only what its maps say can be told.
        check([Light { eoj: Eoj::new(0x05, 0x01, 1), access: WHOLE, level: 200 }].into(), &[]);
    }

    #[test]
    fn every_fault_is_found() {
        check(
            [light(1, CommonProperties::ACCESS, 50)].into(),
            &["029001 B6: the class requires it to be read", "029001 B6: the class requires it to be written"],
        );
        check(
            [light(1, WHOLE, 50), light(1, WHOLE, 50)].into(),
            &["029001 is the name of two objects, of which one is never asked"],
        );
        check([light(128, WHOLE, 50)].into(), &["029080 cannot be the name of an object: instances are 1 to 127"]);
        check([light(1, WHOLE, 101)].into(), &["029001 B0: the value is none that the class has"]);
        let more = WHOLE.union(PropertyAccess::new(&[0xC5], &[], &[]));
        check(
            [light(1, more, 1)].into(),
            &["029001 C5: can be read by its property map, and is refused: it has no such property"],
        );
        let less = PropertyAccess { announce: WHOLE.announce.without(0x88), ..WHOLE };
        check([light(1, less, 1)].into(), &["029001 88: the class requires it to be announced"]);
        let more = PropertyAccess { announce: WHOLE.announce.with(0xB4), ..WHOLE };
        check([light(1, more, 1)].into(), &["029001 B4: is announced, and can neither be read nor written"]);
    }

    #[test]
    fn an_optional_property_is_announced_where_it_is() {
        let sensor = |access| {
            let object = Light { eoj: Eoj::new(0x00, 0x1C, 1), access, level: 0x41 };
            let node = Node::new(Config::new(Identity::new([0, 0, 0x77], 1)), std::vec![object]);
            let mut found: Vec<String> = Vec::new();
            node.validate(|fault| found.push(fault.to_string()));
            found.retain(|fault| fault.contains("B1"));
            found
        };
        assert_eq!(sensor(CommonProperties::ACCESS), Vec::<String>::new(), "nobody has to have it");
        let silent = CommonProperties::ACCESS.union(PropertyAccess::new(&[0xB1], &[], &[]));
        assert!(sensor(silent).contains(&"001C01 B1: the class requires it to be announced".to_string()));
    }

    #[test]
    fn one_of_several_alternatives_is_required() {
        // The conditions "either … is required" of the machine-readable appendix.
        let rows: [(u8, u8, &[u8]); 7] = [
            (0x00, 0x23, &[0xE0, 0xE2]),
            (0x00, 0xD0, &[0xE0, 0xE1]),
            (0x02, 0x79, &[0xC3, 0xC4]),
            (0x02, 0x7A, &[0xE1, 0xE2]),
            (0x02, 0x7B, &[0xE0, 0xE1]),
            (0x02, 0x7D, &[0xE2, 0xE3, 0xE4]),
            (0x02, 0x8E, &[0xE0, 0xE2]),
        ];
        let lacking = |group, class, epcs: &[u8]| {
            let access = CommonProperties::ACCESS.union(PropertyAccess::new(epcs, &[], &[]));
            let object = Light { eoj: Eoj::new(group, class, 1), access, level: 0 };
            let node = Node::new(Config::new(Identity::new([0, 0, 0x77], 1)), std::vec![object]);
            let mut found = 0;
            node.validate(|fault| found += usize::from(matches!(fault, Fault::Neither { .. })));
            found
        };
        for (group, class, epcs) in rows {
            assert_eq!(lacking(group, class, &[]), 1, "{group:02X}{class:02X}");
            for epc in epcs {
                assert_eq!(lacking(group, class, &[*epc]), 0, "{group:02X}{class:02X} {epc:02X}");
            }
        }
        let lists: usize = crate::class::all().iter().map(|class| class.either.len()).sum();
        assert_eq!(lists, rows.len());
    }
}
