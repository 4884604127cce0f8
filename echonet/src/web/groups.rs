//! Devices that are asked and told together.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Map, Value as Json, json};
use tokio::task::JoinSet;

use super::calls::{Call, outcome};
use super::device::{Resource, action};
use super::problem::{Answer, Created, Problem};
use super::request::{Document, OptionalDocument, Page, page};
use super::stored::{known_fields, names};
use super::{Web, schema};

/// Most devices of a group.
pub(super) const MEMBERS: usize = 256;

/// A group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    names: Json,
    devices: Vec<String>,
}

impl Group {
    /// Reads the description in a body.
    ///
    /// # Errors
    /// It describes no group, or one of devices that are not there.
    fn new(web: &Web, body: &Json) -> Result<Self, Problem> {
        known_fields(body, &["descriptions", "devices"])?;
        let names = names(body)?;
        let wanted = || Problem::mistyped("devices: a list of the ids of devices is wanted");
        let ids = body["devices"].as_array().ok_or_else(wanted)?;
        if ids.is_empty() || ids.len() > MEMBERS {
            return Err(Problem::range(format!("devices: {} of them; a group has 1 to {MEMBERS}", ids.len())));
        }
        let mut devices: Vec<String> = Vec::new();
        for id in ids {
            let id = id.as_str().ok_or_else(wanted)?;
            web.home.device(id)?;
            if devices.iter().any(|known| known == id) {
                return Err(Problem::range(format!("devices: {id} is there twice")));
            }
            devices.push(id.to_owned());
        }
        Ok(Self { names, devices })
    }

    fn summary(&self, id: &str) -> Json {
        json!({ "id": id, "descriptions": self.names })
    }

    /// Its description: the properties and actions that all its devices have in the same form.
    fn description(&self, web: &Web, id: &str) -> Json {
        let devices: Vec<_> = self.devices.iter().filter_map(|id| web.home.device(id).ok()).collect();
        let (mut properties, mut actions) = (Map::new(), Map::new());
        if let Some((first, others)) = devices.split_first() {
            for resource in first.resources() {
                let same = others.iter().all(|other| {
                    let form = |of: Resource<'_>| (of.is_readable, of.is_writable, schema::of(of.spec));
                    other.resource(resource.name).is_ok_and(|of| form(of) == form(resource))
                });
                if !same {
                    continue;
                }
                if resource.is_readable {
                    properties.insert(resource.name.to_owned(), first.property(resource));
                } else {
                    actions.insert(resource.name.to_owned(), action(resource.spec));
                }
            }
        }
        let mut description = self.summary(id);
        description["devices"] = json!(self.devices);
        description["properties"] = properties.into();
        description["actions"] = actions.into();
        description
    }
}

pub(super) async fn list(State(web): State<Web>, Page(offset, limit): Page) -> Answer {
    let state = web.home.state();
    Ok(axum::Json(page("groups", state.groups.iter().map(|(id, group)| group.summary(&id)), offset, limit)))
}

pub(super) async fn create(State(web): State<Web>, Document(body): Document) -> Created {
    let group = Group::new(&web, &body)?;
    let id = web.home.state().groups.add(group.clone())?;
    Ok((StatusCode::CREATED, axum::Json(group.description(&web, &id))))
}

pub(super) async fn show(State(web): State<Web>, Path(id): Path<String>) -> Answer {
    let group = web.group(&id)?;
    Ok(axum::Json(group.description(&web, &id)))
}

pub(super) async fn change(State(web): State<Web>, Path(id): Path<String>, Document(body): Document) -> Answer {
    let group = Group::new(&web, &body)?;
    *web.home.state().groups.get_mut(&id)? = group.clone();
    Ok(axum::Json(group.description(&web, &id)))
}

pub(super) async fn delete(State(web): State<Web>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    web.home.state().groups.remove(&id)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn properties(State(web): State<Web>, Path(id): Path<String>) -> Answer {
    web.together(&id, Call::All).await
}

pub(super) async fn get(State(web): State<Web>, Path((id, name)): Path<(String, String)>) -> Answer {
    web.together(&id, Call::Get { name, query: Vec::new() }).await
}

pub(super) async fn put(
    State(web): State<Web>,
    Path((id, name)): Path<(String, String)>,
    Document(body): Document,
) -> Answer {
    web.together(&id, Call::Put { name, body }).await
}

pub(super) async fn act(
    State(web): State<Web>,
    Path((id, name)): Path<(String, String)>,
    OptionalDocument(body): OptionalDocument,
) -> Answer {
    web.together(&id, Call::Act { name, body }).await
}

impl Web {
    fn group(&self, id: &str) -> Result<Group, Problem> {
        self.home.state().groups.get(id).cloned()
    }

    /// Makes the same call to all devices of a group; returns the outcome at each.
    async fn together(&self, id: &str, call: Call) -> Answer {
        let calls = self.group(id)?.devices.into_iter().map(|device| (device, call.clone())).collect();
        Ok(axum::Json(json!({ "results": self.all_at_once(calls).await })))
    }

    /// Makes several calls at the same time; returns their outcomes in order.
    pub(super) async fn all_at_once(&self, calls: Vec<(String, Call)>) -> Vec<Json> {
        let mut results = vec![Json::Null; calls.len()];
        let mut under_way = JoinSet::new();
        for (at, (device, call)) in calls.into_iter().enumerate() {
            let web = self.clone();
            under_way.spawn(async move { (at, outcome(&device, web.call(&device, call).await)) });
        }
        while let Some(ended) = under_way.join_next().await {
            // One that panicked leaves its place empty.
            if let Ok((at, result)) = ended {
                results[at] = result;
            }
        }
        results
    }
}
