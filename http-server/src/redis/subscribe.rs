//! Subscriptions: one more connection for each worker thread, shared by all who listen there.
//!
//! A topic is asked for when its first listener comes and given up when its last one leaves. Listeners that do not keep up
//! are let go, as Redis does; one connection's end does not end them, they are told of the gap.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, WriteHalf};
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::sleep;
use tracing::warn;

use super::client::Redis;
use super::connect::Io;
use super::reply::{Element, Elements};
use super::session::BackOff;
use super::wire::{Scan, Scanner, put_command};

/// Most events that wait for one listener.
const MAX_EVENTS: usize = 1024;

/// Most bytes of messages that wait for one listener, 8 MiB: Redis' soft limit for a subscriber.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of a message as JSON beyond twice what it says, up to which it is kept: names of fields, and characters that are escaped.
const SHORT_JSON: usize = 256;

/// Bytes of subscriptions that wait for Redis to read them; beyond, the connection is made anew, which asks for those alone
/// that still have listeners.
const MAX_ASKED: usize = 1024 * 1024;

/// Bytes read at once.
const INPUT: usize = 64 * 1024;

thread_local! {
    /// This thread's connections for subscriptions, by the identity of their [`Redis`].
    static HUBS: RefCell<Vec<Rc<Hub>>> = const { RefCell::new(Vec::new()) };
}

/// A channel, or a pattern of channels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Topic {
    /// Whether it is a pattern.
    pub is_pattern: bool,
    /// Its name.
    pub name: Bytes,
}

/// An event of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// From here on, no message of this topic is missed.
    Subscribed(Topic),
    /// A message.
    Message(Message),
    /// The connection is lost, and messages with it until [`Event::Subscribed`] comes again.
    Lost(Arc<str>),
}

/// A message that was published.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Message {
    /// The pattern that its channel matches, if the listener asked for one.
    pub pattern: Option<Bytes>,
    /// Its channel.
    pub channel: Bytes,
    /// The message's content.
    pub message: Bytes,
    /// It as JSON, once a listener has needed it.
    json: Arc<OnceLock<Bytes>>,
}

impl Message {
    pub(crate) fn new(pattern: Option<Bytes>, channel: Bytes, message: Bytes) -> Self {
        Self { pattern, channel, message, json: Arc::default() }
    }

    fn len(&self) -> usize {
        self.channel.len() + self.message.len()
    }

    /// It as JSON, which is made once for all who hear it. Where it is much longer so, it is made again rather than kept for those who do
    /// not keep up: messages that wait for them count with their plain length.
    pub(crate) fn json(&self, make: impl FnOnce() -> Bytes) -> Bytes {
        if let Some(json) = self.json.get() {
            return json.clone();
        }
        let json = make();
        if json.len() <= 2 * self.len() + SHORT_JSON {
            // Another listener that was first has made the same.
            let _ = self.json.set(json.clone());
        }
        json
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        (&self.pattern, &self.channel, &self.message) == (&other.pattern, &other.channel, &other.message)
    }
}

impl Eq for Message {}

impl Event {
    fn len(&self) -> usize {
        match self {
            Self::Subscribed(topic) => topic.name.len(),
            Self::Message(message) => message.len(),
            Self::Lost(why) => why.len(),
        }
    }
}

/// A listener's events, from its topics.
#[derive(Debug)]
pub struct Subscription {
    events: Receiver<Event>,
    waiting: Arc<AtomicUsize>,
    hub: usize,
    listener: u64,
    topics: Vec<Topic>,
}

impl Subscription {
    /// The next event; `None` when this listener has been let go, because it did not keep up.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let next = self.events.poll_recv(cx);
        if let Poll::Ready(Some(event)) = &next {
            self.waiting.fetch_sub(event.len(), Relaxed);
        }
        next
    }

    /// The next event, as [`Subscription::poll_next`].
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(hub) = find(self.hub) {
            hub.leave(self.listener, &self.topics);
        }
    }
}

impl Redis {
    /// Listens to topics. To be called and dropped on one thread, inside its tokio runtime.
    pub fn subscribe(&self, topics: Vec<Topic>) -> Subscription {
        let hub = find(self.id()).unwrap_or_else(|| self.hub());
        let (sender, events) = channel(MAX_EVENTS);
        let waiting = Arc::new(AtomicUsize::new(0));
        let listener = hub.join(&topics, &sender, &waiting);
        Subscription { events, waiting, hub: self.id(), listener, topics }
    }

    fn hub(&self) -> Rc<Hub> {
        let hub = Rc::new(Hub {
            id: self.id(),
            topics: RefCell::default(),
            asked: RefCell::default(),
            wake: Notify::new(),
            next: Cell::new(0),
            connected: Cell::new(false),
        });
        HUBS.with_borrow_mut(|hubs| hubs.push(Rc::clone(&hub)));
        tokio::task::spawn_local(run(self.clone(), Ending(Rc::clone(&hub))));
        hub
    }
}

