//! Nodes that make one mistake each, and the items that find them.

use std::time::Duration;

use echonet_lite::certify::{Outcome, Settings};
use echonet_lite::wire::{Eoj, PropertySet};

use super::simulated::{Mistake, Sent, Simulated};
use crate::network::Weather;
use crate::support::hex;

const NODE: Eoj = Eoj::NODE_PROFILE;
const LIGHT: Eoj = Eoj::new(0x02, 0x90, 1);
const GAS: Eoj = Eoj::new(0x00, 0x1C, 1);
const CURRENT: Eoj = Eoj::new(0x00, 0x23, 1);
const CONDITIONER: Eoj = Eoj::new(0x01, 0x30, 1);
/// The identifier of the examination's first request.
const FIRST: u16 = 0x4001;
const CLASSES: [&str; 4] = ["0290", "001C", "0023", "0130"];

/// A frame of format 1 in its parts.
#[derive(Clone)]
struct Frame {
    head: Vec<u8>,
    esv: u8,
    properties: Vec<(u8, Vec<u8>)>,
}

impl Frame {
    /// None for what is no frame, and for SetGet with its two lists.
    fn of(bytes: &[u8]) -> Option<Self> {
        let (head, mut rest) = (bytes.get(..10)?.to_vec(), bytes.get(12..)?);
        let mut properties = Vec::new();
        while let [epc, size, tail @ ..] = rest {
            properties.push((*epc, tail.get(..usize::from(*size))?.to_vec()));
            rest = &tail[usize::from(*size)..];
        }
        let is_whole = rest.is_empty() && properties.len() == usize::from(bytes[11]);
        is_whole.then_some(Self { head, esv: bytes[10], properties })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = [&self.head[..], &[self.esv, self.properties.len() as u8]].concat();
        for (epc, edt) in &self.properties {
            bytes.extend([*epc, edt.len() as u8]);
            bytes.extend(edt);
        }
        bytes
    }

    fn seoj(&self) -> Eoj {
        Eoj::new(self.head[4], self.head[5], self.head[6])
    }

    fn deoj(&self) -> Eoj {
        Eoj::new(self.head[7], self.head[8], self.head[9])
    }
}

/// Changes each frame that the node sends.
fn each(change: impl Fn(&mut Frame) + 'static) -> Mistake {
    Box::new(move |_, sent: &mut Sent| {
        for (_, bytes) in sent.iter_mut() {
            if let Some(mut frame) = Frame::of(bytes) {
                change(&mut frame);
                *bytes = frame.bytes();
            }
        }
    })
}

/// Answers with other identifiers from so many requests on.
fn each_tid(after: u16, change: impl Fn(u16) -> u16 + 'static) -> Mistake {
    Box::new(move |request, sent: &mut Sent| {
        let Some(tid) = request.get(2..4).map(|tid| u16::from_be_bytes([tid[0], tid[1]])) else { return };
        if tid.wrapping_sub(FIRST) < after {
            return;
        }
        for (_, bytes) in sent.iter_mut().filter(|(to_all, _)| !to_all) {
            bytes[2..4].copy_from_slice(&change(tid).to_be_bytes());
        }
    })
}

/// Changes the answers to requests of a service.
fn answers(esv: u8, change: impl Fn(&Frame, &mut Sent) + 'static) -> Mistake {
    Box::new(move |request, sent: &mut Sent| {
        if let Some(request) = Frame::of(request).filter(|request| request.esv == esv) {
            change(&request, sent);
        }
    })
}

/// Changes the frames that answer a request of a service by one of its own.
fn answered(esv: u8, by: u8, change: impl Fn(&mut Frame) + 'static) -> Mistake {
    answers(esv, move |_, sent| {
        for (_, bytes) in sent.iter_mut() {
            if let Some(mut frame) = Frame::of(bytes).filter(|frame| frame.esv == by) {
                change(&mut frame);
                *bytes = frame.bytes();
            }
        }
    })
}

/// Has an object tell another value of a property.
fn tells(eoj: Eoj, epc: u8, change: impl Fn(&mut Vec<u8>) + 'static) -> Mistake {
    each(move |frame| {
        let tells = matches!(frame.esv, 0x72 | 0x73) && frame.seoj() == eoj;
        for (of, edt) in frame.properties.iter_mut().filter(|(of, edt)| tells && *of == epc && !edt.is_empty()) {
            debug_assert_eq!(*of, epc);
            change(edt);
        }
    })
}

