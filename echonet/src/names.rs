//! Names that people type: of classes, objects, properties and nodes.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use echonet_lite::class::{self, Class, PropertySpec};
use echonet_lite::controller::NodeAddr;
use echonet_lite::net::Interface;
use echonet_lite::wire::{ClassCode, Eoj, PORT};

use crate::commands::Options;
use crate::data;
use crate::failure::Failure;

/// Names that an error proposes at most.
const PROPOSALS: usize = 6;

/// Words that people use for a class, where its name begins otherwise or several do alike.
const COMMON_WORDS: [(&str, &Class); 2] = [("light", &class::GENERAL_LIGHTING), ("node", &class::NODE_PROFILE)];

/// The class of a name or code.
pub(crate) fn class(text: &str) -> Result<&'static Class, Failure> {
    if let Some(class) = by_name(text) {
        return Ok(class);
    }
    if let Ok(code) = text.parse::<ClassCode>() {
        return Err(Failure::Input(format!("the tables have no class {code}; list them by: echonet classes")));
    }
    if let Some((_, class)) = COMMON_WORDS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)) {
        return Ok(class);
    }
    choose("class", text, classes().map(|class| (class.short_name, class)), "echonet classes")
}

/// All classes: those of the tables, and the user's own.
pub(crate) fn classes() -> impl Iterator<Item = &'static Class> {
    class::all().iter().chain(data::classes()).copied()
}

/// The class of a code.
pub(crate) fn find(code: ClassCode) -> Option<&'static Class> {
    class::find(code).or_else(|| data::class(code))
}

/// The class of a whole name, or a code.
fn by_name(text: &str) -> Option<&'static Class> {
    let own = || data::classes().iter().copied().find(|class| class.short_name.eq_ignore_ascii_case(text));
    class::by_name(text).or_else(own).or_else(|| data::class(text.parse().ok()?))
}

/// The code of a class that the tables may not have.
fn class_code(text: &str) -> Result<ClassCode, Failure> {
    match by_name(text) {
        Some(class) => Ok(class.code),
        None => text.parse().or_else(|_| class(text).map(|class| class.code)),
    }
}

/// An object: `homeAirConditioner:1`, `0130:1`, `013001`; `:all` for instance 0, and nothing for the first.
pub(crate) fn object(text: &str) -> Result<Eoj, Failure> {
    let (name, instance) = match text.rsplit_once(':') {
        Some((name, instance)) => (name, Some(instance)),
        None => (text, None),
    };
    let digits = text.trim_start_matches("0X").trim_start_matches("0x");
    if let (None, Ok(eoj)) = (instance, digits.parse()) {
        return Ok(eoj);
    }
    let code = class_code(name)?;
    let instance = match instance {
        None => 1,
        Some("all") => 0,
        Some(number) => number.parse().ok().filter(|number| *number <= 127).ok_or_else(|| {
            Failure::Input(format!("`{text}`: an instance is a number from 1 to 127, or `all`, not `{number}`"))
        })?,
    };
    Ok(code.instance(instance))
}

/// The class of an object by the tables; the super class for an unknown device.
pub(crate) fn class_of(eoj: Eoj) -> Option<&'static Class> {
    find(eoj.class_code()).or_else(|| (eoj.group() < 0x0E).then_some(&class::SUPER_CLASS))
}

/// The name of a maker, if it is known.
pub(crate) fn maker(maker: [u8; 3]) -> Option<&'static str> {
    if let Some(name) = data::maker(maker) {
        return Some(name);
    }
    let [a, b, c] = maker;
    let code = format!("{a:02X}{b:02X}{c:02X}");
    let mut rows = include_str!("makers.tsv").lines().filter_map(|line| line.split_once('\t'));
    rows.find(|(of, _)| *of == code).map(|(_, name)| name)
}

/// The code of a property of an object of a class.
pub(crate) fn property(class: Option<&'static Class>, eoj: Eoj, text: &str) -> Result<u8, Failure> {
    if let Some(spec) = class.and_then(|class| class.property_by_name(text)) {
        return Ok(spec.epc);
    }
    if let Some(epc) = code(text) {
        return if epc >= 0x80 {
            Ok(epc)
        } else {
            Err(Failure::Input(format!("{epc:#04X} is no property: they are 0x80 to 0xFF")))
        };
    }
    if let Some(devices) = data::devices_with(eoj.class_code(), text) {
        return Err(Failure::Input(format!("`{text}` is a property of {devices} alone; this device is another")));
    }
    let class = class.ok_or_else(|| {
        Failure::Input(format!("the tables do not have the class of {eoj}: name its properties by code, not `{text}`"))
    })?;
    let all = class.all_properties().map(|spec| (spec.short_name, spec.epc));
    choose("property", text, all, &format!("echonet classes {}", class.short_name))
}

