//! How fast the crate answers and asks: the two ends of a measurement.
//!
//! ```text
//! bench serve                                   a light that does nothing but answer, on the blocking endpoint
//! bench ask 192.168.1.5 100000                  reads property 80 of its object 029001 so often
//! bench ask --tokio --window 1 192.168.1.5 100000
//! bench published 192.168.1.5 10000 60          a published benchmark, cut short after a minute
//! ```
//!
//! `ask` and `published` print how many requests were answered, in how many seconds, and how many were lost. `published` prints
//! "begin" when it has found the node, and waits at its end for the end of its input, so that its CPU time can be read until then.

mod common;

use std::error::Error;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use echonet_lite::class::general_lighting::{GENERAL_LIGHTING, OPERATION_MODE, OperationMode};
use echonet_lite::controller::{self, Event, Interview, NodeAddr, Request, Spacing};
use echonet_lite::net::{Builder, Endpoint, blocking};
use echonet_lite::node::{CommonProperties, Config, Identity, Node, Object, PropertyAccess, Refused, show};
use echonet_lite::wire::Eoj;

/// The code that stands for a maker in experiments.
const MAKER: [u8; 3] = [0x00, 0x00, 0x77];

const LIGHT: Eoj = Eoj::new(0x02, 0x90, 1);

/// The two ends of a measurement.
#[derive(Parser)]
struct Flags {
    #[command(subcommand)]
    end: End,
}

#[derive(Subcommand)]
enum End {
    /// A light that does nothing but answer
    Serve {
        #[command(flatten)]
        place: common::Where,
    },
    /// Reads a property again and again
    Ask {
        #[command(flatten)]
        place: common::Where,
        /// Use the tokio endpoint instead of the blocking one
        #[arg(long)]
        tokio: bool,
        /// Requests under way
        #[arg(long, default_value_t = 32)]
        window: u16,
        /// Node to ask
        node: NodeAddr,
        /// How often
        requests: u64,
    },
    /// Searches by multicast, then reads 12 properties of the node profile one by one, again and again
    Published {
        #[command(flatten)]
        place: common::Where,
        /// Use the tokio endpoint instead of the blocking one
        #[arg(long)]
        tokio: bool,
        /// Node to ask
        node: NodeAddr,
        /// How often
        iterations: u64,
        /// After how many seconds to end at the latest
        seconds: u64,
    },
}

/// The properties that the published benchmark reads.
const PROFILE: [u8; 12] = [0x80, 0x82, 0x83, 0x8A, 0x9D, 0x9E, 0x9F, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7];

struct Light(CommonProperties);

impl Object for Light {
    fn eoj(&self) -> Eoj {
        LIGHT
    }

