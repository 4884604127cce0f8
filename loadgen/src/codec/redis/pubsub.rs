//! Redis' pub/sub: some connections publish, the others subscribe, and every message carries the time at which it was due, so that the
//! receiver knows how long its delivery took.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng as _;

use super::command::append_request;
use super::login::Login;
use super::reply::{self, LONGEST_BULK, Reader, Reply};
use super::value::Value;
use crate::clock::Nanos;
use crate::codec::fifo::{Asked, InFlight};
use crate::codec::{Broken, Protocol, Received, shown};
use crate::record::{Failure, Tally};
use crate::workload::{Source, Values};

/// Digits before a message's text: the time at which it was due, and its number.
const TIME_DIGITS: usize = 16;
const NUMBER_DIGITS: usize = 12;
/// The bytes of a message before its text.
pub(crate) const MESSAGE_HEAD: usize = TIME_DIGITS + NUMBER_DIGITS;

/// Publishers, messages and subscribers.
#[derive(Clone, Debug)]
pub struct PubSubSettings {
    /// Connections that subscribe; they have the first seats.
    pub subscribers: usize,
    /// How many channels there are.
    pub channels: usize,
    /// The text before a channel's number.
    pub channel: String,
    /// SPUBLISH and SSUBSCRIBE in place of PUBLISH and SUBSCRIBE.
    pub sharded: bool,
    /// The text behind a message's time and number.
    pub values: Values,
    /// The first commands of each connection.
    pub login: Login,
    /// Whether messages are looked at, not only counted.
    pub verify: bool,
}

/// One run of pub/sub.
#[derive(Debug)]
pub struct PubSub {
    settings: PubSubSettings,
    login: Vec<u8>,
    login_replies: u32,
    /// The channels' names.
    channels: Vec<String>,
    /// Deliveries that the server has said it makes, and those that have arrived.
    promised: AtomicU64,
    arrived: AtomicU64,
}

/// One connection's state.
#[derive(Clone, Debug)]
pub struct PubSubConnection {
    greeted: bool,
    login_left: u32,
    role: Role,
}

#[derive(Clone, Debug)]
enum Role {
    Publisher { in_flight: InFlight, reader: Reader },
    Subscriber { seat: usize, unconfirmed: usize },
}

impl PubSub {
    /// A run; what one subscriber receives is counted for all.
    #[must_use]
    pub fn new(settings: &PubSubSettings) -> Self {
        let (login, login_replies) = settings.login.encode();
        let channels = (0..settings.channels).map(|number| format!("{}:{number}", settings.channel)).collect();
        Self {
            settings: settings.clone(),
            login,
            login_replies,
            channels,
            promised: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
        }
    }

    /// The channels of a subscriber: every channel has at least one, and no subscriber has none.
    fn channels_of(&self, seat: usize) -> impl Iterator<Item = &str> {
        let channels = self.channels.len();
        (seat % channels..channels).step_by(self.settings.subscribers).map(|number| &*self.channels[number])
    }

