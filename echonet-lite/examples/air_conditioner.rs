//! An air conditioner whose room slowly takes the temperature that is asked for.

mod common;

use std::time::Duration;

use clap::Parser;
use echonet_lite::class::home_air_conditioner::{
    AIR_FLOW_LEVEL, AirFlowLevel, HOME_AIR_CONDITIONER, OPERATION_MODE, OPERATION_STATUS, OUTDOOR_TEMPERATURE,
    OperationMode, OutdoorTemperature, POWER_SAVING_OPERATION, PowerSavingOperation, ROOM_TEMPERATURE, RoomTemperature,
    TARGET_TEMPERATURE, TargetTemperature,
};
use echonet_lite::net::Endpoint;
use echonet_lite::node::{CommonProperties, Config, Identity, Node, Object, PropertyAccess, Refused, accept, show};
use echonet_lite::wire::Eoj;

/// The code that stands for a maker in experiments.
const MAKER: [u8; 3] = [0x00, 0x00, 0x77];

/// An air conditioner on the home network.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    place: common::Where,
    /// Seconds in which the room gets a degree warmer or cooler
    #[arg(long, default_value_t = 10.0)]
    pace: f64,
    /// Number that tells this node from others
    #[arg(long, default_value_t = 3)]
    serial: u64,
}

struct AirConditioner {
    common: CommonProperties,
    saving: PowerSavingOperation,
    air_flow: AirFlowLevel,
    mode: OperationMode,
    target: TargetTemperature,
    room: RoomTemperature,
}

impl AirConditioner {
    const EOJ: Eoj = HOME_AIR_CONDITIONER.code.instance(1);
    const ACCESS: PropertyAccess = CommonProperties::ACCESS
        .union(HOME_AIR_CONDITIONER.offering(&[OUTDOOR_TEMPERATURE]))
        .union(PropertyAccess::new(&[], &[], &[TARGET_TEMPERATURE, ROOM_TEMPERATURE]));

    /// Lets some time pass; says whether the room's temperature has changed.
    fn run(&mut self) -> bool {
        let (Some(target), Some(room)) = (self.target.steps(), self.room.steps()) else { return false };
        let step = (target - room).signum();
        // Cooling only cools, heating only heats; automatic does both, drying and circulating neither.
        let works = match self.mode {
            OperationMode::Auto => true,
            OperationMode::Cooling => step < 0,
            OperationMode::Heating => step > 0,
            OperationMode::Dehumidification | OperationMode::Circulation | OperationMode::Other => false,
        };
        let changed = RoomTemperature::new(room + step).filter(|_| self.common.on && works && step != 0);
        self.room = changed.unwrap_or(self.room);
        changed.is_some()
    }

    fn tell(&self) {
        let state = if self.common.on { "on" } else { "off" };
        println!("{state}, mode {:?}, set to {}, room at {}", self.mode, self.target, self.room);
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
            POWER_SAVING_OPERATION => show(&self.saving, edt),
            AIR_FLOW_LEVEL => show(&self.air_flow, edt),
            OPERATION_MODE => show(&self.mode, edt),
            TARGET_TEMPERATURE => show(&self.target, edt),
            ROOM_TEMPERATURE => show(&self.room, edt),
            OUTDOOR_TEMPERATURE => show(&OutdoorTemperature::of::<31>(), edt),
            _ => self.common.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        match epc {
            POWER_SAVING_OPERATION => self.saving = accept(edt)?,
            AIR_FLOW_LEVEL => self.air_flow = accept(edt)?,
            // "Other" is what only the device itself can be in.
            OPERATION_MODE if accept::<OperationMode>(edt)? == OperationMode::Other => return Err(Refused::Value),
            OPERATION_MODE => self.mode = accept(edt)?,
            TARGET_TEMPERATURE => self.target = accept(edt)?,
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
    let device = AirConditioner {
        common,
        saving: PowerSavingOperation::False,
        air_flow: AirFlowLevel::AUTO,
        mode: OperationMode::Cooling,
        target: TargetTemperature::of::<26>(),
        room: RoomTemperature::of::<30>(),
    };
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
                    node.notify(AirConditioner::EOJ, ROOM_TEMPERATURE)?;
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

const _: () = assert!(AirConditioner::ACCESS.set.contains(OPERATION_STATUS));
