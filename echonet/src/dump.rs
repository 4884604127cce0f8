//! `echonet dump`: the traffic of the network, or of a capture.

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{SocketAddr, SocketAddrV6};

use echonet_lite::net::{BindError, Interface};
use echonet_lite::wire::{Frame, MULTICAST_V4, MULTICAST_V6};
use serde_json::{Map, Value, json};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use crate::capture::{self, Packet, Writer};
use crate::commands::{Dump, Options};
use crate::failure::Failure;
use crate::output::Output;
use crate::{frame, link};
use echonet_lite::emulate::Moment;

/// The largest datagram.
const DATAGRAM_MAX: usize = 65_535;
/// Datagrams that may wait to be printed.
const AHEAD: usize = 1024;

pub(crate) async fn run(args: &Dump, options: &Options, out: &Output) -> Result<(), Failure> {
    match &args.read {
        Some(path) => {
            let mut file = Vec::new();
            let named = |error: io::Error| Failure::Input(format!("{}: {error}", path.display()));
            if path.as_os_str() == "-" {
                io::stdin().lock().read_to_end(&mut file)?;
            } else {
                file = fs::read(path).map_err(named)?;
            }
            let packets = capture::read(&file, options.port)?;
            let count = args.count.map_or(packets.len(), |count| usize::try_from(count).unwrap_or(usize::MAX));
            packets.iter().take(count).try_for_each(|packet| show(packet, args, out))
        }
        None => listen(args, options, out).await,
    }
}

async fn listen(args: &Dump, options: &Options, out: &Output) -> Result<(), Failure> {
    let (sender, mut packets) = mpsc::channel(AHEAD);
    let mut places = Vec::new();
    for (socket, group, place) in sockets(options)? {
        places.push(place);
        tokio::spawn(receive(socket, group, sender.clone()));
    }
    drop(sender);
    let mut pcap = args.pcap.as_ref().map(File::create).transpose()?.map(Writer::new).transpose()?;
    out.remark(format_args!("listening to {}", places.join(", ")));
    let mut end = std::pin::pin!(link::after(options.timeout));
    let mut left = args.count;
    while left != Some(0) {
        let packet: Packet = tokio::select! {
            () = &mut end => break,
            packet = packets.recv() => match packet {
                Some(packet) => packet,
                None => break,
            },
        };
        if let (Some(pcap), Some(time), Some((from, to))) = (&mut pcap, packet.time, packet.way) {
            pcap.write(time, from, to, &packet.bytes)?;
        }
        show(&packet, args, out)?;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

async fn receive(socket: UdpSocket, group: SocketAddr, packets: mpsc::Sender<Packet>) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let packet = Packet { time: Some(Moment::now()), way: Some((from, group)), bytes: buffer[..length].to_vec() };
        if packets.send(packet).await.is_err() {
            return;
        }
    }
}

/// Sockets bound to the groups: they hear what is sent to all, and nothing that is meant for another program.
fn sockets(options: &Options) -> Result<Vec<(UdpSocket, SocketAddr, String)>, Failure> {
    let mut interfaces = Interface::list()?;
    if let Some(name) = options.interface.iter().find(|&name| interfaces.iter().all(|known| known.name != *name)) {
        return Err(BindError::NoInterface(name.clone()).into());
    }
    interfaces.retain(|interface| options.interface.is_empty() || options.interface.contains(&interface.name));
    let speaks = |interface: &Interface, v4: bool| interface.addresses.iter().any(|address| address.is_ipv4() == v4);
    let mut sockets = Vec::new();
    if !options.ipv6 && interfaces.iter().any(|interface| speaks(interface, true)) {
        let group = SocketAddr::from((MULTICAST_V4, options.port));
        let socket = bound(group)?;
        // Only what came by the interfaces chosen.
        #[cfg(target_os = "linux")]
        socket.set_multicast_all_v4(false)?;
        let mut names = Vec::new();
        for interface in interfaces.iter().filter(|interface| speaks(interface, true)) {
            socket.join_multicast_v4_n(&MULTICAST_V4, &InterfaceIndexOrAddress::Index(interface.index))?;
            names.push(interface.name.as_str());
        }
        let place = format!("{MULTICAST_V4} on {}", names.join(", "));
        sockets.push((UdpSocket::from_std(socket.into())?, group, place));
    }
    // The group of all nodes is never delivered on the loopback interface.
    for interface in
        interfaces.iter().filter(|interface| !options.ipv4 && !interface.loopback && speaks(interface, false))
    {
        let group = SocketAddr::V6(SocketAddrV6::new(MULTICAST_V6, options.port, 0, interface.index));
        let socket = bound(group)?;
        socket.join_multicast_v6(&MULTICAST_V6, interface.index)?;
        sockets.push((UdpSocket::from_std(socket.into())?, group, format!("{MULTICAST_V6} on {}", interface.name)));
    }
    if sockets.is_empty() { Err(BindError::NoFamily.into()) } else { Ok(sockets) }
}

fn bound(group: SocketAddr) -> Result<Socket, Failure> {
    let socket = Socket::new(Domain::for_address(group), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    if group.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&group.into()).map_err(|source| {
        Failure::from(match source.kind() {
            io::ErrorKind::AddrInUse => BindError::PortHeld { address: group, protocol: "udp", source },
            _ => BindError::Io { doing: "binding to", address: Some(group), source },
        })
    })?;
    Ok(socket)
}

fn show(packet: &Packet, args: &Dump, out: &Output) -> Result<(), Failure> {
    let parsed = Frame::parse(&packet.bytes);
    if out.json {
        let mut map = Map::new();
        map.insert("time".into(), json!(packet.time.map(|time| time.to_string())));
        map.insert("from".into(), json!(packet.way.map(|(from, _)| address(from))));
        map.insert("to".into(), json!(packet.way.map(|(_, to)| address(to))));
        let rest = match &parsed {
            Ok(frame) => frame::json(frame),
            Err(error) => frame::error_json(error, &packet.bytes),
        };
        if let Value::Object(rest) = rest {
            map.extend(rest);
        }
        return out.line(Value::Object(map));
    }
    let time = packet.time.map(|time| format!("{time:#} ")).unwrap_or_default();
    let way = packet.way.map(|(from, to)| format!("{} > {} ", address(from), address(to))).unwrap_or_default();
    match parsed {
        Ok(frame) if args.verbose => out.line(format!("{time}{way}{frame}{}", frame::details(&frame))),
        Ok(frame) => out.line(format!("{time}{way}{}", frame::line(&frame))),
        Err(error) => out.line(format!("{time}{way}no frame: {}", frame::fault(&error, &packet.bytes))),
    }
}

/// The address, and the port only if it is another than every node's.
fn address(address: SocketAddr) -> String {
    if address.port() == echonet_lite::wire::PORT { without_port(address) } else { address.to_string() }
}

fn without_port(address: SocketAddr) -> String {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
        address => address.ip().to_string(),
    }
}
