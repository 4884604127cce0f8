//! Captured datagrams: written as pcap, read from it or from lines of hexadecimal bytes.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use echonet_lite::wire::{MessageLength, message_length};

use crate::failure::Failure;
use crate::names;
use echonet_lite::emulate::Moment;

/// Link types of the pcap format: <https://www.tcpdump.org/linktypes.html>.
mod link {
    pub(super) const NULL: u32 = 0;
    pub(super) const ETHERNET: u32 = 1;
    pub(super) const RAW_BSD: u32 = 12;
    pub(super) const RAW: u32 = 101;
    pub(super) const LINUX_SLL: u32 = 113;
    pub(super) const LINUX_SLL2: u32 = 276;
}

const UDP: u8 = 17;
const TCP: u8 = 6;
/// Microseconds, in the byte order of the writer.
const MAGIC: u32 = 0xA1B2_C3D4;
const MAGIC_NANOSECONDS: u32 = 0xA1B2_3C4D;
const MAGIC_PCAPNG: u32 = 0x0A0D_0D0A;
/// The largest packet.
const SNAP: u32 = 65_535;

/// A frame, or bytes that should be one, and where they went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) time: Option<Moment>,
    pub(crate) way: Option<(SocketAddr, SocketAddr)>,
    pub(crate) bytes: Vec<u8>,
}

/// Writes datagrams as IP packets without link layer.
pub(crate) struct Writer<W: Write>(W);

impl<W: Write> Writer<W> {
    pub(crate) fn new(mut file: W) -> io::Result<Self> {
        let [major, minor] = [2_u16, 4].map(u16::to_le_bytes);
        let words = [0, 0, SNAP, link::RAW].map(u32::to_le_bytes);
        file.write_all(&[&MAGIC.to_le_bytes()[..], &major, &minor, words.as_flattened()].concat())?;
        file.flush()?;
        Ok(Self(file))
    }

