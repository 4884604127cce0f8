//! A module and the meter that it finds, acted out: bytes in, bytes out.

use std::collections::VecDeque;

use echonet_lite::serial::Module;
use echonet_lite::wire::{Eoj, Esv, Frame, FrameWriter, Header};

pub(crate) const ID: &str = "00112233445566778899AABBCCDDEEFF";
pub(crate) const PASSWORD: &str = "0123456789AB";
pub(crate) const METER: &str = "FE80:0000:0000:0000:021D:1290:1234:5678";
const MAC: &str = "001D129012345678";
/// Another meter in the neighbourhood.
const OTHER: &str = "FE80:0000:0000:0000:021D:1290:1234:0000";
const OTHER_MAC: &str = "001D129012340000";
const OWN: &str = "FE80:0000:0000:0000:021D:1290:0003:C890";

/// The faults, each once and in this order for commands that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A command is not answered.
    Silent(&'static str),
    /// A command is refused.
    Refuse(&'static str, &'static str),
    /// The meter does not admit us.
    Deny,
    /// The radio does not transmit.
    NoTransmit,
    /// The meter's answer is lost on the air.
    NoAnswer,
    /// The neighbour is looked for first, so that there are two events 21.
    FindNeighbour,
    /// The session expires instead of the meter's answer.
    Expire,
    /// The meter ends the session instead of answering.
    Close,
    /// The air time is used up, and there is more, before the answer.
    Limit,
    /// The answer comes without encryption first, with a wrong value.
    Forge,
    /// Noise comes before the answer.
    Noise,
    /// The check sum of the answer's frame is wrong: the module drops the frame without a word.
    Checksum,
    /// The line to the host, which has no check sum, loses a byte of the answer.
    LostByte,
    /// The module starts anew, as after a moment without power, and has forgotten everything.
    Restart,
}

/// Answers a datagram in place of the built-in meter.
pub(crate) type Meter = Box<dyn FnMut(&[u8]) -> Option<Vec<u8>> + Send>;

/// The module's settings and state.
pub(crate) struct Simulator {
    module: Module,
    faults: VecDeque<Fault>,
    echo: bool,
    pub(crate) text: bool,
    /// From which scan duration on the meter is heard; `None`: never.
    pub(crate) audible_from: Option<u8>,
    /// Whether the answer to SKRESET leaves the echo on and repeats payloads in it.
    pub(crate) echo_payload: bool,
    /// Whether no meter admits us any more.
    pub(crate) deaf: bool,
    input: Vec<u8>,
    password: bool,
    id: bool,
    channel: bool,
    pan: bool,
    joined: bool,
    pub(crate) commands: Vec<String>,
    meter: Option<Meter>,
}

impl Simulator {
    pub(crate) fn new(module: Module, faults: &[Fault]) -> Self {
        Self {
            module,
            faults: faults.iter().cloned().collect(),
            echo: true,
            text: true,
            audible_from: Some(5),
            echo_payload: false,
            deaf: false,
            input: Vec::new(),
            password: false,
            id: false,
            channel: false,
            pan: false,
            joined: false,
            commands: Vec::new(),
            meter: None,
        }
    }

    /// The same, with another meter.
    pub(crate) fn with_meter(mut self, meter: Meter) -> Self {
        self.meter = Some(meter);
        self
    }

    /// Adds a fault to those to come.
    pub(crate) fn add_fault(&mut self, fault: Fault) {
        self.faults.push_back(fault);
    }

    /// Sends something of the meter's own accord, if there is a session.
    pub(crate) fn announce(&self, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if self.joined {
            self.datagram(true, 0x0E1A, payload, &mut out);
        }
        out
    }

    /// The same, with these faults to come.
    pub(crate) fn with_faults(mut self, faults: &[Fault]) -> Self {
        self.faults = faults.iter().cloned().collect();
        self
    }

    fn has_side(&self) -> bool {
        matches!(self.module, Module::Bp35c0 | Module::Rl7023Dss)
    }

