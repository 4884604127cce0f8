//! Values of properties: at every change, or at regular times.

use std::collections::VecDeque;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use echonet_lite::emulate::Moment;
use serde_json::{Value as Json, json};
use tokio::time::Instant;

use super::Web;
use super::problem::{Answer, Created, Problem};
use super::request::{Document, Page, page};
use super::stored::{Stored, known_fields, names, text};
use super::value::excerpt;

/// Values that a history keeps if nothing else is said, the most that it can keep, and the most of all histories together.
const USUAL: usize = 1000;
pub(super) const MOST: usize = 10_000;
pub(super) const ALL: usize = 100_000;
/// The times between two samples, in seconds. The least is the response time of some devices; the greatest is a year.
const INTERVALS: std::ops::RangeInclusive<u64> = 1..=31_536_000;

/// A value, and when it was read, both as they are told.
#[derive(Clone, Debug)]
struct Entry {
    at: String,
    value: Box<str>,
}

/// A history of one property of a device.
#[derive(Debug)]
pub(super) struct History {
    names: Json,
    device: String,
    property: String,
    epc: u8,
    interval: Option<Duration>,
    due: Instant,
    limit: usize,
    entries: VecDeque<Entry>,
}

impl History {
    /// Reads the description in a body.
    ///
    /// # Errors
    /// It describes no history, or one of a property that is not there.
    fn new(web: &Web, body: &Json) -> Result<Self, Problem> {
        known_fields(body, &["descriptions", "deviceId", "propertyName", "interval", "limit"])?;
        let names = names(body)?;
        let (device, property) = (text(body, "deviceId")?.to_owned(), text(body, "propertyName")?.to_owned());
        let known = web.home.device(&device)?;
        let resource = known.resource(&property)?;
        if !resource.is_readable {
            return Err(Problem::range(format!("propertyName: {property} is an action, which says nothing")));
        }
        let whole = |name: &str, range: std::ops::RangeInclusive<u64>| match &body[name] {
            Json::Null => Ok(None),
            Json::Number(number) => match number.as_u64().filter(|number| range.contains(number)) {
                Some(number) => Ok(Some(number)),
                None => Err(Problem::range(format!(
                    "{name}: {} to {} is possible, not {number}",
                    range.start(),
                    range.end()
                ))),
            },
            other => Err(Problem::mistyped(format!("{name}: a number is wanted, not {}", excerpt(other)))),
        };
        let interval = whole("interval", INTERVALS)?.map(Duration::from_secs);
        let limit = whole("limit", 1..=MOST as u64)?.map_or(USUAL, |limit| limit as usize);
        let epc = resource.spec.epc;
        Ok(Self { names, device, property, epc, interval, due: Instant::now(), limit, entries: VecDeque::new() })
    }

    fn summary(&self, id: &str) -> Json {
        json!({ "id": id, "descriptions": self.names, "deviceId": self.device, "propertyName": self.property })
    }

    fn description(&self, id: &str) -> Json {
        let mut description = self.summary(id);
        description["interval"] = self.interval.map(|interval| interval.as_secs()).into();
        description["limit"] = self.limit.into();
        description["total"] = self.entries.len().into();
        description["properties"] = json!({ "history": { "writable": false, "observable": false } });
        description
    }

    fn push(&mut self, value: &Json) {
        if self.entries.len() >= self.limit {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry { at: Moment::now().to_string(), value: value.to_string().into() });
    }
}

/// All histories.
#[derive(Debug)]
pub(super) struct Histories(Stored<History>);

impl Histories {
    pub(super) fn new() -> Self {
        Self(Stored::new("history"))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    fn add(&mut self, history: History) -> Result<String, Problem> {
        let kept: usize = self.0.iter().map(|(_, known)| known.limit).sum();
        if kept + history.limit > ALL {
            let most = ALL.saturating_sub(kept);
            return Err(Problem::range(format!(
                "limit: all histories together keep {ALL} values, of which {most} are free"
            )));
        }
        self.0.add(history)
    }

    /// A property has a new value.
    pub(super) fn changed(&mut self, device: &str, epc: u8, value: &Json) {
        let of =
            |history: &&mut History| history.interval.is_none() && (history.epc, &history.device[..]) == (epc, device);
        self.0.iter_mut().filter(of).for_each(|history| history.push(value));
    }

    /// A property was read because it was time.
    pub(super) fn sampled(&mut self, device: &str, property: &str, value: &Json) {
        let of = |history: &&mut History| {
            history.interval.is_some() && (&history.device[..], &history.property[..]) == (device, property)
        };
        self.0.iter_mut().filter(of).for_each(|history| history.push(value));
    }

    /// When to read next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().filter(|(_, history)| history.interval.is_some()).map(|(_, history)| history.due).min()
    }

