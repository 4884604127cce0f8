//! Frames in words and as JSON.

use echonet_lite::wire::{Eoj, Esv, Frame, Message, ParseError, Properties};
use serde_json::{Value, json};

use crate::names::class_of;
use crate::render::{self, Factors, Property, hex};

/// The object whose properties a message carries.
fn subject(message: &Message<'_>) -> Eoj {
    let esv = message.esv();
    if esv.is_request() || esv == Esv::InfcRes { message.deoj() } else { message.seoj() }
}

/// The status that the service gives to a property, in place of a value or beside it.
fn status(esv: Esv, is_second: bool, edt: &[u8]) -> Option<&'static str> {
    let is_empty = edt.is_empty();
    match esv {
        Esv::Get | Esv::InfReq => Some("asked"),
        Esv::SetGet if is_second => Some("asked"),
        Esv::SetRes => Some("accepted"),
        Esv::SetGetRes if !is_second => Some("accepted"),
        Esv::InfcRes => Some("received"),
        Esv::GetSna | Esv::InfSna => is_empty.then_some("refused"),
        Esv::SetGetSna if is_second => is_empty.then_some("refused"),
        Esv::SetISna | Esv::SetCSna | Esv::SetGetSna => Some(if is_empty { "accepted" } else { "refused" }),
        Esv::SetI | Esv::SetC | Esv::SetGet | Esv::GetRes | Esv::Inf | Esv::Infc | Esv::SetGetRes => None,
    }
}

/// A property of a list, its status, and whether there is a value.
struct Row<'a> {
    property: Property<'a>,
    status: Option<&'static str>,
    has_value: bool,
}

/// The factors of a message's numbers, from the properties in the message itself.
fn factors(message: &Message<'_>) -> Factors {
    let all = message.properties().chain(message.get_properties());
    Factors::of(class_of(subject(message)), all.map(|property| (property.epc, property.edt)))
}

fn rows<'a>(
    message: &Message<'a>,
    list: Properties<'a>,
    is_second: bool,
    factors: &'a Factors,
) -> impl Iterator<Item = Row<'a>> {
    let (eoj, esv) = (subject(message), message.esv());
    list.map(move |property| {
        let status = status(esv, is_second, property.edt);
        let has_value = status.is_none() || !property.edt.is_empty();
        let property = Property::new(eoj, property.epc, property.edt).counted(factors);
        Row { property, status, has_value }
    })
}

impl Row<'_> {
    fn text(&self) -> String {
        match (self.has_value, self.status) {
            (true, None) => self.property.text(),
            (true, Some(status)) => format!("{} {status}", self.property.text()),
            (false, status) => status.unwrap_or_default().to_owned(),
        }
    }

    fn word(&self) -> String {
        let name = self.property.name();
        match (self.has_value, self.status) {
            (_, None) => format!("{name}={}", self.property.text()),
            (true, Some(_)) => format!("{name}={}", self.text()),
            (false, Some("asked")) => name,
            (false, Some(status)) => format!("{name} {status}"),
        }
    }

    fn json(&self) -> Value {
        let mut map = if self.has_value { self.property.json() } else { self.property.json_name() };
        if let Some(status) = self.status {
            map.insert("status".into(), json!(status));
        }
        Value::Object(map)
    }
}

/// One line: `controller:1 > generalLighting:1 Get operationStatus`.
pub(crate) fn line(frame: &Frame<'_>) -> String {
    let Frame::Format1(message) = frame else { return frame.to_string() };
    let (from, to) = (render::object(message.seoj()), render::object(message.deoj()));
    let factors = factors(message);
    let list =
        |list, is_second| rows(message, list, is_second, &factors).map(|row| row.word()).collect::<Vec<_>>().join(", ");
    let second = if message.esv().has_two_lists() {
        format!(" / {}", list(message.get_properties(), true))
    } else {
        String::new()
    };
    format!("{from} > {to} {} {}{second}", message.esv(), list(message.properties(), false)).trim_end().to_owned()
}

/// Every property in a line of its own.
pub(crate) fn details(frame: &Frame<'_>) -> String {
    let Frame::Format1(message) = frame else { return String::new() };
    let mut text = String::new();
    let width = |row: &Row<'_>| row.property.cells()[1].len();
    let factors = factors(message);
    let list = |list, is_second| rows(message, list, is_second, &factors);
    let all = || list(message.properties(), false).chain(list(message.get_properties(), true));
    let widest = all().map(|row| width(&row)).max().unwrap_or(0);
    for row in all() {
        let [epc, name] = row.property.cells();
        text.push_str(format!("\n  {epc} {name:widest$}  {}", row.text()).trim_end());
    }
    text
}

/// A frame as JSON.
pub(crate) fn json(frame: &Frame<'_>) -> Value {
    let tid = format!("0x{:04X}", frame.tid());
    let Frame::Format1(message) = frame else {
        let Frame::Format2 { edata, .. } = frame else { unreachable!("there are two formats") };
        return json!({ "tid": tid, "edata": hex(edata) });
    };
    let factors = factors(message);
    let list = |list, is_second| rows(message, list, is_second, &factors).map(|row| row.json()).collect::<Vec<_>>();
    let mut value = json!({
        "tid": tid,
        "seoj": render::object_json(message.seoj()),
        "deoj": render::object_json(message.deoj()),
        "esv": message.esv().name(),
        "properties": list(message.properties(), false),
    });
    if message.esv().has_two_lists() {
        value["getProperties"] = json!(list(message.get_properties(), true));
    }
    value
}

/// The fault of bytes that are no frame, as JSON.
pub(crate) fn error_json(error: &ParseError, bytes: &[u8]) -> Value {
    let text = error.to_string();
    let cause = text.split_once(": ").map_or(text.as_str(), |(_, cause)| cause);
    json!({ "error": { "offset": error.offset, "cause": cause }, "bytes": hex(bytes) })
}

/// Bytes a few of which surround the one at fault, which is marked.
pub(crate) fn fault(error: &ParseError, bytes: &[u8]) -> String {
    const AROUND: usize = 12;
    let start = error.offset.saturating_sub(AROUND);
    let end = bytes.len().min(error.offset + AROUND);
    let before = if start > 0 { "… " } else { "" };
    let after = if end < bytes.len() { " …" } else { "" };
    let shown: Vec<_> = bytes[start..end].iter().map(|byte| format!("{byte:02X}")).collect();
    let column = before.chars().count() + 3 * (error.offset - start);
    format!("{error}\n  {before}{}{after}\n  {:column$}^^", shown.join(" "), "")
}

/// The version of the specification that a node profile's 0x82 names.
pub(crate) fn version([major, minor, ..]: [u8; 4]) -> String {
    format!("{major}.{minor:02}")
}
