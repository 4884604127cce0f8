//! The state of one worker, and the state that all share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use server_runtime::Shutdown;
use tonic::Code;

use super::connect::Definitions;
use super::inbound::Inbound;
use super::stats::{Figures, MethodStats, Stats, bucket};
use crate::health::Health;
use crate::options::Options;
use crate::routes::{Answer, Routes};
use crate::tuning::MAX_METHODS;

/// The place of what is no method of any service.
pub(super) const OTHER: usize = 0;

/// State that all workers share.
pub(super) struct Shared {
    pub(super) options: Options,
    pub(super) stats: Box<[Stats]>,
    pub(super) health: Option<Health>,
    /// The definitions that Connect needs, if it is spoken.
    pub(super) definitions: Option<Definitions>,
}

/// One worker.
pub(super) struct Worker {
    pub(super) options: Rc<Options>,
    index: usize,
    shared: Arc<Shared>,
    routes: RefCell<Routes>,
    methods: RefCell<Methods>,
    /// Calls so far, for sampling.
    count: Cell<u64>,
    /// Calls that may wait here.
    limit: u64,
    is_watched: Cell<bool>,
}

/// The methods that were called, by path.
struct Methods {
    list: Vec<Known>,
    places: HashMap<Box<str>, usize>,
    /// The one that was called last, most often the next one too.
    last: usize,
}

struct Known {
    path: Box<str>,
    service: usize,
    stats: Arc<MethodStats>,
}

/// Where a path leads.
pub(super) enum Found {
    /// A service's method that was called before.
    Known { service: usize, method: usize },
    /// A name that may be a method of the service.
    New { service: usize },
    /// Nowhere.
    Nothing,
}

impl Worker {
    pub(super) fn new(index: usize, shared: &Arc<Shared>, routes: Routes) -> Self {
        let stats = &shared.stats[index];
        let other = Known { path: "".into(), service: usize::MAX, stats: stats.method("/other/other") };
        let options = Rc::new(shared.options.clone());
        let limit = match options.limits.calls {
            0 => u64::MAX,
            calls => calls.div_ceil(shared.stats.len() as u64),
        };
        Self {
            options,
            index,
            shared: Arc::clone(shared),
            routes: RefCell::new(routes),
            methods: RefCell::new(Methods { list: vec![other], places: HashMap::new(), last: OTHER }),
            count: Cell::new(0),
            limit,
            is_watched: Cell::new(false),
        }
    }

    fn stats(&self) -> &Stats {
        &self.shared.stats[self.index]
    }

    pub(super) fn definitions(&self) -> Option<&Definitions> {
        self.shared.definitions.as_ref()
    }

    pub(super) fn figures(&self) -> &Figures {
        &self.stats().figures
    }

    /// Starts, with the first connection, the tasks that run beside the connections.
    pub(super) fn start(&self, shutdown: &Shutdown) {
        let Some(health) = self.shared.health.clone() else { return };
        if self.is_watched.replace(true) {
            return;
        }
        let shutdown = shutdown.clone();
        tokio::task::spawn_local(async move {
            shutdown.triggered().await;
            health.end();
        });
    }

    /// Whether this call is written to the log.
    #[inline]
    pub(super) fn is_traced(&self) -> bool {
        let every = self.options.access_log;
        if every == 0 {
            return false;
        }
        let number = self.count.get() + 1;
        self.count.set(number);
        number.is_multiple_of(every)
    }

    /// Whether no call may wait here any more.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.figures().waiting.get() >= self.limit
    }

    #[inline]
    pub(super) fn find(&self, path: &str) -> Found {
        let mut methods = self.methods.borrow_mut();
        let last = &methods.list[methods.last];
        if *last.path == *path {
            return Found::Known { service: last.service, method: methods.last };
        }
        if let Some(method) = methods.places.get(path).copied() {
            methods.last = method;
            return Found::Known { service: methods.list[method].service, method };
        }
        self.routes.borrow().find(path).map_or(Found::Nothing, |service| Found::New { service })
    }

    /// The place of a method that was called for the first time. A method that its service does not have, or refuses
    /// before it looks, gets none: clients could make names up.
    pub(super) fn learn(&self, path: &str, code: Code) -> usize {
        use Code::{Cancelled, PermissionDenied, ResourceExhausted, Unauthenticated, Unimplemented};
        let mut methods = self.methods.borrow_mut();
        if let Some(method) = methods.places.get(path) {
            return *method;
        }
        let is_there =
            !matches!(code, Cancelled | PermissionDenied | ResourceExhausted | Unauthenticated | Unimplemented);
        let service = self.routes.borrow().find(path);
        let (true, true, Some(service)) = (is_there, methods.list.len() < MAX_METHODS, service) else { return OTHER };
        let place = methods.list.len();
        methods.list.push(Known { path: path.into(), service, stats: self.stats().method(path) });
        methods.places.insert(path.into(), place);
        place
    }

    /// The answer of a service.
    #[inline]
    pub(super) fn call(&self, service: usize, request: Request<Inbound>) -> Answer {
        self.routes.borrow_mut().call(service, request)
    }

    /// Whether the calls of a service end by themselves.
    #[inline]
    pub(super) fn is_endless(&self, service: usize) -> bool {
        self.routes.borrow().is_endless(service)
    }

    /// The path of a method.
    pub(super) fn path_of(&self, method: usize) -> Box<str> {
        self.methods.borrow().list[method].path.clone()
    }

    #[inline]
    pub(super) fn ended(&self, method: usize, code: Code) {
        self.methods.borrow().list[method].stats.ended(code);
    }

    pub(super) fn took(&self, method: usize, duration: Duration) {
        self.took_all(&[method], duration);
    }

    /// Counts the time of calls that were over together.
    pub(super) fn took_all(&self, methods: &[usize], duration: Duration) {
        let (bucket, known) = (bucket(duration), self.methods.borrow());
        for method in methods {
            known.list[*method].stats.took(duration, bucket);
        }
    }
}
