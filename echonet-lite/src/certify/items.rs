//! The table of what every object has to do, and how a row of it is examined.

use std::borrow::ToOwned;
use std::format;
use std::io;
use std::string::{String, ToString};
use std::vec::Vec;

use super::link::{Link, Why};
use super::pattern::allows;
use super::report::{Outcome, Report};
use crate::wire::Eoj;

/// A request from the service on, in hexadecimal digits, and the answers that are allowed, from the service on. `XX` is a
/// property that the object does not have, `3V` its operation status.
pub(super) struct Row {
    id: &'static str,
    requirement: &'static str,
    source: &'static str,
    request: &'static str,
    allowed: &'static str,
}

const fn row(
    id: &'static str,
    requirement: &'static str,
    source: &'static str,
    request: &'static str,
    allowed: &'static str,
) -> Row {
    Row { id, requirement, source, request, allowed }
}

const GET: &str = "Part II, 4.2.3.3";
const SET: &str = "Part II, 4.2.3.1, 4.2.3.2";
const INF: &str = "Part II, 4.2.3.4";
const SET_GET: &str = "Part II, 4.2.3.5";
const FRAME: &str = "Part II, 3.2";

/// Rows that every object answers, the node profile too.
pub(super) const ALL: &[Row] = &[
    row("get.one", "Get of a property is answered by Get_Res", GET, "62 01 80 00", "72 01 80 01 3?"),
    row(
        "get.order",
        "an answer keeps the order",
        GET,
        "62 03 8A 00 80 00 82 00",
        "72 03 8A 03 ?????? 80 01 3? 82 04 ????????",
    ),
    row("get.maps", "all three property maps can be read", GET, "62 03 9D 00 9E 00 9F 00", "72 03 9D *"),
    row("get.unknown", "Get of a property that is not there is refused", GET, "62 01 XX 00", "52 01 XX 00"),
    row("get.low", "Get of a code below 80 is refused", GET, "62 01 7F 00", "52 01 7F 00"),
    row("get.mixed", "a refusal has the values of what can be read", GET, "62 02 80 00 XX 00", "52 02 80 01 3? XX 00"),
    row("get.mixed-first", "a refusal keeps the order", GET, "62 02 XX 00 80 00", "52 02 XX 00 80 01 3?"),
    row(
        "get.mixed-three",
        "a refusal keeps the number",
        GET,
        "62 03 80 00 XX 00 8A 00",
        "52 03 80 01 3? XX 00 8A 03 ??????",
    ),
    row("infc", "INFC is confirmed", INF, "74 01 80 01 30", "7A 01 80 00"),
    row(
        "infc.two",
        "INFC of several properties is confirmed as a whole",
        INF,
        "74 02 80 01 30 88 01 42",
        "7A 02 80 00 88 00",
    ),
    row("infc.unknown", "INFC of a property that is not there is confirmed", INF, "74 01 XX 01 30", "7A 01 XX 00"),
    row("infreq.unknown", "INF_REQ of a property that is not there is refused", INF, "63 01 XX 00", "53 01 XX 00"),
    row(
        "infreq.mixed",
        "INF_REQ is refused with the values of what can be read",
        INF,
        "63 02 80 00 XX 00",
        "53 02 80 01 3? XX 00",
    ),
];

