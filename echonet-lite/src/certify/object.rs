//! The requirements for a device, by the tables of its class.

use std::format;
use std::io;
use std::string::String;
use std::vec::Vec;

use super::items::{self, Place};
use super::link::{Link, Why};
use super::report::{Outcome, Report};
use crate::class::{self, Class, PropertySpec};
use crate::node::check;
use crate::wire::{Eoj, PROPERTY_MAP_MAX, PropertyAccess, PropertySet};

const TABLES: &str = "device objects";
const MAPS: &str = "Appendix, 2.1 and attachment 1";

/// The property maps of an object.
pub(super) struct Maps {
    pub(super) get: PropertySet,
    pub(super) set: PropertySet,
    pub(super) announce: PropertySet,
}

/// Reads and examines the three maps.
pub(super) fn examine_maps(link: &mut Link<'_>, eoj: Eoj, report: &mut Report) -> io::Result<Maps> {
    let mut sets = [PropertySet::EMPTY; 3];
    for (set, epc) in sets.iter_mut().zip([0x9D, 0x9E, 0x9F]) {
        let map = items::read(link, eoj, epc)?;
        let long = map.as_ref().is_ok_and(|map| map.first() >= Some(&16));
        let decoded = map.clone().and_then(|map| {
            PropertySet::decode_map(&map).map_err(|error| Why::Wrong(format!("{error}: {}", items::digits(&map))))
        });
        let form = map.and_then(|map| {
            let right = if long {
                map.len() == PROPERTY_MAP_MAX
            } else {
                map.len() == 1 + usize::from(*map.first().unwrap_or(&0))
            };
            if right { Ok(()) } else { Err(Why::Wrong(items::digits(&map))) }
        });
        *set = decoded.clone().unwrap_or_default();
        link.add(
            report,
            eoj,
            format!("{epc:02X}.form"),
            "a map of 16 and more properties has 17 bytes, a shorter one is a list",
            MAPS,
            items::verdict(form),
        );
        link.add(
            report,
            eoj,
            format!("{epc:02X}.count"),
            "a map has as many properties as it says",
            MAPS,
            items::verdict(decoded.map(drop)),
        );
    }
    let [announce, set, get] = sets;
    let lacks = PropertyAccess::MAPS.difference(get);
    let own = if lacks.is_empty() { Ok(()) } else { Err(Why::Wrong(format!("it lacks {lacks}"))) };
    link.add(report, eoj, "9F.maps", "the maps are in the map of what can be read", MAPS, items::verdict(own));
    // The node profile's instance list is announced and not read.
    let exempt = if eoj == Eoj::NODE_PROFILE { PropertySet::of(&[0xD5]) } else { PropertySet::EMPTY };
    let only_announced = announce.difference(get).difference(set).difference(exempt);
    let part =
        if only_announced.is_empty() { Ok(()) } else { Err(Why::Wrong(format!("it has {only_announced} alone"))) };
    link.add(report, eoj, "9D.part", "what is announced can be read or written", MAPS, items::verdict(part));
    Ok(Maps { get, set, announce })
}

/// Examines one device, and returns what its rows have in common.
pub(super) fn examine(link: &mut Link<'_>, eoj: Eoj, report: &mut Report) -> io::Result<Place> {
    let maps = examine_maps(link, eoj, report)?;
    let known = maps.get.union(maps.set).union(maps.announce);
    let class = class::find(eoj.class_code());
    let is_free = |epc: &u8| !known.contains(*epc) && class.is_none_or(|class| class.property(*epc).is_none());
    let absent = (0xF0..=0xFF).rev().find(is_free).or_else(|| (0x80..=0xEF).rev().find(is_free)).unwrap_or(0xFF);
    let status = items::read(link, eoj, 0x80)?.ok().and_then(|edt| edt.first().copied()).unwrap_or(0x30);
    let place = Place { eoj, absent, status, stranger: eoj.with_instance(0x7F) };
    items::examine(link, &place, items::ALL, report)?;
    if link.settings.writes {
        items::examine(link, &place, items::REFUSED, report)?;
    }
    if link.settings.writes && maps.set.contains(0x80) {
        items::examine(link, &place, items::WRITES, report)?;
        if link.hears_all() && maps.announce.contains(0x80) {
            examine_announcement(link, &place, report)?;
        }
    }
    if link.hears_all() {
        let announced = items::announced(link, eoj, &[0x63, 1, 0x80, 0], 0x80)?.map(drop);
        link.add(report, eoj, "infreq", "INF_REQ is answered to all", "Part II, 4.2.3.4", items::verdict(announced));
    }
    let Some(class) = class else {
        link.add(
            report,
            eoj,
            "class",
            "the class is known",
            TABLES,
            Outcome::Undecided("the tables do not have it".into()),
        );
        return Ok(place);
    };
    for spec in class.all_properties() {
        examine_property(link, (class, eoj, spec), &maps, report)?;
    }
    for set in class.either {
        let has = set.intersection(maps.get.union(maps.set));
        let one = if has.is_empty() { Err(Why::Wrong(format!("the maps have none of {set}"))) } else { Ok(()) };
        let (id, requirement) = (format!("{set}.either").replace(' ', "-"), format!("one of {set} is there"));
        link.add(report, eoj, id, requirement, TABLES, items::verdict(one));
    }
    for epc in known.iter().filter(|epc| class.property(*epc).is_none() && maps.get.contains(*epc)) {
        let value = items::read(link, eoj, epc)?.map(drop);
        link.add(report, eoj, format!("{epc:02X}.get"), "what the map says can be read", MAPS, items::verdict(value));
    }
    Ok(place)
}