    /// Appends a message.
    fn append_message(&self, intended: Nanos, number: u64, channel: &str, out: &mut Vec<u8>) {
        let values = &self.settings.values;
        let command: &[u8] =
            if self.settings.sharded { b"*3\r\n$8\r\nSPUBLISH\r\n$" } else { b"*3\r\n$7\r\nPUBLISH\r\n$" };
        let mut digits = itoa::Buffer::new();
        out.extend_from_slice(command);
        out.extend_from_slice(digits.format(channel.len()).as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(channel.as_bytes());
        out.extend_from_slice(b"\r\n$");
        out.extend_from_slice(digits.format(MESSAGE_HEAD + values.size(number)).as_bytes());
        out.extend_from_slice(b"\r\n");
        append_hexadecimal::<TIME_DIGITS>(intended, out);
        append_hexadecimal::<NUMBER_DIGITS>(number, out);
        values.append(number, out);
        out.extend_from_slice(b"\r\n");
    }

    /// A message has come.
    fn deliver(&self, message: &[u8], tally: &mut Tally) {
        let Some(head) = message.get(..MESSAGE_HEAD) else {
            return tally.unexpected();
        };
        let (Some(intended), Some(number)) = (hexadecimal(&head[..TIME_DIGITS]), hexadecimal(&head[TIME_DIGITS..]))
        else {
            // Another program publishes there.
            return tally.unexpected();
        };
        self.arrived.fetch_add(1, Ordering::Relaxed);
        let text = &message[MESSAGE_HEAD..];
        if self.settings.verify && !self.settings.values.matches(number, text) {
            let example = || format!("message {number}: its text is not that which was published: `{}`", shown(text));
            return tally.delivered_wrongly(intended, example);
        }
        tally.delivered(intended);
    }

    fn receive_as_subscriber(&self, unconfirmed: &mut usize, input: &[u8], tally: &mut Tally) -> Result<usize, Broken> {
        let mut consumed = 0;
        while let Some(Event { kind, last, length }) = event(&input[consumed..])? {
            consumed += length;
            match kind {
                b"message" | b"smessage" => self.deliver(last, tally),
                b"subscribe" | b"ssubscribe" => *unconfirmed = unconfirmed.saturating_sub(1),
                other => return Err(reply::unexpected("a message", other)),
            }
        }
        Ok(consumed)
    }

    fn account(&self, in_flight: &mut InFlight, reply: &Reply<'_>, tally: &mut Tally) -> Result<(), Broken> {
        let Some(asked) = in_flight.pop() else {
            return Err(reply.unasked());
        };
        match reply {
            Reply::Line(b':', digits) => {
                let receivers = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0);
                self.promised.fetch_add(receivers, Ordering::Relaxed);
                tally.promised(asked.intended, receivers);
                tally.finished(0, asked.intended);
            }
            Reply::Error(text) => tally.failed(asked.intended, Failure::Rejected, || shown(text)),
            Reply::Line(..) | Reply::Bulk(_) | Reply::Nil | Reply::Other => {
                let example = || format!("expected the number of receivers, read {}", reply.describe());
                tally.failed(asked.intended, Failure::Wrong, example);
            }
        }
        Ok(())
    }

    /// Reads answers to the login. Gives how much was read, and whether that was all.
    fn receive_login(&self, connection: &mut PubSubConnection, input: &[u8]) -> Result<(usize, bool), Broken> {
        let mut consumed = 0;
        while connection.login_left > 0 {
            let Some((value, length)) = Value::parse(&input[consumed..])? else {
                return Ok((consumed, false));
            };
            if let Value::Error(text) = value {
                return Err(reply::login_refused(&text));
            }
            consumed += length;
            connection.login_left -= 1;
        }
        Ok((consumed, true))
    }
}

impl Protocol for PubSub {
    type Connection = PubSubConnection;

    // Messages of one thread arrive at another one.
    const TOGETHER: bool = true;

    fn operations(&self) -> Vec<String> {
        vec![if self.settings.sharded { "SPUBLISH" } else { "PUBLISH" }.to_owned()]
    }

    fn connect(&self, seat: usize) -> PubSubConnection {
        let role = if seat < self.settings.subscribers {
            Role::Subscriber { seat, unconfirmed: self.channels_of(seat).count() }
        } else {
            Role::Publisher { in_flight: InFlight::default(), reader: Reader::default() }
        };
        PubSubConnection { greeted: false, login_left: self.login_replies, role }
    }

    fn control(&self, connection: &mut PubSubConnection, out: &mut Vec<u8>) {
        if std::mem::replace(&mut connection.greeted, true) {
            return;
        }
        out.extend_from_slice(&self.login);
        if let Role::Subscriber { seat, .. } = connection.role {
            let command = if self.settings.sharded { "SSUBSCRIBE" } else { "SUBSCRIBE" };
            for channel in self.channels_of(seat) {
                append_request([command.as_bytes(), channel.as_bytes()].into_iter(), out);
            }
        }
    }

    fn room(&self, connection: &PubSubConnection) -> usize {
        let is_ready = connection.greeted && connection.login_left == 0;
        match connection.role {
            // Its first words are said with the first request, if not before.
            Role::Publisher { .. } if is_ready || self.login_replies == 0 => usize::MAX,
            Role::Publisher { .. } | Role::Subscriber { .. } => 0,
        }
    }

    // A message that is published before all subscribers are ready reaches fewer.
    fn is_prepared(&self, connection: &PubSubConnection) -> bool {
        !matches!(connection.role, Role::Subscriber { unconfirmed: 1.., .. })
    }

    fn listens(&self, connection: &PubSubConnection) -> bool {
        matches!(connection.role, Role::Subscriber { .. })
    }

    fn in_flight(&self, connection: &PubSubConnection) -> usize {
        match &connection.role {
            Role::Publisher { in_flight, .. } => in_flight.len(),
            // The remaining receivers of a message are not known: all wait.
            Role::Subscriber { .. } => {
                usize::from(self.promised.load(Ordering::Relaxed) > self.arrived.load(Ordering::Relaxed))
            }
        }
    }

