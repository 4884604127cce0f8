//! gRPC on the engine that our servers share.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, request};
use http2::hpack::OVERHEAD;
use http2::shared::{Incoming, TooLarge};
use http2::{Config, StreamId};
use serve::{App, Body, End, Keepalive, RequestLine, Rules, Session, h1};
use server_runtime::{Error, Running};
use tokio::time::Instant;
use tonic::Status;

use super::admit::{Admitted, admit_translated};
use super::call::{self, Ended, Stage};
use super::connect;
use super::origin::{Origin, Remote};
use super::stats::{self, Stats};
use super::worker::{Shared, Worker};
use crate::options::Options;
use crate::routes::Routes;
use crate::{health, reflection, tuning};

/// Serves the routes on threads of its own until the handle is triggered; returns when it is ready.
///
/// # Errors
/// When a place cannot be listened on, a certificate does not load, a descriptor set is none, or a thread cannot be made.
pub fn serve(routes: Routes, mut options: Options) -> Result<Running, Error> {
    let (routes, health) = if options.health { health::add(routes) } else { (routes, None) };
    let routes = reflection::add(routes, &options.descriptors)?;
    let definitions = options.connect.then(|| connect::definitions(&options.descriptors)).transpose()?;
    options.timeouts = options.timeouts.bounded();
    let workers = match options.runtime.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    };
    let (engine, rules) = (of_engine(&options), rules(&options));
    let stats = std::iter::repeat_with(Stats::default).take(workers).collect();
    let shared = Arc::new(Shared { options, stats, health, definitions });
    let figures = Arc::clone(&shared);
    engine.runtime.metrics.collect(move |out| stats::render(&figures.stats, out));
    serve::start(engine, rules, move |worker| Worker::new(worker.index(), &shared, routes.clone()))
}

/// The engine's options. Bodies have no limit in size or time: messages have, and calls.
fn of_engine(options: &Options) -> serve::Options {
    let (limits, times) = (&options.limits, &options.timeouts);
    let head = (limits.headers as usize).saturating_add(tuning::HEAD_BEYOND).max(tuning::MIN_HEAD);
    serve::Options {
        runtime: options.runtime.clone(),
        limits: serve::Limits {
            head,
            target: tuning::MAX_TARGET,
            headers: h1::MAX_HEADERS,
            body: u64::MAX,
            requests: 0,
            control_frames: limits.control_frames,
        },
        timeouts: serve::Timeouts {
            idle: times.handshake,
            head: times.handshake,
            body: crate::options::LONGEST,
            // A client that takes nothing answers no PING either.
            write: times.keepalive + times.keepalive_answer,
            lame_duck: Duration::ZERO,
            ..serve::Timeouts::default()
        },
        ..serve::Options::default()
    }
}

fn rules(options: &Options) -> Rules {
    let (limits, times) = (&options.limits, &options.timeouts);
    Rules {
        http2: Config {
            max_streams: limits.streams,
            stream_window: tuning::STREAM_WINDOW,
            connection_window: tuning::CONNECTION_WINDOW,
            max_frame: tuning::MAX_FRAME,
            max_headers: limits.headers,
            max_output: tuning::SEND_BUFFER,
            max_control_frames: limits.control_frames,
            ..Config::default()
        },
        keepalive: Some(Keepalive {
            silence: times.keepalive,
            answer: times.keepalive_answer,
            idle: times.idle,
            age: times.age,
            grace: times.age_grace,
        }),
        // For clients that cannot do HTTP/2.
        http1: options.speaks_http1(),
        upgrades: false,
        reads_rest: true,
        half_close: false,
        figures: stats::render_engine,
    }
}

/// The calls of a turn.
#[derive(Default)]
pub(super) struct Batch {
    began: Option<Instant>,
    /// The methods of those that are over.
    finished: Vec<usize>,
}

impl App for Worker {
    type State = Rc<Origin>;
    type Batch = Batch;

    fn open(self: &Rc<Self>, end: &End<'_>) -> Rc<Origin> {
        self.start(end.shutdown);
        let worker = Rc::clone(self);
        Rc::new(Origin { worker, peer: end.peer.clone(), end: Remote::of(end), shutdown: end.shutdown.clone() })
    }

    /// gRPC-Web and Connect over HTTP/1.1: browsers speak HTTP/2 over TLS alone.
    async fn respond(
        self: Rc<Self>,
        request: Request<Body>,
        origin: serve::Origin<Rc<Origin>>,
        line: Rc<RequestLine>,
    ) -> Response<Body> {
        let (began, origin) = (Instant::now(), origin.state);
        let (mut head, body) = request.into_parts();
        if size(&head) > self.options.limits.headers as usize {
            head.extensions.insert(TooLarge);
        }
        let (admitted, outcome) = admit_translated(&origin, Request::from_parts(head, body.into()));
        let Admitted { stage, method, trace, .. } = admitted;
        if let Some(outcome) = outcome {
            line.attach(Ended { origin, method, trace, outcome, began });
        }
        let response = match stage {
            Stage::Handling(answer) => match answer.await {
                Ok(response) => response,
                Err(never) => match never {},
            },
            Stage::Refusing(response) | Stage::Answering(response) => *response,
            Stage::Sending(_) | Stage::Over => Status::internal("there is no answer").into_http(),
        };
        response.map(Body::new)
    }

    // A call of its own would copy the request once more.
    #[inline(always)]
    fn begin(
        self: &Rc<Self>,
        session: &Rc<Session>,
        origin: &serve::Origin<Rc<Origin>>,
        stream: StreamId,
        request: Request<Incoming>,
        batch: &mut Batch,
    ) -> bool {
        let now = *batch.began.get_or_insert_with(Instant::now);
        let finished = call::start(&origin.state, session.shared(), stream, request.map(Into::into), now);
        batch.finished.extend(finished);
        finished.is_none()
    }

    fn has_begun(&self, batch: &mut Batch) {
        if let Some(began) = batch.began.take()
            && !batch.finished.is_empty()
        {
            // One look at the clock for all: each has waited for those before it.
            self.took_all(&batch.finished, began.elapsed());
            batch.finished.clear();
        }
    }
}

/// A head's size as HTTP/2 measures it (RFC 9113 section 6.5.2), so that one limit holds for both.
fn size(head: &request::Parts) -> usize {
    let fields = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + OVERHEAD);
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    fields.sum::<usize>() + head.method.as_str().len() + target
}
