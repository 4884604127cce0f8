//! Virtual homes as they are written down.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;
use core::time::Duration;
use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec::Vec;

use serde::Deserialize;

use super::live::Live;
use super::{Fault, Kind};
use crate::class::{self, Class};
use crate::wire::{ClassCode, EDT_MAX, Eoj};

/// The nodes of a virtual home.
#[derive(Clone, Debug, Default)]
pub struct Home {
    /// Each with an address of its own.
    pub nodes: Vec<NodePlan>,
}

/// A node of a virtual home.
#[derive(Clone, Debug)]
pub struct NodePlan {
    /// Where it is; on all addresses of the machine if not given.
    pub address: Option<IpAddr>,
    /// The maker's code.
    pub maker: [u8; 3],
    /// The number that tells it from others of the maker.
    pub serial: u64,
    /// Most that an answer to a multicast request waits.
    pub delay: Duration,
    /// Its objects.
    pub objects: Vec<ObjectPlan>,
    /// Its faults.
    pub faults: Vec<Fault>,
}

impl NodePlan {
    /// A node of these objects, without faults, that answers multicast requests at once.
    pub fn new(serial: u64, objects: impl IntoIterator<Item = ObjectPlan>) -> Self {
        let (address, faults) = (None, Vec::new());
        Self { address, maker: MAKER, serial, delay: Duration::ZERO, objects: objects.into_iter().collect(), faults }
    }
}

/// An object of a virtual home.
#[derive(Clone, Debug)]
pub struct ObjectPlan {
    /// Its class.
    pub class: &'static Class,
    /// Its name.
    pub eoj: Eoj,
    /// Whether it has only the properties that every device of the class must have.
    pub mandatory: bool,
    /// Values that are others than the plausible ones, as properties and EDTs.
    pub values: Vec<(u8, Vec<u8>)>,
    /// The changes of its values, by time.
    pub script: Vec<Step>,
    /// True if values change with time: [`Device`](super::Device) does so for meters, solar power, batteries, blinds and
    /// shutters. Objects of other classes stay as they are.
    pub live: bool,
}

impl ObjectPlan {
    /// An object of a class with all its properties and plausible values.
    pub fn new(class: &'static Class, instance: u8) -> Self {
        let (values, script) = (Vec::new(), Vec::new());
        Self { class, eoj: class.code.instance(instance), mandatory: false, values, script, live: false }
    }
}

/// A change by itself, which is announced.
#[derive(Clone, Debug)]
pub struct Step {
    /// So long after the start.
    pub after: Duration,
    /// Properties and their EDTs.
    pub set: Vec<(u8, Vec<u8>)>,
}

/// Why a file describes no home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeError(String);

impl fmt::Display for HomeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for HomeError {}

