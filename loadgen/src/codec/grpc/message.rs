//! Messages from JSON, and comparing those that come with it.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};

use crate::workload::{DIGITS, Source, Subjects, Template};

/// Length and compression before each message.
pub(super) const PREFIX: usize = 5;

/// A message with places for what differs from call to call.
#[derive(Clone, Debug)]
pub(super) struct MessageTemplate {
    descriptor: MessageDescriptor,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    /// The same bytes every time.
    Fixed(Vec<u8>),
    /// Bytes with places, each as long as what fills it.
    Places(Template),
    /// JSON with places: lengths or types depend on what fills them, so each message is made anew.
    Json(Template),
}

/// The places whose filling is as long as known, and what stands for it while the message is encoded.
const STAND_INS: [(&str, &str); 5] =
    [("{key}", "~K"), ("{value}", "~V"), ("{random}", "~R"), ("__rand_int__", "~R"), ("{sequence}", "~S")];

impl MessageTemplate {
    /// Reads the JSON form of a message, in which places may stand.
    ///
    /// # Errors
    /// When it is not JSON, or not that of the message; the text says where.
    pub(super) fn new(descriptor: &MessageDescriptor, json: &str, subjects: &Subjects) -> Result<Self, String> {
        let template = Template::new(json);
        let form = if template.as_text().is_some() {
            Form::Fixed(encode(descriptor, json)?)
        } else if let Some(places) = with_places(descriptor, json, subjects) {
            Form::Places(places)
        } else {
            // One is made now, so that an error shows before the run.
            from_json(descriptor, &template, 0, subjects, &mut Source::new(0, 0, 1))?;
            Form::Json(template)
        };
        Ok(Self { descriptor: descriptor.clone(), form })
    }

    pub(super) fn has_key(&self) -> bool {
        match &self.form {
            Form::Fixed(_) => false,
            Form::Places(template) | Form::Json(template) => template.has_key(),
        }
    }

    /// Whether it follows from the key.
    pub(super) fn is_determined_by_key(&self) -> bool {
        match &self.form {
            Form::Fixed(_) => true,
            Form::Places(template) | Form::Json(template) => template.is_determined_by_key(),
        }
    }

    /// Whether it is the same every time.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self.form, Form::Fixed(_))
    }

    /// Appends the message, filled for a key.
    ///
    /// # Errors
    /// When a number that fills a place is beyond its field's range.
    #[inline]
    pub(super) fn append(
        &self,
        key: u64,
        subjects: &Subjects,
        source: &mut Source,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        match &self.form {
            Form::Fixed(bytes) => out.extend_from_slice(bytes),
            Form::Places(places) => places.append(key, subjects, source, out),
            Form::Json(template) => out.extend(from_json(&self.descriptor, template, key, subjects, source)?),
        }
        Ok(())
    }

    /// Whether a message that came is this one: byte by byte, or else by what it means.
    pub(super) fn matches(&self, key: u64, subjects: &Subjects, found: &[u8], scratch: &mut Vec<u8>) -> bool {
        scratch.clear();
        // The content of an answer follows from the key: nothing is drawn.
        if self.append(key, subjects, &mut Source::new(0, 0, 1), scratch).is_err() {
            return false;
        }
        found == &scratch[..] || same_meaning(&self.descriptor, found, scratch)
    }
}

/// Whether two encodings mean the same: fields may come in any order, and map entries too.
pub(super) fn same_meaning(descriptor: &MessageDescriptor, left: &[u8], right: &[u8]) -> bool {
    let decode = |bytes: &[u8]| DynamicMessage::decode(descriptor.clone(), bytes).ok();
    decode(left).is_some_and(|left| decode(right) == Some(left))
}

/// A message in JSON, for people; what is not such a message in hexadecimal.
pub(super) fn shown(descriptor: &MessageDescriptor, bytes: &[u8]) -> String {
    const MOST: usize = 200;
    let decoded = DynamicMessage::decode(descriptor.clone(), bytes).ok();
    let json = decoded.and_then(|message| serde_json::to_string(&message).ok());
    let hexadecimal = || bytes.iter().take(MOST / 2).map(|byte| format!("{byte:02x}")).collect();
    json.unwrap_or_else(hexadecimal).chars().take(MOST).collect()
}

fn encode(descriptor: &MessageDescriptor, json: &str) -> Result<Vec<u8>, String> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let wrong = |error: serde_json::Error| format!("the data is no {} in JSON: {error}", descriptor.full_name());
    let message = DynamicMessage::deserialize(descriptor.clone(), &mut deserializer).map_err(wrong)?;
    deserializer.end().map_err(wrong)?;
    Ok(message.encode_to_vec())
}

fn from_json(
    descriptor: &MessageDescriptor,
    template: &Template,
    key: u64,
    subjects: &Subjects,
    source: &mut Source,
) -> Result<Vec<u8>, String> {
    let mut json = Vec::new();
    template.append(key, subjects, source, &mut json);
    encode(descriptor, &String::from_utf8_lossy(&json))
}

/// Encodes the message with stand-ins of the right length, and makes places of them again. None where that cannot be done:
/// a place outside of a string, or of a length that is not known.
fn with_places(descriptor: &MessageDescriptor, json: &str, subjects: &Subjects) -> Option<Template> {
    let (mut filled, mut stand_ins) = (json.to_owned(), Vec::new());
    for (place, stand_in) in STAND_INS.iter().filter(|(place, _)| json.contains(place)) {
        let length = if *place == "{value}" { subjects.values.fixed_size()? } else { DIGITS };
        let text = stand_in.repeat(length / stand_in.len());
        // Short ones could be found by chance.
        if text.len() != length || length < 8 || json.contains(stand_in) {
            return None;
        }
        filled = filled.replace(place, &text);
        stand_ins.push((text.into_bytes(), place));
    }
    let bytes = encode(descriptor, &filled).ok()?;
    let (mut parts, mut rest) = (Vec::new(), &bytes[..]);
    let mut found = 0;
    while let Some(first) = rest.first() {
        if let Some((text, place)) = stand_ins.iter().find(|(text, _)| rest.starts_with(text)) {
            parts.extend_from_slice(place.as_bytes());
            rest = &rest[text.len()..];
            found += 1;
        } else {
            parts.push(*first);
            rest = &rest[1..];
        }
    }
    let wanted: usize = STAND_INS.iter().map(|(place, _)| json.matches(place).count()).sum();
    (found == wanted).then(|| Template::new(parts))
}

/// Appends a message as gRPC frames it: compressed or not, with its length. The message stands in `out` from `start` on, with
/// room for the prefix before it.
pub(super) fn frame(out: &mut Vec<u8>, start: usize, compress: bool) {
    if compress {
        let compressed = gzip(&out[start + PREFIX..]);
        out.truncate(start + PREFIX);
        out.extend_from_slice(&compressed);
    }
    let length = (out.len() - start - PREFIX) as u32;
    out[start] = u8::from(compress);
    out[start + 1..start + PREFIX].copy_from_slice(&length.to_be_bytes());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory does not fail")
}