/// Writes that every object refuses.
pub(super) const REFUSED: &[Row] = &[
    row(
        "setc.unknown",
        "SetC of a property that is not there is refused with the value",
        SET,
        "61 01 XX 01 30",
        "51 01 XX 01 30",
    ),
    row("setc.readonly", "SetC of what can only be read is refused", SET, "61 01 8A 03 000077", "51 01 8A 03 000077"),
    row("setc.map", "SetC of a property map is refused", SET, "61 01 9F 01 00", "51 01 9F 01 00"),
    row("setc.low", "SetC of a code below 80 is refused", SET, "61 01 7F 01 30", "51 01 7F 01 30"),
    row(
        "setc.order",
        "a refusal keeps order and values",
        SET,
        "61 02 XX 01 30 8A 03 000077",
        "51 02 XX 01 30 8A 03 000077",
    ),
    row("seti.unknown", "SetI of a property that is not there is refused", SET, "60 01 XX 01 30", "50 01 XX 01 30"),
    row("seti.readonly", "SetI of what can only be read is refused", SET, "60 01 8A 03 000077", "50 01 8A 03 000077"),
    row(
        "seti.order",
        "a refusal of SetI keeps order and values",
        SET,
        "60 02 8A 03 000077 XX 01 30",
        "50 02 8A 03 000077 XX 01 30",
    ),
    row(
        "setget.unknown",
        "SetGet is refused with what could be read, or with two empty lists",
        SET_GET,
        "6E 01 XX 01 30 01 80 00",
        "5E 00 00 or 5E 01 XX 01 30 01 80 01 3?",
    ),
    row(
        "setget.both-unknown",
        "SetGet of what is not there is refused",
        SET_GET,
        "6E 01 XX 01 30 01 XX 00",
        "5E 00 00 or 5E 01 XX 01 30 01 XX 00",
    ),
];

/// Writes of the operation status that every device answers.
pub(super) const WRITES: &[Row] = &[
    row(
        "setc.own",
        "SetC of the operation status is confirmed without the value",
        SET,
        "61 01 80 01 3V",
        "71 01 80 00",
    ),
    row("setc.twice", "the same property twice is written twice", SET, "61 02 80 01 3V 80 01 3V", "71 02 80 00 80 00"),
    row(
        "setc.mixed",
        "what is accepted in a refusal has no value",
        SET,
        "61 02 80 01 3V XX 01 30",
        "51 02 80 00 XX 01 30",
    ),
    row("setc.mixed-first", "a refusal keeps the order", SET, "61 02 XX 01 30 80 01 3V", "51 02 XX 01 30 80 00"),
    row("setc.value", "SetC of a value that there is not is refused", SET, "61 01 80 01 00", "51 01 80 01 00"),
    row(
        "setget.own",
        "SetGet writes, then reads, or is refused with two empty lists",
        SET_GET,
        "6E 01 80 01 3V 01 80 00",
        "7E 01 80 00 01 80 01 3V or 5E 00 00",
    ),
];

/// Frames that are not answered; `T` stands for the identifier, `O` for the object.
const SILENCE: &[(&str, &str, &str)] = &[
    ("silence.esv-64", "an unknown service", "1081 T 05FF01 O 64 01 80 00"),
    ("silence.esv-00", "service 00", "1081 T 05FF01 O 00 01 80 00"),
    ("silence.esv-6f", "service 6F", "1081 T 05FF01 O 6F 01 80 00"),
    ("silence.esv-ff", "service FF", "1081 T 05FF01 O FF 01 80 00"),
    ("silence.opc-0", "a request without properties", "1081 T 05FF01 O 62 00"),
    ("silence.opc-more", "fewer properties than OPC says", "1081 T 05FF01 O 62 02 80 00"),
    ("silence.opc-fewer", "more properties than OPC says", "1081 T 05FF01 O 62 01 80 00 81 00"),
    ("silence.pdc-beyond", "a value that ends beyond the frame", "1081 T 05FF01 O 61 01 80 02 30"),
    ("silence.trailing", "a byte behind the last property", "1081 T 05FF01 O 62 01 80 00 00"),
    ("silence.cut-epc", "a frame that ends in a property", "1081 T 05FF01 O 62 01 80"),
    ("silence.cut-opc", "a frame that ends before OPC", "1081 T 05FF01 O 62"),
    ("silence.cut-eoj", "a frame that ends in an object", "1081 T 05FF01"),
    ("silence.cut-tid", "a frame of four bytes", "1081 T"),
    ("silence.ehd1", "another protocol", "1181 T 05FF01 O 62 01 80 00"),
    ("silence.ehd1-old", "the older protocol", "8081 T 05FF01 O 62 01 80 00"),
    ("silence.ehd2", "an unknown format", "1083 T 05FF01 O 62 01 80 00"),
    ("silence.format-2", "a message of any format", "1082 T 05FF01 O 62 01 80 00"),
    ("silence.setget-cut", "SetGet without its second list", "1081 T 05FF01 O 6E 01 80 01 30"),
    ("silence.setget-empty", "SetGet with an empty second list", "1081 T 05FF01 O 6E 01 80 01 30 00"),
    ("silence.get-res", "an answer to Get", "1081 T 05FF01 O 72 01 80 01 30"),
    ("silence.set-res", "an answer to SetC", "1081 T 05FF01 O 71 01 80 00"),
    ("silence.infc-res", "a confirmation", "1081 T 05FF01 O 7A 01 80 00"),
    ("silence.get-sna", "a refusal of Get", "1081 T 05FF01 O 52 01 80 00"),
    ("silence.setc-sna", "a refusal of SetC", "1081 T 05FF01 O 51 01 80 01 30"),
    ("silence.inf", "a notification", "1081 T 05FF01 O 73 01 80 01 30"),
    ("silence.class", "an object of a class that is not there", "1081 T 05FF01 00FE01 62 01 80 00"),
    ("silence.instance", "an instance that is not there", "1081 T 05FF01 A 62 01 80 00"),
    ("silence.send-only", "the profile of nodes that only send", "1081 T 05FF01 0EF002 62 01 80 00"),
];

