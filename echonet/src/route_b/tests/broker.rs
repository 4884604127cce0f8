//! A broker for one client in the process of a test: its messages arrive in the test's own time.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use rumqttc::{
    ConnAck, ConnectReturnCode, Packet, PubAck, Publish, QoS, SubAck, SubscribeReasonCode, UnsubAck, matches,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The longest packet.
const PACKET: usize = 1 << 21;

/// A topic with a payload.
pub(super) type Message = (String, String);

/// The memory of the broker.
#[derive(Default)]
struct State {
    retained: BTreeMap<String, String>,
    /// All that was published since it was last taken, in order.
    published: Vec<Message>,
}

/// A broker that listens on loopback.
#[derive(Clone, Default)]
pub(super) struct Broker(Arc<Mutex<State>>);

impl Broker {
    /// Begins to listen; returns the URL, too.
    pub(super) async fn start() -> (Self, String) {
        let (broker, listener) = (Self::default(), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let url = format!("mqtt://{}", listener.local_addr().unwrap());
        let own = broker.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // A client that goes is one that comes again.
                let _ = own.serve(stream).await;
            }
        });
        (broker, url)
    }

    /// Everything that was published since the last call.
    pub(super) fn published(&self) -> Vec<Message> {
        std::mem::take(&mut self.0.lock().unwrap().published)
    }

    /// The retained payload of a topic.
    pub(super) fn retained(&self, topic: &str) -> Option<String> {
        self.0.lock().unwrap().retained.get(topic).cloned()
    }

    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        // A write that waited for a confirmation would wait in the time of the kernel, which does not stand still.
        stream.set_nodelay(true)?;
        let (mut input, mut output, mut filters) = (BytesMut::new(), BytesMut::new(), Vec::new());
        loop {
            while let Ok(packet) = Packet::read(&mut input, PACKET) {
                for answer in self.answers(packet, &mut filters) {
                    answer.write(&mut output, PACKET).unwrap();
                }
            }
            stream.write_all_buf(&mut output).await?;
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
        }
    }

    fn answers(&self, packet: Packet, filters: &mut Vec<String>) -> Vec<Packet> {
        match packet {
            Packet::Connect(_) => vec![Packet::ConnAck(ConnAck::new(ConnectReturnCode::Success, false))],
            Packet::Subscribe(subscribe) => {
                let codes = vec![SubscribeReasonCode::Success(QoS::AtMostOnce); subscribe.filters.len()];
                let wanted: Vec<_> = subscribe.filters.into_iter().map(|filter| filter.path).collect();
                let retained = self.0.lock().unwrap().retained.clone();
                let is_wanted = |(topic, _): &Message| wanted.iter().any(|filter| matches(topic, filter));
                let messages = retained.into_iter().filter(is_wanted).map(|message| publish(message, true));
                let answers = std::iter::once(Packet::SubAck(SubAck::new(subscribe.pkid, codes))).chain(messages);
                let answers = answers.collect();
                filters.extend(wanted);
                answers
            }
            Packet::Unsubscribe(unsubscribe) => {
                filters.retain(|filter| !unsubscribe.topics.contains(filter));
                vec![Packet::UnsubAck(UnsubAck::new(unsubscribe.pkid))]
            }
            Packet::Publish(message) => {
                let payload = String::from_utf8(message.payload.to_vec()).unwrap();
                let told = (message.topic, payload);
                let mut state = self.0.lock().unwrap();
                match (message.retain, told.1.is_empty()) {
                    (true, true) => drop(state.retained.remove(&told.0)),
                    (true, false) => drop(state.retained.insert(told.0.clone(), told.1.clone())),
                    (false, _) => {}
                }
                state.published.push(told.clone());
                let is_confirmed = message.qos == QoS::AtLeastOnce;
                let confirmation = is_confirmed.then(|| Packet::PubAck(PubAck::new(message.pkid)));
                let is_wanted = filters.iter().any(|filter| matches(&told.0, filter));
                confirmation.into_iter().chain(is_wanted.then(|| publish(told, false))).collect()
            }
            Packet::PingReq => vec![Packet::PingResp],
            _ => Vec::new(),
        }
    }
}

fn publish((topic, payload): Message, retain: bool) -> Packet {
    let mut message = Publish::new(topic, QoS::AtMostOnce, payload);
    message.retain = retain;
    Packet::Publish(message)
}
