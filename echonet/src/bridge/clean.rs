//! `echonet bridge --clean`: takes back what the broker retains of nodes and objects that are not there.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use echonet_lite::controller::Interview;
use echonet_lite::net::Endpoint;
use echonet_lite::wire::Eoj;
use serde_json::json;

use super::broker::{Broker, News, without_password};
use super::remembered::{self, Topic, is_own};
use crate::commands::{Bridge as Args, Options};
use crate::failure::Failure;
use crate::link;
use crate::output::Output;
use crate::search::Places;

/// How long nodes are looked for: several searches, because a datagram can be lost.
const LOOKED_FOR: Duration = Duration::from_secs(15);
const SEARCH: Duration = Duration::from_secs(5);
/// How long the broker is waited for.
const BROKER: Duration = Duration::from_secs(10);

pub(super) async fn run(args: &Args, options: &Options, out: &Output) -> Result<(), Failure> {
    let (broker, mut news) = Broker::open(args, None, Vec::new())?;
    let mut broker = broker.remembering(remembered::filters(args));
    let read = tokio::time::timeout(BROKER, read_retained(&mut broker, &mut news, args)).await;
    read.map_err(|_| Failure::NoAnswer(format!("{}: the broker does not answer", without_password(&args.broker))))??;

    let places = Places::of(&args.search.nodes, options)?;
    let endpoint = link::open(options, Interview::Profile).await?;
    let there = look(&endpoint, &places, options.timeout.unwrap_or(LOOKED_FOR)).await;
    if there.is_empty() {
        return Err(Failure::NoAnswer("no node was found: nothing is taken back".to_owned()));
    }
    let mut ghosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (topic, payload) in broker.truth().filter(|(_, payload)| !payload.is_empty()) {
        let Some(about) = Topic::of(topic, args) else { continue };
        let is_there = match (eojs_of(&there, about.node()), &about) {
            (None, _) => false,
            (Some(_), Topic::Availability { .. }) => true,
            (Some(eojs), Topic::Object { eoj, .. }) => eojs.contains(eoj),
        };
        if !is_there && (!topic.ends_with("/config") || is_own(payload, args)) {
            ghosts.entry(about.node().to_owned()).or_default().push(topic.to_owned());
        }
    }
    for (node, topics) in ghosts {
        let count = topics.len();
        out.result(
            || json!({ "event": "removed", "node": node, "topics": topics }),
            || format!("{node}: {count} topics taken back"),
        )?;
        topics.into_iter().for_each(|topic| broker.publish(topic, String::new()));
    }
    broker.close().await;
    Ok(())
}

async fn read_retained(
    broker: &mut Broker,
    news: &mut tokio::sync::mpsc::Receiver<News>,
    args: &Args,
) -> Result<(), Failure> {
    while let Some(news) = news.recv().await {
        match news {
            News::Connected => broker.connected(),
            News::Lost(why) => return Err(Failure::Network(format!("{}: {why}", without_password(&args.broker)))),
            News::Remembered { topic, payload } => broker.remember(topic, payload),
            News::Message { topic, .. } if broker.is_end_of_retained(&topic) => {
                broker.has_read();
                return Ok(());
            }
            News::Message { .. } => {}
        }
    }
    Ok(())
}

/// The nodes that are there: their names, and their objects.
async fn look(endpoint: &Endpoint, places: &Places, time: Duration) -> HashMap<String, HashSet<Eoj>> {
    let searches = async {
        loop {
            // A search that cannot be made is made up for by the next.
            let _ = places.search(endpoint, SEARCH).await;
        }
    };
    // It ends by the time alone.
    let _: Result<(), _> = tokio::time::timeout(time, searches).await;
    let mut there: HashMap<String, HashSet<Eoj>> = HashMap::new();
    for info in endpoint.nodes() {
        let Some(id) = info.id() else { continue };
        there.entry(id.to_string()).or_default().extend(info.objects.iter().map(|object| object.eoj));
    }
    there
}

/// The objects of a node; one of several with the same number has its address behind it.
fn eojs_of<'a>(there: &'a HashMap<String, HashSet<Eoj>>, node: &str) -> Option<&'a HashSet<Eoj>> {
    let number = node.split_once('_').map_or(node, |(number, _)| number);
    there.get(node).or_else(|| there.get(number))
}