/// Values that the rows of an object have in common.
pub(super) struct Place {
    pub(super) eoj: Eoj,
    /// A property that it does not have.
    pub(super) absent: u8,
    /// Its operation status.
    pub(super) status: u8,
    /// An instance that is not there.
    pub(super) stranger: Eoj,
}

/// Examines the rows of a table one after the other.
pub(super) fn examine(link: &mut Link<'_>, place: &Place, rows: &[Row], report: &mut Report) -> io::Result<()> {
    for row in rows {
        let fill = |text: &str| {
            text.replace("XX", &format!("{:02X}", place.absent)).replace("3V", &format!("{:02X}", place.status))
        };
        let answer = ask(link, place.eoj, &hex(&fill(row.request)))?;
        let outcome = verdict(answer.and_then(|body| allowed(&fill(row.allowed), &body)));
        link.add(report, place.eoj, row.id, row.requirement, row.source, outcome);
    }
    Ok(())
}

/// Examines what is not answered, all at once; twice, because a datagram can be lost.
pub(super) fn examine_silence(link: &mut Link<'_>, place: &Place, report: &mut Report) -> io::Result<()> {
    let mut answered: Vec<Option<String>> = std::vec![None; SILENCE.len()];
    for _ in 0..2 {
        let mut sent = Vec::new();
        for (_, _, frame) in SILENCE {
            let tid = link.tid();
            let frame = frame.replace('T', &format!("{tid:04X}")).replace('O', &place.eoj.to_string());
            // Letters of digits are capitals, so `A` alone between blanks is the stranger.
            link.send(hex(&frame.replace(" A ", &format!(" {} ", place.stranger))))?;
            sent.push(tid);
        }
        let came = link.gather(link.settings.silence.min(link.patience(true)))?;
        for (tid, answered) in sent.iter().zip(&mut answered) {
            let answer = came.iter().find(|frame| frame.get(2..4) == Some(&tid.to_be_bytes()));
            *answered = answered.take().or_else(|| answer.map(|frame| digits(frame)));
        }
    }
    for ((id, what, _), answered) in SILENCE.iter().zip(answered) {
        let outcome = answered.map_or(Outcome::Passed, |frame| Outcome::Failed(format!("answered: {frame}")));
        report.add(place.eoj, *id, format!("not answered: {what}"), FRAME, outcome);
    }
    Ok(())
}