/// Switches the device there and back, and listens.
fn examine_announcement(link: &mut Link<'_>, place: &Place, report: &mut Report) -> io::Result<()> {
    let Place { eoj, status, .. } = *place;
    // Each of these is a change, if the one before was heard of or not.
    let [there, back] = [status ^ 1, status].map(|status| [0x61, 1, 0x80, 1, status]);
    let changed = items::announced_by(link, eoj, &[&there, &back], 0x80)?.map(drop);
    link.add(
        report,
        eoj,
        "80.announced",
        "a change of the operation status is announced",
        "Part II, 4.3.1",
        items::verdict(changed),
    );
    // Back, whether or not it was announced.
    items::ask(link, eoj, &[0x61, 1, 0x80, 1, status]).map(drop)
}

type Property = (&'static Class, Eoj, &'static PropertySpec);

fn examine_property(
    link: &mut Link<'_>,
    (class, eoj, spec): Property,
    maps: &Maps,
    report: &mut Report,
) -> io::Result<()> {
    let (epc, name) = (spec.epc, spec.short_name);
    let rules = [
        ("get.required", "can be read", spec.access.get, maps.get),
        ("set.required", "can be written", spec.access.set, maps.set),
        ("announce.required", "is announced", spec.access.inf, maps.announce),
    ];
    for (id, what, rule, map) in rules {
        let is_there = maps.get.contains(epc) || maps.set.contains(epc);
        if if is_there { rule.is_required_if_present() } else { rule.is_required() } {
            let has = if map.contains(epc) { Ok(()) } else { Err(Why::Wrong("its property map lacks it".into())) };
            link.add(
                report,
                eoj,
                format!("{epc:02X}.{id}"),
                format!("{name} {what}: the class requires it"),
                TABLES,
                items::verdict(has),
            );
        }
    }
    if PropertyAccess::MAPS.contains(epc) {
        return Ok(());
    }
    if !maps.get.contains(epc) {
        let refused = items::ask(link, eoj, &[0x62, 1, epc, 0])?
            .and_then(|body| items::allowed(&format!("52 01 {epc:02X} 00"), &body));
        link.add(
            report,
            eoj,
            format!("{epc:02X}.get.unlisted"),
            format!("{name} is not in the map, and Get is refused"),
            MAPS,
            items::verdict(refused),
        );
        return Ok(());
    }
    let value = items::read(link, eoj, epc)?;
    link.add(
        report,
        eoj,
        format!("{epc:02X}.get"),
        format!("{name} can be read, as the map says"),
        MAPS,
        items::verdict(value.clone().map(drop)),
    );
    let Ok(edt) = value else { return Ok(()) };
    let decoded = spec.decode(&edt).map(drop).or_else(|error| {
        let earlier = class.superseded.iter().any(|form| form.epc == epc && form.decode(&edt).is_ok());
        if earlier { Ok(()) } else { Err(Why::Wrong(format!("{}: {error}", items::digits(&edt)))) }
    });
    link.add(
        report,
        eoj,
        format!("{epc:02X}.value"),
        format!("{name} has a size and a value that the class has"),
        TABLES,
        items::verdict(decoded),
    );
    if link.settings.writes {
        examine_writing(link, (class, eoj, spec), maps, &edt, report)?;
    }
    Ok(())
}

fn examine_writing(
    link: &mut Link<'_>,
    (class, eoj, spec): Property,
    maps: &Maps,
    edt: &[u8],
    report: &mut Report,
) -> io::Result<()> {
    let (epc, name) = (spec.epc, spec.short_name);
    let write = |edt: &[u8]| [&[0x61, 1, epc, edt.len() as u8][..], edt].concat();
    let refusal = |edt: &[u8]| {
        format!(
            "51 01 {epc:02X} {:02X} {}",
            edt.len(),
            edt.iter().map(|byte| format!("{byte:02X}")).collect::<String>()
        )
    };
    if !maps.set.contains(epc) {
        let refused = items::ask(link, eoj, &write(edt))?.and_then(|body| items::allowed(&refusal(edt), &body));
        link.add(
            report,
            eoj,
            format!("{epc:02X}.set.unlisted"),
            format!("{name} is not in the map, and SetC is refused"),
            MAPS,
            items::verdict(refused),
        );
        return Ok(());
    }
    if check(class, epc, edt).is_ok() {
        let written =
            items::ask(link, eoj, &write(edt))?.and_then(|body| items::allowed(&format!("71 01 {epc:02X} 00"), &body));
        link.add(
            report,
            eoj,
            format!("{epc:02X}.set"),
            format!("{name} can be written, as the map says"),
            MAPS,
            items::verdict(written),
        );
    }
    if let Some(wrong) = impossible(class, spec) {
        let refused = items::ask(link, eoj, &write(&wrong))?.and_then(|body| items::allowed(&refusal(&wrong), &body));
        link.add(
            report,
            eoj,
            format!("{epc:02X}.set.impossible"),
            format!("{name} takes no value that the class does not have"),
            TABLES,
            items::verdict(refused),
        );
    }
    Ok(())
}

/// Bytes of the right number that are no value of a property, if there are any.
fn impossible(class: &Class, spec: &PropertySpec) -> Option<Vec<u8>> {
    let size = spec.data.sizes().0;
    let fills = [0xFF, 0xFE, 0x7F, 0x00, 0x80, 0x29].into_iter().filter(|_| size > 0);
    // Not the code for "no value" either, which the table knows.
    fills
        .map(|byte| std::vec![byte; size])
        .find(|edt| check(class, spec.epc, edt).is_err() && spec.decode(edt).is_err())
}
