//! A request to a node, written as `get 013001 80 B0=41`.

use std::fmt;
use std::str::FromStr;

/// Where requests come from: a controller's object.
pub const CONTROLLER: Eoj = [0x05, 0xff, 0x01];

/// An object's code: class group, class, instance.
pub type Eoj = [u8; 3];

/// One kind of request to one object.
///
/// Its text is `get EOJ EPC…`, `set EOJ EPC=EDT…` (SetC), or `setget EOJ EPC=EDT… / EPC…`, all numbers in hexadecimal. A
/// property that is read may have the value that is expected: `80=30`. Several expected values are told apart by `|`:
/// `80=30|31`. A number and a colon in front are the weight in a mix: `9:get 013001 80`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The service.
    pub service: Service,
    /// To which object; instance 00 means all instances, of which the first answer counts.
    pub object: Eoj,
    /// The properties to write.
    pub writes: Vec<Write>,
    /// The properties to read.
    pub reads: Vec<Read>,
    /// How often, in proportion to the other operations of the mix.
    pub weight: u32,
}

/// A property and the value that it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The property.
    pub epc: u8,
    /// Its value.
    pub edt: Vec<u8>,
}

/// A property that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The property.
    pub epc: u8,
    /// The values that are right; if there are none, all are.
    pub expected: Vec<Vec<u8>>,
}

/// The services that a node must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Get, 0x62.
    Get,
    /// SetC, 0x61: a write with an answer.
    SetC,
    /// SetGet, 0x6E.
    SetGet,
}

impl Service {
    /// The request's ESV; the answer's has the bit 0x10 more, the refusal's 0x10 less.
    pub(super) fn request(self) -> u8 {
        match self {
            Self::SetC => 0x61,
            Self::Get => 0x62,
            Self::SetGet => 0x6e,
        }
    }

    pub(super) fn answer(self) -> u8 {
        self.request() + 0x10
    }

    pub(super) fn refusal(self) -> u8 {
        self.request() - 0x10
    }

    /// The name in the specification.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SetC => "SetC",
            Self::Get => "Get",
            Self::SetGet => "SetGet",
        }
    }
}

/// Bytes of a frame before its properties: EHD, TID, SEOJ, DEOJ, ESV.
pub(super) const HEADER: usize = 11;

impl Operation {
    /// The request as a frame, with a TID of 0.
    pub(super) fn frame(&self) -> Vec<u8> {
        let mut frame = vec![0x10, 0x81, 0, 0];
        frame.extend(CONTROLLER);
        frame.extend(self.object);
        frame.push(self.service.request());
        if self.service != Service::Get {
            frame.push(self.writes.len() as u8);
            for write in &self.writes {
                frame.extend([write.epc, write.edt.len() as u8]);
                frame.extend(&write.edt);
            }
        }
        if self.service != Service::SetC {
            frame.push(self.reads.len() as u8);
            frame.extend(self.reads.iter().flat_map(|read| [read.epc, 0]));
        }
        frame
    }

    fn check(&self) -> Result<(), String> {
        let (writes, reads) = match self.service {
            Service::Get => (false, true),
            Service::SetC => (true, false),
            Service::SetGet => (true, true),
        };
        for (list, wanted, verb) in [(self.writes.len(), writes, "writes"), (self.reads.len(), reads, "reads")] {
            if wanted != (list > 0) {
                let than = if wanted { "at least one property" } else { "none" };
                return Err(format!("`{}` {verb} {list} properties, expected {than}", self.service.name()));
            }
            if list > usize::from(u8::MAX) {
                return Err(format!("{list} properties, a frame has room for 255"));
            }
        }
        Ok(())
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (weight, rest) = match text.split_once(':') {
            Some((weight, rest)) => {
                (weight.trim().parse().map_err(|_| format!("`{weight}` is not a weight, expected a number"))?, rest)
            }
            None => (1, text),
        };
        let mut words = rest.split_whitespace();
        let service = match words.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "get" => Service::Get,
            "set" | "setc" => Service::SetC,
            "setget" => Service::SetGet,
            other => return Err(format!("`{other}` is not a request, expected get, set or setget")),
        };
        let object = words.next().unwrap_or_default();
        let object = bytes(object)
            .and_then(|bytes| Eoj::try_from(bytes).ok())
            .ok_or_else(|| format!("`{object}` is not an object, expected six hexadecimal digits such as 013001"))?;
        let mut operation = Self { service, object, writes: Vec::new(), reads: Vec::new(), weight };
        let mut writing = service != Service::Get;
        for word in words {
            if word == "/" {
                writing = false;
            } else if writing {
                operation.writes.push(word.parse()?);
            } else {
                operation.reads.push(word.parse()?);
            }
        }
        operation.check().map_err(|error| format!("{error}: `{text}`"))?;
        Ok(operation)
    }
}

