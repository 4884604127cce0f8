//! The light's output in qemu, byte for byte.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::net::sockopt::set_ip_multicast_if;

use super::build::{self, Binary, Toolchain};
use super::ethernet::{GROUP, LIGHT, Link, TOOL};
use super::qemu::{self, Board, Line};
use super::{needed, size};

/// Most of the stack that the light may need for all of this.
const MAX_STACK: usize = 2 * 1024;
/// After this the light takes an incomplete frame for given up; its own limit is 50 ms.
const PAUSE: Duration = Duration::from_millis(150);
/// The group of all nodes.
const MULTICAST: &str = "224.0.23.0";
/// The instance list: one light. `..` is any byte, here the light's own transaction number.
const ANNOUNCEMENT: &str = "1081.... 0EF001 0EF001 73 01 D504 01029001";

/// Requests and answers, in hex with spaces for the reader.
#[rustfmt::skip]
const TURNS: &[(&str, &[&str])] = &[
    // Get: one property, several, the node profile's, the maps, an instance 0.
    ("1081 0001 05FF01 029001 62 01 8000", &["1081 0001 029001 05FF01 72 01 800130"]),
    ("1081 0002 05FF01 029001 62 03 8000 B000 B600", &["1081 0002 029001 05FF01 72 03 800130 B00164 B60142"]),
    ("1081 0003 05FF01 0EF001 62 03 D600 D400 8200",
        &["1081 0003 0EF001 05FF01 72 03 D60401029001 D4020002 8204010E0100"]),
    ("1081 0004 05FF01 029001 62 03 9D00 9E00 9F00",
        &["1081 0004 029001 05FF01 72 03 9D0504808188B0 9E05048081B0B6 9F0B0A808182888A9D9E9FB0B6"]),
    ("1081 0005 05FF01 029000 62 01 8000", &["1081 0005 029001 05FF01 72 01 800130"]),
    // SetC: accepted and announced, the same again (no change, no announcement), out of range, read back.
    ("1081 0006 05FF01 029001 61 02 800131 B00132",
        &["1081 0006 029001 05FF01 71 02 8000 B000", "1081.... 029001 0EF001 73 02 800131 B00132"]),
    ("1081 0007 05FF01 029001 61 01 B00132", &["1081 0007 029001 05FF01 71 01 B000"]),
    ("1081 0008 05FF01 029001 61 02 B00165 B60142", &["1081 0008 029001 05FF01 51 02 B00165 B600"]),
    ("1081 0009 05FF01 029001 62 02 8000 B000", &["1081 0009 029001 05FF01 72 02 800131 B00132"]),
    // SetI, silent when it succeeds; SetGet.
    ("1081 000A 05FF01 029001 60 01 800131", &[]),
    ("1081 000B 05FF01 029001 60 01 800132", &["1081 000B 029001 05FF01 50 01 800132"]),
    ("1081 000C 05FF01 029001 6E 01 800130 02 8000 B000",
        &["1081 000C 029001 05FF01 7E 01 8000 02 800130 B00132", "1081.... 029001 0EF001 73 01 800130"]),
    // INF_REQ: the answer is a notification to all; one that fails goes to the asking node.
    ("1081 000D 05FF01 029001 63 01 8000", &["1081 000D 029001 05FF01 73 01 800130"]),
    ("1081 000E 05FF01 0EF001 63 01 D500", &["1081 000E 0EF001 05FF01 73 01 D50401029001"]),
    ("1081 000F 05FF01 029001 63 02 8000 E000", &["1081 000F 029001 05FF01 53 02 800130 E000"]),
    // Get refused; no such object.
    ("1081 0010 05FF01 029001 62 02 E000 8000", &["1081 0010 029001 05FF01 52 02 E000 800130"]),
    ("1081 0011 05FF01 029002 62 01 8000", &[]),
    ("1081 0012 05FF01 028001 62 01 8000", &[]),
];

/// Proves that nothing else was said before, and that the light still answers.
const PROBE: (&str, &str) = ("1081 0020 05FF01 029001 62 01 8000", "1081 0020 029001 05FF01 72 01 800130");

/// Invalid and incomplete frames: silence, and the light goes on.
const NOISE: &[&str] = &[
    "00",
    "1081 0001 05FF01 029001 62",
    "1081 0001 05FF01 029001 6E 01 8000",
    "1081 0001 05FF01 029001 62 00",
    "1082 0001 1081 0001 05FF01 029001 62 01 8000",
    "1081 0001 05FF01 029001 62 FF 80FF",
];