    pub(crate) fn write(&mut self, time: Moment, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> io::Result<()> {
        let packet = datagram(from, to, bytes);
        let (seconds, micros, length) = (time.0.as_secs() as u32, time.0.subsec_micros(), packet.len() as u32);
        let head = [seconds, micros, length, length].map(u32::to_le_bytes);
        self.0.write_all(&[head.as_flattened(), &packet].concat())?;
        self.0.flush()
    }
}

/// An IP packet with a UDP datagram.
fn datagram(from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let length = (8 + bytes.len()) as u16;
    let [source, target] = [from.port(), to.port()].map(u16::to_be_bytes);
    let mut udp = [&source[..], &target, &length.to_be_bytes(), &[0, 0], bytes].concat();
    let (IpAddr::V4(from), IpAddr::V4(to)) = (from.ip(), to.ip()) else {
        let octets = |ip| match ip {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        let addresses = [octets(from.ip()), octets(to.ip())].concat();
        let pseudo = [&addresses[..], &u32::from(length).to_be_bytes(), &[0, 0, 0, UDP], &udp].concat();
        // By IPv6 there must be a sum, and zero stands for none.
        let sum = match checksum(&pseudo) {
            0 => 0xFFFF,
            sum => sum,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        return [&[0x60, 0, 0, 0], &length.to_be_bytes()[..], &[UDP, 1], &addresses, &udp].concat();
    };
    let total = (20 + length).to_be_bytes();
    let mut header = [&[0x45, 0], &total[..], &[0, 0, 0, 0, 1, UDP, 0, 0], &from.octets(), &to.octets()].concat();
    let sum = checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    [header, udp].concat()
}

/// The sum of the internet protocols (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

/// All frames to or from `port` of a capture, or of lines of hexadecimal bytes.
pub(crate) fn read(file: &[u8], port: u16) -> Result<Vec<Packet>, Failure> {
    let magic = file.first_chunk().map(|magic| (u32::from_le_bytes(*magic), u32::from_be_bytes(*magic)));
    match magic {
        Some((MAGIC | MAGIC_NANOSECONDS, _)) => pcap(file, port, u32::from_le_bytes),
        Some((_, MAGIC | MAGIC_NANOSECONDS)) => pcap(file, port, u32::from_be_bytes),
        Some((MAGIC_PCAPNG, _)) => {
            Err(Failure::Input("this is pcapng; make pcap of it by: editcap -F pcap IN OUT".to_owned()))
        }
        _ => lines(file),
    }
}

fn lines(file: &[u8]) -> Result<Vec<Packet>, Failure> {
    let text = std::str::from_utf8(file)
        .map_err(|_| Failure::Input("neither a pcap file nor lines of hexadecimal bytes".to_owned()))?;
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| match names::bytes(line) {
            Ok(bytes) => Ok(Packet { time: None, way: None, bytes }),
            Err(error) => Err(Failure::Input(format!("line {}: {error}", number + 1))),
        })
        .collect()
}

fn pcap(file: &[u8], port: u16, number: fn([u8; 4]) -> u32) -> Result<Vec<Packet>, Failure> {
    let word = |bytes: &[u8], at: usize| bytes.get(at..)?.first_chunk().copied().map(number);
    let (Some(magic), Some(link), Some(mut rest)) = (word(file, 0), word(file, 20), file.get(24..)) else {
        return Err(Failure::Input("the capture ends inside its header".to_owned()));
    };
    // The upper bits say how long a checksum of the link layer is.
    let link = link & 0xFFFF;
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let at = file.len() - rest.len();
        let record = (|| {
            let length = word(rest, 8)? as usize;
            let data = rest.get(16..)?.get(..length)?;
            Some((word(rest, 0)?, word(rest, 4)?, data))
        })();
        let Some((seconds, fraction, data)) = record else {
            return Err(Failure::Input(format!("byte {at}: the capture ends inside a packet")));
        };
        let nanos = if magic == MAGIC { fraction.saturating_mul(1000) } else { fraction };
        let time = Moment(Duration::from_secs(seconds.into()) + Duration::from_nanos(nanos.into()));
        let ip = network_layer(link, data)
            .ok_or_else(|| Failure::Input(format!("the capture's link type {link} is not known here")))?;
        packets.extend(transport(ip, port).into_iter().map(|(way, bytes)| Packet {
            time: Some(time),
            way: Some(way),
            bytes,
        }));
        rest = &rest[16 + data.len()..];
    }
    Ok(packets)
}

/// The payload of a link-layer frame, if that is IP; nothing of an unknown link type.
fn network_layer(link: u32, data: &[u8]) -> Option<&[u8]> {
    let skipped = match link {
        link::NULL => 4,
        link::ETHERNET => {
            // Each VLAN tag puts four bytes in front of the type.
            let mut at = 12;
            while matches!(data.get(at..at + 2), Some([0x81, 0x00] | [0x88, 0xA8])) {
                at += 4;
            }
            at + 2
        }
        link::RAW | link::RAW_BSD => 0,
        link::LINUX_SLL => 16,
        link::LINUX_SLL2 => 20,
        _ => return None,
    };
    Some(data.get(skipped..).unwrap_or_default())
}

type Way = (SocketAddr, SocketAddr);

/// The frames in an IP packet: one in a datagram, perhaps several in a segment of a TCP stream.
fn transport(ip: &[u8], port: u16) -> Vec<(Way, Vec<u8>)> {
    let frames = || {
        let (protocol, from, to, payload) = internet(ip)?;
        let word = |at: usize| payload.get(at..)?.first_chunk().copied().map(u16::from_be_bytes);
        let (source, target) = (word(0)?, word(2)?);
        if source != port && target != port {
            return None;
        }
        let way = (SocketAddr::new(from, source), SocketAddr::new(to, target));
        if protocol == UDP {
            let length = usize::from(word(4)?);
            return Some(vec![(way, payload.get(8..length.min(payload.len()))?.to_vec())]);
        }
        let mut stream = payload.get(usize::from(payload.get(12)? >> 4) * 4..)?;
        let mut frames = Vec::new();
        while !stream.is_empty() {
            // A frame that goes on in the next segment is shown as what is here of it.
            let length = match message_length(stream) {
                MessageLength::Complete(length) => length.min(stream.len()),
                _ => stream.len(),
            };
            let (frame, rest) = stream.split_at(length);
            frames.push((way, frame.to_vec()));
            stream = rest;
        }
        Some(frames)
    };
    frames().unwrap_or_default()
}

/// Protocol, from, to and payload of an IP packet that is no later fragment.
fn internet(ip: &[u8]) -> Option<(u8, IpAddr, IpAddr, &[u8])> {
    let (protocol, from, to, start, end) = match ip.first()? >> 4 {
        4 => {
            let is_later_fragment = u16::from_be_bytes([ip.get(6)? & 0x1F, *ip.get(7)?]) != 0;
            if is_later_fragment {
                return None;
            }
            let address = |at: usize| ip.get(at..)?.first_chunk::<4>().map(|octets| Ipv4Addr::from(*octets).into());
            let total = usize::from(u16::from_be_bytes([*ip.get(2)?, *ip.get(3)?]));
            (*ip.get(9)?, address(12)?, address(16)?, usize::from(ip[0] & 0xF) * 4, total)
        }
        6 => {
            let address = |at: usize| ip.get(at..)?.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets).into());
            let length = usize::from(u16::from_be_bytes([*ip.get(4)?, *ip.get(5)?]));
            (*ip.get(6)?, address(8)?, address(24)?, 40, 40 + length)
        }
        _ => return None,
    };
    // A packet too short for the wire is padded, and one that was offloaded has no length yet.
    let end = if end <= start { ip.len() } else { end.min(ip.len()) };
    matches!(protocol, UDP | TCP).then_some((protocol, from, to, ip.get(start..end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[u8] = b"\x10\x81\x00\x01\x05\xff\x01\x02\x90\x01\x62\x01\x80\x00";

    #[test]
    fn captured_packets_survive_a_round_trip() {
        let ways = [("192.0.2.1:3610", "224.0.23.0:3610"), ("[fe80::1]:50000", "[ff02::1]:3610")]
            .map(|(from, to)| (from.parse().unwrap(), to.parse().unwrap()));
        let time = Moment(Duration::from_micros(1_700_000_000_123_456));
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file).unwrap();
        for (from, to) in ways {
            writer.write(time, from, to, GET).unwrap();
        }
        let expected = ways.map(|way| Packet { time: Some(time), way: Some(way), bytes: GET.to_vec() });
        assert_eq!(read(&file, 3610).unwrap(), expected);
        assert_eq!(read(&file, 3611).unwrap(), []);
        for length in 0..file.len() {
            // Cut anywhere: an error or fewer packets, never a panic.
            let _ = read(&file[..length], 3610);
        }
        // The sum over a header with its sum is zero.
        assert_eq!(checksum(&datagram(ways[0].0, ways[0].1, GET)[..20]), 0);
    }

    #[test]
    fn frames_of_a_stream() {
        let tcp = [&[0x0E, 0x1A, 0xC3, 0x50][..], &[0; 8], &[0x50, 0, 0, 0, 0, 0, 0, 0], GET, GET].concat();
        let total = (20 + tcp.len()) as u16;
        let head = [&[0x45, 0], &total.to_be_bytes()[..], &[0, 0, 0, 0, 64, TCP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]];
        let ethernet = [&[0; 12][..], &[0x81, 0, 0, 1, 8, 0], &head.concat(), &tcp, &[0; 6]].concat();
        let frames = transport(network_layer(link::ETHERNET, &ethernet).unwrap(), 3610);
        assert_eq!(frames.len(), 2);
        assert!(frames.iter().all(|(_, bytes)| bytes == GET));
    }
}
