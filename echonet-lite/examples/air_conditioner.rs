//! An air conditioner whose room slowly takes the temperature that is asked for.

mod common;

use std::time::Duration;

use clap::Parser;
use echonet_lite::class::HOME_AIR_CONDITIONER;
use echonet_lite::net::Endpoint;
use echonet_lite::node::{CommonProperties, Config, Identity, Node, Object, PropertyAccess, Refused, put};
use echonet_lite::wire::Eoj;

/// The code that stands for a maker in experiments.
const MAKER: [u8; 3] = [0x00, 0x00, 0x77];

const POWER: u8 = 0x80;
const POWER_SAVING: u8 = 0x8F;
const AIR_FLOW: u8 = 0xA0;
const MODE: u8 = 0xB0;
const TARGET: u8 = 0xB3;
const ROOM: u8 = 0xBB;
const OUTSIDE: u8 = 0xBE;

/// An air conditioner on the home network.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    place: common::Where,
    /// Seconds in which the room gets a degree warmer or cooler
    #[arg(long, default_value_t = 10.0)]
    pace: f64,
    /// What tells this node from others
    #[arg(long, default_value_t = 3)]
    serial: u64,
}

struct AirConditioner {
    common: CommonProperties,
    saving: u8,
    air_flow: u8,
    mode: u8,
    target: u8,
    room: i8,
}

impl AirConditioner {
    const EOJ: Eoj = HOME_AIR_CONDITIONER.code.instance(1);
    const ACCESS: PropertyAccess = CommonProperties::ACCESS
        .union(HOME_AIR_CONDITIONER.offering(&[OUTSIDE]))
        .union(PropertyAccess::new(&[], &[], &[TARGET, ROOM]));

    /// Lets some time pass; says whether the room's temperature has changed.
    fn run(&mut self) -> bool {
        // Cooling only cools, heating only heats; automatic does both, drying and circulating neither.
        let step = (i16::from(self.target) - i16::from(self.room)).signum() as i8;
        let works = matches!((self.mode, step), (0x41, _) | (0x42, -1) | (0x43, 1));
        if self.common.on && works {
            self.room += step;
        }
        self.common.on && works && step != 0
    }

    fn tell(&self) {
        let state = if self.common.on { "on" } else { "off" };
        println!("{state}, mode {:02X}, set to {} °C, room at {} °C", self.mode, self.target, self.room);
    }
}

impl Object for AirConditioner {
    fn eoj(&self) -> Eoj {
        Self::EOJ
    }

    fn access(&self) -> &PropertyAccess {
        &Self::ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            POWER_SAVING => put(edt, &[self.saving]),
            AIR_FLOW => put(edt, &[self.air_flow]),
            MODE => put(edt, &[self.mode]),
            TARGET => put(edt, &[self.target]),
            ROOM => put(edt, &self.room.to_be_bytes()),
            OUTSIDE => put(edt, &[31]),
            _ => self.common.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        match (epc, edt) {
            (POWER_SAVING, &[saving @ (0x41 | 0x42)]) => self.saving = saving,
            // Automatic, or one of eight levels.
            (AIR_FLOW, &[level @ (0x31..=0x38 | 0x41)]) => self.air_flow = level,
            // Automatic, cooling, heating, drying, circulating.
            (MODE, &[mode @ 0x41..=0x45]) => self.mode = mode,
            (TARGET, &[target @ 0..=50]) => self.target = target,
            (POWER_SAVING | AIR_FLOW | MODE | TARGET, &[_]) => return Err(Refused::Value),
            (POWER_SAVING | AIR_FLOW | MODE | TARGET, _) => return Err(Refused::Length),
            _ => self.common.set(epc, edt)?,
        }
        self.tell();
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flags = Flags::parse();
    let common = CommonProperties::new(MAKER);
    let device = AirConditioner { common, saving: 0x42, air_flow: 0x41, mode: 0x42, target: 26, room: 30 };
    device.tell();
    let node = Node::new(Config::new(Identity::new(MAKER, flags.serial)), [device]);
    let endpoint = flags.place.apply(Endpoint::builder()).serve(node).bind().await?;
    common::tell_where(&endpoint.interfaces());
    let mut pace = tokio::time::interval(Duration::try_from_secs_f64(flags.pace)?);
    let running = async {
        loop {
            pace.tick().await;
            endpoint.with_node(|node| {
                let [device] = node.objects_mut();
                if device.run() {
                    device.tell();
                    node.notify(AirConditioner::EOJ, ROOM)?;
                }
                Ok::<_, echonet_lite::node::NotifyError>(())
            })?;
        }
    };
    tokio::select! {
        result = running => result,
        ended = common::asked_to_end() => Ok(ended?),
    }
}

const _: () = assert!(AirConditioner::ACCESS.set.contains(POWER));