/// The image and a board that runs it; or nothing, where that is not possible and need not be.
fn start(binary: &Binary, line: &Line) -> Result<Option<(size::Image, Board)>> {
    let Some(toolchain) = needed(Toolchain::find())? else { return Ok(None) };
    if needed(qemu::find())?.is_none() {
        return Ok(None);
    }
    let image = toolchain.build(binary)?;
    Ok(Some((size::Image::read(&image)?, Board::start(&image, line)?)))
}

#[test]
fn the_light_answers_on_its_serial_line() -> Result<()> {
    let Some((image, mut board)) = start(&build::SERIAL, &Line::Serial)? else { return Ok(()) };
    expect(&mut board, ANNOUNCEMENT)?;
    for (request, answers) in TURNS.iter().chain([&(PROBE.0, &[PROBE.1][..])]) {
        board.line.write_all(&bytes(request))?;
        for answer in *answers {
            expect(&mut board, answer).with_context(|| format!("after {request}"))?;
        }
    }
    for noise in NOISE {
        board.line.write_all(&bytes(noise))?;
        thread::sleep(PAUSE);
        board.line.write_all(&bytes(PROBE.0))?;
        expect(&mut board, PROBE.1).with_context(|| format!("after {noise}"))?;
    }
    // On a line several frames may come at once, or one in pieces.
    let probe = bytes(PROBE.0);
    board.line.write_all(&probe.repeat(3))?;
    for _ in 0..3 {
        expect(&mut board, PROBE.1)?;
    }
    for half in probe.chunks(7) {
        board.line.write_all(half)?;
        thread::sleep(Duration::from_millis(5));
    }
    expect(&mut board, PROBE.1)?;
    check_ram(&mut board, &image)
}

#[test]
fn the_light_answers_on_ethernet() -> Result<()> {
    let Some((_, board)) = start(&build::ETHERNET, &Line::Ethernet)? else { return Ok(()) };
    let mut link = Link::new(board.line.try_clone()?);
    receive(&mut link, ANNOUNCEMENT)?;
    converse(&mut link, TURNS)?;
    for noise in NOISE {
        link.send(LIGHT, &bytes(noise))?;
        link.send(LIGHT, &bytes(PROBE.0))?;
        receive(&mut link, PROBE.1).with_context(|| format!("after {noise}"))?;
    }
    // To all nodes: answered after a random moment, INF_REQ to all again.
    link.send(GROUP, &bytes(PROBE.0))?;
    receive(&mut link, PROBE.1)?;
    link.send(GROUP, &bytes("1081 0021 05FF01 0EF001 63 01 D500"))?;
    receive(&mut link, "1081 0021 0EF001 05FF01 73 01 D50401029001")
}

/// Requests to the light and the thermometer on embassy, and their answers.
#[rustfmt::skip]
const EMBASSY_TURNS: &[(&str, &[&str])] = &[
    ("1081 0001 05FF01 029001 62 03 8000 B000 B600", &["1081 0001 029001 05FF01 72 03 800130 B00164 B60142"]),
    ("1081 0002 05FF01 001101 62 02 8000 E000", &["1081 0002 001101 05FF01 72 02 800130 E00200D7"]),
    ("1081 0003 05FF01 0EF001 62 02 D600 D400", &["1081 0003 0EF001 05FF01 72 02 D60702029001001101 D4020003"]),
    ("1081 0004 05FF01 029001 61 02 800131 B00132",
        &["1081 0004 029001 05FF01 71 02 8000 B000", "1081.... 029001 0EF001 73 02 800131 B00132"]),
    ("1081 0005 05FF01 029001 61 02 B00165 B60142", &["1081 0005 029001 05FF01 51 02 B00165 B600"]),
    ("1081 0006 05FF01 001101 61 01 E0020000", &["1081 0006 001101 05FF01 51 01 E0020000"]),
    ("1081 0007 05FF01 029001 62 02 8000 B000", &["1081 0007 029001 05FF01 72 02 800131 B00132"]),
];

#[test]
fn the_light_on_embassy_answers() -> Result<()> {
    let Some((_, board)) = start(&build::EMBASSY, &Line::Ethernet)? else { return Ok(()) };
    let mut link = Link::new(board.line.try_clone()?);
    receive(&mut link, "1081.... 0EF001 0EF001 73 01 D50702029001001101")?;
    converse(&mut link, EMBASSY_TURNS)?;
    // To all nodes: answered after a random moment.
    link.send(GROUP, &bytes("1081 0008 05FF01 001101 62 01 E000"))?;
    receive(&mut link, "1081 0008 001101 05FF01 72 01 E00200D7")
}