/// Two hexadecimal digits.
fn code(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok())?
}

/// Reads a property of an object of a class and its new value: `operationStatus=on`.
pub(crate) fn write(class: Option<&'static Class>, eoj: Eoj, text: &str) -> Result<(u8, Vec<u8>), Failure> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(Failure::Input(format!("`{text}` says no value: property=value")));
    };
    let epc = property(class, eoj, name.trim())?;
    let mut edt = [0; 255];
    let spec: Option<&PropertySpec> = class.and_then(|class| class.property(epc));
    let length = match spec {
        Some(spec) => spec.parse(value, &mut edt).map_err(|error| Failure::Input(error.to_string()))?,
        None => {
            let digits = value.trim().strip_prefix("0x").ok_or_else(|| {
                Failure::Input(format!("{epc:#04X}: the tables do not have it: give its bytes as 0x…, not `{value}`"))
            })?;
            let bytes = bytes(digits)?;
            let room = edt
                .get_mut(..bytes.len())
                .ok_or_else(|| Failure::Input(format!("{epc:#04X}: {} bytes, 255 is the most", bytes.len())))?;
            room.copy_from_slice(&bytes);
            bytes.len()
        }
    };
    Ok((epc, edt[..length].to_vec()))
}

/// Bytes in hexadecimal; spaces, colons, dashes, underscores and `0x` are skipped.
pub(crate) fn bytes(text: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut high = None;
    let text = text.replace("0x", " ").replace("0X", " ");
    for (place, letter) in text.chars().enumerate() {
        if letter.is_whitespace() || matches!(letter, ':' | '-' | '_' | ',') {
            continue;
        }
        let digit = letter
            .to_digit(16)
            .ok_or_else(|| Failure::Input(format!("character {}, `{letter}`, is no hexadecimal digit", place + 1)))?
            as u8;
        match high.take() {
            None => high = Some(digit << 4),
            Some(high) => bytes.push(high | digit),
        }
    }
    if high.is_some() {
        return Err(Failure::Input("the last byte has only one hexadecimal digit".to_owned()));
    }
    Ok(bytes)
}

/// A node: `192.168.1.5`, `fe80::5%eth0`, `[fe80::5%2]:3610`, or a name that the system resolves.
pub(crate) fn target(text: &str, options: &Options) -> Result<NodeAddr, Failure> {
    #[cfg(feature = "serial")]
    if text == "meter" && options.meter.is_some() {
        return Ok(crate::route_b::METER.into());
    }
    let (host, port) = split_port(text);
    let wanted = options.port.to_string();
    if let Some(port) = port.filter(|port| *port != wanted) {
        return Err(Failure::Input(format!("`{text}`: nodes have port {PORT}, not {port}")));
    }
    let (ip, scope) = match host.split_once('%') {
        Some((ip, scope)) => (ip, Some(scope)),
        None => (host, None),
    };
    let Ok(ip) = ip.parse::<IpAddr>() else { return resolve(text, host, options) };
    let scope = match (scope, ip) {
        (Some(scope), _) => match scope.parse() {
            Ok(index) => index,
            Err(_) => interfaces(options, |interface| interface.name == scope)?
                .first()
                .map(|interface| interface.index)
                .ok_or_else(|| Failure::Input(format!("`{text}`: no interface named {scope} is up")))?,
        },
        (None, IpAddr::V6(v6)) if v6.is_unicast_link_local() => only_scope(text, options)?,
        (None, _) => 0,
    };
    Ok(NodeAddr::new(ip, scope))
}

fn split_port(text: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        return (host, rest.strip_prefix(':'));
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (text, None),
    }
}

fn resolve(text: &str, host: &str, options: &Options) -> Result<NodeAddr, Failure> {
    let unknown = |error| Failure::Input(format!("`{text}` is no address of a node: {error}"));
    let found: Vec<_> = (host, PORT).to_socket_addrs().map_err(unknown)?.collect();
    let wanted = |addr: &&SocketAddr| if addr.is_ipv4() { !options.ipv6 } else { !options.ipv4 };
    let best = found.iter().filter(wanted).min_by_key(|addr| !addr.is_ipv4());
    best.map(|addr| NodeAddr::from(*addr))
        .ok_or_else(|| Failure::Input(format!("`{text}` has no address of that kind")))
}

