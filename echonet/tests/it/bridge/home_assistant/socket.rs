//! A client of Home Assistant's WebSocket API, which keeps the states of all entities.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::PATIENCE;

/// The states by entity, the results by request.
#[derive(Default)]
struct Seen {
    states: HashMap<String, Value>,
    results: HashMap<u64, Value>,
}

pub(super) struct Socket {
    /// The connection, and how many requests were sent.
    requests: Mutex<(TcpStream, u64)>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

impl Socket {
    /// Logs in and subscribes to the states.
    pub(super) fn open(port: u16, token: &str) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let head = "GET /api/websocket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut answer = String::new();
        while !answer.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut answer).unwrap() > 0, "{answer}");
        }
        assert!(answer.starts_with("HTTP/1.1 101"), "{answer}");
        assert_eq!(message(&mut reader).unwrap()["type"], "auth_required");
        send(&mut stream, &json!({"type": "auth", "access_token": token}));
        assert_eq!(message(&mut reader).unwrap()["type"], "auth_ok");
        let seen = Arc::<(Mutex<Seen>, Condvar)>::default();
        let hears = Arc::clone(&seen);
        thread::spawn(move || {
            while let Some(message) = message(&mut reader) {
                hears.0.lock().unwrap().take(message);
                hears.1.notify_all();
            }
        });
        let socket = Self { requests: Mutex::new((stream, 0)), seen };
        socket.ask("subscribe_events", json!({"event_type": "state_changed"})).unwrap();
        let states = socket.ask("get_states", json!({})).unwrap();
        let mut seen = socket.seen.0.lock().unwrap();
        for state in states.as_array().unwrap() {
            seen.states.entry(state["entity_id"].as_str().unwrap().to_owned()).or_insert_with(|| state.clone());
        }
        drop(seen);
        socket
    }

    /// A request and its result, or the message of its error.
    pub(super) fn ask(&self, kind: &str, mut request: Value) -> Result<Value, String> {
        let id = {
            // The numbers of requests have to rise.
            let (stream, next) = &mut *self.requests.lock().unwrap();
            *next += 1;
            (request["type"], request["id"]) = (kind.into(), (*next).into());
            send(stream, &request);
            *next
        };
        let result = self.wait(kind, |seen| seen.results.remove(&id));
        if result["success"] == true { Ok(result["result"].clone()) } else { Err(result["error"].to_string()) }
    }

    /// Calls a service of an entity's domain for it.
    pub(super) fn call(&self, entity: &str, service: &str, data: &Value) -> Result<(), String> {
        let (domain, _) = entity.split_once('.').unwrap();
        let request = json!({
            "domain": domain, "service": service, "service_data": data, "target": {"entity_id": entity},
        });
        self.ask("call_service", request).map(drop)
    }

    /// The state of an entity; null without one.
    pub(super) fn state(&self, entity: &str) -> Value {
        self.seen.0.lock().unwrap().states.get(entity).cloned().unwrap_or_default()
    }

    /// All states, by entity.
    pub(super) fn states(&self) -> HashMap<String, Value> {
        self.seen.0.lock().unwrap().states.clone()
    }

    /// Waits until an entity is as wanted; the time that it took, or its last state.
    pub(super) fn until(
        &self,
        entity: &str,
        within: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Duration, Value> {
        let begun = Instant::now();
        let mut seen = self.seen.0.lock().unwrap();
        loop {
            let state = seen.states.get(entity);
            if state.is_some_and(&wanted) {
                return Ok(begun.elapsed());
            }
            let left = within.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(state.cloned().unwrap_or_default());
            }
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }

    fn wait<R>(&self, what: &str, wanted: impl Fn(&mut Seen) -> Option<R>) -> R {
        let end = Instant::now() + PATIENCE;
        let mut seen = self.seen.0.lock().unwrap();
        loop {
            if let Some(result) = wanted(&mut seen) {
                return result;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} has no result");
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
    }
}

impl Seen {
    fn take(&mut self, message: Value) {
        if message["type"] == "event" {
            let data = &message["event"]["data"];
            let entity = data["entity_id"].as_str().unwrap_or_default().to_owned();
            match &data["new_state"] {
                Value::Null => self.states.remove(&entity),
                state => self.states.insert(entity, state.clone()),
            };
        } else if let Some(id) = message["id"].as_u64() {
            self.results.insert(id, message);
        }
    }
}

/// One text frame with a mask of zeros.
fn send(stream: &mut TcpStream, value: &Value) {
    let text = value.to_string();
    let mut frame = vec![0x81];
    match text.len() {
        short @ 0..126 => frame.push(0x80 | short as u8),
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    stream.write_all(&frame).unwrap();
}

/// The next text message; none after the last.
fn message(reader: &mut impl Read) -> Option<Value> {
    loop {
        let mut head = [0; 2];
        reader.read_exact(&mut head).ok()?;
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                reader.read_exact(&mut length).ok()?;
                u16::from_be_bytes(length).into()
            }
            127 => {
                let mut length = [0; 8];
                reader.read_exact(&mut length).ok()?;
                u64::from_be_bytes(length)
            }
            short => short.into(),
        };
        let mut payload = vec![0; length as usize];
        reader.read_exact(&mut payload).ok()?;
        match head[0] {
            0x81 => return Some(serde_json::from_slice(&payload).unwrap()),
            0x88 => return None,
            _ => {}
        }
    }
}
