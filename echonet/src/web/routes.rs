//! Which path leads where.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use super::guard::{Guard, guard};
use super::{Web, bulks, devices, events, groups, histories, metrics, page};

/// The routes of the API below `/elapi/v1`, as they stand in the OpenAPI document.
fn api() -> Router<Web> {
    Router::new()
        .route("/devices", get(devices::list))
        .route("/devices/{id}", get(devices::show))
        .route("/devices/{id}/properties", get(devices::properties))
        .route("/devices/{id}/properties/{name}", get(devices::get).put(devices::put))
        .route("/devices/{id}/actions/{name}", post(devices::act))
        .route("/groups", get(groups::list).post(groups::create))
        .route("/groups/{id}", get(groups::show).put(groups::change).delete(groups::delete))
        .route("/groups/{id}/properties", get(groups::properties))
        .route("/groups/{id}/properties/{name}", get(groups::get).put(groups::put))
        .route("/groups/{id}/actions/{name}", post(groups::act))
        .route("/bulks", get(bulks::list).post(bulks::create))
        .route("/bulks/{id}", get(bulks::show).put(bulks::change).delete(bulks::delete))
        .route("/bulks/{id}/actions/execute", post(bulks::execute))
        .route("/histories", get(histories::list).post(histories::create))
        .route("/histories/{id}", get(histories::show).delete(histories::delete))
        .route("/histories/{id}/properties/history", get(histories::values))
}

/// Everything that is served.
pub(super) fn router(web: Web, who: Guard) -> Router {
    let router = Router::new()
        .route("/elapi", get(devices::versions))
        .route("/elapi/v1", get(devices::services))
        .nest("/elapi/v1", api())
        .route("/events", get(events::events))
        .route("/metrics", get(metrics::metrics));
    page::add(router).layer(from_fn_with_state(Arc::new(who), guard)).with_state(web)
}

/// The metrics alone: nothing can be written.
pub(super) fn metrics_only(web: Web, who: Guard) -> Router {
    let router = Router::new().route("/metrics", get(metrics::metrics));
    router.layer(from_fn_with_state(Arc::new(who), guard)).with_state(web)
}
