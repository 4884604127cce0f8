//! The home as the page of `echonet web` shows it: all events of its stream, put together.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::super::PATIENCE;
use crate::web::client::Web;

/// Descriptions with values, by the ids of devices.
type Devices = HashMap<String, Value>;

pub(super) struct Page(Arc<(Mutex<Devices>, Condvar)>);

impl Page {
    pub(super) fn open(web: &Web) -> Self {
        let devices = Arc::<(Mutex<Devices>, Condvar)>::default();
        let (mut events, hears) = (web.events(""), Arc::clone(&devices));
        thread::spawn(move || {
            while let Some((kind, data)) = events.next() {
                take(&mut hears.0.lock().unwrap(), &kind, data);
                hears.1.notify_all();
            }
        });
        Self(devices)
    }

    /// Waits until a device is as wanted.
    pub(super) fn until(&self, id: &str, wanted: impl Fn(Option<&Value>) -> bool) {
        let end = Instant::now() + PATIENCE;
        let mut devices = self.0.0.lock().unwrap();
        while !wanted(devices.get(id)) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{id} on the page is {:?}", devices.get(id));
            devices = self.0.1.wait_timeout(devices, left).unwrap().0;
        }
    }
}

fn take(devices: &mut Devices, kind: &str, data: Value) {
    let id = data["id"].as_str().unwrap().to_owned();
    match kind {
        "device" => drop(devices.insert(id, data)),
        "gone" => drop(devices.remove(&id)),
        "status" => devices.get_mut(&id).unwrap()["online"] = data["online"].clone(),
        "property" => {
            let name = data["name"].as_str().unwrap();
            devices.get_mut(&id).unwrap()["properties"][name]["value"] = data["value"].clone();
        }
        other => panic!("{other}: {data}"),
    }
}
