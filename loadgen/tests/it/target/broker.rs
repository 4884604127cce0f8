//! A broker of Redis' pub/sub, whose deliveries take as long as they are told to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::Delay;

/// A running broker. It ends with the test's process.
pub(crate) struct Broker {
    pub(crate) address: SocketAddr,
    record: Arc<Record>,
}

/// A fault in every n-th delivery.
#[derive(Clone, Copy)]
pub(crate) enum Harm {
    Nothing,
    /// It does not take place, though it was promised.
    Lost(u64),
    /// Its last byte is another one.
    Changed(u64),
    /// A subscription takes so long.
    LateSubscriptions(Duration),
}

/// The broker's record of its actions.
#[derive(Default)]
struct Record {
    /// Channels, with the subscribers of each.
    subscribers: Mutex<Vec<(Vec<u8>, TcpStream)>>,
    /// Nanoseconds between a message's arrival and each delivery.
    delays: Mutex<Vec<u64>>,
    harmed: Mutex<u64>,
}

/// A delivery that waits: when it is due, when the message came, its channel, and what is sent.
type Waiting = (Instant, Instant, Vec<u8>, Vec<u8>);

impl Broker {
    pub(crate) fn start(delay: Delay, harm: Harm) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let record = Arc::new(Record::default());
        let (sender, receiver) = mpsc::channel();
        let delivering = Arc::clone(&record);
        thread::spawn(move || deliver(&receiver, &delivering, harm));
        let kept = Arc::clone(&record);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (record, sender) = (Arc::clone(&record), sender.clone());
                // The peer may end at any time; that is its right.
                thread::spawn(move || converse(stream, &record, &sender, (delay, harm)));
            }
        });
        Self { address, record: kept }
    }

    /// The delays of all deliveries in nanoseconds, in order of length.
    pub(crate) fn delays(&self) -> Vec<u64> {
        let mut delays = self.record.delays.lock().unwrap().clone();
        delays.sort_unstable();
        delays
    }

    /// How many deliveries were lost or changed.
    pub(crate) fn harmed(&self) -> u64 {
        *self.record.harmed.lock().unwrap()
    }
}

fn deliver(waiting: &Receiver<Waiting>, record: &Record, harm: Harm) {
    let (mut heap, mut number): (BinaryHeap<Reverse<Waiting>>, u64) = (BinaryHeap::new(), 0);
    loop {
        let patience = heap
            .peek()
            .map_or(Duration::from_secs(3600), |Reverse((due, ..))| due.saturating_duration_since(Instant::now()));
        match waiting.recv_timeout(patience) {
            Ok(delivery) => heap.push(Reverse(delivery)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while heap.peek().is_some_and(|Reverse((due, ..))| *due <= Instant::now()) {
            let Some(Reverse((_, arrived, channel, mut message))) = heap.pop() else { break };
            for (_, stream) in record.subscribers.lock().unwrap().iter_mut().filter(|(name, _)| *name == channel) {
                number += 1;
                match harm {
                    Harm::Lost(every) if number.is_multiple_of(every) => {
                        *record.harmed.lock().unwrap() += 1;
                        continue;
                    }
                    Harm::Changed(every) if number.is_multiple_of(every) => {
                        *record.harmed.lock().unwrap() += 1;
                        let last = message.len() - 3;
                        message[last] ^= 1;
                        let _ = stream.write_all(&message);
                        message[last] ^= 1;
                        continue;
                    }
                    Harm::Nothing | Harm::Lost(_) | Harm::Changed(_) | Harm::LateSubscriptions(_) => {}
                }
                record.delays.lock().unwrap().push(arrived.elapsed().as_nanos() as u64);
                let _ = stream.write_all(&message);
            }
        }
    }
}

fn converse(
    mut stream: TcpStream,
    record: &Record,
    sender: &Sender<Waiting>,
    (delay, harm): (Delay, Harm),
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut unread, mut buffer, mut number) = (Vec::new(), vec![0; 64 << 10], 0_u64);
    loop {
        let count = test_peers::read(&mut stream, &mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let arrived = Instant::now();
        unread.extend_from_slice(&buffer[..count]);
        while let Some((words, length)) = super::protocol::words(&unread) {
            match &words[..] {
                [b"SUBSCRIBE", channel] => {
                    if let Harm::LateSubscriptions(late) = harm {
                        thread::sleep(late);
                    }
                    let confirmed = format!(
                        "*3\r\n$9\r\nsubscribe\r\n${}\r\n{}\r\n:1\r\n",
                        channel.len(),
                        String::from_utf8_lossy(channel)
                    );
                    let mut subscribers = record.subscribers.lock().unwrap();
                    stream.write_all(confirmed.as_bytes())?;
                    subscribers.push((channel.to_vec(), stream.try_clone()?));
                }
                [b"PUBLISH", channel, message] => {
                    number += 1;
                    let told = ["message".as_bytes(), channel, message]
                        .map(|word| [format!("${}\r\n", word.len()).as_bytes(), word, b"\r\n"].concat());
                    let wait = match delay {
                        Delay::None => Duration::ZERO,
                        Delay::Constant(delay) => delay,
                        Delay::Bimodal(_, every, slow) if number.is_multiple_of(every) => slow,
                        Delay::Bimodal(fast, _, _) => fast,
                    };
                    let receivers =
                        record.subscribers.lock().unwrap().iter().filter(|(name, _)| name == channel).count();
                    let _ = sender.send((
                        arrived + wait,
                        arrived,
                        channel.to_vec(),
                        [b"*3\r\n", &told.concat()[..]].concat(),
                    ));
                    stream.write_all(format!(":{receivers}\r\n").as_bytes())?;
                }
                _ => stream.write_all(b"-ERR unknown command\r\n")?,
            }
            unread.drain(..length);
        }
    }
}
