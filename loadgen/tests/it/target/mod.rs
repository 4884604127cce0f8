//! Servers whose behaviour is known: they delay, answer wrongly, or fail as they are told, and count what they did.

mod broker;
mod datagrams;
mod many;
mod protocol;
#[cfg(feature = "http3")]
mod quic;
mod streams;
mod tls;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use broker::{Broker, Harm};
pub(crate) use many::many;
pub(crate) use protocol::Dialect;
#[cfg(feature = "http3")]
pub(crate) use quic::{Act, Deed, HEAD, Place, Plan, QuicServer, answer, answer_after};
pub(crate) use tls::{Certificate, certificate, serve_tls};

/// The behaviour of a target.
#[derive(Clone, Default)]
pub(crate) struct Behaviour {
    /// Its protocol.
    pub(crate) dialect: Dialect,
    /// How long each answer waits.
    pub(crate) delay: Delay,
    /// Every so many requests one answer is wrong.
    pub(crate) wrong_every: Option<u64>,
    /// How many requests come before any that is answered wrongly.
    pub(crate) right_first: u64,
    /// Every so many requests, what goes wrong with the connection, or the datagram, instead of an answer.
    pub(crate) fault: Option<(u64, Fault)>,
    /// When all answers wait, from the first request on, and for how long.
    pub(crate) stall: Option<(Duration, Duration)>,
    /// Whether the requests' bytes are kept.
    pub(crate) keeps_requests: bool,
    /// TLS with this certificate.
    pub(crate) tls: Option<Certificate>,
}

/// How long answers wait.
#[derive(Clone, Copy, Default)]
pub(crate) enum Delay {
    #[default]
    None,
    Constant(Duration),
    /// Every so many requests the second, else the first.
    Bimodal(Duration, u64, Duration),
}

/// A fault in place of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection is reset (TCP's RST).
    Reset,
    /// Nothing comes, the connection stays.
    Silence,
    /// Half of the answer, then the end.
    HalfAnswer,
    /// Bytes that no protocol has.
    Garbage,
    /// The answer comes twice.
    Twice,
    /// The answer comes after so long.
    Late(Duration),
}

/// A running target. It ends with the test's process.
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    record: Arc<Record>,
}

/// The target's record of its actions.
#[derive(Default)]
struct Record {
    requests: AtomicU64,
    wrong: AtomicU64,
    faults: AtomicU64,
    connections: AtomicU64,
    /// Nanoseconds between a request's arrival and the sending of its answer.
    delays: Mutex<Vec<u64>>,
    /// Connection and bytes of each request, as they came.
    kept: Mutex<Vec<(u64, Vec<u8>)>>,
    /// When the first request came, and how long the stall really was.
    first: Mutex<Option<Instant>>,
    stalled: Mutex<Duration>,
}

impl Target {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let record = Arc::new(Record::default());
        let address = match behaviour.dialect {
            Dialect::EchonetUdp => datagrams::serve(behaviour, record.clone()),
            Dialect::Redis | Dialect::Http | Dialect::WebSocket | Dialect::EchonetTcp => {
                streams::serve(behaviour, record.clone())
            }
        };
        Self { address, record }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.record.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn wrong(&self) -> u64 {
        self.record.wrong.load(Ordering::SeqCst)
    }

    pub(crate) fn faults(&self) -> u64 {
        self.record.faults.load(Ordering::SeqCst)
    }

    /// The delays in nanoseconds, in order of length.
    pub(crate) fn delays(&self) -> Vec<u64> {
        let mut delays = self.record.delays.lock().unwrap().clone();
        delays.sort_unstable();
        delays
    }

    /// How long the stall really lasted.
    pub(crate) fn stalled(&self) -> Duration {
        *self.record.stalled.lock().unwrap()
    }

    /// How many requests each connection had.
    pub(crate) fn requests_by_connection(&self) -> Vec<usize> {
        let kept = self.record.kept.lock().unwrap();
        let mut counts = std::collections::BTreeMap::new();
        kept.iter().for_each(|(connection, _)| *counts.entry(*connection).or_insert(0) += 1);
        counts.into_values().collect()
    }

    /// The requests by connection, each in its order.
    pub(crate) fn kept(&self) -> Vec<Vec<u8>> {
        let mut kept = self.record.kept.lock().unwrap().clone();
        kept.sort_by_key(|(connection, _)| *connection);
        kept.into_iter().map(|(_, request)| request).collect()
    }
}

/// The treatment of one request.
struct Order {
    delay: Duration,
    is_wrong: bool,
    fault: Option<Fault>,
}

impl Record {
    /// Counts a request that has just arrived, and decides about it.
    fn arrived(&self, behaviour: &Behaviour, connection: u64, request: &[u8]) -> Order {
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let is_nth = |every: u64| number.is_multiple_of(every);
        if behaviour.keeps_requests {
            self.kept.lock().unwrap().push((connection, request.to_vec()));
        }
        let fault = behaviour.fault.filter(|(every, _)| is_nth(*every)).map(|(_, fault)| fault);
        let is_wrong = fault.is_none() && number > behaviour.right_first && behaviour.wrong_every.is_some_and(is_nth);
        self.faults.fetch_add(u64::from(fault.is_some()), Ordering::SeqCst);
        self.wrong.fetch_add(u64::from(is_wrong), Ordering::SeqCst);
        let delay = match behaviour.delay {
            Delay::None => Duration::ZERO,
            Delay::Constant(delay) => delay,
            Delay::Bimodal(_, every, slow) if is_nth(every) => slow,
            Delay::Bimodal(fast, _, _) => fast,
        };
        Order { delay, is_wrong, fault }
    }

    /// Waits out the stall if there is one now.
    fn stall(&self, behaviour: &Behaviour) {
        let Some((after, length)) = behaviour.stall else { return };
        let now = Instant::now();
        let first = *self.first.lock().unwrap().get_or_insert(now);
        let (from, until) = (first + after, first + after + length);
        if now >= from && now < until {
            thread::sleep(until - now);
            let mut stalled = self.stalled.lock().unwrap();
            *stalled = (*stalled).max(from.elapsed());
        }
    }

    /// An answer is about to be sent. Not later: its reader may be quicker than we to look at the clock.
    fn answers(&self, arrived: Instant) {
        self.delays.lock().unwrap().push(arrived.elapsed().as_nanos() as u64);
    }
}
