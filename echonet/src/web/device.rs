//! An object of the network as a device of the Web API: its resources, their values, its description.

use std::collections::{HashMap, HashSet};

use echonet_lite::class::{Class, Data, PropertySpec, Scaled};
use echonet_lite::controller::{NodeAddr, NodeId, PropertyMaps};
use echonet_lite::wire::{Eoj, PropertySet};
use serde_json::{Map, Value as Json, json};

use super::problem::Problem;
use super::schema::{self, MANUFACTURER, PROTOCOL, descriptions, of_class};
use super::value;
use crate::quirks::Quirks;
use crate::{circuits, data, render};

/// The property maps: the description has their content.
const MAPS: PropertySet = PropertySet::of(&[0x9D, 0x9E, 0x9F]);
/// The properties that identify the device, or tell how it is made: asked for once.
pub(super) const CONSTANT: PropertySet = PropertySet::of(&[0x82, 0x83, 0x8A, 0x8B, 0x8C, 0x8D, 0x8E]);

/// Names that other issues of the device descriptions have for properties: class, code, name.
const OTHER_NAMES: [(u16, u8, &str); 9] = [
    (0x0272, 0xDA, "targetAutomaticOperationTime"),
    (0x0290, 0xB0, "brightness"),
    (0x0290, 0xB2, "brightnessLevelStep"),
    (0x0290, 0xB7, "brightnessLevelForMainLighting"),
    (0x0290, 0xB8, "brightnessLevelStepForMainLighting"),
    (0x0290, 0xB9, "brightnessLevelForNightLighting"),
    (0x0290, 0xBA, "brightnessLevelStepForNightLighting"),
    (0x0291, 0xB0, "brightness"),
    (0x05FF, 0xC2, "deviceList"),
];

/// EDTs by property.
pub(super) type Values = HashMap<u8, Vec<u8>>;

/// A device: all of it that does not change while it is there.
#[derive(Debug)]
pub(super) struct Device {
    /// The permanent id: letters, digits and `-`.
    pub(super) id: String,
    /// The identity that its node must have when it gets a request.
    pub(super) node: NodeId,
    /// Where its node is.
    pub(super) addr: NodeAddr,
    pub(super) eoj: Eoj,
    pub(super) class: &'static Class,
    pub(super) maps: PropertyMaps,
    pub(super) quirks: Quirks,
    pub(super) maker: Option<[u8; 3]>,
    /// The version of the standard that its node keeps.
    pub(super) standard: Option<[u8; 4]>,
    /// Held from a write to the read that belongs to it: a history of a day, after the day.
    pub(super) atomic: tokio::sync::Mutex<()>,
}

/// A property or an action, by the name that it was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource<'a> {
    pub(super) name: &'a str,
    pub(super) spec: &'static PropertySpec,
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
}

impl Device {
    /// The properties to ask for now and then: the state that the device does not announce.
    pub(super) fn silent(&self) -> PropertySet {
        self.state().difference(self.maps.announced)
    }

    /// The device with the properties of its product, if the user's data has such for the product code that it has told.
    pub(super) fn of_product(&self, values: &Values) -> Option<Self> {
        const PRODUCT: u8 = 0x8C;
        let class = data::variant(self.class, self.maker, Some(values.get(&PRODUCT)?));
        if std::ptr::eq(class, self.class) {
            return None;
        }
        Some(Self { class, ..self.at(self.addr) })
    }

    /// The same device at an address.
    pub(super) fn at(&self, addr: NodeAddr) -> Self {
        let (id, quirks, atomic) = (self.id.clone(), self.quirks.clone(), tokio::sync::Mutex::default());
        let Self { node, eoj, class, maps, maker, standard, .. } = *self;
        Self { id, node, addr, eoj, class, maps, quirks, maker, standard, atomic }
    }

    /// All that can be read and that the tables explain.
    pub(super) fn readable(&self) -> PropertySet {
        let specs = self.resources().filter(|resource| resource.is_readable);
        specs.fold(PropertySet::EMPTY, |set, resource| set.with(resource.spec.epc))
    }

