//! A dimmable light that tells on the terminal what it is told to do.
//!
//! It listens on every interface and shares the port, so that a tool on the same machine that is bound to another of
//! its addresses (such as 127.0.0.2) can ask it on 127.0.0.1.

mod common;

use clap::Parser;
use echonet_lite::net::Endpoint;
use echonet_lite::node::{CommonProperties, Config, Identity, Node, Object, PropertyAccess, Refused, put};
use echonet_lite::wire::Eoj;

/// The code that stands for a maker in experiments.
const MAKER: [u8; 3] = [0x00, 0x00, 0x77];

/// Properties of general lighting (class 0290) beside the common ones.
const LEVEL: u8 = 0xB0;
const MODE: u8 = 0xB6;

/// A dimmable light on the home network.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    place: common::Where,
    /// How many lights the node has
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=127))]
    lights: u8,
    /// What tells this node from others
    #[arg(long, default_value_t = 1)]
    serial: u64,
}

struct Light {
    instance: u8,
    common: CommonProperties,
    level: u8,
    mode: u8,
}

impl Light {
    const ACCESS: PropertyAccess =
        CommonProperties::ACCESS.union(PropertyAccess::new(&[LEVEL, MODE], &[LEVEL, MODE], &[LEVEL, MODE]));

    fn new(instance: u8) -> Self {
        Self { instance, common: CommonProperties::new(MAKER), level: 100, mode: 0x42 }
    }
}

impl Object for Light {
    fn eoj(&self) -> Eoj {
        Eoj::new(0x02, 0x90, self.instance)
    }

    fn access(&self) -> &PropertyAccess {
        &Self::ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            LEVEL => put(edt, &[self.level]),
            MODE => put(edt, &[self.mode]),
            _ => self.common.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        match (epc, edt) {
            (LEVEL, &[level @ 0..=100]) => self.level = level,
            // Automatic, normal, night, colour.
            (MODE, &[mode @ (0x41..=0x43 | 0x45)]) => self.mode = mode,
            (LEVEL | MODE, &[_]) => return Err(Refused::Value),
            (LEVEL | MODE, _) => return Err(Refused::Length),
            _ => self.common.set(epc, edt)?,
        }
        let state = if self.common.on { "on" } else { "off" };
        println!("light {}: {state}, level {} %, mode {:02X}", self.instance, self.level, self.mode);
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let flags = Flags::parse();
    let lights: Vec<_> = (1..=flags.lights).map(Light::new).collect();
    let node = Node::new(Config::new(Identity::new(MAKER, flags.serial)), lights);
    let endpoint = flags.place.apply(Endpoint::builder()).serve(node).bind().await?;
    common::tell_where(&endpoint.interfaces());
    common::asked_to_end().await
}
