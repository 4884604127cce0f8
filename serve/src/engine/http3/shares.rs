//! Several workers at one UDP address: each has a socket, and the connection ids that lead to it.
//!
//! The system gives a datagram to the socket that its connection id names. It joins datagrams from one address before it looks at
//! the id of the first, and a client may have several connections at one address: what belongs to another worker is handed on.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, HashedConnectionIdGenerator, InvalidCid};
use server_runtime::{quic_share, quic_share_of_id};

/// Bytes that may wait for a worker. Those beyond are lost, as they are when a socket's buffer is full.
const WAITING_MAX: usize = 1024 * 1024;

/// Makes connection ids that lead to one worker.
pub(super) struct OwnIds {
    ids: HashedConnectionIdGenerator,
    share: usize,
    shares: usize,
}

impl OwnIds {
    pub(super) fn new(share: usize, shares: usize) -> Self {
        Self { ids: HashedConnectionIdGenerator::new(), share, shares }
    }
}

impl ConnectionIdGenerator for OwnIds {
    fn generate_cid(&mut self) -> ConnectionId {
        loop {
            let id = self.ids.generate_cid();
            if quic_share_of_id(id[0], self.shares) == self.share {
                return id;
            }
        }
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        self.ids.validate(id)
    }

    fn cid_len(&self) -> usize {
        self.ids.cid_len()
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        self.ids.cid_lifetime()
    }
}

/// Datagrams that have come to another worker's socket, by the worker that they belong to.
pub(super) struct Strays(Box<[Mutex<Waiting>]>);

#[derive(Default)]
struct Waiting {
    datagrams: VecDeque<(RecvMeta, Box<[u8]>)>,
    bytes: usize,
    worker: Option<Waker>,
}

impl Strays {
    pub(super) fn new(shares: usize) -> Arc<Self> {
        Arc::new(Self(std::iter::repeat_with(Mutex::default).take(shares).collect()))
    }

    fn of(&self, share: usize) -> MutexGuard<'_, Waiting> {
        self.0[share].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a datagram to the worker that it belongs to.
    fn hand_on(&self, share: usize, meta: RecvMeta, datagram: &[u8]) {
        let mut waiting = self.of(share);
        if waiting.bytes + datagram.len() > WAITING_MAX {
            return;
        }
        waiting.bytes += datagram.len();
        waiting.datagrams.push_back((meta, datagram.into()));
        if let Some(worker) = waiting.worker.take() {
            worker.wake();
        }
    }

    /// Takes datagrams that others have handed on, as many as there are buffers. Without any, the next one wakes the task.
    fn take(&self, share: usize, cx: &Context<'_>, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> usize {
        let mut waiting = self.of(share);
        let mut taken = 0;
        for (buf, meta) in bufs.iter_mut().zip(meta) {
            let Some((of, datagram)) = waiting.datagrams.pop_front() else { break };
            waiting.bytes -= datagram.len();
            buf[..datagram.len()].copy_from_slice(&datagram);
            *meta = of;
            taken += 1;
        }
        if taken == 0 && !waiting.worker.as_ref().is_some_and(|worker| worker.will_wake(cx.waker())) {
            waiting.worker = Some(cx.waker().clone());
        }
        taken
    }
}

/// The socket of one worker among several at an address.
pub(super) struct Share {
    pub(super) socket: Arc<dyn AsyncUdpSocket>,
    pub(super) share: usize,
    pub(super) strays: Arc<Strays>,
}

impl Share {
    /// Hands on the datagrams of a buffer that belong to others; returns the length of those that stay, which move together.
    fn keep_own(&self, buf: &mut [u8], meta: &RecvMeta) -> usize {
        let shares = self.strays.0.len();
        let mut kept = 0;
        let mut at = 0;
        while at < meta.len {
            let end = meta.len.min(at + meta.stride.max(1));
            let owner = quic_share(&buf[at..end], shares);
            if owner == self.share {
                if kept < at {
                    buf.copy_within(at..end, kept);
                }
                kept += end - at;
            } else {
                self.strays.hand_on(owner, RecvMeta { len: end - at, stride: end - at, ..*meta }, &buf[at..end]);
            }
            at = end;
        }
        kept
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").field("socket", &self.socket).field("share", &self.share).finish_non_exhaustive()
    }
}

