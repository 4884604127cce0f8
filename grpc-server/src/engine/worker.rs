//! What one worker has to itself.

use std::cell::RefCell;
use std::sync::Arc;

use http::Request;

use super::inbound::Inbound;
use crate::options::Options;
use crate::routes::{Answer, Routes};

/// One worker.
pub(super) struct Worker {
    pub(super) options: Arc<Options>,
    routes: RefCell<Routes>,
}

impl Worker {
    pub(super) fn new(options: &Arc<Options>, routes: Routes) -> Self {
        Self { options: Arc::clone(options), routes: RefCell::new(routes) }
    }

    /// The answer of the service that the path names, if there is one.
    pub(super) fn answer(&self, request: Request<Inbound>) -> Option<Answer> {
        let mut routes = self.routes.borrow_mut();
        let at = routes.find(request.uri().path())?;
        Some(routes.call(at, request))
    }
}
