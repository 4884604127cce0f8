//! One link of the bus: a socket, and what waits to be sent.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsStream;

use super::{Bus, spawn_task, tls};
use crate::cluster::Link;
use crate::config::settings;
use crate::exec::core::peers;

/// Bytes that are read at once: some packets.
const READ: usize = 16 * 1024;
/// Bytes that wait for a node which does not read, whatever `cluster-link-sendbuf-limit` says: several minutes of gossip.
const MAX_UNSENT: u64 = 64 * 1024 * 1024;
/// How long a connection may take at least before it counts as failed; otherwise as long as a node may be silent.
const CONNECT: Duration = Duration::from_secs(1);
/// How long who connects may take to show a certificate, and how many may be about it at a time.
const HANDSHAKE: Duration = Duration::from_secs(5);
const MAX_HANDSHAKES: usize = 1024;

/// A connection, when both ends know each other as far as TLS goes.
enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Packets that wait to be sent.
pub(super) struct Queue {
    packets: RefCell<VecDeque<Bytes>>,
    /// Their bytes, which others may ask for.
    unsent: Arc<AtomicU64>,
    is_closed: Cell<bool>,
    overflowed: Cell<bool>,
    changed: Notify,
    ended: Notify,
}

impl Queue {
    fn new(bus: &Bus, link: Link) -> Rc<Self> {
        Rc::new(Self {
            packets: RefCell::default(),
            unsent: bus.instance.cluster.count_unsent(link),
            is_closed: Cell::new(false),
            overflowed: Cell::new(false),
            changed: Notify::new(),
            ended: Notify::new(),
        })
    }

    /// Whether it has ended because too much waited.
    pub(super) fn has_overflowed(&self) -> bool {
        self.overflowed.get()
    }

    /// Sends a packet; if more than `limit` bytes wait then, 0 being no limit of the user's, the link ends instead.
    pub(super) fn push(&self, bytes: Bytes, limit: u64) {
        let unsent = self.unsent.fetch_add(bytes.len() as u64, Relaxed) + bytes.len() as u64;
        self.packets.borrow_mut().push_back(bytes);
        let limit = if limit == 0 { MAX_UNSENT } else { limit.min(MAX_UNSENT) };
        if unsent > limit {
            tracing::warn!("Freeing outbound cluster link: {unsent} bytes wait to be sent");
            self.overflowed.set(true);
            self.close();
        }
        self.changed.notify_one();
    }

    pub(super) fn close(&self) {
        self.is_closed.set(true);
        self.ended.notify_one();
    }

    /// Until it is closed.
    async fn closed(&self) {
        while !self.is_closed.get() {
            self.ended.notified().await;
        }
    }

    /// The next packet.
    async fn next(&self) -> Bytes {
        loop {
            if let Some(bytes) = self.packets.borrow_mut().pop_front() {
                return bytes;
            }
            self.changed.notified().await;
        }
    }
}

/// A connection from another node.
pub(super) fn accepted(bus: &Rc<Bus>, stream: TcpStream, peer: SocketAddr) {
    if !tls::is_on(&bus.instance.config) {
        return known(bus, stream.local_addr(), Wire::Plain(stream), peer);
    }
    if bus.handshakes.get() >= MAX_HANDSHAKES {
        return;
    }
    bus.handshakes.set(bus.handshakes.get() + 1);
    let bus = Rc::clone(bus);
    spawn_task(async move {
        let local = stream.local_addr();
        let shaken = tokio::time::timeout(HANDSHAKE, bus.certificates.accept(&bus.instance.config, stream)).await;
        bus.handshakes.set(bus.handshakes.get() - 1);
        match shaken {
            Ok(Ok(stream)) => known(&bus, local, Wire::Tls(Box::new(stream)), peer),
            Ok(Err(error)) => tracing::debug!("Error accepting cluster node connection from {peer}: {error}"),
            Err(_) => tracing::debug!("Error accepting cluster node connection from {peer}: it says nothing"),
        }
    });
}

/// A connection whose other end may speak.
fn known(bus: &Rc<Bus>, local: io::Result<SocketAddr>, stream: Wire, peer: SocketAddr) {
    let Ok(local) = local else { return };
    let (peer, local) = (address(peer.ip()), address(local.ip()));
    let link = bus.instance.cluster.with(&bus.instance, |machine, now| machine.accept(&peer, &local, now)).flatten();
    if let Some(link) = link {
        serve(bus, link, stream);
    }
}

