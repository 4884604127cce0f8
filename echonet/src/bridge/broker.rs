//! The MQTT broker. This module keeps the current state and publishes it again after each reconnection. Before its first
//! publication it reads the topics that the broker has retained from an earlier run.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rumqttc::{AsyncClient, ConnectionError, Event, EventLoop, LastWill, MqttOptions, NetworkOptions, Packet, QoS};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::tls;
use crate::commands::Bridge as Args;
use crate::failure::Failure;

/// Between two attempts to reach a broker that is away, at first and at most: each attempt doubles it.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(16)];
/// Messages that the client may have in hand. Others wait here, and only the last payload of each topic is kept.
const IN_HAND: usize = 256;
/// The longest message: a description of a board with 504 circuits, of 0.9 MB.
const PACKET: usize = 1 << 21;
/// Commands that wait to be carried out; MQTT waits when there are more.
const COMMANDS: usize = 1024;

pub(super) const ONLINE: &str = "online";
pub(super) const OFFLINE: &str = "offline";

/// How long a broker may take to send what it has retained.
const READ: Duration = Duration::from_secs(10);
/// The payload that marks the end of the retained topics.
const END: &str = "end";

/// The messages of the broker, and changes of the connection.
#[derive(Debug)]
pub(super) enum News {
    Connected,
    Lost(String),
    /// A topic that the broker has retained from an earlier run.
    Remembered {
        topic: String,
        payload: String,
    },
    Message {
        topic: String,
        payload: String,
    },
}

/// The connection, and everything that is published.
pub(super) struct Broker {
    client: AsyncClient,
    is_connected: bool,
    /// The topic that says whether the bridge is there; none of a program that only looks.
    availability: Option<String>,
    subscriptions: Vec<String>,
    /// The topics to read when the broker is first there.
    remembered: Vec<String>,
    /// Whether that has been read; nothing is published before.
    is_read: bool,
    read_until: Option<Instant>,
    /// The current payloads, by topic; empty where a topic has none any more.
    truth: HashMap<String, String>,
    unsent: VecDeque<String>,
    is_unsent: HashSet<String>,
}

impl Broker {
    /// Begins to connect; the channel carries the events.
    pub(super) fn open(
        args: &Args,
        availability: Option<String>,
        subscriptions: Vec<String>,
    ) -> Result<(Self, mpsc::Receiver<News>), Failure> {
        let password = password(args.password_file.as_deref(), std::env::var(PASSWORD).ok())?;
        let (mut options, is_secure) = options(&args.broker, password)
            .map_err(|why| Failure::Input(format!("{}: {why}", without_password(&args.broker))))?;
        options.set_transport(tls::transport(args, is_secure)?);
        if let Some(availability) = &availability {
            options.set_last_will(LastWill::new(availability, OFFLINE, QoS::AtLeastOnce, true));
        }
        options.set_max_packet_size(PACKET, PACKET);
        let (client, mut events) = AsyncClient::new(options, IN_HAND);
        let mut network = NetworkOptions::new();
        network.set_tcp_nodelay(true);
        events.set_network_options(network);
        let (news, receiver) = mpsc::channel(COMMANDS);
        tokio::spawn(listen(events, news));
        let (truth, unsent, is_unsent) = (HashMap::new(), VecDeque::new(), HashSet::new());
        let (is_connected, is_read, remembered) = (false, true, Vec::new());
        let broker = Self {
            client,
            is_connected,
            availability,
            subscriptions,
            remembered,
            is_read,
            read_until: None,
            truth,
            unsent,
            is_unsent,
        };
        Ok((broker, receiver))
    }

    /// Reads what is retained below these topics before it publishes anything.
    pub(super) fn remembering(mut self, filters: Vec<String>) -> Self {
        (self.remembered, self.is_read) = (filters, false);
        self
    }

