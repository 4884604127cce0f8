//! Home Assistant's REST API: a client, and the walk of a home through it.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::commands::Way;
use super::*;

const JSON: &str = "application/json";
pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// The domains and the commands that the walk must reach at least, each with an effect at a device.
const DOMAINS: usize = 10;
const COMMANDS: usize = 60;

/// Devices of these classes are commanded property by property: switches, selects, numbers, texts and buttons.
const SINGLE: &[&str] = &["0130", "026B", "0272", "0290", "03B7", "03CE"];

pub(super) struct Rest {
    port: u16,
    /// The answer to the log-in.
    pub(super) tokens: Value,
}

impl Rest {
    pub(super) fn new(port: u16, tokens: Value) -> Self {
        Self { port, tokens }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn token(&self) -> &str {
        self.tokens["access_token"].as_str().unwrap_or_default()
    }

    pub(super) fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, JSON, "")
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("POST", path, JSON, &body.to_string())
    }

    /// The status and the JSON of an answer; null if it is none.
    pub(super) fn send(&self, method: &str, path: &str, kind: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let login = match self.token() {
            "" => String::new(),
            token => format!("Authorization: Bearer {token}\r\n"),
        };
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\n{login}Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// The state of an entity; null without one.
    pub(super) fn state(&self, entity: &str) -> Value {
        let (status, state) = self.get(&format!("/api/states/{entity}"));
        if status == 200 { state } else { Value::Null }
    }

    /// Calls a service of an entity's domain for it.
    pub(super) fn call(&self, entity: &str, service: &str, data: &Value) -> Result<(), String> {
        let (domain, _) = entity.split_once('.').unwrap();
        let mut body = data.clone();
        body["entity_id"] = entity.into();
        match self.post(&format!("/api/services/{domain}/{service}"), &body) {
            (200, _) => Ok(()),
            (status, why) => Err(format!("{status} {why}")),
        }
    }

    /// Waits until an entity is as wanted; its last state, if it does not become so.
    pub(super) fn until(&self, entity: &str, within: Duration, wanted: impl Fn(&Value) -> bool) -> Result<(), Value> {
        let begun = Instant::now();
        loop {
            let state = self.state(entity);
            if wanted(&state) {
                return Ok(());
            }
            if begun.elapsed() > within {
                return Err(state);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Scene {
    /// The faults that a program sees which knows the REST API only.
    pub(super) fn faults_of_rest(
        &self,
        classes: &[&'static class::Class],
        entities: &BTreeMap<String, Value>,
    ) -> Vec<String> {
        let mut faults = self.states_differ(entities);
        let (whole, more) = self.services_of_whole_devices(Way::Rest, classes, entities);
        let (mut effects, mut calls) = (whole, 0);
        faults.extend(more);
        for code in SINGLE {
            let code = class::by_name(code).unwrap().code;
            let at = classes.iter().position(|class| class.code == code).unwrap();
            let (count, done, more) = self.services_of_properties(Way::Rest, at, classes[at], entities);
            calls += count;
            faults.extend(more);
            done.into_iter().for_each(|(domain, count)| *effects.entry(domain).or_default() += count);
        }
        println!("by REST: {calls} services of single properties; with an effect at a device: {effects:?}");
        let count: usize = effects.values().sum();
        if effects.len() < DOMAINS || count < COMMANDS {
            faults.push(format!("by REST only {count} commands have an effect: {effects:?}"));
        }
        faults.extend(self.refusals_of_rest());
        faults
    }

    /// The list of all states is that of the WebSocket API, and has all entities that are enabled.
    fn states_differ(&self, entities: &BTreeMap<String, Value>) -> Vec<String> {
        let (status, list) = self.hass.rest.get("/api/states");
        assert_eq!(status, 200, "{list}");
        let told: HashMap<_, _> =
            list.as_array().unwrap().iter().map(|state| (state["entity_id"].as_str().unwrap(), state)).collect();
        let mut faults = Vec::new();
        let enabled = entities.values().filter(|entity| entity["disabled_by"].is_null());
        let enabled: Vec<_> = enabled.map(|entity| entity["entity_id"].as_str().unwrap()).collect();
        for entity in &enabled {
            let is_same = |by_rest: &Value| {
                let by_socket = self.hass.socket.state(entity);
                (&by_rest["state"], &by_rest["attributes"]) == (&by_socket["state"], &by_socket["attributes"])
            };
            // A state that changed meanwhile is asked for once more.
            let differs = !told.get(entity).is_some_and(|state| is_same(state))
                && self.hass.rest.until(entity, SOON, is_same).is_err();
            if differs {
                faults.push(format!("{entity} differs by REST: {:?}", told.get(entity)));
            }
        }
        let others = self.hass.socket.states().into_keys().filter(|entity| !told.contains_key(entity.as_str()));
        faults.extend(others.map(|entity| format!("{entity} is not in the list of REST")));
        println!("by REST: {} states, {} of them of the home", told.len(), enabled.len());
        faults
    }

    /// Calls that cannot be right have answers that say so.
    fn refusals_of_rest(&self) -> Vec<String> {
        let rest = &self.hass.rest;
        let too_hot = json!({"entity_id": "all", "temperature": "hot"});
        let answers = [
            ("a state of no entity", rest.get("/api/states/light.nowhere").0, 404),
            ("a service of no name", rest.post("/api/services/light/explode", &json!({})).0, 400),
            ("a value of no number", rest.post("/api/services/climate/set_temperature", &too_hot).0, 400),
            ("no token", Rest::new(rest.port, Value::Null).get("/api/states").0, 401),
        ];
        let wrong = answers.into_iter().filter(|(_, status, expected)| status != expected);
        wrong.map(|(what, status, expected)| format!("{what}: {status} by REST, not {expected}")).collect()
    }
}