    /// The samples to take now, by device and property, once each.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(String, String)> {
        let mut due = Vec::new();
        for history in self.0.iter_mut() {
            let Some(interval) = history.interval.filter(|_| history.due <= now) else { continue };
            // Missed samples are not made up for.
            history.due = now + interval;
            due.push((history.device.clone(), history.property.clone()));
        }
        due.sort();
        due.dedup();
        due
    }
}

pub(super) async fn list(State(web): State<Web>, Page(offset, limit): Page) -> Answer {
    let state = web.home.state();
    Ok(axum::Json(page("histories", state.histories.0.iter().map(|(id, history)| history.summary(&id)), offset, limit)))
}

pub(super) async fn create(State(web): State<Web>, Document(body): Document) -> Created {
    let mut history = History::new(&web, &body)?;
    let device = web.home.device(&history.device)?;
    if history.interval.is_none() {
        // It begins with what is true.
        let spec = device.resource(&history.property)?.spec;
        let values = web.fetch(&device, device.coefficients(spec).with(history.epc), false).await?;
        if let Some(value) = device.read(spec, &values) {
            history.push(&value);
        }
    }
    let mut description = history.description("");
    description["id"] = web.home.state().histories.add(history)?.into();
    web.home.replanned.notify_one();
    Ok((StatusCode::CREATED, axum::Json(description)))
}

pub(super) async fn show(State(web): State<Web>, Path(id): Path<String>) -> Answer {
    let state = web.home.state();
    Ok(axum::Json(state.histories.0.get(&id)?.description(&id)))
}

pub(super) async fn delete(State(web): State<Web>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    web.home.state().histories.0.remove(&id)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The values of a page, the oldest first.
pub(super) async fn values(State(web): State<Web>, Path(id): Path<String>, Page(offset, limit): Page) -> Answer {
    let state = web.home.state();
    let history = state.histories.0.get(&id)?;
    let entries = history.entries.iter().map(|entry| {
        // It was JSON before.
        let value: Json = serde_json::from_str(&entry.value).unwrap_or(Json::Null);
        json!({ "timestamp": entry.at, "value": value })
    });
    Ok(axum::Json(page("history", entries, offset, limit)))
}

impl Web {
    /// Reads what it is time for.
    pub(super) fn sample(&self) {
        for (device, property) in self.home.state().histories.due(Instant::now()) {
            let web = self.clone();
            tokio::spawn(async move {
                let call = super::calls::Call::Get { name: property.clone(), query: Vec::new() };
                // A device that does not answer leaves a gap.
                let Ok(value) = web.call(&device, call).await else { return };
                web.home.state().histories.sampled(&device, &property, &value[&property]);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(interval: Option<u64>, limit: usize) -> History {
        let (device, property) = ("light".to_owned(), "lightLevel".to_owned());
        let interval = interval.map(Duration::from_secs);
        History {
            names: json!({}),
            device,
            property,
            epc: 0xB0,
            interval,
            due: Instant::now(),
            limit,
            entries: VecDeque::new(),
        }
    }

    #[test]
    fn the_oldest_go_and_all_together_have_an_end() {
        let mut histories = Histories::new();
        let id = histories.add(history(None, 3)).unwrap();
        (0..5).for_each(|value| histories.changed("light", 0xB0, &value.into()));
        histories.changed("light", 0x80, &true.into());
        histories.changed("other", 0xB0, &9.into());
        histories.sampled("light", "lightLevel", &9.into());
        let kept: Vec<_> = histories.0.get(&id).unwrap().entries.iter().map(|entry| entry.value.to_string()).collect();
        assert_eq!(kept, ["2", "3", "4"]);
        (1..10).for_each(|_| drop(histories.add(history(None, MOST)).unwrap()));
        let problem = histories.add(history(None, MOST)).unwrap_err().json();
        assert!(problem["message"].as_str().unwrap().contains("9997 are free"), "{problem}");
    }

    #[test]
    fn due_properties_are_sampled_once_per_interval() {
        let mut histories = Histories::new();
        let now = Instant::now();
        assert_eq!(histories.next(), None);
        (0..2).for_each(|_| drop(histories.add(history(Some(10), 5)).unwrap()));
        let later = now + Duration::from_secs(1);
        assert!(histories.next().is_some_and(|due| due <= later));
        assert_eq!(histories.due(later), [("light".to_owned(), "lightLevel".to_owned())]);
        assert_eq!(histories.due(later), []);
        assert_eq!(histories.next(), Some(later + Duration::from_secs(10)));
    }
}
