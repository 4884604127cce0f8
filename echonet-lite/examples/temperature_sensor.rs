//! A room's temperature, measured every few seconds and announced when it has changed.

mod common;

use std::time::Duration;

use clap::Parser;
use echonet_lite::class::temperature_sensor::{TEMPERATURE_SENSOR, VALUE, Value};
use echonet_lite::net::Endpoint;
use echonet_lite::node::{CommonProperties, Config, Identity, Node, Object, PropertyAccess, Refused, show};
use echonet_lite::wire::Eoj;

/// The code that stands for a maker in experiments.
const MAKER: [u8; 3] = [0x00, 0x00, 0x77];

/// A temperature sensor on the home network.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    place: common::Where,
    /// Seconds between two measurements
    #[arg(long, default_value_t = 5.0)]
    interval: f64,
    /// Number that tells this node from others
    #[arg(long, default_value_t = 2)]
    serial: u64,
}

struct Sensor {
    common: CommonProperties,
    temperature: Value,
}

impl Sensor {
    const EOJ: Eoj = TEMPERATURE_SENSOR.code.instance(1);
    const ACCESS: PropertyAccess =
        CommonProperties::ACCESS.union(TEMPERATURE_SENSOR.mandatory()).union(PropertyAccess::new(&[], &[], &[VALUE]));
}

impl Object for Sensor {
    fn eoj(&self) -> Eoj {
        Self::EOJ
    }

    fn access(&self) -> &PropertyAccess {
        &Self::ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            VALUE => show(&self.temperature, edt),
            _ => self.common.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        self.common.set(epc, edt)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flags = Flags::parse();
    let sensor = Sensor { common: CommonProperties::new(MAKER), temperature: Value::of::<215>() };
    let node = Node::new(Config::new(Identity::new(MAKER, flags.serial)), [sensor]);
    let endpoint = flags.place.apply(Endpoint::builder()).serve(node).bind().await?;
    common::tell_where(&endpoint.interfaces());
    let mut interval = tokio::time::interval(Duration::try_from_secs_f64(flags.interval)?);
    let measuring = async {
        for measurement in simulated_room() {
            interval.tick().await;
            endpoint.with_node(|node| {
                let [sensor] = node.objects_mut();
                if sensor.temperature != measurement {
                    sensor.temperature = measurement;
                    println!("{measurement}");
                    node.notify(Sensor::EOJ, VALUE)?;
                }
                Ok::<_, echonet_lite::node::NotifyError>(())
            })?;
        }
        Ok(())
    };
    tokio::select! {
        result = measuring => result,
        ended = common::asked_to_end() => Ok(ended?),
    }
}

/// A room that warms by day and cools by night, a day being 48 measurements, in tenths of a degree.
fn simulated_room() -> impl Iterator<Item = Value> {
    (0..48).cycle().filter_map(|hour: i64| Value::new(190 + (24 - (hour - 24).abs()) * 2))
}