    /// The broker is there, and may know nothing: tells everything.
    pub(super) fn connected(&mut self) {
        self.is_connected = true;
        if self.is_read {
            self.listen();
            self.tell_all();
            return;
        }
        self.read_until = Some(Instant::now() + READ);
        // The client has room: it has just been emptied.
        for filter in &self.remembered {
            let _ = self.client.try_subscribe(filter, QoS::AtLeastOnce);
        }
        // A broker sends what it has retained before what is published after the subscription.
        let _ = self.client.try_publish(self.end_of_retained(), QoS::AtLeastOnce, false, END);
    }

    /// Subscribes to commands, and says that the bridge is there.
    fn listen(&mut self) {
        for topic in &self.subscriptions {
            let _ = self.client.try_subscribe(topic, QoS::AtLeastOnce);
        }
        if let Some(availability) = self.availability.clone() {
            self.publish_anew(availability, ONLINE.to_owned());
        }
    }

    /// When what is retained counts as read, even if the broker does not let the bridge hear of its end.
    pub(super) fn read_until(&self) -> Option<Instant> {
        self.read_until.filter(|_| !self.is_read)
    }

    /// Whether a message says that all that is retained has come.
    pub(super) fn is_end_of_retained(&self, topic: &str) -> bool {
        topic == self.end_of_retained()
    }

    /// A topic of this connection alone.
    fn end_of_retained(&self) -> String {
        let below = self.remembered.first().map_or("", |filter| filter.trim_end_matches(['#', '/', '+']));
        format!("{below}/bridge/retained-{}", std::process::id())
    }

    /// All that was retained is known.
    pub(super) fn has_read(&mut self) {
        self.is_read = true;
        for filter in &self.remembered {
            let _ = self.client.try_unsubscribe(filter);
        }
        self.listen();
        self.pump();
    }

    /// Takes what was retained, unless something else is true already.
    pub(super) fn remember(&mut self, topic: String, payload: String) {
        self.truth.entry(topic).or_insert(payload);
    }

    /// The current payloads, or those of the last run, by topic.
    pub(super) fn truth(&self) -> impl Iterator<Item = (&str, &str)> {
        self.truth.iter().map(|(topic, payload)| (topic.as_str(), payload.as_str()))
    }

    /// Tells everything again, as Home Assistant wants it when it has started.
    pub(super) fn tell_all(&mut self) {
        self.unsent = self.truth.keys().cloned().collect();
        self.is_unsent = self.truth.keys().cloned().collect();
        self.pump();
    }

    pub(super) fn lost(&mut self) {
        self.is_connected = false;
    }

    /// Publishes what has changed.
    pub(super) fn publish(&mut self, topic: String, payload: String) {
        if self.truth.get(&topic) != Some(&payload) {
            self.publish_anew(topic, payload);
        }
    }

    /// Publishes it even if it is what was published before.
    pub(super) fn publish_anew(&mut self, topic: String, payload: String) {
        if self.is_unsent.insert(topic.clone()) {
            self.unsent.push_back(topic.clone());
        }
        self.truth.insert(topic, payload);
        self.pump();
    }

    /// Publishes something that happened, for the clients that listen now: nothing that stays true.
    pub(super) fn tell_once(&self, topic: String, payload: String) {
        if self.is_connected && self.is_read {
            // Of so much that the client has no room, the event is the least.
            let _ = self.client.try_publish(topic, QoS::AtLeastOnce, false, payload);
        }
    }

    /// Takes everything below a topic back.
    pub(super) fn withdraw(&mut self, below: &str) {
        let topics: Vec<_> = self.truth.keys().filter(|topic| topic.starts_with(below)).cloned().collect();
        topics.into_iter().for_each(|topic| self.publish(topic, String::new()));
    }

