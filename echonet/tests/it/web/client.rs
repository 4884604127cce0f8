//! A plain client of HTTP, and `echonet web` as a child.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::emulated::Running;

const PATIENCE: Duration = Duration::from_secs(60);

/// The answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of a field of the head.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(of, _)| of.eq_ignore_ascii_case(name)))
            .map(|(_, value)| value)
    }
}

/// The server.
pub struct Web {
    pub running: Running,
    pub addr: SocketAddr,
}

impl Web {
    /// Starts it on an address and port of the network, with so many devices to be found.
    pub fn start(address: &str, port: u16, devices: usize, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_echonet"));
        command.args(["--json", "--port", &port.to_string(), "--address", address, "web", "--listen", "127.0.0.1:0"]);
        let mut child = command.args(more).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let addr = loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line["event"] == "listening" {
                break line["url"].as_str().unwrap()["http://".len()..].trim_end_matches('/').parse().unwrap();
            }
        };
        let web = Self { running: Running(child), addr };
        let mut found = 0;
        while found < devices {
            found += usize::from(lines.next().expect("it runs").unwrap().contains("\"found\""));
        }
        // Its pipe is read to the end, so that it never blocks.
        std::thread::spawn(move || lines.for_each(drop));
        web
    }

    /// Asks as a program does: with JSON, or without a body.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        let fields: &[(&str, &str)] =
            if ["POST", "PUT"].contains(&method) { &[("Content-Type", "application/json")] } else { &[] };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, path, fields, &body)
    }

    pub fn get(&self, path: &str) -> Value {
        self.expect("GET", path, &Value::Null, 200)
    }

    pub fn put(&self, path: &str, body: &Value) -> Value {
        self.expect("PUT", path, body, 200)
    }

    /// Returns the body of an answer that must have this status.
    pub fn expect(&self, method: &str, path: &str, body: &Value, status: u16) -> Value {
        let answer = self.ask(method, path, body);
        assert_eq!(answer.status, status, "{method} {path} {body}: {answer:?}");
        if answer.text.is_empty() { Value::Null } else { answer.json() }
    }

    pub fn send(&self, method: &str, path: &str, fields: &[(&str, &str)], body: &str) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.addr);
        }
        fields.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        let mut stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all((head + "\r\n" + body).as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: {text}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), text: body.to_owned() }
    }

    pub fn events(&self, fields: &str) -> Events {
        let mut stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET /events HTTP/1.1\r\nHost: {}\r\n{fields}\r\n", self.addr).unwrap();
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).unwrap();
        Events { reader, status: status.split(' ').nth(1).unwrap().parse().unwrap() }
    }
}

/// The stream of events.
pub struct Events {
    reader: BufReader<TcpStream>,
    pub status: u16,
}

impl Events {
    /// The next event of a kind that is as wanted.
    pub fn wait(&mut self, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < end, "no {kind} event came");
            let (of, data) = self.next().expect("the stream goes on");
            if of == kind && wanted(&data) {
                return data;
            }
        }
    }

    /// The kind and the data of the next event; none after the last.
    pub fn next(&mut self) -> Option<(String, Value)> {
        let mut kind = String::new();
        loop {
            let mut line = String::new();
            self.reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
            if let Some(event) = line.trim_end().strip_prefix("event: ") {
                event.clone_into(&mut kind);
            } else if let Some(data) = line.trim_end().strip_prefix("data: ") {
                return Some((kind, serde_json::from_str(data).unwrap()));
            }
        }
    }
}

/// The id of the first object of the emulated node with this number, of a class.
pub fn id(number: usize, class: &str) -> String {
    format!("fe000077{number:026x}-{}01", class.to_lowercase())
}

/// The path of a resource of a device.
pub fn path(id: &str, rest: &str) -> String {
    format!("/elapi/v1/devices/{id}/{rest}")
}

/// A body with one value.
pub fn one(name: &str, value: impl Into<Value>) -> Value {
    let value: Value = value.into();
    json!({ name: value })
}