fn value(eoj: Eoj, epc: u8, text: &'static str) -> Mistake {
    tells(eoj, epc, move |edt| *edt = hex(text))
}

/// Has an object tell another property map.
fn map(eoj: Eoj, epc: u8, change: impl Fn(PropertySet) -> PropertySet + 'static) -> Mistake {
    tells(eoj, epc, move |edt| {
        let map = change(PropertySet::decode_map_lenient(edt));
        let mut buffer = [0; 17];
        let length = map.encode_map(&mut buffer);
        *edt = buffer[..length].to_vec();
    })
}

/// Answers a frame that needs no answer and that `is_it` selects, with its identifier.
fn answers_to(is_it: impl Fn(&[u8]) -> bool + 'static) -> Mistake {
    Box::new(move |request, sent: &mut Sent| {
        let tid = request.get(2..4).unwrap_or_default();
        if is_it(request) && !tid.is_empty() {
            sent.push((false, [&hex("1081"), tid, &hex("0EF001 05FF01 72 01 80 01 30")].concat()));
        }
    })
}

/// Refuses as a confirmation: takes what it should not.
fn takes(is_it: impl Fn(&Frame) -> bool + 'static) -> Mistake {
    answers(0x61, move |request, sent| {
        if is_it(request) {
            for (_, bytes) in sent.iter_mut() {
                let Some(mut frame) = Frame::of(bytes) else { continue };
                frame.esv = 0x71;
                frame.properties.iter_mut().for_each(|(_, edt)| edt.clear());
                *bytes = frame.bytes();
            }
        }
    })
}

fn silent_on(esv: u8, is_it: impl Fn(&Frame) -> bool + 'static) -> Mistake {
    answers(esv, move |request, sent| {
        if is_it(request) {
            sent.clear();
        }
    })
}

/// The name of a mistake, the object and the item that find it, and the mistake.
type Row = (&'static str, Eoj, &'static str, Mistake);

fn values() -> Vec<Row> {
    vec![
        ("an operation status of 32", NODE, "80.value", value(NODE, 0x80, "32")),
        ("a version of zeros", NODE, "82.value", value(NODE, 0x82, "00000100")),
        ("a version that does not end in 0", NODE, "82.value", value(NODE, 0x82, "010E0101")),
        ("format 2 only", NODE, "82.format", value(NODE, 0x82, "010E0200")),
        ("an identification number of 16 bytes", NODE, "83.size", tells(NODE, 0x83, |edt| edt.truncate(16))),
        ("an identification number of kind 00", NODE, "83.kind", tells(NODE, 0x83, |edt| edt[0] = 0)),
        ("another maker's number", NODE, "83.maker", tells(NODE, 0x83, |edt| edt[3] ^= 1)),
        ("a maker of two bytes", NODE, "8A.size", value(NODE, 0x8A, "0077")),
        ("a count of two bytes", NODE, "D3.size", value(NODE, 0xD3, "0004")),
        ("a count too high", NODE, "D3.value", value(NODE, 0xD3, "000005")),
        ("a class count of one byte", NODE, "D4.size", value(NODE, 0xD4, "05")),
        ("a class count without the profile", NODE, "D4.value", value(NODE, 0xD4, "0004")),
        ("a list that counts too many", NODE, "D6.size", tells(NODE, 0xD6, |edt| edt[0] += 1)),
        ("an object named twice", NODE, "D6.twins", tells(NODE, 0xD6, |edt| edt.copy_within(1..4, 4))),
        ("instance 0", NODE, "D6.names", tells(NODE, 0xD6, |edt| edt[3] = 0)),
        (
            "the profile in the list",
            NODE,
            "D6.names",
            tells(NODE, 0xD6, |edt| edt.splice(1..4, hex("0EF001")).for_each(drop)),
        ),
        ("a class list too long", NODE, "D7.size", tells(NODE, 0xD7, |edt| edt.push(0))),
        ("another class", NODE, "D7.value", tells(NODE, 0xD7, |edt| edt[2] ^= 1)),
        ("another list announced", NODE, "D5.infreq", tells(NODE, 0xD5, |edt| edt[2] ^= 1)),
        ("a level of 101 %", LIGHT, "B0.value", value(LIGHT, 0xB0, "65")),
        ("a level of two bytes", LIGHT, "B0.value", value(LIGHT, 0xB0, "0032")),
        ("a mode that there is not", CONDITIONER, "B0.value", value(CONDITIONER, 0xB0, "39")),
        ("a temperature of two bytes", CONDITIONER, "B3.value", value(CONDITIONER, 0xB3, "0019")),
        ("a fault status of 40", LIGHT, "88.value", value(LIGHT, 0x88, "40")),
    ]
}

