//! The far end of the light's Ethernet: just enough of ARP, IPv4 and UDP to talk to one node.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use anyhow::{Context, Result, bail};

/// The light's address, as its program has it.
pub(super) const LIGHT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Where ECHONET Lite's multicast goes.
pub(super) const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 23, 0);
/// This end.
pub(super) const TOOL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

const TOOL_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const BROADCAST_MAC: [u8; 6] = [0xFF; 6];
const ECHONET_PORT: u16 = 3610;
const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const UDP: u8 = 17;
const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// A cable to the light, as qemu's socket has it: every frame behind its length in four bytes.
pub(super) struct Link {
    stream: TcpStream,
    light_mac: Option<[u8; 6]>,
}

impl Link {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, light_mac: None }
    }

    /// Sends a datagram from port 3610 to port 3610, first asking for the light's hardware address if it is unknown.
    ///
    /// # Errors
    /// When qemu has ended.
    pub(super) fn send(&mut self, to: Ipv4Addr, payload: &[u8]) -> Result<()> {
        let mac = if to.is_multicast() {
            let [_, b, c, d] = to.octets();
            [1, 0, 0x5E, b & 0x7F, c, d]
        } else {
            self.resolve()?
        };
        self.send_frame(mac, IPV4, &datagram(to, payload))
    }

    /// The next datagram from the light: where it went, and its content. Answers the light's ARP requests on the way.
    ///
    /// # Errors
    /// When none comes.
    pub(super) fn receive(&mut self) -> Result<(Ipv4Addr, Vec<u8>)> {
        loop {
            let packet = match self.next_frame()? {
                (ARP, packet) => {
                    self.on_arp(&packet)?;
                    continue;
                }
                (IPV4, packet) if packet.get(9) == Some(&UDP) => packet,
                // The light's report of its group membership (IGMP).
                _ => continue,
            };
            let header = usize::from(packet[0] & 0xF) * 4;
            let to = Ipv4Addr::from(<[u8; 4]>::try_from(&packet[16..IP_HEADER])?);
            let udp = packet.get(header..).context("a datagram is behind its header")?;
            let [ports @ .., high, low] = <[u8; 6]>::try_from(&udp[..6])?;
            let standard = ECHONET_PORT.to_be_bytes();
            if ports != [standard[0], standard[1], standard[0], standard[1]] {
                bail!("ports {ports:?}");
            }
            let length = usize::from(u16::from_be_bytes([high, low]));
            return Ok((to, udp[UDP_HEADER..length].to_vec()));
        }
    }

    fn resolve(&mut self) -> Result<[u8; 6]> {
        if let Some(mac) = self.light_mac {
            return Ok(mac);
        }
        self.send_frame(BROADCAST_MAC, ARP, &arp(1, [0; 6]))?;
        loop {
            if let (ARP, packet) = self.next_frame()? {
                self.on_arp(&packet)?;
            }
            if let Some(mac) = self.light_mac {
                return Ok(mac);
            }
        }
    }

    fn on_arp(&mut self, packet: &[u8]) -> Result<()> {
        let packet = packet.get(..28).context("a whole ARP packet")?;
        let mac = <[u8; 6]>::try_from(&packet[8..14])?;
        if packet[14..18] == LIGHT.octets() {
            self.light_mac = Some(mac);
        }
        if packet[7] == 1 && packet[24..] == TOOL.octets() {
            self.send_frame(mac, ARP, &arp(2, mac))?;
        }
        Ok(())
    }

    fn send_frame(&mut self, to: [u8; 6], kind: u16, content: &[u8]) -> Result<()> {
        let mut frame = [&to[..], &TOOL_MAC, &kind.to_be_bytes(), content].concat();
        // The least an Ethernet carries.
        frame.resize(frame.len().max(60), 0);
        let length = u32::try_from(frame.len())?.to_be_bytes();
        Ok(self.stream.write_all(&[&length[..], &frame].concat())?)
    }

    fn next_frame(&mut self) -> Result<(u16, Vec<u8>)> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).context("the light is silent")?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame)?;
        let [high, low] = frame[12..14] else { bail!("a frame without header") };
        Ok((u16::from_be_bytes([high, low]), frame.split_off(14)))
    }
}

/// An ARP request (1) or answer (2) of this end.
fn arp(operation: u8, target: [u8; 6]) -> Vec<u8> {
    let head = [0, 1, 8, 0, 6, 4, 0, operation];
    [&head[..], &TOOL_MAC, &TOOL.octets(), &target, &LIGHT.octets()].concat()
}

/// An IPv4 packet with a UDP datagram, whose check sum 0 says that there is none.
fn datagram(to: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let udp = u16::try_from(UDP_HEADER + payload.len()).expect("a datagram fits into a frame");
    let mut header = [0; IP_HEADER];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&(udp + IP_HEADER as u16).to_be_bytes());
    // ECHONET Lite's multicast stays on the link.
    header[8] = 1;
    header[9] = UDP;
    header[12..16].copy_from_slice(&TOOL.octets());
    header[16..].copy_from_slice(&to.octets());
    let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    let port = ECHONET_PORT.to_be_bytes();
    [&header[..], &port, &port, &udp.to_be_bytes(), &[0, 0], payload].concat()
}