/// Examines whether the node is still there after all that was no frame.
pub(super) fn examine_survival(link: &mut Link<'_>, report: &mut Report) -> io::Result<()> {
    let node = Eoj::NODE_PROFILE;
    let outcome = match read(link, node, 0x80)?.map(drop) {
        Err(Why::Undecided(why)) => Outcome::Failed(why),
        answered => verdict(answered),
    };
    link.add(report, node, "survives", "malformed frames do not end it", FRAME, outcome);
    Ok(())
}

/// Makes a request and returns the bytes of its answer from the service on, or the fault of the answer.
pub(super) fn ask(link: &mut Link<'_>, eoj: Eoj, body: &[u8]) -> io::Result<Result<Vec<u8>, Why>> {
    match link.ask(eoj, body)? {
        Ok((tid, frame)) => Ok(headed(&frame, tid, eoj).map_err(Why::Wrong)),
        Err(why) => unanswered(link, why).map(Err),
    }
}

/// Silence is a verdict if the node answers other requests, or has answered nothing since this one.
fn unanswered(link: &mut Link<'_>, why: Why) -> io::Result<Why> {
    let was_gone = link.is_gone();
    Ok(match why {
        Why::Unanswered(what) if !link.is_alive()? => {
            if was_gone {
                Why::Undecided(format!("{what}; the node answers nothing any more"))
            } else {
                Why::Wrong("the node has answered nothing since this was asked".into())
            }
        }
        why => why,
    })
}

/// Examines whether a request is answered once. A network that doubles datagrams does not do so each time.
pub(super) fn examine_once(link: &mut Link<'_>, eoj: Eoj, report: &mut Report) -> io::Result<()> {
    const RUNS: usize = 10;
    let (mut doubled, mut most, mut strange) = (0, 0, Vec::new());
    let mut outcome = None;
    for _ in 0..RUNS {
        let tid = link.tid();
        link.send(super::link::frame(tid, eoj, &[0x62, 1, 0x80, 0]))?;
        let time = link.settings.silence.min(link.patience(true));
        let is_answer = |frame: &&Vec<u8>| frame.get(2..4) == Some(&tid.to_be_bytes());
        let mut came = link.gather(time)?;
        if !came.is_empty() && !came.iter().any(|frame| is_answer(&frame)) {
            // Answers to the runs before, if the node is slow: then the right one comes within the time that it has.
            came.extend(link.gather(link.settings.answer.saturating_sub(time))?);
        }
        match came.iter().filter(is_answer).count() {
            0 => strange.extend(came.first().and_then(|frame| frame.get(2..4)).map(|told| (tid, digits(told)))),
            1 => {
                outcome = Some(Outcome::Passed);
                break;
            }
            answers => (doubled, most) = (doubled + 1, most.max(answers)),
        }
    }
    let outcome = outcome.unwrap_or_else(|| match (doubled, &strange[..]) {
        (0, [.., (tid, told)]) if !link.is_slow && strange.len() > RUNS / 2 => {
            Outcome::Failed(format!("TID is {told}, not {tid:04X}, and alike in {} of {RUNS} runs", strange.len()))
        }
        (0, _) => Outcome::Undecided(format!("no answer to {RUNS} requests")),
        _ => Outcome::Failed(format!("{most} answers, in {doubled} of {RUNS} runs several")),
    });
    link.add(report, eoj, "get.once", "a request has one answer", GET, outcome);
    Ok(())
}

/// The rest of an answer behind the right head.
fn headed(frame: &[u8], tid: u16, eoj: Eoj) -> Result<Vec<u8>, String> {
    let expected = [&[0x10, 0x81][..], &tid.to_be_bytes(), &eoj.to_bytes(), &Eoj::CONTROLLER.to_bytes()].concat();
    for (name, part) in [("EHD", 0..2), ("TID", 2..4), ("SEOJ", 4..7), ("DEOJ", 7..10)] {
        let found = frame.get(part.clone()).unwrap_or_default();
        if found != &expected[part.clone()] {
            return Err(format!("{name} is {}, not {}", digits(found), digits(&expected[part])));
        }
    }
    Ok(frame[10..].to_vec())
}