/// Connects to another node, and tells the machine how that has ended.
pub(super) fn connect(bus: &Rc<Bus>, link: Link, ip: String, port: u16) {
    let bus = Rc::clone(bus);
    // While it is being made, what is sent waits.
    let queue = Queue::new(&bus, link);
    bus.queues.borrow_mut().insert(link, queue);
    spawn_task(async move {
        let timeout = Duration::from_millis(bus.instance.config.uint(settings::CLUSTER_NODE_TIMEOUT)).max(CONNECT);
        let connected = tokio::time::timeout(timeout, open(&bus, &ip, port)).await;
        if let Ok(Err(error)) = &connected
            && tls::is_on(&bus.instance.config)
        {
            tracing::debug!("Unable to connect to a cluster node at port {port}: {error}");
        }
        let connected = connected.ok().and_then(Result::ok);
        if !bus.queues.borrow().contains_key(&link) {
            // It is not wanted any more.
            return;
        }
        let Some((stream, (peer, local))) = connected else { return bus.lost(link) };
        let (peer, local) = (address(peer), address(local));
        serve(&bus, link, stream);
        bus.instance.cluster.with(&bus.instance, |machine, now| machine.opened(link, &peer, &local, now));
    });
}

/// A connection to another node, and the addresses of that node and of this one.
async fn open(bus: &Bus, ip: &str, port: u16) -> io::Result<(Wire, (IpAddr, IpAddr))> {
    let config = &bus.instance.config;
    let address = SocketAddr::new(ip.parse().map_err(io::Error::other)?, port);
    let stream = connect_from(peers::source(config)?, address).await?;
    let ends = (stream.peer_addr()?.ip(), stream.local_addr()?.ip());
    let wire = match tls::is_on(config) {
        true => Wire::Tls(Box::new(bus.certificates.connect(config, stream, ends.0).await?)),
        false => Wire::Plain(stream),
    };
    Ok((wire, ends))
}

async fn connect_from(source: Option<SocketAddr>, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    source.map_or(Ok(()), |source| socket.bind(source))?;
    socket.connect(address).await
}

/// An address as nodes tell it to each other.
fn address(ip: IpAddr) -> String {
    ip.to_canonical().to_string()
}

fn serve(bus: &Rc<Bus>, link: Link, stream: Wire) {
    let known = bus.queues.borrow().get(&link).cloned();
    let queue = known.unwrap_or_else(|| Queue::new(bus, link));
    bus.queues.borrow_mut().insert(link, Rc::clone(&queue));
    // A packet is a message by itself. Where the socket has no such option it is slower.
    match stream {
        Wire::Plain(stream) => {
            let _ = stream.set_nodelay(true);
            let (reader, writer) = stream.into_split();
            spawn_task(run(Rc::clone(bus), link, queue, reader, writer));
        }
        Wire::Tls(stream) => {
            let _ = stream.get_ref().0.set_nodelay(true);
            let (reader, writer) = tokio::io::split(stream);
            spawn_task(run(Rc::clone(bus), link, queue, reader, writer));
        }
    }
}

async fn run<R, W>(bus: Rc<Bus>, link: Link, queue: Rc<Queue>, reader: R, writer: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    tokio::select! {
        () = read(&bus, link, reader) => {}
        () = write(&queue, writer) => {}
        // Also where the other end takes nothing.
        () = queue.closed() => {}
    }
    bus.lost(link);
}

/// Gives the machine what comes, until the link ends.
async fn read(bus: &Bus, link: Link, mut reader: impl AsyncRead + Unpin) {
    let mut bytes = vec![0; READ];
    while let Ok(count @ 1..) = reader.read(&mut bytes).await {
        bus.instance.cluster.with(&bus.instance, |machine, now| machine.receive(link, &bytes[..count], now));
    }
}

/// Sends what waits, until the link ends.
async fn write(queue: &Queue, mut writer: impl AsyncWrite + Unpin) {
    loop {
        let bytes = queue.next().await;
        if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
            return;
        }
        queue.unsent.fetch_sub(bytes.len() as u64, Relaxed);
    }
}
