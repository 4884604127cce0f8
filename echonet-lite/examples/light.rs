//! A dimmable light that tells on the terminal what it is told to do.
//!
//! It listens on every interface and shares the port, so that a tool on the same machine that is bound to another of
//! its addresses (such as 127.0.0.2) can ask it on 127.0.0.1.

mod common;

use std::io::IsTerminal as _;

use clap::Parser;
use echonet_lite::class::general_lighting::{GENERAL_LIGHTING, LIGHT_LEVEL, LightLevel, OPERATION_MODE, OperationMode};
use echonet_lite::net::Endpoint;
use echonet_lite::node::{CommonProperties, Config, Identity, Node, Object, PropertyAccess, Refused, accept, show};
use echonet_lite::wire::Eoj;

/// The code that stands for a maker in experiments.
const MAKER: [u8; 3] = [0x00, 0x00, 0x77];

/// A dimmable light on the home network.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    place: common::Where,
    /// How many lights the node has
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=127))]
    lights: u8,
    /// Number that tells this node from others
    #[arg(long, default_value_t = 1)]
    serial: u64,
}

struct Light {
    instance: u8,
    common: CommonProperties,
    level: LightLevel,
    mode: OperationMode,
}

impl Light {
    /// The properties of every light, and the level. Changes of level and mode are announced.
    const ACCESS: PropertyAccess =
        GENERAL_LIGHTING.offering(&[LIGHT_LEVEL]).union(PropertyAccess::new(&[], &[], &[LIGHT_LEVEL, OPERATION_MODE]));

    fn new(instance: u8) -> Self {
        Self { instance, common: CommonProperties::new(MAKER), level: LightLevel::MAX, mode: OperationMode::Normal }
    }
}

impl Object for Light {
    fn eoj(&self) -> Eoj {
        GENERAL_LIGHTING.code.instance(self.instance)
    }

    fn access(&self) -> &PropertyAccess {
        &Self::ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            LIGHT_LEVEL => show(&self.level, edt),
            OPERATION_MODE => show(&self.mode, edt),
            _ => self.common.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        match epc {
            LIGHT_LEVEL => self.level = accept(edt)?,
            OPERATION_MODE => self.mode = accept(edt)?,
            _ => self.common.set(epc, edt)?,
        }
        let state = if self.common.on { "on" } else { "off" };
        println!("light {}: {state}, level {}, mode {:?}", self.instance, self.level, self.mode);
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
    if std::io::stdout().is_terminal() {
        println!("Try in another terminal: cargo run -p echonet --release -- discover");
    }
    common::asked_to_end().await
}
