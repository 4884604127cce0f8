//! UDP, one thread; answers that wait do not hold up others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::protocol::Keys;
use super::{Behaviour, Fault, Record};

/// An answer that waits: when it is due, when its request came, for whom, what.
type Waiting = Reverse<(Instant, Instant, SocketAddr, Vec<u8>)>;

pub(super) fn serve(behaviour: Behaviour, record: Arc<Record>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut waiting: BinaryHeap<Waiting> = BinaryHeap::new();
        let mut buffer = [0; 2000];
        loop {
            let now = Instant::now();
            while waiting.peek().is_some_and(|Reverse((due, ..))| *due <= now) {
                let Some(Reverse((_, arrived, peer, answer))) = waiting.pop() else { break };
                record.answers(arrived);
                // A peer that has gone is no failure of ours.
                let _ = socket.send_to(&answer, peer);
            }
            let patience = waiting.peek().map(|Reverse((due, ..))| due.saturating_duration_since(now));
            socket.set_read_timeout(patience.map(|wait| wait.max(Duration::from_micros(1)))).unwrap();
            let Ok((length, peer)) = socket.recv_from(&mut buffer) else { continue };
            let (arrived, request) = (Instant::now(), &buffer[..length]);
            let order = record.arrived(&behaviour, u64::from(peer.port()), request);
            let answer = behaviour.dialect.answer(request, &mut Keys::new(), order.is_wrong);
            record.stall(&behaviour);
            let due = arrived + order.delay;
            match order.fault {
                None => waiting.push(Reverse((due, arrived, peer, answer))),
                Some(Fault::Twice) => {
                    waiting.push(Reverse((due, arrived, peer, answer.clone())));
                    waiting.push(Reverse((due, arrived, peer, answer)));
                }
                Some(Fault::Late(delay)) => waiting.push(Reverse((due + delay, arrived, peer, answer))),
                Some(Fault::Garbage) => waiting.push(Reverse((due, arrived, peer, b"\xff\xfe?".to_vec()))),
                Some(Fault::HalfAnswer) => {
                    waiting.push(Reverse((due, arrived, peer, answer[..answer.len() / 2].to_vec())));
                }
                Some(Fault::Silence | Fault::Reset) => {}
            }
        }
    });
    address
}