/// Requests to the light on the sockets of `std`, and the answers to the asking node.
#[rustfmt::skip]
const IDF_TURNS: &[(&str, &str)] = &[
    ("1081 0001 05FF01 029001 62 03 8000 B000 B600", "1081 0001 029001 05FF01 72 03 800130 B00164 B60142"),
    ("1081 0002 05FF01 0EF001 62 02 D600 D400", "1081 0002 0EF001 05FF01 72 02 D60401029001 D4020002"),
    ("1081 0003 05FF01 029001 61 02 800131 B00132", "1081 0003 029001 05FF01 71 02 8000 B000"),
    ("1081 0004 05FF01 029001 61 02 B00165 B60142", "1081 0004 029001 05FF01 51 02 B00165 B600"),
    ("1081 0005 05FF01 029001 62 02 8000 B000", "1081 0005 029001 05FF01 72 02 800131 B00132"),
];

#[test]
fn the_light_on_std_sockets_answers() -> Result<()> {
    const LIGHT: &str = "127.0.78.1";
    let port = test_peers::free_port();
    let mut light = Command::new(build::build_idf()?).arg(format!("{LIGHT}:{port}")).spawn()?;
    let tool = UdpSocket::bind("127.0.78.2:0")?;
    set_ip_multicast_if(&tool, &Ipv4Addr::new(127, 0, 78, 2))?;
    // Answers to all come after a random moment.
    tool.set_read_timeout(Some(Duration::from_secs(5)))?;
    // The first question is refused, and asked again, until the light is there.
    let ask = |to: &str, request: &str| {
        let mut answer = [0; 512];
        for _ in 0..100 {
            tool.send_to(&bytes(request), (to, port))?;
            if let Ok(length) = tool.recv(&mut answer) {
                return Ok(answer[..length].to_vec());
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("no answer of {to} to {request}")
    };
    let to_all = (MULTICAST, IDF_TURNS[4].0, IDF_TURNS[4].1);
    let turns = IDF_TURNS.iter().map(|(request, answer)| (LIGHT, *request, *answer)).chain([to_all]);
    let answers: Result<Vec<_>> = turns.clone().map(|(to, request, _)| ask(to, request)).collect();
    light.kill()?;
    light.wait()?;
    answers?.iter().zip(turns).for_each(|(answer, (.., wanted))| assert_matches(answer, wanted));
    Ok(())
}

/// Statics and the deepest stack so far. The RAM was zero at the start, and the stack grows towards the statics.
fn check_ram(board: &mut Board, image: &size::Image) -> Result<()> {
    let statics = usize::try_from(image.ram())?;
    let ram = board.ram()?;
    let untouched = ram[statics..].iter().take_while(|byte| **byte == 0).count();
    let stack = ram.len() - statics - untouched;
    println!("RAM: {statics} bytes of statics, {stack} bytes of stack");
    assert!(stack <= MAX_STACK, "{stack} bytes of stack, more than {MAX_STACK}");
    Ok(())
}

/// Reads as many bytes as the pattern has, and compares them.
fn expect(board: &mut Board, pattern: &str) -> Result<()> {
    let mut answer = vec![0; digits(pattern).len()];
    board.line.read_exact(&mut answer).with_context(|| format!("{pattern} did not come"))?;
    assert_matches(&answer, pattern);
    Ok(())
}

/// Sends each request to the light, and receives its answers.
fn converse(link: &mut Link, turns: &[(&str, &[&str])]) -> Result<()> {
    for (request, answers) in turns {
        link.send(LIGHT, &bytes(request))?;
        for answer in *answers {
            receive(link, answer).with_context(|| format!("after {request}"))?;
        }
    }
    Ok(())
}

/// The next datagram of the light: notifications go to all, answers to the asking node.
fn receive(link: &mut Link, pattern: &str) -> Result<()> {
    let (to, datagram) = link.receive().with_context(|| format!("{pattern} did not come"))?;
    assert_matches(&datagram, pattern);
    let is_notification = datagram[10] == 0x73;
    assert_eq!(to, if is_notification { GROUP } else { TOOL }, "{pattern}");
    Ok(())
}

fn assert_matches(answer: &[u8], pattern: &str) {
    let pattern = digits(pattern);
    let same = pattern.len() == answer.len()
        && pattern.iter().zip(answer).all(|(wanted, byte)| wanted.is_none_or(|wanted| wanted == *byte));
    assert!(same, "{answer:02X?} instead of {pattern:02X?}");
}

/// A request's bytes.
fn bytes(hex: &str) -> Vec<u8> {
    digits(hex).into_iter().map(|byte| byte.expect("a request is complete")).collect()
}

/// Pairs of hexadecimal digits; `..` is none.
fn digits(hex: &str) -> Vec<Option<u8>> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).ok()).collect()
}