/// The code that stands for a maker in experiments.
const MAKER: [u8; 3] = [0, 0, 0x77];
/// The longest time that a script or a late answer may wait.
const LONGEST: f64 = 86_400.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHome {
    node: Vec<RawNode>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNode {
    address: Option<IpAddr>,
    maker: Option<String>,
    serial: Option<u64>,
    #[serde(default)]
    delay: f64,
    #[serde(default)]
    object: Vec<RawObject>,
    #[serde(default)]
    fault: Vec<RawFault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawObject {
    class: String,
    instance: Option<u8>,
    #[serde(default)]
    mandatory: bool,
    #[serde(default)]
    values: BTreeMap<String, String>,
    #[serde(default)]
    script: Vec<RawStep>,
    #[serde(default)]
    live: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    after: f64,
    set: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFault {
    kind: Kind,
    object: Option<String>,
    property: Option<String>,
    value: Option<String>,
    seconds: Option<f64>,
}

impl FromStr for Home {
    type Err = HomeError;

    /// Reads a home from TOML; see the [module](super).
    fn from_str(text: &str) -> Result<Self, HomeError> {
        let raw: RawHome = toml::from_str(text).map_err(|error| HomeError(format!("{error}")))?;
        let nodes = raw
            .node
            .into_iter()
            .enumerate()
            .map(|(at, raw)| node(raw, at).map_err(|error| HomeError(format!("node {}: {error}", at + 1))));
        Ok(Self { nodes: nodes.collect::<Result<_, _>>()? })
    }
}

fn node(raw: RawNode, at: usize) -> Result<NodePlan, HomeError> {
    let mut objects: Vec<ObjectPlan> = Vec::new();
    for object in raw.object {
        let planned = self::object(&object)?;
        if objects.iter().any(|other| other.eoj == planned.eoj) {
            return Err(HomeError(format!("it has two objects {}", planned.eoj)));
        }
        objects.push(planned);
    }
    let maker = match raw.maker {
        None => MAKER,
        Some(text) => u32::from_str_radix(&text, 16)
            .ok()
            .filter(|_| text.len() == 6)
            .map(|code| [(code >> 16) as u8, (code >> 8) as u8, code as u8])
            .ok_or_else(|| HomeError(format!("maker `{text}` is not six hexadecimal digits")))?,
    };
    let faults = raw.fault.into_iter().map(|raw| fault(raw, &objects)).collect::<Result<_, _>>()?;
    let serial = raw.serial.unwrap_or(at as u64 + 1);
    Ok(NodePlan { address: raw.address, maker, serial, delay: seconds(raw.delay)?, objects, faults })
}

fn object(raw: &RawObject) -> Result<ObjectPlan, HomeError> {
    let class = class_named(&raw.class)?;
    let instance = raw.instance.unwrap_or(1);
    if !(1..=127).contains(&instance) {
        return Err(HomeError(format!("{class}: an instance is a number from 1 to 127, not {instance}")));
    }
    if raw.live && !Live::is_of(class) {
        let wrong = "`live` is for meters, solar power, storage batteries, blinds and shutters";
        return Err(HomeError(format!("{class}: {wrong}")));
    }
    let mut planned = ObjectPlan { mandatory: raw.mandatory, live: raw.live, ..ObjectPlan::new(class, instance) };
    planned.values = values(class, &raw.values)?;
    for step in &raw.script {
        planned.script.push(Step { after: seconds(step.after)?, set: values(class, &step.set)? });
    }
    Ok(planned)
}

/// A device class by its name or code.
fn class_named(name: &str) -> Result<&'static Class, HomeError> {
    let is_device = |class: &&Class| class.code.to_u16() != 0 && class.code != ClassCode::NODE_PROFILE;
    let class = class::by_name(name).filter(is_device);
    class.ok_or_else(|| HomeError(format!("there is no device class `{name}`: `echonet classes` lists them")))
}

fn values(class: &Class, texts: &BTreeMap<String, String>) -> Result<Vec<(u8, Vec<u8>)>, HomeError> {
    texts.iter().map(|(name, text)| value(class, name, text)).collect()
}

/// A property's value: as people write it, or its bytes as `0x…`, even those that it cannot have.
fn value(class: &Class, name: &str, text: &str) -> Result<(u8, Vec<u8>), HomeError> {
    let spec = class.property_by_name(name).ok_or_else(|| HomeError(format!("{class} has no property `{name}`")))?;
    if let Some(bytes) = bytes(text) {
        return Ok((spec.epc, bytes));
    }
    let mut edt = [0; EDT_MAX];
    let length = spec.parse(text, &mut edt).map_err(|error| HomeError(format!("{class}: {error}")))?;
    Ok((spec.epc, edt[..length].to_vec()))
}

/// The bytes of `0x…`.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.is_ascii() && digits.len() % 2 == 0)?;
    let fits = digits.len() <= 2 * EDT_MAX;
    (0..digits.len()).step_by(2).filter(|_| fits).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

fn fault(raw: RawFault, objects: &[ObjectPlan]) -> Result<Fault, HomeError> {
    let mut fault = Fault::new(raw.kind);
    let fail = |what: &str| Err(HomeError(format!("fault {:?}: {what}", raw.kind)));
    if let Some(name) = &raw.object {
        let (class, instance) = name.split_once(':').unwrap_or((name, "1"));
        let Ok(instance) = instance.parse() else { return fail("an instance is a number") };
        let eoj = class_named(class)?.code.instance(instance);
        if !objects.iter().any(|object| object.eoj == eoj) {
            return fail("the node has no such object");
        }
        fault.eoj = Some(eoj);
    }
    if raw.kind.is_of_property() != raw.property.is_some() {
        return fail(if raw.property.is_some() { "it is of no property" } else { "which property?" });
    }
    if let Some(name) = &raw.property {
        let named = objects.iter().find(|object| fault.is_of(object.eoj));
        let Some(object) = named.filter(|_| fault.eoj.is_some()) else { return fail("of which object?") };
        let spec = object.class.property_by_name(name);
        let code = || u8::from_str_radix(name.strip_prefix("0x")?, 16).ok().filter(|epc| *epc >= 0x80);
        let Some(epc) = spec.map(|spec| spec.epc).or_else(code) else { return fail("the class has no such property") };
        fault.epc = epc;
    }
    match (raw.kind, raw.value.as_deref().map(bytes), raw.seconds) {
        (Kind::WrongValue, Some(Some(edt)), None) => fault.edt = edt,
        (Kind::WrongValue, ..) => return fail("which bytes? value = \"0x…\""),
        (Kind::Late, None, Some(time)) => fault.delay = seconds(time)?,
        (Kind::Late, ..) => return fail("how late? seconds = 2.5"),
        (_, None, None) => {}
        _ => return fail("it takes neither a value nor seconds"),
    }
    Ok(fault)
}

fn seconds(seconds: f64) -> Result<Duration, HomeError> {
    if (0.0..=LONGEST).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(HomeError("times are seconds, a day at most".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn invalid_homes_are_refused_with_their_cause() {
        let light = "[[node]]\n[[node.object]]\nclass = \"generalLighting\"\n";
        for (text, expected) in [
            ("", "missing field `node`"),
            ("[[node]]\nname = 1", "unknown field `name`"),
            ("[[node]]\nmaker = \"77\"", "node 1: maker `77` is not six"),
            ("[[node]]\ndelay = -1", "times are seconds"),
            ("[[node]]\n[[node.object]]\nclass = \"lamp\"", "there is no device class `lamp`"),
            ("[[node]]\n[[node.object]]\nclass = \"nodeProfile\"", "there is no device class `nodeProfile`"),
            (&format!("{light}instance = 128"), "from 1 to 127, not 128"),
            (&format!("{light}live = true"), "generalLighting: `live` is for meters"),
            (&format!("{light}values = {{ lightLevel = \"101\" }}"), "light level: 101 is not in 0..=100 %"),
            (&format!("{light}values = {{ volume = \"1\" }}"), "has no property `volume`"),
            (&format!("{light}[[node.object]]\nclass = \"0290\""), "two objects 029001"),
            (&format!("{light}[[node.fault]]\nkind = \"odd\""), "unknown variant `odd`"),
            (&format!("{light}[[node.fault]]\nkind = \"missing\""), "which property?"),
            (&format!("{light}[[node.fault]]\nkind = \"missing\"\nproperty = \"lightLevel\""), "of which object?"),
            (&format!("{light}[[node.fault]]\nkind = \"late\""), "how late?"),
            (&format!("{light}[[node.fault]]\nkind = \"silent\"\nseconds = 1"), "neither a value nor seconds"),
        ] {
            let error = text.parse::<Home>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
