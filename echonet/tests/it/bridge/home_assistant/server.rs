//! A genuine Home Assistant, installed by pip, that is set up by its own API.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_peers::{Kit, kit};

use super::super::{Mosquitto, PATIENCE, Running};
use super::rest::{FORM, Rest};
use super::socket::Socket;

/// The Python that Home Assistant 2025.2 needs; pyenv does not always have its newest in the path.
const PYTHON: &str = "for python in python3.13 \"$HOME\"/.pyenv/versions/3.13.*/bin/python3; do \
                      \"$python\" -c 'import ensurepip' 2>/dev/null && break; done";

const KIT: Kit = kit! {
    name: "home-assistant",
    sources: &["tests/peers/home-assistant"],
    programs: &["sh"],
    install: "for python in python3.13 \"$HOME\"/.pyenv/versions/3.13.*/bin/python3; do \
              \"$python\" -m venv venv && break; done && \
              venv/bin/pip install --quiet uv && \
              VIRTUAL_ENV=venv venv/bin/uv pip install --quiet --requirement requirements.txt",
};

/// One at a time: each keeps a core busy with its entities, and tests wait for what their users see.
static ONE: Mutex<()> = Mutex::new(());

pub(super) struct HomeAssistant {
    _running: Running,
    pub(super) folder: PathBuf,
    pub(super) socket: Socket,
    pub(super) rest: Rest,
    _one: MutexGuard<'static, ()>,
}

impl HomeAssistant {
    /// Starts one with an account, connected to the broker; `None` where it cannot be had.
    pub(super) fn start(name: &str, broker: &Mosquitto) -> Option<Self> {
        let kit = installed()?;
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("home-assistant-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join(".storage")).unwrap();
        let port = test_peers::free_port();
        let text = std::fs::read_to_string(kit.join("configuration.yaml")).unwrap();
        std::fs::write(folder.join("configuration.yaml"), text.replace("PORT", &port.to_string())).unwrap();
        // All steps but that of the user: they would set up integrations that reach out.
        let onboarding = json!({
            "version": 4, "minor_version": 1, "key": "onboarding",
            "data": {"done": ["core_config", "analytics", "integration"]},
        });
        std::fs::write(folder.join(".storage/onboarding"), onboarding.to_string()).unwrap();
        let mut command = Command::new(kit.join("venv/bin/hass"));
        command.args(["--skip-pip", "--config"]).arg(&folder).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running(command.spawn().unwrap());
        let rest = onboarded(port);
        let (_, flow) = rest.post("/api/config/config_entries/flow", &json!({"handler": "mqtt"}));
        let path = format!("/api/config/config_entries/flow/{}", flow["flow_id"].as_str().unwrap());
        let (_, entry) = rest.post(&path, &json!({"broker": "127.0.0.1", "port": broker.port}));
        assert_eq!(entry["type"], "create_entry", "{entry}");
        let socket = Socket::open(port, rest.token());
        Some(Self { _running: running, folder, socket, rest, _one: one })
    }

    /// The warnings and errors of its log that concern MQTT or the bridge; prints the others.
    pub(super) fn complaints(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.folder.join("home-assistant.log")).unwrap();
        // A traceback follows the line that it belongs to.
        let mut entries: Vec<String> = Vec::new();
        for line in log.lines() {
            match entries.last_mut() {
                Some(last) if !line.starts_with("20") => *last += &format!(" / {line}"),
                _ => entries.push(line.to_owned()),
            }
        }
        entries.retain(|entry| entry.contains(" WARNING ") || entry.contains(" ERROR "));
        let concerns = |entry: &String| ["mqtt", "echonet"].iter().any(|word| entry.to_lowercase().contains(word));
        let (ours, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(concerns);
        println!("{} other entries in the log: {others:#?}", others.len());
        ours
    }

    /// The registry of entities or devices.
    pub(super) fn registry(&self, kind: &str) -> Vec<Value> {
        let list = self.socket.ask(&format!("config/{kind}_registry/list"), json!({})).unwrap();
        list.as_array().unwrap().clone()
    }
}

/// The folder with its Python, `venv/bin/python`; `None` where it cannot be had.
pub(super) fn installed() -> Option<PathBuf> {
    let python = Command::new("sh").args(["-c", PYTHON]).output().unwrap();
    if !python.status.success() {
        // Debian's Python is older: this peer is not required.
        println!("skipped: there is no Python 3.13 for Home Assistant");
        return None;
    }
    KIT.installed()
}

/// Waits until it answers, and makes an account.
fn onboarded(port: u16) -> Rest {
    let end = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < end, "Home Assistant does not start");
        thread::sleep(Duration::from_millis(100));
    }
    let anyone = Rest::new(port, Value::Null);
    let client = anyone.url("/");
    let user = json!({"client_id": client, "name": "Home", "username": "home", "password": "home", "language": "en"});
    let made = loop {
        let (_, made) = anyone.post("/api/onboarding/users", &user);
        // It listens before it knows all its paths.
        if made["auth_code"].is_string() {
            break made;
        }
        assert!(Instant::now() < end, "no account: {made}");
        thread::sleep(Duration::from_millis(100));
    };
    let grant =
        format!("grant_type=authorization_code&code={}&client_id={client}", made["auth_code"].as_str().unwrap());
    let (_, tokens) = anyone.send("POST", "/auth/token", FORM, &grant);
    Rest::new(port, tokens)
}