fn maps() -> Vec<Row> {
    vec![
        ("the list is not announced", NODE, "D5.announce", map(NODE, 0x9D, |map| map.without(0xD5))),
        ("the map lacks the class list", NODE, "D7.get.required", map(NODE, 0x9F, |map| map.without(0xD7))),
        ("a map that counts wrong", LIGHT, "9F.count", tells(LIGHT, 0x9F, |edt| edt[0] += 1)),
        ("a short map that is long", LIGHT, "9D.form", tells(LIGHT, 0x9D, |edt| edt.push(0x80))),
        (
            "a long map as a list",
            CONDITIONER,
            "9F.form",
            tells(CONDITIONER, 0x9F, |edt| {
                let map = PropertySet::decode_map_lenient(edt);
                *edt = [vec![map.len() as u8], map.iter().collect()].concat();
            }),
        ),
        ("the map lacks itself", LIGHT, "9F.maps", map(LIGHT, 0x9F, |map| map.without(0x9F))),
        (
            "an optional property that is not announced",
            GAS,
            "B1.announce.required",
            map(GAS, 0x9D, |map| map.without(0xB1)),
        ),
        ("announced only", LIGHT, "9D.part", map(LIGHT, 0x9D, |map| map.with(0xF4))),
        ("announced only, of the profile", NODE, "9D.part", map(NODE, 0x9D, |map| map.with(0xF4))),
        ("a required property that is not read", LIGHT, "B6.get.required", map(LIGHT, 0x9F, |map| map.without(0xB6))),
        (
            "a required property that is not written",
            LIGHT,
            "B6.set.required",
            map(LIGHT, 0x9E, |map| map.without(0xB6)),
        ),
        ("a fault that is not announced", LIGHT, "88.announce.required", map(LIGHT, 0x9D, |map| map.without(0x88))),
        (
            "a status that is not announced",
            CONDITIONER,
            "B0.announce.required",
            map(CONDITIONER, 0x9D, |map| map.without(0xB0)),
        ),
        ("an invented property", LIGHT, "F3.get", map(LIGHT, 0x9F, |map| map.with(0xF3))),
        ("a hidden property that is read", LIGHT, "B0.get.unlisted", map(LIGHT, 0x9F, |map| map.without(0xB0))),
        ("a hidden property that is written", LIGHT, "B0.set.unlisted", map(LIGHT, 0x9E, |map| map.without(0xB0))),
        (
            "neither of two alternatives",
            CURRENT,
            "E0-E2.either",
            map(CURRENT, 0x9F, |map| map.without(0xE0).without(0xE2)),
        ),
    ]
}