    /// Its state: the readable properties that change.
    pub(super) fn state(&self) -> PropertySet {
        // A property that needs a write before it is read is not read by itself.
        let is_free = |epc: &u8| self.class.property(*epc).is_some_and(|spec| spec.atomic.is_none());
        self.readable().difference(CONSTANT).iter().filter(is_free).fold(PropertySet::EMPTY, PropertySet::with)
    }

    /// The properties that a property's value is counted in, of those that the device has.
    pub(super) fn coefficients(&self, spec: &PropertySpec) -> PropertySet {
        PropertySet::of(&render::counted_in(spec.data)).intersection(self.maps.readable)
    }

    /// Its properties and actions. A name that its class and the super class both have means the class's.
    pub(super) fn resources(&self) -> impl Iterator<Item = Resource<'static>> {
        let own: HashSet<_> = self.class.properties.iter().map(|spec| spec.short_name).collect();
        let of_class = move |spec: &&PropertySpec| {
            let is_own = self.class.properties.iter().any(|own| own.epc == spec.epc);
            is_own || !own.contains(spec.short_name)
        };
        self.class.all_properties().filter(of_class).filter_map(move |spec| self.with(spec, spec.short_name))
    }

    fn with<'a>(&self, spec: &'static PropertySpec, name: &'a str) -> Option<Resource<'a>> {
        let shown = |map: PropertySet| map.contains(spec.epc) && !MAPS.union(self.quirks.broken).contains(spec.epc);
        let (is_readable, is_writable) = (shown(self.maps.readable), shown(self.maps.writable));
        (is_readable || is_writable).then_some(Resource { name, spec, is_readable, is_writable })
    }

    /// The property or action of a name.
    ///
    /// # Errors
    /// The device has none of it.
    pub(super) fn resource<'a>(&self, name: &'a str) -> Result<Resource<'a>, Problem> {
        let code = self.class.code.to_u16();
        let other = OTHER_NAMES.iter().find(|(class, _, other)| *class == code && *other == name);
        let named = match other {
            Some((_, epc, _)) => self.class.property(*epc).and_then(|spec| self.with(spec, name)),
            None => self
                .resources()
                .find(|resource| resource.spec.short_name == name)
                .and_then(|found| self.with(found.spec, name)),
        };
        named.ok_or_else(|| Problem::unknown(format!("{} has no property or action {name:.60}", self.id)))
    }

    /// A property's value, of the values that are known of the device; none if that is none of them, or says nothing.
    pub(super) fn read(&self, spec: &PropertySpec, values: &Values) -> Option<Json> {
        let edt = values.get(&spec.epc)?;
        match (spec.epc, &edt[..]) {
            (PROTOCOL, &[_, _, letter, revision]) => return Some(self.protocol(letter, revision)),
            (MANUFACTURER, &[a, b, c]) => return Some(manufacturer([a, b, c])),
            _ => {}
        }
        let (spec, value) = render::decode(self.class, spec.epc, edt)?;
        Some(value::json(value, spec.data, &|epcs| self.factor(epcs, values)))
    }

    /// The product of properties. Optional ones that the device does not have count as one.
    pub(super) fn factor(&self, epcs: &[u8], values: &Values) -> Option<Scaled> {
        let counts = |epc: u8| self.maps.readable.contains(epc) || !render::is_one_if_absent(self.class, epc);
        let there = epcs.iter().filter(|epc| counts(**epc));
        there.copied().try_fold(render::ONE, |product, epc| {
            let (_, value) = render::decode(self.class, epc, values.get(&epc)?)?;
            product.times(value.number()?)
        })
    }

    fn protocol(&self, letter: u8, revision: u8) -> Json {
        let version = match (letter.is_ascii_uppercase(), revision) {
            (false, _) => "unknown".to_owned(),
            (true, 0 | 1) => format!("Rel.{}", letter as char),
            (true, revision) => format!("Rel.{} rev.{revision}", letter as char),
        };
        let standard = self.standard.map_or_else(String::new, |[major, minor, ..]| format!(" v{major}.{minor}"));
        json!({ "type": format!("ECHONET_Lite{standard}"), "version": version })
    }

    /// Its entry in the list of devices.
    pub(super) fn profile(&self, values: &Values) -> Json {
        let release = values.get(&PROTOCOL).map_or((0, 0), |edt| match edt[..] {
            [_, _, letter, revision] => (letter, revision),
            _ => (0, 0),
        });
        json!({
            "id": self.id,
            "deviceType": self.class.short_name,
            "protocol": self.protocol(release.0, release.1),
            "manufacturer": self.maker.map_or(Json::Null, manufacturer),
        })
    }

    /// True for a distribution board whose circuits can be read.
    pub(super) fn has_circuits(&self) -> bool {
        circuits::lists(self.class, &self.maps).next().is_some()
    }

    /// The device description.
    pub(super) fn description(&self) -> Json {
        let (mut properties, mut actions) = (Map::new(), Map::new());
        for resource in self.resources() {
            let (spec, name) = (resource.spec, resource.name.to_owned());
            if resource.is_readable {
                properties.insert(name, self.property(resource));
            } else {
                actions.insert(name, action(spec));
            }
        }
        if self.has_circuits() {
            properties.insert(schema::CIRCUITS.into(), schema::circuits());
        }
        let mut description = json!({
            "deviceType": self.class.short_name,
            "eoj": format!("0x{:04X}", self.eoj.class_code().to_u16()),
            "descriptions": of_class(self.class),
            "properties": properties,
        });
        if !actions.is_empty() {
            description["actions"] = actions.into();
        }
        description
    }

    /// The description of a property.
    pub(super) fn property(&self, resource: Resource<'_>) -> Json {
        let spec = resource.spec;
        let mut property = json!({
            "epc": format!("{:#04X}", spec.epc),
            "descriptions": descriptions(spec.name_ja(), spec.name()),
            "writable": resource.is_writable,
            "observable": self.maps.announced.contains(spec.epc),
            "schema": schema::of(spec),
        });
        let parameters = self.parameters(spec);
        if let Some(first) = spec.atomic.filter(|_| !parameters.is_empty()) {
            let described = parameters.iter().map(|parameter| {
                let entry = json!({ "schema": schema::of_data(parameter.data), "required": false });
                (parameter.name.to_owned(), entry)
            });
            property["epcAtomic"] = format!("{first:#04X}").into();
            property["urlParameters"] = described.collect::<Map<_, _>>().into();
        }
        property
    }

    /// The parameters that the query of a property may have: the fields of the property that is written before the
    /// read.
    pub(super) fn parameters(&self, spec: &PropertySpec) -> Vec<Parameter> {
        let first = spec.atomic.filter(|epc| self.maps.writable.contains(*epc));
        let Some(first) = first.and_then(|epc| self.class.property(epc)) else { return Vec::new() };
        if let Data::Object(fields) = first.data {
            return fields.iter().map(|field| Parameter { name: field.short_name, data: field.data }).collect();
        }
        // It comes back as the first field of the answer, whose name says what it is.
        let name = match spec.data {
            Data::Object([field, ..]) => field.short_name,
            _ => first.short_name,
        };
        vec![Parameter { name, data: first.data }]
    }
}