    fn begin(&self, connection: &mut PubSubConnection, intended: Nanos, source: &mut Source, out: &mut Vec<u8>) {
        let Role::Publisher { in_flight, .. } = &mut connection.role else {
            return;
        };
        let channel = match &self.channels[..] {
            [only] => only,
            channels => &channels[source.rng.random_range(0..channels.len())],
        };
        let number = source.next_in_sequence();
        self.append_message(intended, number, channel, out);
        in_flight.push(Asked { intended, key: number, operation: 0 });
    }

    fn receive(&self, connection: &mut PubSubConnection, input: &[u8], tally: &mut Tally) -> Result<Received, Broken> {
        let (mut consumed, is_done) = self.receive_login(connection, input)?;
        if !is_done {
            return Ok(Received { consumed, close: false });
        }
        match &mut connection.role {
            Role::Subscriber { unconfirmed, .. } => {
                consumed += self.receive_as_subscriber(unconfirmed, &input[consumed..], tally)?;
            }
            Role::Publisher { in_flight, reader } => loop {
                let (read, reply) = reader.read(&input[consumed..], false)?;
                consumed += read;
                let Some(reply) = reply else { break };
                self.account(in_flight, &reply, tally)?;
            },
        }
        Ok(Received { consumed, close: false })
    }

    fn expire(&self, connection: &mut PubSubConnection, before: Nanos, tally: &mut Tally) -> bool {
        match &mut connection.role {
            Role::Publisher { in_flight, .. } => in_flight.expire(before, tally),
            Role::Subscriber { .. } => false,
        }
    }

    fn abandon(&self, connection: &mut PubSubConnection, failure: Failure, tally: &mut Tally) {
        match &mut connection.role {
            Role::Publisher { in_flight, .. } => in_flight.abandon(failure, tally),
            // At the end of a run no connection is lost, but messages may be.
            Role::Subscriber { .. } if failure == Failure::TimedOut => {}
            Role::Subscriber { .. } => tally.connection_failed(failure, String::new),
        }
    }
}

/// An event for a subscriber.
struct Event<'a> {
    kind: &'a [u8],
    /// The last text in it: a message.
    last: &'a [u8],
    /// How long all of it is.
    length: usize,
}

/// Reads what a subscriber is told; nothing if it is not complete.
fn event(input: &[u8]) -> Result<Option<Event<'_>>, Broken> {
    let Some((line, mut at)) = reply::line(input)? else {
        return Ok(None);
    };
    let elements = match line[0] {
        b'*' | b'>' => reply::length(line, 16)?.unwrap_or(0),
        b'-' => return Err(Broken { failure: Failure::Rejected, example: shown(&line[1..]) }),
        _ => return Err(reply::unexpected("a message", line)),
    };
    let (mut kind, mut last): (&[u8], &[u8]) = (b"", b"");
    for element in 0..elements {
        let Some((line, length)) = reply::line(&input[at..])? else {
            return Ok(None);
        };
        at += length;
        match line[0] {
            b':' | b'_' => {}
            b'$' => {
                let length = reply::length(line, LONGEST_BULK)?.unwrap_or(0) as usize;
                let Some(text) = input[at..].get(..length + 2) else {
                    return Ok(None);
                };
                at += text.len();
                last = &text[..length];
                if element == 0 {
                    kind = last;
                }
            }
            _ => return Err(reply::unexpected("a text or a number in a message", line)),
        }
    }
    Ok(Some(Event { kind, last, length: at }))
}