/// Whether an answer is among those that are allowed.
pub(super) fn allowed(pattern: &str, body: &[u8]) -> Result<(), Why> {
    if allows(pattern, body) { Ok(()) } else { Err(Why::Wrong(format!("{} is not {pattern}", digits(body)))) }
}

pub(super) fn verdict(result: Result<(), Why>) -> Outcome {
    match result {
        Ok(()) => Outcome::Passed,
        Err(Why::Wrong(why) | Why::Unanswered(why)) => Outcome::Failed(why),
        Err(Why::Undecided(why)) => Outcome::Undecided(why),
    }
}

/// The value of the one property that Get_Res or INF tells.
pub(super) fn value(body: &[u8], epc: u8) -> Result<Vec<u8>, Why> {
    let wrong = match body {
        [0x72 | 0x73, 1, of, length, edt @ ..] if *of == epc && edt.len() == usize::from(*length) => {
            return Ok(edt.to_vec());
        }
        [0x72 | 0x73, ..] => format!("{} is not the value of {epc:02X}", digits(body)),
        _ => format!("refused: {}", digits(body)),
    };
    Err(Why::Wrong(wrong))
}

/// Reads one property.
pub(super) fn read(link: &mut Link<'_>, eoj: Eoj, epc: u8) -> io::Result<Result<Vec<u8>, Why>> {
    Ok(ask(link, eoj, &[0x62, 1, epc, 0])?.and_then(|body| value(&body, epc)))
}

/// Bytes of hexadecimal digits; the texts are the tables' own.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|letter| letter.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

pub(super) fn digits(bytes: &[u8]) -> String {
    if bytes.is_empty() { "nothing".to_owned() } else { bytes.iter().map(|byte| format!("{byte:02X}")).collect() }
}

/// Asks for an announcement and returns its bytes from the service on. The announcement has the identifier of the
/// request (Part II, 3.2.2). One with another identifier does not count: the node sends it for a reason of its own,
/// such as an earlier write.
pub(super) fn announced(link: &mut Link<'_>, eoj: Eoj, body: &[u8], epc: u8) -> io::Result<Result<Vec<u8>, Why>> {
    let first = link.last_tid().wrapping_add(1);
    let is_answer = move |frame: &[u8], last: u16| {
        let tid = frame.get(2..4).map(|tid| u16::from_be_bytes([tid[0], tid[1]]));
        tid.is_some_and(|tid| (first..=last).contains(&tid))
    };
    announced_if(link, eoj, &[body], epc, is_answer)
}

/// Sends messages in turn until the node announces something of its own accord, and returns that from the service on.
pub(super) fn announced_by(
    link: &mut Link<'_>,
    eoj: Eoj,
    bodies: &[&[u8]],
    epc: u8,
) -> io::Result<Result<Vec<u8>, Why>> {
    announced_if(link, eoj, bodies, epc, |_, _| true)
}

fn announced_if(
    link: &mut Link<'_>,
    eoj: Eoj,
    bodies: &[&[u8]],
    epc: u8,
    is_it: impl Fn(&[u8], u16) -> bool,
) -> io::Result<Result<Vec<u8>, Why>> {
    let is_news = |frame: &[u8], tid: u16| {
        frame.get(4..7) == Some(&eoj.to_bytes())
            && frame.get(10) == Some(&0x73)
            && frame.get(12) == Some(&epc)
            && is_it(frame, tid)
    };
    let tries = link.tries() as usize;
    link.drain()?;
    for (number, body) in bodies.iter().cycle().take(tries * bodies.len()).enumerate() {
        link.repeated += u64::from(number > 0);
        if let Some(frame) = link.hear(eoj, body, is_news)? {
            return Ok(Ok(frame[10..].to_vec()));
        }
    }
    let why = Why::Unanswered(format!("nothing announced in {} tries", tries * bodies.len()));
    unanswered(link, why).map(Err)
}