impl AsyncUdpSocket for Share {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.socket).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let strays = self.strays.take(self.share, cx, bufs, meta);
        if strays > 0 {
            return Poll::Ready(Ok(strays));
        }
        let received = self.socket.poll_recv(cx, bufs, meta);
        if let Poll::Ready(Ok(count)) = received {
            for (buf, meta) in bufs.iter_mut().zip(meta).take(count) {
                meta.len = self.keep_own(buf, meta);
            }
        }
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn ids_lead_to_their_worker() {
        for share in 0..5 {
            let mut ids = OwnIds::new(share, 5);
            let made: Vec<ConnectionId> = (0..100).map(|_| ids.generate_cid()).collect();
            assert!(made.iter().all(|id| quic_share_of_id(id[0], 5) == share && ids.validate(id).is_ok()));
        }
    }

    /// A socket that has received these datagrams of equal length, joined.
    #[derive(Debug)]
    struct Received(Mutex<Option<Vec<u8>>>, usize);

    impl AsyncUdpSocket for Received {
        fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
            panic!("nothing is sent")
        }

        fn try_send(&self, _: &Transmit<'_>) -> io::Result<()> {
            panic!("nothing is sent")
        }

        fn poll_recv(
            &self,
            _: &mut Context<'_>,
            bufs: &mut [IoSliceMut<'_>],
            meta: &mut [RecvMeta],
        ) -> Poll<io::Result<usize>> {
            let Some(all) = self.0.lock().unwrap().take() else { return Poll::Pending };
            bufs[0][..all.len()].copy_from_slice(&all);
            meta[0] = RecvMeta { len: all.len(), stride: self.1, ..RecvMeta::default() };
            Poll::Ready(Ok(1))
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            Ok(SocketAddr::from(([127, 0, 0, 1], 1)))
        }
    }

    #[test]
    fn joined_datagrams_part() {
        let strays = Strays::new(2);
        let share = |share, datagrams: &[u8]| Share {
            socket: Arc::new(Received(Mutex::new(Some(datagrams.to_vec())), 3)),
            share,
            strays: Arc::clone(&strays),
        };
        // The bytes of each buffer that a worker reads, and the length of a datagram in it.
        let read = |share: &Share| {
            let (mut first, mut second) = ([0; 32], [0; 32]);
            let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
            let mut meta = [RecvMeta::default(); 2];
            match share.poll_recv(&mut Context::from_waker(Waker::noop()), &mut bufs, &mut meta) {
                Poll::Ready(count) => (0..count.unwrap())
                    .map(|at| (bufs[at][..meta[at].len].to_vec(), meta[at].stride))
                    .collect::<Vec<_>>(),
                Poll::Pending => Vec::new(),
            }
        };
        // Short headers, whose second byte begins the id; the last datagram is shorter.
        let (even, odd) = (share(0, b"@\0a@\x01b@\x02c@\x03"), share(1, b"@\x01d"));
        assert_eq!(read(&even), [(b"@\0a@\x02c".to_vec(), 3)]);
        assert_eq!(read(&odd), [(b"@\x01b".to_vec(), 3), (b"@\x03".to_vec(), 2)]);
        assert_eq!(read(&odd), [(b"@\x01d".to_vec(), 3)]);
        assert_eq!((read(&odd), read(&even)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn waiting_datagrams_are_bounded() {
        let strays = Strays::new(2);
        for _ in 0..WAITING_MAX / 1000 * 2 {
            strays.hand_on(1, RecvMeta::default(), &[0; 1000]);
        }
        let bytes: usize = strays.of(1).datagrams.iter().map(|(_, datagram)| datagram.len()).sum();
        assert!(bytes <= WAITING_MAX && bytes > WAITING_MAX - 1000 && bytes == strays.of(1).bytes);
    }
}
