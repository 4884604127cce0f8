//! Every socket option of the server; no other file sets one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};

use crate::error::Error;
use crate::inherited;
use crate::options::{Listen, Options};
#[cfg(target_os = "linux")]
use crate::quic;

/// Probes after the first silence: three, each a third of it later (as Redis does), so that a dead peer is known after
/// twice the configured time.
const KEEPALIVE_PROBES: u32 = 3;

/// A listening TCP socket.
///
/// The kernel hands TCP_NODELAY and keepalive down to accepted sockets, so they are set here, once,
/// and not by system calls for every connection.
pub(crate) fn tcp(place: &Listen, addr: SocketAddr, options: &Options) -> Result<Socket, Error> {
    let is_dual = addr.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && !serves_v4(options, addr.port());
    listen_tcp(addr, is_dual, options)
        .or_else(|error| match error.raw_os_error() {
            // Every interface was wanted, and the machine has no IPv6: that is every IPv4 interface.
            Some(libc::EAFNOSUPPORT) if is_dual => {
                listen_tcp(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), addr.port()), false, options)
            }
            _ => Err(error),
        })
        .map_err(|source| Error::Listen { place: place.to_string(), source })
}

/// Whether 0.0.0.0 is listened on as well: then `[::]` has to leave IPv4 to it, or the second of them could not bind.
fn serves_v4(options: &Options, port: u16) -> bool {
    let all_v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
    port != 0
        && options.listen.iter().any(|place| matches!(place, Listen::Tcp(addr) | Listen::Tls(addr) if *addr == all_v4))
}

fn listen_tcp(addr: SocketAddr, is_dual: bool, options: &Options) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    if addr.is_ipv6() {
        // Said either way: the system's default differs from machine to machine.
        socket.set_only_v6(!is_dual)?;
    }
    // A restart must not wait for the old connections' TIME_WAIT.
    socket.set_reuse_address(true)?;
    of_tcp(&socket, options)?;
    socket.bind(&addr.into())?;
    listen(&socket, options.backlog)?;
    Ok(socket)
}

fn of_tcp(socket: &Socket, options: &Options) -> io::Result<()> {
    socket.set_tcp_nodelay(options.nodelay)?;
    let Some(silence) = options.keepalive else { return Ok(()) };
    let interval = (silence / 3).max(Duration::from_secs(1));
    let keepalive = TcpKeepalive::new().with_time(silence).with_interval(interval).with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)
}

/// Bytes that the kernel is to keep of datagrams that have come or are to leave: its default of 208 KiB is some hundred of them, and
/// what finds no room is lost. The kernel caps it (`net.core.rmem_max`).
const UDP_BUFFER: usize = 4 * 1024 * 1024;

/// UDP sockets at the address of a TCP listener: `shares` of them where the system can distribute the datagrams of QUIC among them
/// by connection id, else one.
pub(crate) fn udp(addr: SocketAddr, shares: usize, options: &Options) -> Result<Vec<UdpSocket>, Error> {
    let is_dual = addr.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && !serves_v4(options, addr.port());
    share_udp(addr, is_dual, shares).map_err(|source| Error::Listen { place: format!("udp:{addr}"), source })
}

fn share_udp(addr: SocketAddr, is_dual: bool, shares: usize) -> io::Result<Vec<UdpSocket>> {
    let domain = Domain::for_address(addr);
    let first = new_udp(domain, is_dual)?;
    // Without SO_REUSEPORT, which would let the socket join those of another program.
    first.bind(&addr.into())?;
    let mut sockets = vec![first];
    #[cfg(target_os = "linux")]
    if shares > 1 {
        sockets[0].set_reuse_port(true)?;
        let addr = sockets[0].local_addr()?;
        for _ in 1..shares {
            let socket = new_udp(domain, is_dual)?;
            socket.set_reuse_port(true)?;
            socket.bind(&addr)?;
            sockets.push(socket);
        }
        quic::steer(&sockets[0], shares)?;
    }
    Ok(sockets.into_iter().map(UdpSocket::from).collect())
}

fn new_udp(domain: Domain, is_dual: bool) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::DGRAM, None)?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(!is_dual)?;
    }
    socket.set_recv_buffer_size(UDP_BUFFER)?;
    socket.set_send_buffer_size(UDP_BUFFER)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A socket that listens already, by a descriptor of its own.
pub(crate) fn inherited(fd: i32, options: &Options) -> io::Result<Socket> {
    let socket = Socket::from(inherited::duplicate(fd)?);
    if !socket.is_listener()? {
        return Err(io::Error::other("this socket does not listen"));
    }
    if socket.local_addr()?.as_socket().is_some() {
        of_tcp(&socket, options)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn listen(socket: &Socket, backlog: u32) -> io::Result<()> {
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)
}

/// A listening Unix socket. A dead socket's file in the way is removed; a living one's, or another file, is not.
pub(crate) fn unix(place: &Listen, path: &Path, mode: Option<u32>, options: &Options) -> Result<Socket, Error> {
    remove_dead(path)?;
    listen_unix(path, mode, options.backlog).map_err(|source| Error::Listen { place: place.to_string(), source })
}

fn listen_unix(path: &Path, mode: Option<u32>, backlog: u32) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    if let Some(mode) = mode {
        // Before `listen`, so that nobody connects under wider permissions.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    }
    listen(&socket, backlog)?;
    Ok(socket)
}

fn remove_dead(path: &Path) -> Result<(), Error> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(Error::UnixPathTaken { path: path.to_owned(), in_use: false });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|source| Error::Listen { place: path.display().to_string(), source })
        }
        _ => Err(Error::UnixPathTaken { path: path.to_owned(), in_use: true }),
    }
}

/// Accepts one connection, not blocking and closed on exec.
pub(crate) fn accept(listener: &Socket) -> io::Result<(Socket, SockAddr)> {
    #[cfg(target_os = "linux")]
    {
        // One system call for all three; `Socket::accept` leaves the non-blocking flag to a second one.
        listener.accept4(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let (socket, addr) = listener.accept()?;
        socket.set_nonblocking(true)?;
        Ok((socket, addr))
    }
}

/// An address as people know it: IPv4 that came through an IPv6 socket is IPv4.
pub(crate) fn canonical(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V4(_) => addr,
        // Keep the scope of a link-local address.
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(v4.into(), v6.port()),
            None => addr,
        },
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::quic::quic_share;

    /// The system distributes datagrams by the same rule as [`quic_share`], wherever they come from.
    #[test]
    fn datagrams_reach_their_share() {
        let sockets = share_udp("127.0.0.1:0".parse().unwrap(), false, 3).unwrap();
        let at = sockets[0].local_addr().unwrap();
        let long = |id| vec![0xc0, 0, 0, 0, 1, 8, id, 7];
        let datagrams =
            (0..=255).flat_map(|id| [long(id), vec![0x40, id, 9]]).chain([vec![0x40], vec![0xc0, 1], vec![7]]);
        for datagram in datagrams {
            UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&datagram, at).unwrap();
            let mut received = [0; 16];
            let found = sockets.iter().position(|socket| socket.recv(&mut received).is_ok());
            assert_eq!(found, Some(quic_share(&datagram, 3)), "{datagram:x?}");
        }
    }

    #[test]
    fn an_address_is_not_shared_with_others() {
        let options = Options::default();
        let sockets = udp("127.0.0.1:0".parse().unwrap(), 2, &options).unwrap();
        let error = udp(sockets[0].local_addr().unwrap(), 2, &options).expect_err("it is taken");
        assert!(error.to_string().contains("in use"), "{error}");
    }
}
