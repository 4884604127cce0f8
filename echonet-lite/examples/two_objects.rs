//! One node with two different objects: a light, and a sensor whose value the program changes.

mod common;

use std::time::Duration;

use clap::Parser;
use echonet_lite::class::general_lighting::{GENERAL_LIGHTING, OPERATION_MODE, OperationMode};
use echonet_lite::class::temperature_sensor::{TEMPERATURE_SENSOR, VALUE, Value};
use echonet_lite::net::Endpoint;
use echonet_lite::node::{CommonProperties, Config, Identity, Node, Object, PropertyAccess, Refused, accept, show};
use echonet_lite::wire::Eoj;

/// The code that stands for a maker in experiments.
const MAKER: [u8; 3] = [0x00, 0x00, 0x77];

struct Light(CommonProperties, OperationMode);

impl Object for Light {
    fn eoj(&self) -> Eoj {
        GENERAL_LIGHTING.code.instance(1)
    }

    fn access(&self) -> &PropertyAccess {
        const ACCESS: PropertyAccess = GENERAL_LIGHTING.mandatory();
        &ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        if epc == OPERATION_MODE { show(&self.1, edt) } else { self.0.get(epc, edt) }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        if epc == OPERATION_MODE {
            self.1 = accept(edt)?;
            return Ok(());
        }
        self.0.set(epc, edt)
    }
}

struct Thermometer(CommonProperties, Value);

impl Object for Thermometer {
    fn eoj(&self) -> Eoj {
        TEMPERATURE_SENSOR.code.instance(1)
    }

    fn access(&self) -> &PropertyAccess {
        const ACCESS: PropertyAccess = TEMPERATURE_SENSOR.mandatory().union(PropertyAccess::new(&[], &[], &[VALUE]));
        &ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        if epc == VALUE { show(&self.1, edt) } else { self.0.get(epc, edt) }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        self.0.set(epc, edt)
    }
}

/// Everything in the node, as one type: an object that the program changes keeps its own type.
enum Thing {
    Light(Light),
    Thermometer(Thermometer),
}

impl Thing {
    fn object(&self) -> &dyn Object {
        match self {
            Self::Light(light) => light,
            Self::Thermometer(thermometer) => thermometer,
        }
    }
}

impl Object for Thing {
    fn eoj(&self) -> Eoj {
        self.object().eoj()
    }

    fn access(&self) -> &PropertyAccess {
        self.object().access()
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        self.object().get(epc, edt)
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        match self {
            Self::Light(light) => light.set(epc, edt),
            Self::Thermometer(thermometer) => thermometer.set(epc, edt),
        }
    }
}

/// A node with a light and a thermometer, which grows a tenth of a degree warmer every second.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    place: common::Where,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flags = Flags::parse();
    let things = [
        Thing::Light(Light(CommonProperties::new(MAKER), OperationMode::Normal)),
        Thing::Thermometer(Thermometer(CommonProperties::new(MAKER), Value::of::<215>())),
    ];
    let node = Node::new(Config::new(Identity::new(MAKER, 1)), things);
    let endpoint = flags.place.apply(Endpoint::builder()).serve(node).bind().await?;
    common::tell_where(&endpoint.interfaces());
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let mut ended = std::pin::pin!(common::asked_to_end());
    loop {
        tokio::select! {
            _ = seconds.tick() => endpoint.with_node(|node| {
                let [_, Thing::Thermometer(thermometer)] = node.objects_mut() else { return Ok(()) };
                let warmer = thermometer.1.steps().and_then(|tenths| Value::new(tenths + 1));
                thermometer.1 = warmer.unwrap_or(Value::of::<215>());
                let eoj = thermometer.eoj();
                node.notify(eoj, VALUE)
            })?,
            ended = &mut ended => return Ok(ended?),
        }
    }
}
