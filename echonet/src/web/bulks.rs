//! Several requests that are kept under a name and made by one.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value as Json, json};

use super::Web;
use super::calls::{Call, outcome};
use super::problem::{Answer, Created, Problem};
use super::request::{Document, OptionalDocument, Page, page};
use super::schema::descriptions;
use super::stored::{known_fields, names, text};
use super::value::excerpt;

/// Most requests of a bulk.
pub(super) const REQUESTS: usize = 100;

/// A bulk.
#[derive(Clone, Debug)]
pub(super) struct Bulk {
    names: Json,
    /// Whether a request waits for the one before it.
    is_sequential: bool,
    /// As they were given.
    requests: Json,
    calls: Vec<(String, Call)>,
}

impl Bulk {
    /// Reads the description in a body.
    ///
    /// # Errors
    /// It describes no bulk, or requests to devices that are not there.
    fn new(web: &Web, body: &Json) -> Result<Self, Problem> {
        known_fields(body, &["descriptions", "mode", "requests"])?;
        let names = names(body)?;
        let is_sequential = match &body["mode"] {
            Json::Null => true,
            Json::String(mode) if mode == "sequential" => true,
            Json::String(mode) if mode == "parallel" => false,
            other => {
                return Err(Problem::range(format!("mode: sequential or parallel is wanted, not {}", excerpt(other))));
            }
        };
        let requests = body["requests"].as_array();
        let requests = requests.ok_or_else(|| Problem::mistyped("requests: a list of requests is wanted"))?;
        if requests.is_empty() || requests.len() > REQUESTS {
            return Err(Problem::range(format!("requests: {} of them; a bulk has 1 to {REQUESTS}", requests.len())));
        }
        let calls = requests.iter().map(|request| call(web, request)).collect::<Result<_, _>>()?;
        Ok(Self { names, is_sequential, requests: body["requests"].clone(), calls })
    }

    fn summary(&self, id: &str) -> Json {
        json!({ "id": id, "descriptions": self.names })
    }

    fn description(&self, id: &str) -> Json {
        let mut description = self.summary(id);
        description["mode"] = if self.is_sequential { "sequential" } else { "parallel" }.into();
        description["requests"] = self.requests.clone();
        let execute = json!({ "descriptions": descriptions("実行", "Makes the requests"), "schema": {} });
        description["actions"] = json!({ "execute": execute });
        description
    }
}

/// `{"method": "PUT", "path": "/devices/ID/properties/NAME", "body": {…}}`.
fn call(web: &Web, request: &Json) -> Result<(String, Call), Problem> {
    known_fields(request, &["method", "path", "body"])?;
    let (method, path) = (text(request, "method")?, text(request, "path")?);
    let parts: Vec<_> = path.strip_prefix('/').unwrap_or_default().split('/').collect();
    let body = request["body"].clone();
    let (id, call) = match (method, &parts[..]) {
        ("GET", ["devices", id, "properties"]) => (id, Call::All),
        ("GET", ["devices", id, "properties", name]) => (id, Call::Get { name: (*name).to_owned(), query: Vec::new() }),
        ("PUT", ["devices", id, "properties", name]) => (id, Call::Put { name: (*name).to_owned(), body }),
        ("POST", ["devices", id, "actions", name]) => (id, Call::Act { name: (*name).to_owned(), body }),
        _ => {
            let wrong = format!(
                "{method:.10} {path:.100}: requests of bulks are GET and PUT of /devices/ID/properties/NAME, and POST of /devices/ID/actions/NAME"
            );
            return Err(Problem::range(wrong));
        }
    };
    // A fault that is known now is reported now, and not at the time of the bulk.
    let device = web.home.device(id)?;
    if let Call::Get { name, .. } | Call::Put { name, .. } | Call::Act { name, .. } = &call {
        device.resource(name)?;
    }
    Ok(((*id).to_owned(), call))
}

pub(super) async fn list(State(web): State<Web>, Page(offset, limit): Page) -> Answer {
    let state = web.home.state();
    Ok(axum::Json(page("bulks", state.bulks.iter().map(|(id, bulk)| bulk.summary(&id)), offset, limit)))
}

pub(super) async fn create(State(web): State<Web>, Document(body): Document) -> Created {
    let bulk = Bulk::new(&web, &body)?;
    let id = web.home.state().bulks.add(bulk.clone())?;
    Ok((StatusCode::CREATED, axum::Json(bulk.description(&id))))
}

pub(super) async fn show(State(web): State<Web>, Path(id): Path<String>) -> Answer {
    let state = web.home.state();
    Ok(axum::Json(state.bulks.get(&id)?.description(&id)))
}

pub(super) async fn change(State(web): State<Web>, Path(id): Path<String>, Document(body): Document) -> Answer {
    let bulk = Bulk::new(&web, &body)?;
    *web.home.state().bulks.get_mut(&id)? = bulk.clone();
    Ok(axum::Json(bulk.description(&id)))
}

pub(super) async fn delete(State(web): State<Web>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    web.home.state().bulks.remove(&id)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn execute(State(web): State<Web>, Path(id): Path<String>, _: OptionalDocument) -> Answer {
    let bulk = web.home.state().bulks.get(&id)?.clone();
    let results = if bulk.is_sequential {
        let mut results = Vec::new();
        for (device, call) in bulk.calls {
            results.push(outcome(&device, web.call(&device, call).await));
        }
        results
    } else {
        web.all_at_once(bulk.calls).await
    };
    Ok(axum::Json(json!({ "results": results })))
}