/// Appends the last `DIGITS` digits of a number.
fn append_hexadecimal<const DIGITS: usize>(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
    out.extend_from_slice(&digits);
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Window;
    use crate::workload::Sizes;

    fn pubsub(subscribers: usize, channels: usize, login: Login) -> PubSub {
        PubSub::new(&PubSubSettings {
            subscribers,
            channels,
            channel: "c".to_owned(),
            sharded: false,
            values: Values::new(Sizes::Fixed(3), 0).unwrap(),
            login,
            verify: true,
        })
    }

    fn tally() -> Tally {
        let mut tally = Tally::new(1);
        tally.set_window(Window::Open { from: 0, until: 1000 });
        tally
    }

    #[test]
    fn every_channel_has_a_subscriber_and_every_subscriber_a_channel() {
        #[track_caller]
        fn check(subscribers: usize, channels: usize, expected: &[&[&str]]) {
            let pubsub = pubsub(subscribers, channels, Login::default());
            let found: Vec<Vec<&str>> = (0..subscribers).map(|seat| pubsub.channels_of(seat).collect()).collect();
            assert_eq!(found, expected);
        }
        check(1, 3, &[&["c:0", "c:1", "c:2"]]);
        check(2, 3, &[&["c:0", "c:2"], &["c:1"]]);
        check(3, 2, &[&["c:0"], &["c:1"], &["c:0"]]);
        check(2, 1, &[&["c:0"], &["c:0"]]);
    }

    #[test]
    fn a_message_tells_when_it_was_due() {
        let pubsub = pubsub(1, 1, Login::default());
        let (mut publisher, mut subscriber, mut tally) = (pubsub.connect(1), pubsub.connect(0), tally());
        let (mut out, mut source) = (Vec::new(), Source::new(0, 0, 1));
        pubsub.control(&mut subscriber, &mut out);
        assert_eq!(std::mem::take(&mut out), b"*2\r\n$9\r\nSUBSCRIBE\r\n$3\r\nc:0\r\n");
        assert_eq!((pubsub.is_prepared(&subscriber), pubsub.is_prepared(&publisher)), (false, true));
        assert_eq!((pubsub.room(&subscriber), pubsub.room(&publisher)), (0, usize::MAX));
        pubsub.begin(&mut publisher, 0x123, &mut source, &mut out);
        let message = "0000000000000123000000000000000";
        let expected = format!("*3\r\n$7\r\nPUBLISH\r\n$3\r\nc:0\r\n$31\r\n{message}\r\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        tally.set_now(0x153);
        pubsub.receive(&mut publisher, b":1\r\n", &mut tally).unwrap();
        assert_eq!((pubsub.in_flight(&publisher), pubsub.in_flight(&subscriber)), (0, 1));
        for kind in ["*3\r\n$7\r\nmessage", ">3\r\n$7\r\nmessage"] {
            let told =
                format!("*3\r\n$9\r\nsubscribe\r\n$3\r\nc:0\r\n:1\r\n{kind}\r\n$3\r\nc:0\r\n$31\r\n{message}\r\n");
            // Cut at every byte.
            for cut in 0..told.len() {
                let mut unread = told.as_bytes()[..cut].to_vec();
                let received = pubsub.receive(&mut subscriber, &unread, &mut tally).unwrap();
                unread.drain(..received.consumed);
                unread.extend_from_slice(&told.as_bytes()[cut..]);
                assert_eq!(
                    pubsub.receive(&mut subscriber, &unread, &mut tally).unwrap().consumed,
                    unread.len(),
                    "{cut}"
                );
            }
            assert_eq!((pubsub.in_flight(&subscriber), pubsub.is_prepared(&subscriber)), (0, true));
        }
        let deliveries = tally.deliveries();
        assert_eq!((deliveries.promised, deliveries.latencies.max().as_nanos()), (1, 0x30));
        assert_eq!((tally.failures().total(), tally.unexpected_answers()), (0, 0));
    }

    #[test]
    fn wrong_and_unexpected_messages_are_reported() {
        let pubsub = pubsub(1, 1, Login { resp3: true, ..Login::default() });
        let (mut subscriber, mut tally) = (pubsub.connect(0), tally());
        assert_eq!(pubsub.room(&pubsub.connect(1)), 0);
        pubsub.control(&mut subscriber, &mut Vec::new());
        pubsub.receive(&mut subscriber, b"%0\r\n", &mut tally).unwrap();
        let mut told = |text: &str| {
            let message = format!(">3\r\n$7\r\nmessage\r\n$3\r\nc:0\r\n${}\r\n{text}\r\n", text.len());
            pubsub.receive(&mut subscriber, message.as_bytes(), &mut tally).map(drop)
        };
        told("0000000000000001000000000000001").unwrap();
        told("hello").unwrap();
        told("what somebody else has published there").unwrap();
        assert_eq!(tally.failures().list()[0].examples, ["message 0: its text is not that which was published: `001`"]);
        assert_eq!((tally.failures().count(Failure::Wrong), tally.unexpected_answers()), (1, 2));
        for (text, example) in [
            ("-NOPERM no", "NOPERM no"),
            ("+OK", "expected a message, read `+OK`"),
            ("*1\r\n$4\r\npong", "expected a message, read `pong`"),
        ] {
            let broken = pubsub.receive(&mut subscriber, format!("{text}\r\n").as_bytes(), &mut tally).unwrap_err();
            assert_eq!(broken.example, example);
        }
    }
}