    fn access(&self) -> &PropertyAccess {
        const { &GENERAL_LIGHTING.offering(&[]) }
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            // Every light has one; this one's does not change.
            OPERATION_MODE => show(&OperationMode::Normal, edt),
            _ => self.0.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        self.0.set(epc, edt)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    match Flags::parse().end {
        End::Serve { place } => {
            let node = Node::new(Config::new(Identity::new(MAKER, 1)), [Light(CommonProperties::new(MAKER))]);
            let mut endpoint = place.apply(Endpoint::builder()).serve(node).bind_blocking()?;
            println!("ready");
            endpoint.run()?;
        }
        End::Ask { place, tokio, window, node, requests } => {
            let builder = place.apply(Endpoint::builder()).controller(settings(window));
            let start = Instant::now();
            let answered = if tokio {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(ask_tokio(builder, node, window, requests))?
            } else {
                ask(builder, node, window, requests)?
            };
            println!("{answered} {} {}", start.elapsed().as_secs_f64(), requests - answered);
        }
        End::Published { place, tokio, node, iterations, seconds } => {
            let builder = place.apply(Endpoint::builder()).controller(settings(1));
            let limit = Duration::from_secs(seconds);
            if tokio {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(published_tokio(builder, node, iterations, limit))?;
            } else {
                published(builder, node, iterations, limit)?;
            }
        }
    }
    Ok(())
}

/// Asks as fast as possible. A lost request is not sent again, so that it is counted.
fn settings(window: u16) -> controller::Config {
    let mut config = controller::Config::new(1);
    config.window = window;
    config.spacing = Spacing::Fixed(Duration::ZERO);
    config.interview = Interview::Nothing;
    config.tries = 1;
    config.first_timeout = Duration::from_secs(1);
    config
}

/// Keeps `window` requests under way; how many were answered.
fn ask(builder: Builder, node: NodeAddr, window: u16, requests: u64) -> Result<u64, Box<dyn Error>> {
    let mut endpoint: blocking::Endpoint = builder.bind_blocking()?;
    let request = Request::get(LIGHT, &[0x80]);
    let (mut begun, mut ended, mut answered) = (0, 0, 0);
    while ended < requests {
        while begun < requests && begun - ended < u64::from(window) {
            endpoint.begin(node, &request)?;
            begun += 1;
        }
        if let Some(Event::Done { result, .. }) = endpoint.next_event(None)? {
            ended += 1;
            answered += u64::from(result.is_ok_and(|answer| answer.is_ok()));
        }
    }
    Ok(answered)
}

/// The same, with a task for each request under way.
async fn ask_tokio(builder: Builder, node: NodeAddr, window: u16, requests: u64) -> Result<u64, Box<dyn Error>> {
    let endpoint = builder.bind().await?;
    let window = u64::from(window);
    let tasks: Vec<_> = (0..window)
        .map(|task| {
            let endpoint = endpoint.clone();
            let share = requests / window + u64::from(task < requests % window);
            tokio::spawn(async move {
                let mut answered = 0;
                for _ in 0..share {
                    let answer = endpoint.get(node, LIGHT, &[0x80]).await;
                    answered += u64::from(answer.is_ok_and(|answer| answer.is_ok()));
                }
                answered
            })
        })
        .collect();
    let mut answered = 0;
    for task in tasks {
        answered += task.await?;
    }
    Ok(answered)
}

/// How often a search is tried, and how long each waits: the node may be starting.
const SEARCHES: usize = 20;
const SEARCH: Duration = Duration::from_millis(100);

fn published(builder: Builder, node: NodeAddr, iterations: u64, limit: Duration) -> Result<(), Box<dyn Error>> {
    let mut endpoint: blocking::Endpoint = builder.bind_blocking()?;
    let mut found = false;
    for _ in 0..SEARCHES {
        found = endpoint.discover(SEARCH)?.iter().any(|info| info.addr == node);
        if found {
            break;
        }
    }
    let mut tour = Tour::begin(found, node, iterations, limit)?;
    while let Some(epc) = tour.next() {
        tour.answered += u64::from(endpoint.get(node, Eoj::NODE_PROFILE, &[epc]).is_ok_and(|answer| answer.is_ok()));
    }
    Ok(tour.end()?)
}

/// The same.
async fn published_tokio(
    builder: Builder,
    node: NodeAddr,
    iterations: u64,
    limit: Duration,
) -> Result<(), Box<dyn Error>> {
    let endpoint = builder.bind().await?;
    let mut found = false;
    for _ in 0..SEARCHES {
        found = endpoint.discover(SEARCH).await?.iter().any(|info| info.addr == node);
        if found {
            break;
        }
    }
    let mut tour = Tour::begin(found, node, iterations, limit)?;
    while let Some(epc) = tour.next() {
        tour.answered +=
            u64::from(endpoint.get(node, Eoj::NODE_PROFILE, &[epc]).await.is_ok_and(|answer| answer.is_ok()));
    }
    Ok(tour.end()?)
}

/// The progress of the requests, and their results.
struct Tour {
    start: Instant,
    limit: Duration,
    requests: u64,
    asked: u64,
    answered: u64,
}

impl Tour {
    fn begin(found: bool, node: NodeAddr, iterations: u64, limit: Duration) -> Result<Self, String> {
        if !found {
            return Err(format!("not found: {node}"));
        }
        println!("begin");
        Ok(Self { start: Instant::now(), limit, requests: iterations * 12, asked: 0, answered: 0 })
    }

    fn next(&mut self) -> Option<u8> {
        if self.asked == self.requests || self.start.elapsed() >= self.limit {
            return None;
        }
        let epc = PROFILE[(self.asked % 12) as usize];
        self.asked += 1;
        Some(epc)
    }

    fn end(&self) -> io::Result<()> {
        println!("{} {} {}", self.answered, self.start.elapsed().as_secs_f64(), self.asked - self.answered);
        io::stdin().read_to_end(&mut Vec::new()).map(drop)
    }
}
