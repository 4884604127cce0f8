//! `grpc.health.v1.Health`: whether the server, and each of its services, serves. All do until the shutdown begins.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};

use self::pb::health_check_response::ServingStatus;
use self::pb::health_server::HealthServer;
use self::pb::{HealthCheckRequest, HealthCheckResponse, HealthListRequest, HealthListResponse};
use crate::routes::Routes;

/// Code generated from `health.proto`.
pub(crate) mod pb {
    #![allow(missing_docs, unreachable_pub, unnameable_types, clippy::all, reason = "made by a program")]
    #![allow(clippy::allow_attributes_without_reason, clippy::too_many_lines, reason = "made by a program")]

    tonic::include_proto!("grpc.health.v1");

    /// The definition itself, as reflection tells it.
    pub(crate) const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/health.bin"));
}

/// The services, and whether they serve. It is the same of all.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    serves: watch::Sender<bool>,
    names: Arc<[&'static str]>,
}

/// Adds the service, unless the routes have one of their own. Every service serves until the shutdown.
pub(crate) fn add(routes: Routes) -> (Routes, Option<Health>) {
    if routes.names().any(|name| name == "grpc.health.v1.Health") {
        return (routes, None);
    }
    // The empty name is that of the server as a whole.
    let health = Health { serves: watch::Sender::new(true), names: routes.names().chain([""]).collect() };
    (routes.add_service(HealthServer::new(health.clone())), Some(health))
}

impl Health {
    /// From now on nothing serves. Clients that watch are told.
    pub(crate) fn end(&self) {
        self.serves.send_replace(false);
    }

    fn knows(&self, request: &Request<HealthCheckRequest>) -> bool {
        self.names.contains(&request.get_ref().service.as_str())
    }
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

fn status(serves: bool) -> HealthCheckResponse {
    answer(if serves { ServingStatus::Serving } else { ServingStatus::NotServing })
}

#[tonic::async_trait]
impl pb::health_server::Health for Health {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        if !self.knows(&request) {
            return Err(Status::not_found(format!("there is no service {:?}", request.get_ref().service)));
        }
        Ok(Response::new(status(*self.serves.borrow())))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        if self.knows(&request) {
            let statuses = WatchStream::new(self.serves.subscribe()).map(|serves| Ok(status(serves)));
            return Ok(Response::new(Box::pin(statuses)));
        }
        // The definition wants the stream to stay: the service could come. Here none comes, and the shutdown ends it.
        let unknown = tokio_stream::once(Ok(answer(ServingStatus::ServiceUnknown))).chain(tokio_stream::pending());
        Ok(Response::new(Box::pin(unknown)))
    }

    async fn list(&self, _: Request<HealthListRequest>) -> Result<Response<HealthListResponse>, Status> {
        let status = status(*self.serves.borrow());
        let statuses = self.names.iter().map(|name| ((*name).to_owned(), status)).collect();
        Ok(Response::new(HealthListResponse { statuses }))
    }
}