/// The interface that a link-local address without a scope must mean.
fn only_scope(text: &str, options: &Options) -> Result<u32, Failure> {
    let speaks = |interface: &Interface| !interface.loopback && interface.addresses.iter().any(IpAddr::is_ipv6);
    match &interfaces(options, speaks)?[..] {
        [only] => Ok(only.index),
        several => {
            let names: Vec<_> = several.iter().map(|interface| format!("{text}%{}", interface.name)).collect();
            let or = if names.is_empty() { "no interface has IPv6".to_owned() } else { names.join(" or ") };
            Err(Failure::Input(format!("`{text}` is valid on one link only, say which: {or}")))
        }
    }
}

fn interfaces(options: &Options, wanted: impl Fn(&Interface) -> bool) -> Result<Vec<Interface>, Failure> {
    let mut interfaces = Interface::list()?;
    interfaces.retain(|interface| {
        (options.interface.is_empty() || options.interface.contains(&interface.name)) && wanted(interface)
    });
    Ok(interfaces)
}

/// The one whose name begins so.
fn choose<T: Copy>(
    what: &str,
    text: &str,
    all: impl Iterator<Item = (&'static str, T)>,
    list: &str,
) -> Result<T, Failure> {
    let wanted = text.to_ascii_lowercase();
    let lower = |name: &str| name.to_ascii_lowercase();
    let all: Vec<_> = all.collect();
    let begin: Vec<_> = all.iter().copied().filter(|(name, _)| lower(name).starts_with(&wanted)).collect();
    match begin[..] {
        [(_, only)] if !text.is_empty() => return Ok(only),
        [_, _, ..] if !text.is_empty() => {
            let names: Vec<_> = begin.iter().map(|(name, _)| *name).take(PROPOSALS).collect();
            return Err(Failure::Input(format!("{what} `{text}` is ambiguous: {}", names.join(", "))));
        }
        _ => {}
    }
    let mut near: Vec<_> = all
        .into_iter()
        .filter_map(|(name, _)| {
            let name_lower = lower(name);
            let distance = if name_lower.contains(&wanted) { 0 } else { distance(&wanted, &name_lower) };
            (distance <= 1 + wanted.len() / 4).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    let near: Vec<_> = near.into_iter().map(|(_, name)| name).take(PROPOSALS).collect();
    let near = if near.is_empty() || text.is_empty() {
        format!("list them by: {list}")
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    Err(Failure::Input(format!("there is no {what} `{text}`; {near}")))
}

/// How many letters differ (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<_> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_by_name_and_code() {
        let conditioner = Eoj::new(0x01, 0x30, 1);
        for text in ["homeAirConditioner:1", "HOMEAIRCONDITIONER", "homeAir", "0130:1", "0x0130", "0x013001", "013001"]
        {
            assert_eq!(object(text).ok(), Some(conditioner), "{text}");
        }
        assert_eq!(object("node").ok(), Some(Eoj::NODE_PROFILE));
        assert_eq!(object("generalLighting:all").ok(), Some(Eoj::new(2, 0x90, 0)));
        // A class that no table has.
        assert_eq!(object("0x0501:3").ok(), Some(Eoj::new(5, 1, 3)));
        for text in ["", "generalLighting:128", "generalLighting:x", "nothing:1"] {
            assert!(object(text).is_err(), "{text}");
        }
    }

    #[test]
    fn makers_have_one_row_each_in_order() {
        let rows = include_str!("makers.tsv").lines().filter(|line| !line.starts_with('#'));
        let codes: Vec<_> = rows.map(|row| row.split_once('\t').unwrap().0).collect();
        assert!(codes.is_sorted_by(|one, next| one < next), "{codes:?}");
        assert!(codes.iter().all(|code| bytes(code).is_ok_and(|bytes| bytes.len() == 3)), "{codes:?}");
        for (code, name) in [([0, 1, 0x06], "Nature"), ([0, 0, 0x6C], "Nichicon"), ([0, 0, 0xE8], "Koizumi Lighting")] {
            assert_eq!(maker(code), Some(name));
        }
        assert_eq!(maker([0xFF; 3]), None);
    }

    #[test]
    fn errors_propose_what_may_be_meant() {
        for (text, part) in [
            ("homeAirConditoner", "homeAirConditioner"),
            ("generalLightning", "generalLighting"),
            ("electric", "ambiguous"),
        ] {
            let error = class(text).err().map(|error| error.to_string()).unwrap();
            assert!(error.contains(part), "{error}");
        }
        let conditioner = Eoj::new(0x01, 0x30, 1);
        let error = property(class_of(conditioner), conditioner, "targetTemprature")
            .err()
            .map(|error| error.to_string())
            .unwrap();
        assert!(error.contains("targetTemperature"), "{error}");
        let error = write(class_of(conditioner), conditioner, "targetTemperature=51")
            .err()
            .map(|error| error.to_string())
            .unwrap();
        assert!(error.contains("0xB3") && error.contains("51") && error.contains("0..=50"), "{error}");
    }
}
