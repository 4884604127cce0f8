//! A node on embassy-net: asynchronous, without an allocator.
//!
//! ```ignore
//! static SERVER: StaticCell<Server<[Stored; 1]>> = StaticCell::new();
//! static BUFFERS: StaticCell<Buffers> = StaticCell::new();
//!
//! #[embassy_executor::task]
//! async fn echonet(server: &'static Server<[Stored; 1]>, stack: Stack<'static>) {
//!     let end = server.run(stack, BUFFERS.init(Buffers::new())).await;
//! }
//! ```
//!
//! Another task of the same executor changes the node by [`Server::with_node`], which has the server send what is to be sent.
//! The features of embassy-net that bring addresses (`dhcpv4`, `slaac`) are the program's choice.
#![forbid(unsafe_code)]

use core::cell::{Cell, RefCell};
use core::convert::Infallible;
use core::fmt;
use core::future::{Future, poll_fn};
use core::net::SocketAddr;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};

use embassy_net::udp::{BindError, PacketMetadata, RecvError, UdpMetadata, UdpSocket};
use embassy_net::{IpEndpoint, MulticastError, Stack};
use embassy_time::Timer;

use crate::node::{Arrival, DEFAULT_STORE, Destination, Instant, Node, Objects, Outbox};
use crate::wire::{MULTICAST_V4, MULTICAST_V6, PORT};

/// Datagrams that may wait in each direction, and the bytes for them.
const DATAGRAMS: usize = 4;
const BYTES: usize = 1024;
/// The longest request and the longest answer. A longer request is dropped; a longer answer is refused in part.
const DATAGRAM: usize = 512;

/// The memory of a [`Server`]; a static, so that it does not grow the task.
pub struct Buffers {
    metadata: [[PacketMetadata; DATAGRAMS]; 2],
    bytes: [[u8; BYTES]; 2],
    request: [u8; DATAGRAM],
    answer: [u8; DATAGRAM],
}

impl Buffers {
    /// Empty ones.
    pub const fn new() -> Self {
        Self {
            metadata: [const { [PacketMetadata::EMPTY; DATAGRAMS] }; 2],
            bytes: [[0; BYTES]; 2],
            request: [0; DATAGRAM],
            answer: [0; DATAGRAM],
        }
    }
}

impl fmt::Debug for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffers").finish_non_exhaustive()
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a node cannot be served.
#[derive(Debug)]
pub enum Error {
    /// The stack has no room for the multicast group.
    Group(MulticastError),
    /// Another socket has port 3610.
    Port(BindError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Group(_) => "the stack has no room for the multicast group",
            Self::Port(_) => "another socket has port 3610",
        })
    }
}

impl core::error::Error for Error {}

/// A node that is served by one task, and changed by others of the same executor.
pub struct Server<O, const STORE: usize = DEFAULT_STORE> {
    node: RefCell<Node<O, STORE>>,
    is_changed: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

impl<O, const STORE: usize> fmt::Debug for Server<O, STORE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl<O: Objects, const STORE: usize> Server<O, STORE> {
    /// Serves a node.
    pub const fn new(node: Node<O, STORE>) -> Self {
        Self { node: RefCell::new(node), is_changed: Cell::new(false), waker: Cell::new(None) }
    }

    /// Lets a function work on the node, and sends what it wants sent.
    ///
    /// # Panics
    /// Called from within an object of the node, or from within `work`.
    pub fn with_node<R>(&self, work: impl FnOnce(&mut Node<O, STORE>) -> R) -> R {
        let result = work(&mut self.node.borrow_mut());
        self.is_changed.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        result
    }

    /// Serves, whenever the stack has an address; each time it gets one the node announces itself.
    ///
    /// # Errors
    /// It could not begin; it never ends otherwise.
    pub async fn run(&self, stack: Stack<'_>, buffers: &mut Buffers) -> Result<Infallible, Error> {
        let Buffers { metadata: [in_metadata, out_metadata], bytes: [in_bytes, out_bytes], request, answer } = buffers;
        let mut socket = UdpSocket::new(stack, in_metadata, in_bytes, out_metadata, out_bytes);
        // Nothing of ECHONET Lite leaves the link.
        socket.set_hop_limit(Some(1));
        socket.bind(PORT).map_err(Error::Port)?;
        stack.join_multicast_group(MULTICAST_V4).map_err(Error::Group)?;
        loop {
            stack.wait_config_up().await;
            self.node.borrow_mut().address_changed();
            let mut down = pin!(stack.wait_config_down());
            let serve = |cx: &mut Context<'_>| {
                if down.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                self.serve(cx, stack, &socket, request, answer).map(Some)
            };
            let mut serve = pin!(poll_fn(serve));
            while let Some(due) = serve.as_mut().await {
                self.wait(due, &socket, stack).await;
            }
        }
    }

    /// Takes what has come and sends what is due, until there is neither; then says when something will be due.
    fn serve(
        &self,
        cx: &mut Context<'_>,
        stack: Stack<'_>,
        socket: &UdpSocket<'_>,
        request: &mut [u8],
        answer: &mut [u8],
    ) -> Poll<Option<Instant>> {
        let mut node = self.node.borrow_mut();
        loop {
            if socket.poll_send_ready(cx).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::from_micros(embassy_time::Instant::now().as_micros());
            match socket.poll_recv_from(request, cx) {
                Poll::Ready(Ok((length, metadata))) => {
                    let from = SocketAddr::new(metadata.endpoint.addr.into(), metadata.endpoint.port);
                    let mut out = Outbox::new(answer, |to, datagram: &[u8]| send(cx, stack, socket, to, datagram));
                    node.handle(now, from, arrival(&metadata), &request[..length], &mut out);
                }
                Poll::Ready(Err(RecvError::Truncated)) => {}
                Poll::Pending => {
                    let Some((to, length)) = node.poll_transmit(now, answer) else {
                        return Poll::Ready(node.poll_timeout());
                    };
                    send(cx, stack, socket, to, &answer[..length]);
                }
            }
        }
    }

    /// Waits until something comes, something is due, the node has been changed, or the stack has lost its address.
    async fn wait(&self, due: Option<Instant>, socket: &UdpSocket<'_>, stack: Stack<'_>) {
        let mut timer = due.map(|due| Timer::at(embassy_time::Instant::from_micros(due.0)));
        poll_fn(|cx| {
            let is_due = timer.as_mut().is_some_and(|timer| Pin::new(timer).poll(cx).is_ready());
            let is_changed = self.is_changed.take();
            if is_due || is_changed || socket.poll_recv_ready(cx).is_ready() || !stack.is_config_up() {
                return Poll::Ready(());
            }
            self.waker.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}

fn arrival(metadata: &UdpMetadata) -> Arrival {
    match metadata.local_address {
        Some(address) if !address.is_multicast() && !address.is_broadcast() => Arrival::Unicast,
        _ => Arrival::Multicast,
    }
}

/// An answer for which there is no room is lost, as UDP may lose any.
fn send(cx: &mut Context<'_>, stack: Stack<'_>, socket: &UdpSocket<'_>, to: Destination, datagram: &[u8]) {
    let mut send = |to: IpEndpoint| {
        let _ = socket.poll_send_to(datagram, to, cx);
    };
    match to {
        Destination::Unicast(to) => send(to.into()),
        Destination::Multicast => {
            if stack.config_v4().is_some() {
                send(IpEndpoint::new(MULTICAST_V4.into(), PORT));
            }
            if stack.config_v6().is_some() {
                send(IpEndpoint::new(MULTICAST_V6.into(), PORT));
            }
        }
    }
}
