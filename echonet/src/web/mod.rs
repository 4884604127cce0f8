//! `echonet web`: the home by the ECHONET Lite Web API, and as a page.
//!
//! Every object of the network is a device of the API, its properties are resources with the names and values of the
//! tables. A request over HTTP becomes a request to the device. Readers of the stream of events get announcements of
//! devices, and the values that devices are asked for while a reader is there. Groups, bulks and histories are kept
//! here, within limits.

mod bulks;
mod calls;
mod circuits;
mod device;
mod devices;
mod events;
mod follow;
mod groups;
mod guard;
mod histories;
mod home;
mod metrics;
mod openapi;
mod page;
mod problem;
mod request;
mod routes;
mod schema;
mod serve;
mod stored;
mod value;

use std::sync::Arc;

use echonet_lite::controller::Interview;
use echonet_lite::net::Endpoint;
use guard::Guard;
use home::Home;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

use crate::commands::{Export, Options, Web as Args};
use crate::failure::Failure;
use crate::output::Output;
use crate::search::Places;
use crate::{emulate, link, quirks};

/// Nodes and requests that a large building has.
const NODES: usize = 8192;
const REQUESTS: usize = 16_384;

/// The state that every request is served with.
#[derive(Clone)]
struct Web(Arc<Shared>);

struct Shared {
    endpoint: Endpoint,
    home: Home,
    quirks: quirks::Table,
    places: Places,
    inquiries: mpsc::UnboundedSender<follow::Inquiry>,
    /// Places for readers of events.
    readers: Arc<Semaphore>,
}

impl std::ops::Deref for Web {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// `echonet export`: the metrics alone.
pub(crate) async fn export(args: &Export, options: &Options, out: &Output) -> Result<(), Failure> {
    let Export { search, listen, host, token_file, poll, quirks } = args.clone();
    let args = Args { search, listen, host, token_file, poll, quirks, emulate: None };
    serve_home(&args, routes::metrics_only, "metrics", options, out).await
}

pub(crate) async fn run(args: &Args, options: &Options, out: &Output) -> Result<(), Failure> {
    serve_home(args, routes::router, "", options, out).await
}

/// Serves the home by these routes, the first of which is at `path`.
async fn serve_home(
    args: &Args,
    routes: fn(Web, Guard) -> axum::Router,
    path: &str,
    options: &Options,
    out: &Output,
) -> Result<(), Failure> {
    let guard = Guard::new(args)?;
    let places = Places::of(&args.search.nodes, options)?;
    let quirks = quirks::Table::with_file(args.quirks.as_deref())?;
    let held = |error| Failure::Network(format!("--listen {}: {error}", args.listen));
    let listener = TcpListener::bind(args.listen).await.map_err(held)?;
    let _played = match &args.emulate {
        Some(file) => emulate::play(file, options, out).await?,
        None => Vec::new(),
    };
    let mut settings = link::settings(options, Interview::Everything);
    (settings.max_nodes, settings.max_requests, settings.max_events) = (NODES, REQUESTS, REQUESTS);
    let endpoint = link::builder(options).controller(settings).bind().await?;
    let events = endpoint.events();
    let readers = Arc::new(Semaphore::new(events::READERS));
    // As many at a time as there are nodes at most.
    let (inquiries, inquired) = mpsc::unbounded_channel();
    let web = Web(Arc::new(Shared { endpoint, home: Home::new(), quirks, places, inquiries, readers }));
    let url = format!("http://{}/{path}", listener.local_addr()?);
    out.result(
        || json!({ "event": "listening", "url": url }),
        || if path.is_empty() { format!("the home is at {url}") } else { format!("the {path} are at {url}") },
    )?;
    tokio::spawn(serve::serve(listener, routes(web.clone(), guard)));
    tokio::select! {
        followed = follow::follow(&web, events, inquired, args.poll, out) => followed,
        () = link::after(options.timeout) => Ok(()),
    }
}
