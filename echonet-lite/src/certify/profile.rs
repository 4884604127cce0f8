//! The requirements for a node's profile.

use std::format;
use std::io;
use std::string::String;
use std::vec::Vec;

use super::items::{self, Place};
use super::link::{Link, Why};
use super::object::{self, Maps};
use super::report::{Outcome, Report};
use crate::wire::{ClassCode, Eoj};

const HEARD_BY_IPV4: &str = "what is sent to all is heard by IPv4 only";
const SOURCE: &str = "Part II, 6.11.1";
const NODE: Eoj = Eoj::NODE_PROFILE;
/// The lists of instances have room for so many.
const INSTANCES: usize = 84;

/// The properties that every node profile lets be read.
const READABLE: [u8; 11] = [0x80, 0x82, 0x83, 0x8A, 0x9D, 0x9E, 0x9F, 0xD3, 0xD4, 0xD6, 0xD7];

/// Examines the node profile, and returns the objects that it names, and the values that its rows have in common.
pub(super) fn examine(link: &mut Link<'_>, report: &mut Report) -> io::Result<(Vec<Eoj>, Place)> {
    let place = Place { eoj: NODE, absent: 0xFE, status: 0x30, stranger: NODE.with_instance(0x7E) };
    items::examine(link, &place, items::ALL, report)?;
    if link.settings.writes {
        items::examine(link, &place, items::REFUSED, report)?;
    }
    items::examine_once(link, NODE, report)?;
    let maps = object::examine_maps(link, NODE, report)?;
    let mut values = Vec::new();
    for epc in READABLE {
        let listed = maps.get.contains(epc);
        let outcome = items::verdict(must(listed, || String::from("the map of what can be read lacks it")));
        report.add(NODE, format!("{epc:02X}.get.required"), "the node profile has it", SOURCE, outcome);
        let value = items::read(link, NODE, epc)?;
        link.add(
            report,
            NODE,
            format!("{epc:02X}.get"),
            "it can be read",
            SOURCE,
            items::verdict(value.clone().map(drop)),
        );
        values.push((epc, value.unwrap_or_default()));
    }
    let of = |epc: u8| values.iter().find(|(of, _)| *of == epc).map_or(&[][..], |(_, value)| &value[..]);
    examine_values(of, &maps, report);
    let announced = items::announced(link, NODE, &[0x63, 1, 0xD5, 0], 0xD5)?;
    let same = announced
        .and_then(|body| items::value(&body, 0xD5))
        .and_then(|list| must(list == of(0xD6), || items::digits(&list)));
    let outcome = if link.hears_all() { items::verdict(same) } else { Outcome::Undecided(HEARD_BY_IPV4.into()) };
    link.add(report, NODE, "D5.infreq", "INF_REQ of the instance list announces it, as D6 has it", SOURCE, outcome);
    Ok((listed(of(0xD6)), place))
}

/// The objects of an instance list.
fn listed(list: &[u8]) -> Vec<Eoj> {
    let names = list.get(1..).unwrap_or_default().chunks_exact(3);
    names.map(|name| Eoj::new(name[0], name[1], name[2])).collect()
}

fn must(is: bool, found: impl FnOnce() -> String) -> Result<(), Why> {
    if is { Ok(()) } else { Err(Why::Wrong(found())) }
}

fn examine_values<'v>(of: impl Fn(u8) -> &'v [u8], maps: &Maps, report: &mut Report) {
    let objects = listed(of(0xD6));
    let mut classes: Vec<ClassCode> = objects.iter().map(|eoj| eoj.class_code()).collect();
    classes.sort_unstable_by_key(|class| class.to_u16());
    classes.dedup();
    let number = |epc: u8| of(epc).iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
    let shown = |epc: u8| items::digits(of(epc));
    let mut named: Vec<u16> = of(0xD7)
        .get(1..)
        .unwrap_or_default()
        .chunks_exact(2)
        .map(|code| u16::from(code[0]) << 8 | u16::from(code[1]))
        .collect();
    named.sort_unstable();
    let codes: Vec<u16> = classes.iter().map(|class| class.to_u16()).collect();
    let all = objects.len() < INSTANCES;
    let twins = objects.iter().enumerate().any(|(at, eoj)| objects[..at].contains(eoj));
    let nameable = |eoj: &Eoj| (1..=127).contains(&eoj.instance()) && eoj.group() < 0x0E;
    let rows: [(&str, &str, bool, u8); 16] = [
        ("80.value", "the operation status is 30 or 31", matches!(of(0x80), [0x30 | 0x31]), 0x80),
        (
            "82.value",
            "the version has four bytes, the last of which is 0",
            matches!(of(0x82), [major, _, _, 0] if *major > 0),
            0x82,
        ),
        ("82.format", "format 1 is supported", matches!(of(0x82), [_, _, formats, _] if formats & 1 == 1), 0x82),
        ("83.size", "the identification number has 17 bytes", of(0x83).len() == 17, 0x83),
        ("83.kind", "the identification number begins with FE", of(0x83).first() == Some(&0xFE), 0x83),
        ("83.maker", "the identification number has the maker's code", of(0x83).get(1..4) == Some(of(0x8A)), 0x83),
        ("8A.size", "the maker's code has three bytes", of(0x8A).len() == 3, 0x8A),
        ("D3.size", "the number of instances has three bytes", of(0xD3).len() == 3, 0xD3),
        ("D3.value", "the number of instances is that of the list", number(0xD3) == objects.len() || !all, 0xD3),
        ("D4.size", "the number of classes has two bytes", of(0xD4).len() == 2, 0xD4),
        ("D4.value", "the number of classes counts the node profile", number(0xD4) == 1 + classes.len() || !all, 0xD4),
        (
            "D6.size",
            "the instance list is as long as it says",
            of(0xD6).len() == 1 + 3 * objects.len() && of(0xD6).first() == Some(&(objects.len() as u8)),
            0xD6,
        ),
        (
            "D6.names",
            "the instance list names devices, instances 1 to 127",
            objects.iter().all(nameable) && !objects.is_empty(),
            0xD6,
        ),
        ("D6.twins", "the instance list names each once", !twins, 0xD6),
        (
            "D7.size",
            "the class list is as long as it says",
            of(0xD7).len() == 1 + 2 * named.len() && of(0xD7).first() == Some(&(named.len() as u8)),
            0xD7,
        ),
        (
            "D7.value",
            "the class list has the classes of the instance list",
            named == codes || codes.len() > 8 || !all,
            0xD7,
        ),
    ];
    for (id, requirement, is, epc) in rows {
        report.add(NODE, id, requirement, SOURCE, items::verdict(must(is, || format!("{epc:02X} is {}", shown(epc)))));
    }
    let announced = must(maps.announce.contains(0xD5), || String::from("the map of what is announced lacks it"));
    report.add(NODE, "D5.announce", "the instance list is announced", SOURCE, items::verdict(announced));
    let unwritten = must(maps.set.difference(crate::wire::PropertySet::of(&[0x80, 0xBF])).is_subset(maps.get), || {
        format!("{}", maps.set)
    });
    report.add(NODE, "9E.value", "what can be written can be read", SOURCE, items::verdict(unwritten));
}