    /// Whether something waits for room.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_connected && self.is_read && !self.unsent.is_empty()
    }

    /// Gives the client what it has room for.
    pub(super) fn pump(&mut self) {
        while let Some(topic) = self.unsent.front().filter(|_| self.is_connected && self.is_read) {
            let Some(payload) = self.truth.get(topic) else { break };
            // A new connection publishes all topics again, so that no message has to be confirmed.
            if self.client.try_publish(topic, QoS::AtMostOnce, true, payload.clone()).is_err() {
                break;
            }
            self.is_unsent.remove(topic);
            self.unsent.pop_front();
        }
    }

    /// Says that the bridge is gone.
    pub(super) async fn close(mut self) {
        const PATIENCE: Duration = Duration::from_secs(1);
        if let Some(availability) = self.availability.clone() {
            self.publish_anew(availability, OFFLINE.to_owned());
        }
        while self.is_waiting() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.pump();
        }
        let _ = tokio::time::timeout(PATIENCE, self.client.disconnect()).await;
        // The client sends it from a task of its own.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Keeps the connection, for as long as the receiver of its events exists.
async fn listen(mut events: EventLoop, news: mpsc::Sender<News>) {
    let mut failures = 0_u32;
    loop {
        let happened = match events.poll().await {
            Ok(Event::Incoming(Packet::ConnAck(_))) => {
                failures = 0;
                News::Connected
            }
            Ok(Event::Incoming(Packet::Publish(message))) => {
                let Ok(payload) = String::from_utf8(message.payload.to_vec()) else { continue };
                let topic = message.topic;
                if message.retain { News::Remembered { topic, payload } } else { News::Message { topic, payload } }
            }
            Ok(_) => continue,
            Err(ConnectionError::RequestsDone) => return,
            Err(error) => {
                if failures == 0 && news.send(News::Lost(tls::reason(&error))).await.is_err() {
                    return;
                }
                tokio::time::sleep(pause(failures, RandomState::new().hash_one(failures))).await;
                failures = failures.saturating_add(1);
                continue;
            }
        };
        if news.send(happened).await.is_err() {
            return;
        }
    }
}

/// How long to wait after so many failures. Each bridge waits between half of it and all of it, so that the clients of a
/// broker that was restarted do not all come at once.
fn pause(failures: u32, random: u64) -> Duration {
    let [first, most] = AGAIN;
    let whole = (first * 2_u32.saturating_pow(failures)).min(most);
    whole / 2 + (whole / 2).mul_f64((random >> 32) as f64 / f64::from(u32::MAX))
}

/// Where a password is looked for that no file gives.
const PASSWORD: &str = "ECHONET_MQTT_PASSWORD";