fn heads() -> Vec<Row> {
    let pushes = |byte: u8| -> Mistake {
        Box::new(move |request, sent: &mut Sent| {
            if !request.is_empty() {
                sent.iter_mut().for_each(|(_, bytes)| bytes.push(byte));
            }
        })
    };
    vec![
        ("another identifier", NODE, "get.one", answered(0x62, 0x72, |frame| frame.head[2] ^= 0x80)),
        ("the identifier before", NODE, "get.once", each_tid(0, |tid| tid - 1)),
        ("the next identifier", NODE, "get.one", each_tid(0, |tid| tid + 1)),
        (
            "identifiers of earlier requests, from some time on",
            CONDITIONER,
            "get.order",
            each_tid(256, |tid| tid ^ 0x0101),
        ),
        ("another source", NODE, "get.one", answered(0x62, 0x72, |frame| frame.head[6] ^= 2)),
        ("another destination", NODE, "get.one", answered(0x62, 0x72, |frame| frame.head[9] ^= 2)),
        ("another protocol", NODE, "get.one", answered(0x62, 0x72, |frame| frame.head[0] ^= 1)),
        ("another format", NODE, "get.one", answered(0x62, 0x72, |frame| frame.head[1] ^= 3)),
        ("a byte too many", NODE, "get.one", pushes(0)),
        (
            "a count too high",
            NODE,
            "get.one",
            Box::new(|request, sent: &mut Sent| {
                if !request.is_empty() {
                    sent.iter_mut().for_each(|(_, bytes)| bytes[11] += 1);
                }
            }),
        ),
        ("an order of its own", NODE, "get.order", answered(0x62, 0x72, |frame| frame.properties.reverse())),
        ("the first property only", NODE, "get.order", answered(0x62, 0x72, |frame| frame.properties.truncate(1))),
        ("two answers", NODE, "get.once", answers(0x62, |_, sent| sent.extend_from_within(..))),
        ("another service", NODE, "get.one", answered(0x62, 0x72, |frame| frame.esv = 0x71)),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn refusals() -> Vec<Row> {
    let unknown =
        |request: &Frame| !request.properties.is_empty() && request.properties.iter().any(|(epc, _)| *epc >= 0xF0);
    let reads_low = |request: &Frame| request.properties.first().is_some_and(|(epc, _)| *epc < 0x80);
    vec![
        ("no refusal", NODE, "get.unknown", silent_on(0x62, unknown)),
        ("a refusal as success", NODE, "get.unknown", answered(0x62, 0x52, |frame| frame.esv = 0x72)),
        ("a refusal of another service", NODE, "get.unknown", answered(0x62, 0x52, |frame| frame.esv = 0x53)),
        (
            "a value in a refusal",
            NODE,
            "get.unknown",
            answered(0x62, 0x52, |frame| frame.properties.iter_mut().for_each(|(_, edt)| *edt = vec![0])),
        ),
        (
            "a refusal without the values",
            NODE,
            "get.mixed",
            answered(0x62, 0x52, |frame| {
                frame.properties.iter_mut().for_each(|(_, edt)| edt.clear());
            }),
        ),
        (
            "a refusal in its own order",
            NODE,
            "get.mixed-first",
            answered(0x62, 0x52, |frame| frame.properties.reverse()),
        ),
        ("a refusal of fewer", NODE, "get.mixed-three", answered(0x62, 0x52, |frame| frame.properties.truncate(2))),
        (
            "low codes are read",
            NODE,
            "get.low",
            answers(0x62, move |request, sent| {
                if reads_low(request) {
                    sent.iter_mut().for_each(|(_, bytes)| bytes[10] = 0x72);
                }
            }),
        ),
        (
            "a refusal to write without the value",
            NODE,
            "setc.unknown",
            answered(0x61, 0x51, |frame| {
                frame.properties.iter_mut().for_each(|(_, edt)| edt.clear());
            }),
        ),
        ("a write of what is not there", NODE, "setc.unknown", takes(unknown)),
        (
            "a write of the maker",
            NODE,
            "setc.readonly",
            takes(|request| request.properties.first().is_some_and(|(epc, _)| *epc == 0x8A)),
        ),
        (
            "a write of a map",
            NODE,
            "setc.map",
            takes(|request| request.properties.first().is_some_and(|(epc, _)| *epc == 0x9F)),
        ),
        ("a write of a low code", NODE, "setc.low", takes(reads_low)),
        ("SetI refused as SetC", NODE, "seti.unknown", answered(0x60, 0x50, |frame| frame.esv = 0x51)),
        ("SetI that is not refused", NODE, "seti.unknown", silent_on(0x60, |_| true)),
        (
            "a refusal of SetI in its own order",
            NODE,
            "seti.order",
            answered(0x60, 0x50, |frame| frame.properties.reverse()),
        ),
        (
            "SetGet that is not answered",
            NODE,
            "setget.unknown",
            Box::new(|request, sent: &mut Sent| {
                if request.get(10) == Some(&0x6E) {
                    sent.clear();
                }
            }),
        ),
        (
            "SetGet refused as Get",
            LIGHT,
            "setget.unknown",
            Box::new(|request, sent: &mut Sent| {
                if request.get(10) == Some(&0x6E) && request[7..10] == LIGHT.to_bytes() {
                    sent.iter_mut().for_each(|(_, bytes)| bytes[10] = 0x52);
                }
            }),
        ),
    ]
}

fn writes() -> Vec<Row> {
    let status = |request: &Frame| request.properties.first().is_some_and(|(epc, _)| *epc == 0x80);
    let level =
        |request: &Frame| request.deoj() == LIGHT && request.properties.first().is_some_and(|(epc, _)| *epc == 0xB0);
    vec![
        (
            "a confirmation with the value",
            LIGHT,
            "setc.own",
            answered(0x61, 0x71, |frame| {
                frame.properties.iter_mut().for_each(|(_, edt)| edt.push(0x30));
            }),
        ),
        (
            "a confirmation of one of two",
            LIGHT,
            "setc.twice",
            answered(0x61, 0x71, |frame| frame.properties.truncate(1)),
        ),
        (
            "a status of 00 is taken",
            LIGHT,
            "setc.value",
            takes(move |request| status(request) && request.properties[0].1 == [0]),
        ),
        ("an impossible level is taken", LIGHT, "B0.set.impossible", takes(level)),
        (
            "a level that cannot be written",
            LIGHT,
            "B0.set",
            answers(0x61, move |request, sent| {
                for (_, bytes) in sent.iter_mut().filter(|(to_all, _)| level(request) && !to_all) {
                    let head = Frame::of(bytes).unwrap().head;
                    *bytes = Frame { head, esv: 0x51, ..request.clone() }.bytes();
                }
            }),
        ),
        (
            "a change that is not announced",
            LIGHT,
            "80.announced",
            Box::new(|request, sent: &mut Sent| {
                let is_status =
                    |bytes: &[u8]| Frame::of(bytes).is_some_and(|frame| frame.esv == 0x73 && frame.seoj() == LIGHT);
                if request.get(10) != Some(&0x63) {
                    sent.retain(|(to_all, bytes)| !(*to_all && is_status(bytes) && !is_asked_for(bytes)));
                }
            }),
        ),
    ]
}

/// Whether an announcement answers INF_REQ: it has an identifier of the examination then.
fn is_asked_for(bytes: &[u8]) -> bool {
    bytes[2] >= 0x40
}

fn notifications() -> Vec<Row> {
    let is_inf = |bytes: &[u8]| bytes.get(10) == Some(&0x73) && is_asked_for(bytes);
    vec![
        ("INFC without an answer", NODE, "infc", silent_on(0x74, |_| true)),
        (
            "a confirmation of INFC with the value",
            NODE,
            "infc",
            answered(0x74, 0x7A, |frame| frame.properties.iter_mut().for_each(|(_, edt)| edt.push(0x30))),
        ),
        ("INFC confirmed in part", NODE, "infc.two", answered(0x74, 0x7A, |frame| frame.properties.truncate(1))),
        (
            "INFC of the unknown without an answer",
            NODE,
            "infc.unknown",
            silent_on(0x74, |request| request.properties.first().is_some_and(|(epc, _)| *epc >= 0xF0)),
        ),
        (
            "INF_REQ of the unknown without an answer",
            NODE,
            "infreq.unknown",
            silent_on(0x63, |request| request.properties.first().is_some_and(|(epc, _)| *epc >= 0xF0)),
        ),
        (
            "INF_REQ refused without the values",
            NODE,
            "infreq.mixed",
            answered(0x63, 0x53, |frame| {
                frame.properties.iter_mut().for_each(|(_, edt)| edt.clear());
            }),
        ),
        (
            "INF_REQ without an answer",
            LIGHT,
            "infreq",
            Box::new(move |_, sent: &mut Sent| sent.retain(|(_, bytes)| !is_inf(bytes))),
        ),
        (
            "INF_REQ answered to the asker",
            LIGHT,
            "infreq",
            Box::new(move |_, sent: &mut Sent| {
                sent.iter_mut().filter(|(_, bytes)| is_inf(bytes)).for_each(|(to_all, _)| *to_all = false);
            }),
        ),
    ]
}

/// Frames that are not to be answered, and are.
fn talkative() -> Vec<Row> {
    let esv =
        |esv: u8| answers_to(move |bytes| bytes.get(10) == Some(&esv) && bytes.get(7..10) == Some(&NODE.to_bytes()));
    let long = |bytes: &[u8]| bytes.len() > 11;
    vec![
        ("service 64", NODE, "silence.esv-64", esv(0x64)),
        ("service 00", NODE, "silence.esv-00", esv(0x00)),
        ("service 6F", NODE, "silence.esv-6f", esv(0x6F)),
        ("service FF", NODE, "silence.esv-ff", esv(0xFF)),
        (
            "a request without properties",
            NODE,
            "silence.opc-0",
            answers_to(|bytes| bytes.get(10..) == Some(&[0x62, 0])),
        ),
        (
            "a byte behind",
            NODE,
            "silence.trailing",
            answers_to(move |bytes| long(bytes) && bytes[10] == 0x62 && bytes[11] == 1 && bytes.len() == 15),
        ),
        (
            "fewer properties",
            NODE,
            "silence.opc-more",
            answers_to(move |bytes| long(bytes) && bytes[10..] == hex("62 02 80 00")[..]),
        ),
        ("another protocol", NODE, "silence.ehd1", answers_to(|bytes| bytes.first() == Some(&0x11))),
        ("the older protocol", NODE, "silence.ehd1-old", answers_to(|bytes| bytes.first() == Some(&0x80))),
        ("an unknown format", NODE, "silence.ehd2", answers_to(|bytes| bytes.get(1) == Some(&0x83))),
        ("format 2", NODE, "silence.format-2", answers_to(|bytes| bytes.get(1) == Some(&0x82))),
        ("four bytes", NODE, "silence.cut-tid", answers_to(|bytes| bytes.len() == 4)),
        ("half an object", NODE, "silence.cut-eoj", answers_to(|bytes| bytes.len() == 7)),
        ("an answer", NODE, "silence.get-res", esv(0x72)),
        ("a confirmation", NODE, "silence.infc-res", esv(0x7A)),
        ("a notification", NODE, "silence.inf", esv(0x73)),
        (
            "a class that is not there",
            NODE,
            "silence.class",
            answers_to(|bytes| bytes.get(7..10) == Some(&[0x00, 0xFE, 0x01])),
        ),
        (
            "an instance that is not there",
            LIGHT,
            "silence.instance",
            answers_to(|bytes| bytes.get(7..10) == Some(&[0x02, 0x90, 0x7F])),
        ),
        (
            "the profile of those that only send",
            NODE,
            "silence.send-only",
            answers_to(|bytes| bytes.get(7..10) == Some(&[0x0E, 0xF0, 0x02])),
        ),
    ]
}

#[test]
fn each_mistake_is_found_by_its_item() {
    let rows: Vec<_> =
        [values(), maps(), heads(), refusals(), writes(), notifications(), talkative()].into_iter().flatten().collect();
    let count = rows.len();
    let mut missed = Vec::new();
    for (name, eoj, id, mistake) in rows {
        let report = Simulated::new(&CLASSES, false, 1, Weather::FINE).mistaken(mistake).examined(&Settings::default());
        let item = report.items.iter().find(|item| item.eoj == eoj && item.id == id);
        if !matches!(item.map(|item| &item.outcome), Some(Outcome::Failed(_))) {
            let failed: Vec<_> = report.failed().map(ToString::to_string).take(5).collect();
            missed.push(format!(
                "{name}: {id} of {eoj} is {:?}; failed were {failed:#?}",
                item.map(|item| &item.outcome)
            ));
        } else if !id.starts_with("silence") && !id.contains("value") && !id.contains("size") {
            let is_said = item.is_some_and(|item| !item.exchanges.is_empty());
            let is_about_maps = id.contains("required") || id.contains("either") || eoj == NODE;
            assert!(is_said || is_about_maps, "{name}: what was said is not in {item:?}");
        }
    }
    println!("{} of {count} mistakes are found", count - missed.len());
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(count >= 60, "{count} mistakes");
}

#[test]
fn a_node_that_is_slow_silent_or_ends_is_judged_by_that() {
    let node = || Simulated::new(&CLASSES[..1], false, 1, Weather::FINE);
    let slow = node().slow(Duration::from_secs(6)).examined(&Settings::default());
    assert!(slow.is_there);
    let first = slow.items.iter().find(|item| item.id == "get.one").unwrap();
    assert!(matches!(&first.outcome, Outcome::Failed(why) if why.contains("but after 6")), "{first}");
    // No node answers: nothing is examined.
    let silent = node().mistaken(Box::new(|_, sent: &mut Sent| sent.clear())).examined(&Settings::default());
    assert_eq!((silent.is_there, silent.items.len()), (false, 0));
    // A node that ends in the middle: items that are open then stay undecided.
    let asked = std::cell::Cell::new(0);
    let ends = Box::new(move |request: &[u8], sent: &mut Sent| {
        asked.set(asked.get() + usize::from(!request.is_empty()));
        if asked.get() > 60 {
            sent.clear();
        }
    });
    let report = node().mistaken(ends).examined(&Settings::default());
    let undecided = report.counts()[2];
    assert!(report.failed().all(
        |item| item.id == "survives" || !matches!(&item.outcome, Outcome::Failed(why) if why.contains("no answer"))
    ));
    assert!(undecided > 20, "{undecided} of {} are undecided", report.items.len());
}
