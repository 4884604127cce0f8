//! The services of the API, and the devices.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::json;

use super::Web;
use super::calls::Call;
use super::problem::Answer;
use super::request::{Document, OptionalDocument, Page, Pairs, page};
use super::schema::descriptions;

pub(super) async fn versions() -> Answer {
    Ok(Json(json!({ "versions": [{ "id": "v1", "status": "CURRENT" }] })))
}

pub(super) async fn services(State(web): State<Web>) -> Answer {
    let state = web.home.state();
    let service = |name: &str, japanese: &str, english: &str, total: usize| json!({ "name": name, "descriptions": descriptions(japanese, english), "total": total });
    Ok(Json(json!({ "v1": [
        service("devices", "機器", "Devices", state.devices().len()),
        service("groups", "機器グループ", "Groups of devices", state.groups.len()),
        service("bulks", "複数命令", "Several requests under one name", state.bulks.len()),
        service("histories", "履歴データ", "Histories of properties", state.histories.len()),
    ] })))
}

pub(super) async fn list(State(web): State<Web>, Page(offset, limit): Page) -> Answer {
    let state = web.home.state();
    Ok(Json(page("devices", state.devices().map(super::home::Known::profile), offset, limit)))
}

pub(super) async fn show(State(web): State<Web>, Path(id): Path<String>) -> Answer {
    Ok(Json(web.home.device(&id)?.description()))
}

pub(super) async fn properties(State(web): State<Web>, Path(id): Path<String>) -> Answer {
    web.call(&id, Call::All).await.map(Json)
}

pub(super) async fn get(
    State(web): State<Web>,
    Path((id, name)): Path<(String, String)>,
    Pairs(query): Pairs,
) -> Answer {
    web.call(&id, Call::Get { name, query }).await.map(Json)
}

pub(super) async fn put(
    State(web): State<Web>,
    Path((id, name)): Path<(String, String)>,
    Document(body): Document,
) -> Answer {
    web.call(&id, Call::Put { name, body }).await.map(Json)
}

pub(super) async fn act(
    State(web): State<Web>,
    Path((id, name)): Path<(String, String)>,
    OptionalDocument(body): OptionalDocument,
) -> Answer {
    web.call(&id, Call::Act { name, body }).await.map(Json)
}