    /// " 0" where this module names the network.
    fn side(&self) -> &'static str {
        if self.has_side() { " 0" } else { "" }
    }

    fn fault(&mut self, wanted: impl Fn(&Fault) -> bool) -> Option<Fault> {
        wanted(self.faults.front()?).then(|| self.faults.pop_front())?
    }

    pub(crate) fn is_fault_free(&self) -> bool {
        self.faults.is_empty()
    }

    /// Takes bytes from the driver; gives what the module answers.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.input.extend_from_slice(bytes);
        let mut out = Vec::new();
        while let Some((line, payload)) = self.next_command() {
            self.commands.push(line.clone());
            self.obey(&line, &payload, &mut out);
        }
        out
    }

    fn next_command(&mut self) -> Option<(String, Vec<u8>)> {
        if self.input.starts_with(b"SKSENDTO ") {
            let words = if self.has_side() { 7 } else { 6 };
            let mut spaces = self.input.iter().enumerate().filter(|(_, byte)| **byte == b' ');
            let header = spaces.nth(words - 1)?.0 + 1;
            let line = String::from_utf8(self.input[..header].to_vec()).unwrap();
            let length = usize::from_str_radix(line.split_whitespace().last()?, 16).unwrap();
            let payload = self.input.get(header..header + length)?.to_vec();
            self.input.drain(..header + length);
            return Some((line, payload));
        }
        let end = self.input.iter().position(|byte| *byte == b'\r')?;
        let line = String::from_utf8(self.input[..end].to_vec()).unwrap();
        let line_end = if self.input.get(end + 1) == Some(&b'\n') { 2 } else { 1 };
        self.input.drain(..end + line_end);
        Some((line, Vec::new()))
    }

    fn obey(&mut self, line: &str, payload: &[u8], out: &mut Vec<u8>) {
        let word = line.split(' ').next().unwrap().to_owned();
        if self.echo {
            out.extend_from_slice(line.as_bytes());
            if self.echo_payload {
                out.extend_from_slice(payload);
            }
            out.extend_from_slice(b"\r\n");
        }
        match self.fault(|fault| matches!(fault, Fault::Silent(name) | Fault::Refuse(name, _) if *name == word)) {
            Some(Fault::Silent(_)) => return,
            Some(Fault::Refuse(_, code)) => return say(out, &format!("FAIL {code}")),
            _ => {}
        }
        match word.as_str() {
            "ROPT" => out.extend_from_slice(if self.text { b"OK 01\r" } else { b"OK 00\r" }),
            "WOPT" => {
                self.text = line == "WOPT 01";
                out.extend_from_slice(b"OK\r");
            }
            "SKLL64" if line == format!("SKLL64 {MAC}") => say(out, METER),
            "SKLL64" if line == format!("SKLL64 {OTHER_MAC}") => say(out, OTHER),
            "SKSCAN" => self.scan(line, out),
            "SKJOIN" => self.join(line, out),
            "SKSENDTO" => self.send(line, payload, out),
            _ => match self.set(line) {
                Ok(()) => {
                    if line == "SKVER" {
                        say(out, "EVER 1.2.10");
                    }
                    say(out, "OK");
                }
                Err(code) => say(out, &format!("FAIL {code}")),
            },
        }
    }

    fn set(&mut self, line: &str) -> Result<(), &'static str> {
        match line {
            "SKRESET" => {
                (self.echo, self.password, self.id) = (true, false, false);
                (self.channel, self.pan, self.joined) = (false, false, false);
            }
            "SKSREG SFE 0" => self.echo = false,
            "SKVER" => {}
            _ if line.starts_with("SKSREG S2 ") && line.len() == 12 => self.channel = line.ends_with("21"),
            _ if line.starts_with("SKSREG S3 ") && line.len() == 14 => self.pan = line.ends_with("8888"),
            _ if line == format!("SKSETPWD C {PASSWORD}") => self.password = true,
            _ if line == format!("SKSETRBID {ID}") => self.id = true,
            _ => return Err("ER05"),
        }
        Ok(())
    }

    fn scan(&self, line: &str, out: &mut Vec<u8>) {
        let words: Vec<&str> = line.split(' ').collect();
        let duration = match (&words[..], self.has_side()) {
            ([_, "2", "FFFFFFFF", duration], false) | ([_, "2", "FFFFFFFF", duration, "0"], true) => *duration,
            _ => return say(out, "FAIL ER05"),
        };
        let duration = u8::from_str_radix(duration, 16).unwrap();
        say(out, "OK");
        if self.id && self.audible_from.is_some_and(|from| duration >= from) {
            // A weaker network before, the meter after.
            for (id, address, quality) in [("7777", OTHER_MAC, "10"), ("8888", MAC, "E1")] {
                let side = self.side();
                say(out, &format!("EVENT 20 {OWN}{side}"));
                say(out, "EPANDESC");
                say(out, "  Channel:21");
                say(out, "  Channel Page:09");
                say(out, &format!("  Pan ID:{id}"));
                say(out, &format!("  Addr:{address}"));
                say(out, &format!("  LQI:{quality}"));
                if self.has_side() {
                    say(out, "  Side:0");
                }
                say(out, "  PairID:CCDDEEFF");
            }
        }
        say(out, &format!("EVENT 22 {OWN}{}", self.side()));
    }

    fn join(&mut self, line: &str, out: &mut Vec<u8>) {
        if line == format!("SKJOIN {OTHER}") {
            say(out, "OK");
            return say(out, &format!("EVENT 24 {OTHER}{}", self.side()));
        }
        if line != format!("SKJOIN {METER}") {
            return say(out, "FAIL ER06");
        }
        say(out, "OK");
        say(out, &format!("EVENT 21 {METER}{} 00", self.side()));
        // PANA, which is none of the driver's business.
        self.datagram(false, 0x02CC, &[0, 0, 0, 4, b'\r', b'\n', 0xA0, 0], out);
        if self.deaf
            || self.fault(|fault| *fault == Fault::Deny).is_some()
            || !(self.password && self.id && self.channel && self.pan)
        {
            return say(out, &format!("EVENT 24 {METER}{}", self.side()));
        }
        say(out, &format!("EVENT 25 {METER}{}", self.side()));
        self.joined = true;
        // The instance list, as meters announce it after joining.
        let announcement = b"\x10\x81\0\x01\x0E\xF0\x01\x0E\xF0\x01\x73\x01\xD5\x04\x01\x02\x88\x01";
        self.datagram(true, 0x0E1A, announcement, out);
    }

    fn send(&mut self, line: &str, payload: &[u8], out: &mut Vec<u8>) {
        let side = self.side();
        if line != format!("SKSENDTO 1 {METER} 0E1A 1{side} {:04X} ", payload.len()) {
            return say(out, "FAIL ER06");
        }
        if !self.joined {
            return say(out, "FAIL ER10");
        }
        let transmitted = |outcome| format!("EVENT 21 {METER}{side} {outcome}");
        let fault = self.fault(|fault| !matches!(fault, Fault::Silent(_) | Fault::Refuse(..) | Fault::Deny));
        match fault {
            Some(Fault::NoTransmit) => {
                say(out, &transmitted("01"));
                return say(out, "OK");
            }
            Some(Fault::FindNeighbour) => {
                say(out, &transmitted("02"));
                say(out, "OK");
                say(out, &format!("EVENT 02 {METER}{side}"));
                say(out, &transmitted("00"));
            }
            _ => {
                say(out, &transmitted("00"));
                say(out, "OK");
            }
        }
        match fault {
            Some(Fault::NoAnswer) => return,
            Some(Fault::Restart) => {
                let _ = self.set("SKRESET");
                return;
            }
            Some(Fault::Expire) => {
                self.joined = false;
                return say(out, &format!("EVENT 29 {METER}{side}"));
            }
            Some(Fault::Close) => {
                self.joined = false;
                say(out, &format!("EVENT 26 {METER}{side}"));
                return say(out, &format!("EVENT 27 {METER}{side}"));
            }
            Some(Fault::Limit) => {
                say(out, &format!("EVENT 32 {OWN}{side}"));
                say(out, &format!("EVENT 33 {OWN}{side}"));
            }
            Some(Fault::Forge) => {
                if let Some(mut forged) = answer(payload) {
                    let last = forged.len() - 1;
                    forged[last] ^= 0x55;
                    self.datagram(false, 0x0E1A, &forged, out);
                }
            }
            Some(Fault::Noise) => out.extend_from_slice(b"\xFF\xFE\x00ERXUDP \r\n"),
            _ => {}
        }
        let answer = match &mut self.meter {
            Some(meter) => meter(payload),
            None => answer(payload),
        };
        let Some(answer) = answer.filter(|_| fault != Some(Fault::Checksum)) else { return };
        self.datagram(true, 0x0E1A, &answer, out);
        if fault == Some(Fault::LostByte) {
            // The last one before the end of the line.
            out.remove(out.len() - 3);
        }
    }

    fn datagram(&self, secured: bool, port: u16, payload: &[u8], out: &mut Vec<u8>) {
        let (secured, side) = (u8::from(secured), self.side());
        let length = payload.len();
        let header = format!("ERXUDP {METER} {OWN} {port:04X} {port:04X} {MAC} {secured}{side} {length:04X} ");
        out.extend_from_slice(header.as_bytes());
        if self.text {
            out.extend(payload.iter().flat_map(|byte| format!("{byte:02X}").into_bytes()));
        } else {
            out.extend_from_slice(payload);
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn say(out: &mut Vec<u8>, line: &str) {
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The values of the meter; E7 has a line end in it, for the binary form.
fn value(epc: u8) -> Option<Vec<u8>> {
    Some(match epc {
        0xD3 => vec![0, 0, 0, 1],
        0xD7 => vec![6],
        0xE0 => vec![0, 1, 0x0D, 0x0A],
        0xE1 => vec![1],
        0xE2 => {
            let mut history = vec![0, 0];
            history.extend((0..48_u32).flat_map(|slot| if slot < 40 { slot } else { 0xFFFF_FFFE }.to_be_bytes()));
            history
        }
        0xE5 => vec![0],
        0xE7 => vec![0, 0, 0x0D, 0x0A],
        0xE8 => vec![0, 15, 0x7F, 0xFE],
        0xEA => vec![0x07, 0xE9, 5, 17, 12, 30, 0, 0, 1, 0x0D, 0x0A],
        _ => return None,
    })
}

/// The meter's answer to a request.
fn answer(request: &[u8]) -> Option<Vec<u8>> {
    let Ok(Frame::Format1(request)) = Frame::parse(request) else {
        return None;
    };
    let is_set = request.esv() == Esv::SetC;
    let epcs: Vec<u8> = request.properties().map(|property| property.epc).collect();
    let known = epcs.iter().all(|epc| value(*epc).is_some());
    let esv = match (is_set, known) {
        (true, true) => Esv::SetRes,
        (true, false) => Esv::SetCSna,
        (false, true) => Esv::GetRes,
        (false, false) => Esv::GetSna,
    };
    let header = Header { tid: request.tid(), seoj: Eoj::new(2, 0x88, 1), deoj: request.seoj(), esv };
    let mut buffer = [0; 1232];
    let mut writer = FrameWriter::new(&mut buffer, header).ok()?;
    for epc in epcs {
        let edt = if is_set { Vec::new() } else { value(epc).unwrap_or_default() };
        writer.property(epc, &edt).ok()?;
    }
    Some(writer.finish().ok()?.to_vec())
}