fn find(id: usize) -> Option<Rc<Hub>> {
    HUBS.try_with(|hubs| hubs.borrow().iter().find(|hub| hub.id == id).cloned()).ok().flatten()
}

/// One thread's topics and their listeners.
#[derive(Debug)]
struct Hub {
    id: usize,
    topics: RefCell<HashMap<Topic, Listened>>,
    /// Commands to be sent.
    asked: RefCell<Vec<u8>>,
    wake: Notify,
    next: Cell<u64>,
    connected: Cell<bool>,
}

#[derive(Debug, Default)]
struct Listened {
    /// Subscriptions asked for that Redis has not confirmed.
    unconfirmed: u32,
    listeners: Vec<Listener>,
}

#[derive(Debug)]
struct Listener {
    id: u64,
    events: Sender<Event>,
    waiting: Arc<AtomicUsize>,
}

impl Listener {
    /// Whether it keeps up.
    fn hear(&self, event: Event) -> bool {
        let len = event.len();
        self.waiting.fetch_add(len, Relaxed) + len <= MAX_BYTES && self.events.try_send(event).is_ok()
    }
}

impl Hub {
    fn join(&self, topics: &[Topic], events: &Sender<Event>, waiting: &Arc<AtomicUsize>) -> u64 {
        let id = self.next.replace(self.next.get() + 1);
        let mut known = self.topics.borrow_mut();
        for topic in topics {
            let listened = known.entry(topic.clone()).or_default();
            let listener = Listener { id, events: events.clone(), waiting: Arc::clone(waiting) };
            if listened.listeners.is_empty() {
                self.ask("SUBSCRIBE", topic);
                listened.unconfirmed += u32::from(self.connected.get());
            } else if listened.unconfirmed == 0 && self.connected.get() {
                listener.hear(Event::Subscribed(topic.clone()));
            }
            listened.listeners.push(listener);
        }
        id
    }

    fn leave(&self, id: u64, topics: &[Topic]) {
        let mut known = self.topics.borrow_mut();
        for topic in topics {
            let Some(listened) = known.get_mut(topic) else { continue };
            let before = listened.listeners.len();
            listened.listeners.retain(|listener| listener.id != id);
            if listened.listeners.is_empty() && before > 0 {
                self.ask("UNSUBSCRIBE", topic);
            }
            // With a connection it stays until Redis has confirmed; without one, no confirmation comes.
            if !self.connected.get() && known.get(topic).is_some_and(|listened| listened.listeners.is_empty()) {
                known.remove(topic);
            }
        }
    }

    /// Without a connection nothing is asked: the next one begins with all topics.
    fn ask(&self, command: &str, topic: &Topic) {
        if self.connected.get() {
            let prefix = if topic.is_pattern { "P" } else { "" };
            let command = format!("{prefix}{command}");
            let mut asked = self.asked.borrow_mut();
            put_command(&mut asked, &[command.as_bytes(), &topic.name]);
            if asked.len() > MAX_ASKED {
                asked.clear();
                self.connected.set(false);
            }
            self.wake.notify_one();
        }
    }

    /// There is a connection: everything is asked for again.
    fn connected(&self) {
        self.connected.set(true);
        self.asked.borrow_mut().clear();
        let mut topics = self.topics.borrow_mut();
        topics.retain(|_, listened| !listened.listeners.is_empty());
        for (topic, listened) in topics.iter_mut() {
            listened.unconfirmed = 1;
            self.ask("SUBSCRIBE", topic);
        }
    }

    fn lost(&self, why: &Arc<str>) {
        self.connected.set(false);
        self.topics.borrow_mut().retain(|_, listened| {
            listened.unconfirmed = 0;
            listened.listeners.retain(|listener| listener.hear(Event::Lost(Arc::clone(why))));
            !listened.listeners.is_empty()
        });
    }

    /// Takes what Redis pushed.
    fn pushed(&self, push: &[u8]) {
        let mut parts = Elements::new(push).filter_map(|element| match element {
            Element::Bytes(text) => Some(text),
            _ => None,
        });
        let mut next = || parts.next().map(Bytes::copy_from_slice).unwrap_or_default();
        let kind = next();
        match &kind[..] {
            b"message" => {
                let (channel, message) = (next(), next());
                let topic = Topic { is_pattern: false, name: channel.clone() };
                self.publish(&topic, &Event::Message(Message::new(None, channel, message)));
            }
            b"pmessage" => {
                let (pattern, channel, message) = (next(), next(), next());
                let topic = Topic { is_pattern: true, name: pattern.clone() };
                self.publish(&topic, &Event::Message(Message::new(Some(pattern), channel, message)));
            }
            b"subscribe" | b"psubscribe" => self.confirmed(Topic { is_pattern: kind[0] == b'p', name: next() }),
            b"unsubscribe" | b"punsubscribe" => {
                let topic = Topic { is_pattern: kind[0] == b'p', name: next() };
                let mut topics = self.topics.borrow_mut();
                if topics.get(&topic).is_some_and(|listened| listened.listeners.is_empty() && listened.unconfirmed == 0)
                {
                    topics.remove(&topic);
                }
            }
            // Such as to a user who may not listen to this channel: it is not said to which.
            _ => {
                if let Some(Element::Error(error)) = Elements::new(push).next() {
                    warn!("a subscription is refused: {}", String::from_utf8_lossy(error).escape_debug());
                }
            }
        }
    }