/// A parameter of a query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) data: &'static Data,
}

/// The description of a property that can only be written.
pub(super) fn action(spec: &PropertySpec) -> Json {
    // With nothing to choose, nothing has to be said.
    let schema = if only_value(spec).is_some() { json!({}) } else { schema::of(spec) };
    json!({
        "epc": format!("{:#04X}", spec.epc),
        "descriptions": descriptions(spec.name_ja(), spec.name()),
        "schema": schema,
    })
}

/// The only value that can be written, where there is no other.
pub(super) fn only_value(spec: &PropertySpec) -> Option<&'static str> {
    match spec.data {
        Data::State(states) => match states.all {
            [only] if only.more == 0 => Some(only.name),
            _ => None,
        },
        _ => None,
    }
}

fn manufacturer(maker: [u8; 3]) -> Json {
    let [a, b, c] = maker;
    let code = format!("{a:02X}{b:02X}{c:02X}");
    let names = match crate::names::maker(maker) {
        Some(name) => descriptions(name, name),
        None => descriptions(&format!("メーカ {code}"), &format!("maker {code}")),
    };
    json!({ "code": format!("0x{code}"), "descriptions": names })
}

#[cfg(test)]
mod tests {
    use super::*;
    use echonet_lite::class;

    fn device(class: &str, readable: &[u8], writable: &[u8]) -> Device {
        let class = class::by_name(class).unwrap();
        let (readable, writable) = (PropertySet::of(readable), PropertySet::of(writable));
        let maps = PropertyMaps { readable, writable, ..PropertyMaps::default() };
        let (id, addr) = ("device".to_owned(), std::net::Ipv4Addr::LOCALHOST.into());
        let (quirks, maker, standard) = (Quirks::default(), Some([0, 0, 0x77]), Some([1, 14, 1, 0]));
        Device {
            id,
            node: NodeId::Likeness(0),
            addr,
            eoj: class.code.instance(1),
            class,
            maps,
            quirks,
            maker,
            standard,
            atomic: Default::default(),
        }
    }

