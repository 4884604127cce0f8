//! Finds nodes and says what they are; reads or writes properties of one.
//!
//! ```text
//! controller                                    what is there
//! controller 192.168.1.5 029001 80 b0           reads two properties
//! controller 192.168.1.5 029001 80=31 b0=32     writes two properties
//! ```

mod common;

use std::time::Duration;

use clap::Parser;
use echonet_lite::class::{self, super_class};
use echonet_lite::controller::{Answer, NodeAddr, Request};
use echonet_lite::net::Endpoint;
use echonet_lite::wire::Eoj;

/// Finds nodes on the home network, reads and writes their properties.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    place: common::Where,
    /// How long to search, in seconds
    #[arg(long, default_value_t = 3.0)]
    time: f64,
    /// Node to ask; without it, all are searched for
    #[arg(requires = "object")]
    node: Option<NodeAddr>,
    /// Which of its objects to ask, such as 029001
    object: Option<Eoj>,
    /// Properties to read (80), or to write (80=30); all that can be read if there are none
    properties: Vec<Property>,
}

#[derive(Clone)]
struct Property {
    epc: u8,
    value: Option<Vec<u8>>,
}

impl std::str::FromStr for Property {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (epc, value) = text.split_once('=').map_or((text, None), |(epc, value)| (epc, Some(value)));
        let epc = u8::from_str_radix(epc, 16).map_err(|error| format!("property {epc}: {error}"))?;
        Ok(Self { epc, value: value.map(hex).transpose()? })
    }
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0);
    let digits = digits.ok_or_else(|| format!("{text} is no sequence of bytes in hexadecimal"))?;
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flags = Flags::parse();
    let endpoint = flags.place.apply(Endpoint::builder()).bind().await?;
    let work = async {
        match (flags.node, flags.object) {
            (Some(node), Some(object)) => ask(&endpoint, node, object, &flags.properties).await,
            _ => search(&endpoint, Duration::try_from_secs_f64(flags.time)?).await,
        }
    };
    tokio::select! {
        result = work => result,
        ended = common::asked_to_end() => Ok(ended?),
    }
}

/// Lists the nodes and their objects.
async fn search(endpoint: &Endpoint, time: Duration) -> Result<(), Box<dyn std::error::Error>> {
    for node in endpoint.discover(time).await? {
        println!("{}", node.addr);
        for object in &node.objects {
            let class = class::find(object.eoj.class_code());
            println!("    {} {}", object.eoj, class.map_or("unknown", |class| class.name()));
        }
    }
    Ok(())
}

/// Writes the properties that have values, then reads the others.
async fn ask(
    endpoint: &Endpoint,
    node: NodeAddr,
    object: Eoj,
    properties: &[Property],
) -> Result<(), Box<dyn std::error::Error>> {
    let written = |property: &Property| Some((property.epc, property.value.clone()?));
    let writes: Vec<_> = properties.iter().filter_map(written).collect();
    let writes: Vec<_> = writes.iter().map(|(epc, value)| (*epc, value.as_slice())).collect();
    let mut reads: Vec<_> =
        properties.iter().filter(|property| property.value.is_none()).map(|property| property.epc).collect();
    if !writes.is_empty() {
        show(&endpoint.set(node, object, &writes).await?);
    } else if reads.is_empty() {
        let maps = endpoint.get(node, object, &[super_class::GET_PROPERTY_MAP]).await?;
        let map = maps.get(super_class::GET_PROPERTY_MAP).ok_or("the object does not tell its properties")?;
        reads = echonet_lite::wire::PropertySet::decode_map_lenient(map).iter().collect();
    }
    if !reads.is_empty() {
        show(&endpoint.request(node, &Request::get(object, &reads)).await?);
    }
    Ok(())
}

fn show(answer: &Answer) {
    println!("{answer}");
}