/// The first line of the file, or the environment's.
fn password(file: Option<&Path>, environment: Option<String>) -> Result<Option<String>, Failure> {
    let Some(file) = file else { return Ok(environment) };
    let unreadable = |error| Failure::Input(format!("--password-file {}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Some(line.to_owned())),
        _ => Err(Failure::Input(format!("--password-file {}: its first line is empty", file.display()))),
    }
}

/// A URL to be shown.
pub(super) fn without_password(url: &str) -> String {
    let Some((login, place)) = url.rsplit_once('@') else { return url.to_owned() };
    let (scheme, login) = login.split_once("://").unwrap_or(("mqtt", login));
    let user = login.split(':').next().unwrap_or_default();
    format!("{scheme}://{user}@{place}")
}

/// `mqtt://user:password@host:port`, or `mqtt://user@host:port` with a password from elsewhere. True with `mqtts://`, which is TLS.
fn options(url: &str, password: Option<String>) -> Result<(MqttOptions, bool), &'static str> {
    const SCHEMES: [(&str, u16, bool); 2] = [("mqtt://", 1883, false), ("mqtts://", 8883, true)];
    let known =
        SCHEMES.into_iter().find_map(|(scheme, port, is_secure)| Some((url.strip_prefix(scheme)?, port, is_secure)));
    let (rest, usual, is_secure) =
        known.ok_or("a broker is mqtt://[USER:PASSWORD@]HOST[:PORT], or mqtts:// for TLS")?;
    let (login, place) = rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
    let place = place.trim_end_matches('/');
    let is_port = |(_, port): &(&str, &str)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let (host, port) = match place.rsplit_once(':').filter(is_port) {
        Some((host, port)) => (host, port.parse().map_err(|_| "there is no such port")?),
        None => (place, usual),
    };
    if host.is_empty() {
        return Err("it names no host");
    }
    if is_secure && host.starts_with('[') {
        return Err("with TLS a broker has a name or an IPv4 address: give the name that its certificate is for");
    }
    let mut options = MqttOptions::new(format!("echonet-bridge-{}", std::process::id()), host, port);
    options.set_keep_alive(Duration::from_secs(30));
    if let Some(login) = login {
        let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, plain(password)),
            None => (login, password.unwrap_or_default()),
        };
        options.set_credentials(plain(user), password);
    }
    Ok((options, is_secure))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Host, port, and user with password.
    type Address<'a> = (&'a str, u16, Option<(&'a str, &'a str)>);

    #[test]
    fn brokers_with_tls_have_a_port_and_a_name_of_their_own() {
        for (url, expected) in [
            ("mqtts://broker", Some(("broker", 8883, true))),
            ("mqtts://me@192.0.2.1:1/", Some(("192.0.2.1", 1, true))),
            ("mqtt://broker", Some(("broker", 1883, false))),
            ("mqtts://[::1]:8883", None),
            ("mqttss://broker", None),
        ] {
            let found = options(url, None).ok().map(|(options, is_secure)| (options.broker_address(), is_secure));
            let expected = expected.map(|(host, port, is_secure)| ((host.to_owned(), port), is_secure));
            assert_eq!(found, expected, "{url}");
        }
    }

    #[test]
    fn attempts_to_reach_a_broker_spread_and_become_rarer() {
        for (failures, seconds) in [(0, 1.0), (1, 2.0), (3, 8.0), (4, 16.0), (40, 16.0), (u32::MAX, 16.0)] {
            let [least, most] = [0, u64::MAX].map(|random| pause(failures, random).as_secs_f64());
            assert_eq!((least, most), (seconds / 2.0, seconds), "{failures}");
        }
    }

    #[test]
    fn urls() {
        let check = |url: &str, expected: Result<Address<'_>, &str>| {
            let found = options(url, Some("secret".to_owned())).map(|(options, _)| {
                let (host, port) = options.broker_address();
                let login = options.credentials().map(|login| (login.username, login.password));
                (host, port, login)
            });
            let expected = expected.map(|(host, port, login)| {
                (host.to_owned(), port, login.map(|(user, password)| (user.to_owned(), password.to_owned())))
            });
            assert_eq!(found.map_err(|_| ()), expected.map_err(|_| ()), "{url}");
        };
        check("mqtt://broker", Ok(("broker", 1883, None)));
        check("mqtt://127.0.0.1:1884/", Ok(("127.0.0.1", 1884, None)));
        check("mqtt://[::1]:1884", Ok(("[::1]", 1884, None)));
        check("mqtt://me:p%40ss@broker", Ok(("broker", 1883, Some(("me", "p@ss")))));
        check("mqtt://me@broker:1", Ok(("broker", 1, Some(("me", "secret")))));
        check("broker", Err(""));
        check("mqtt://", Err(""));
        check("mqtt://broker:70000", Err(""));
    }

    #[test]
    fn passwords_come_from_a_file_or_the_environment_and_are_not_shown() {
        let file = std::env::temp_dir().join(format!("echonet-password-{}", std::process::id()));
        let of = |text: &str, environment: Option<&str>| {
            std::fs::write(&file, text).unwrap();
            password(Some(&file), environment.map(str::to_owned)).map_err(|failure| failure.to_string())
        };
        assert_eq!(of("from file\r\nmore\n", Some("environment")), Ok(Some("from file".to_owned())));
        assert!(of("\nsecond", None).unwrap_err().contains("its first line is empty"));
        std::fs::remove_file(&file).unwrap();
        assert!(password(Some(&file), None).unwrap_err().to_string().contains("--password-file"));
        assert_eq!(password(None, Some("environment".to_owned())).unwrap().as_deref(), Some("environment"));
        for (url, shown) in [
            ("mqtt://me:p@ss@broker:1", "mqtt://me@broker:1"),
            ("mqtt://me@broker", "mqtt://me@broker"),
            ("mqtt://broker", "mqtt://broker"),
            ("me:secret@broker", "mqtt://me@broker"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