    #[test]
    fn numbers_are_multiplied_with_what_they_are_counted_in() {
        let meter = device("lvSmartElectricEnergyMeter", &[0xD3, 0xE0, 0xE1, 0xE2], &[0xE5]);
        let spec = meter.class.property(0xE0).unwrap();
        let mut values = Values::from([(0xE0, vec![0, 0, 0, 200])]);
        assert_eq!(meter.read(spec, &values), Some(Json::Null), "nobody knows yet what it is counted in");
        values.extend([(0xD3, vec![0, 0, 0, 3]), (0xE1, vec![1])]);
        assert_eq!(meter.read(spec, &values), Some(json!(60.0)));
        values.insert(0xE0, vec![0xFF, 0xFF, 0xFF, 0xFE]);
        assert_eq!(meter.read(spec, &values), Some(json!("noData")));
        assert_eq!(meter.coefficients(spec), PropertySet::of(&[0xD3, 0xE1]));
        // An optional coefficient that it lacks is one, a unit that it lacks is not known.
        let count = || (0xE0, vec![0, 0, 0, 200]);
        let without = |epcs: &[u8]| device("lvSmartElectricEnergyMeter", epcs, &[]);
        assert_eq!(without(&[0xE0, 0xE1]).read(spec, &Values::from([count(), (0xE1, vec![1])])), Some(json!(20.0)));
        assert_eq!(
            without(&[0xE0, 0xD3]).read(spec, &Values::from([count(), (0xD3, vec![0, 0, 0, 3])])),
            Some(Json::Null)
        );
        let history = meter.class.property(0xE2).unwrap();
        assert_eq!(meter.parameters(history).iter().map(|parameter| parameter.name).collect::<Vec<_>>(), ["day"]);
        assert_eq!(
            meter.description()["properties"]["normalDirectionCumulativeElectricEnergyLog1"]["epcAtomic"],
            "0xE5"
        );
    }

    #[test]
    fn names_of_other_descriptions_lead_to_the_same_property() {
        let light = device("generalLighting", &[0x80, 0x82, 0x8A, 0x9F, 0xB0], &[0x80, 0xB0]);
        for name in ["lightLevel", "brightness"] {
            let found = light.resource(name).unwrap();
            assert_eq!((found.name, found.spec.epc, found.is_writable), (name, 0xB0, true));
        }
        assert!(light.resource("operationMode").is_err(), "its map does not have it");
        assert!(light.resource("getPropertyMap").is_err(), "the description says what there is");
        let values = Values::from([(0x82, vec![0, 0, b'R', 4]), (0x8A, vec![0, 0, 0x77])]);
        let read = |epc| light.read(light.class.property(epc).unwrap(), &values).unwrap();
        assert_eq!(read(0x82), json!({ "type": "ECHONET_Lite v1.14", "version": "Rel.R rev.4" }));
        assert_eq!(read(0x8A)["code"], "0x000077");
    }

    #[test]
    fn a_name_of_the_class_hides_the_inherited_one() {
        let controller = device("controller", &[0x8C, 0xC8], &[]);
        let found = controller.resource("productCode").unwrap();
        assert_eq!(found.spec.epc, 0xC8);
        assert_eq!(controller.resources().count(), 1);
    }

    #[test]
    fn write_only_properties_become_actions() {
        let sensor = device("gasLeakSensor", &[0xB1], &[0xBF]);
        let description = sensor.description();
        assert_eq!(description["actions"]["reset"]["schema"], json!({}));
        assert_eq!(description["properties"].as_object().unwrap().len(), 1);
    }
}