    fn publish(&self, topic: &Topic, event: &Event) {
        if let Some(listened) = self.topics.borrow_mut().get_mut(topic) {
            listened.listeners.retain(|listener| listener.hear(event.clone()));
            if listened.listeners.is_empty() {
                self.ask("UNSUBSCRIBE", topic);
            }
        }
    }

    fn confirmed(&self, topic: Topic) {
        if let Some(listened) = self.topics.borrow_mut().get_mut(&topic) {
            listened.unconfirmed = listened.unconfirmed.saturating_sub(1);
            if listened.unconfirmed == 0 {
                listened.listeners.retain(|listener| listener.hear(Event::Subscribed(topic.clone())));
            }
        }
    }
}

/// The task's hold on its hub: listeners end when the runtime does.
struct Ending(Rc<Hub>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.topics.borrow_mut().clear();
        // At the thread's end the list may be gone already.
        let _ = HUBS.try_with(|hubs| hubs.borrow_mut().retain(|hub| !Rc::ptr_eq(hub, &self.0)));
    }
}

/// Connects, and again whenever the connection ends.
async fn run(redis: Redis, ending: Ending) {
    let hub = &ending.0;
    let mut back_off = BackOff::default();
    loop {
        let why: Arc<str> = match redis.connector().connect().await {
            Ok(stream) => {
                hub.connected();
                back_off.connected();
                serve(hub, stream, redis.settings().max_answer).await.into()
            }
            Err(why) => why.into(),
        };
        if hub.connected.get() {
            warn!("subscriptions at {}: {why}", redis.settings().target);
        }
        hub.lost(&why);
        sleep(back_off.wait()).await;
    }
}

/// Sends what is asked and hands out what comes; says why it ended.
async fn serve(hub: &Hub, stream: Box<dyn Io>, max: usize) -> String {
    let mut input = Vec::with_capacity(INPUT);
    let (mut scanner, mut scanned) = (Scanner::default(), 0);
    let (mut reader, mut writer) = tokio::io::split(stream);
    let (mut out, mut is_flushed) = (Bytes::new(), true);
    loop {
        if !hub.connected.get() {
            return "it does not read".to_owned();
        }
        if is_flushed {
            out = std::mem::take(&mut *hub.asked.borrow_mut()).into();
            is_flushed = out.is_empty();
        }
        // Reading goes on while writing waits: otherwise both sides could wait for each other.
        tokio::select! {
            read = reader.read_buf(&mut input) => match read {
                Ok(0) => return "it was closed by Redis".to_owned(),
                Ok(_) => {}
                Err(error) => return error.to_string(),
            },
            written = write(&mut writer, &mut out), if !is_flushed => match written {
                Ok(()) => {
                    is_flushed = true;
                    continue;
                }
                Err(error) => return error.to_string(),
            },
            () = hub.wake.notified() => continue,
        }
        loop {
            match scanner.scan(&input[scanned..]) {
                Ok(Scan::Whole(more)) => {
                    let end = scanned + more;
                    hub.pushed(&input[..end]);
                    input.drain(..end);
                    scanned = 0;
                }
                Ok(Scan::Part(more)) => {
                    scanned += more;
                    break;
                }
                Err(error) => return error.to_string(),
            }
        }
        if input.len() > max {
            return format!("a message is longer than the limit of {max} bytes");
        }
    }
}

/// Writes all of it; can be given up and begun again.
async fn write(stream: &mut WriteHalf<Box<dyn Io>>, out: &mut Bytes) -> std::io::Result<()> {
    stream.write_all_buf(out).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_without_listeners_are_not_kept() {
        let hub = Hub {
            id: 0,
            topics: RefCell::default(),
            asked: RefCell::default(),
            wake: Notify::new(),
            next: Cell::new(0),
            connected: Cell::new(false),
        };
        let listen_and_leave = |name: String| {
            let topics = [Topic { is_pattern: false, name: name.into() }];
            let (sender, _events) = channel(MAX_EVENTS);
            let id = hub.join(&topics, &sender, &Arc::default());
            hub.leave(id, &topics);
        };
        (0..1000).for_each(|number| listen_and_leave(format!("away {number}")));
        assert_eq!(hub.topics.borrow().len(), 0, "while Redis is away");
        // While it is there, until it has confirmed; and while it does not read, not even that for ever.
        hub.connected();
        (0..100_000).for_each(|number| listen_and_leave(format!("there {number}")));
        assert!(hub.asked.borrow().len() <= MAX_ASKED + 1000, "{} bytes", hub.asked.borrow().len());
        hub.lost(&"gone".into());
        assert_eq!(hub.topics.borrow().len(), 0);
    }
}