impl FromStr for Write {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let parse = || {
            let (epc, edt) = word.split_once('=')?;
            Some(Self { epc: epc_of(epc)?, edt: edt_of(edt)? })
        };
        parse().ok_or_else(|| format!("`{word}` is not a property and its value, expected the like of 80=30"))
    }
}

impl FromStr for Read {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (epc, expected) = word.split_once('=').map_or((word, None), |(epc, edt)| (epc, Some(edt)));
        let expected = expected.map_or(Some(Vec::new()), |edts| edts.split('|').map(edt_of).collect());
        epc_of(epc)
            .zip(expected)
            .map(|(epc, expected)| Self { epc, expected })
            .ok_or_else(|| format!("`{word}` is not a property, expected the like of 80, 80=30 or 80=30|31"))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.service.name(), Hex(&self.object))?;
        for write in &self.writes {
            write!(f, " {:02X}={}", write.epc, Hex(&write.edt))?;
        }
        if self.service == Service::SetGet {
            f.write_str(" /")?;
        }
        for read in &self.reads {
            write!(f, " {:02X}", read.epc)?;
        }
        Ok(())
    }
}

/// Bytes in hexadecimal; long ones are cut.
pub(super) struct Hex<'a>(pub(super) &'a [u8]);

/// Bytes of an example that people still look at.
const SHOWN: usize = 40;

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.iter().take(SHOWN) {
            write!(f, "{byte:02X}")?;
        }
        if self.0.len() > SHOWN { write!(f, "… ({} bytes)", self.0.len()) } else { Ok(()) }
    }
}

fn epc_of(text: &str) -> Option<u8> {
    let text = text.trim_start_matches("0x");
    (text.len() == 2).then(|| u8::from_str_radix(text, 16).ok()).flatten()
}

/// A value of at most 255 bytes, which is what PDC can say.
fn edt_of(text: &str) -> Option<Vec<u8>> {
    bytes(text).filter(|bytes| bytes.len() <= usize::from(u8::MAX))
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_start_matches("0x").as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    digits.chunks_exact(2).map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_frames() {
        #[track_caller]
        fn check(text: &str, weight: u32, name: &str, frame: &str) {
            let operation: Operation = text.parse().unwrap();
            assert_eq!((operation.weight, operation.to_string().as_str()), (weight, name));
            assert_eq!(format!("{}", Hex(&operation.frame())), frame);
        }
        check("get 0ef001 80", 1, "Get 0EF001 80", "1081000005FF010EF00162018000");
        check("9:get 013001 80=30|31 B0", 9, "Get 013001 80 B0", "1081000005FF0101300162028000B000");
        check("set 013001 80=30 b3=1C", 1, "SetC 013001 80=30 B3=1C", "1081000005FF010130016102800130B3011C");
        check("setget 013001 B0=41 / 80", 1, "SetGet 013001 B0=41 / 80", "1081000005FF010130016E01B00141018000");
    }

    #[test]
    fn request_parse_errors_name_the_cause() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(text.parse::<Operation>().unwrap_err(), expected);
        }
        check("", "`` is not a request, expected get, set or setget");
        check("x:get 013001 80", "`x` is not a weight, expected a number");
        check("get 0130 80", "`0130` is not an object, expected six hexadecimal digits such as 013001");
        check("get 01300é 80", "`01300é` is not an object, expected six hexadecimal digits such as 013001");
        check("get 013001 8", "`8` is not a property, expected the like of 80, 80=30 or 80=30|31");
        check("set 013001 80", "`80` is not a property and its value, expected the like of 80=30");
        check("get 013001", "`Get` reads 0 properties, expected at least one property: `get 013001`");
        check("set 013001 80=30 / 80", "`SetC` reads 1 properties, expected none: `set 013001 80=30 / 80`");
        check(
            "setget 013001 80=30",
            "`SetGet` reads 0 properties, expected at least one property: `setget 013001 80=30`",
        );
    }
}
