//! `grpc.health.v1.Health`: whether the server, and each of its services, serves.

use std::sync::Arc;

use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use crate::routes::Routes;

/// What the health service tells, and all that it tells it of.
#[derive(Clone)]
pub(crate) struct Health {
    reporter: HealthReporter,
    names: Arc<[&'static str]>,
}

/// Adds the service, unless the routes have one of their own. Every service serves until the shutdown.
pub(crate) fn add(routes: Routes) -> (Routes, Option<Health>) {
    if routes.names().any(|name| name == "grpc.health.v1.Health") {
        return (routes, None);
    }
    let reporter = HealthReporter::new();
    let service = HealthServer::new(HealthService::from_health_reporter(reporter.clone()));
    // The empty name is that of the server as a whole.
    let names: Arc<[_]> = routes.names().chain([""]).collect();
    let routes = routes.add_service(service);
    let health = Health { reporter, names };
    health.tell_at_once(ServingStatus::Serving);
    (routes, Some(health))
}

impl Health {
    /// From now on nothing serves. Who watches is told.
    pub(crate) async fn end(&self) {
        self.tell(ServingStatus::NotServing).await;
    }

    async fn tell(&self, status: ServingStatus) {
        for name in &*self.names {
            self.reporter.set_service_status(name, status).await;
        }
    }

    /// Before anybody else has the reporter, so that nothing is waited for.
    fn tell_at_once(&self, status: ServingStatus) {
        let mut told = std::pin::pin!(self.tell(status));
        let polled = told.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        debug_assert!(polled.is_ready(), "nobody else holds the lock");
    }
}
