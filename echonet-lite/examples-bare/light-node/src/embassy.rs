//! A light and a thermometer on embassy.
#![no_std]
#![no_main]

mod board;
mod embassy_board;
mod lan9118;
mod startup;

use echonet_lite::class::general_lighting::{GENERAL_LIGHTING, LightLevel, OperationMode};
use echonet_lite::class::temperature_sensor::{TEMPERATURE_SENSOR, Value};
use echonet_lite::embassy::{Buffers, Server};
use echonet_lite::node::{Config, Identity, Node, Stored};
use embassy_board::{Alone, Controller, start_network};
use embassy_executor::Spawner;
use embassy_net::Stack;
use embassy_time::Timer;
use startup::Once;

const MAKER: [u8; 3] = [0xFF, 0xFF, 0xFF];
type Home = Server<[Stored; 2]>;
static HOME: Once<Alone<Home>> = Once::new();
static BUFFERS: Once<Alone<Buffers>> = Once::new();

#[embassy_executor::task]
async fn serve(home: &'static Home, stack: Stack<'static>) {
    // It ends if another program has the port; here is no other.
    let _ = home.run(stack, BUFFERS.set(Alone(Buffers::new()))).await;
}

#[embassy_executor::task]
async fn program(spawner: Spawner, controller: Controller) {
    let stack = start_network(spawner, controller);
    let light = Stored::new(&GENERAL_LIGHTING, 1, MAKER).with(LightLevel::of::<100>()).with(OperationMode::Normal);
    let sensor = Stored::new(&TEMPERATURE_SENSOR, 1, MAKER).with(Value::of::<215>());
    let home = Server::new(Node::new(Config::new(Identity::new(MAKER, 3)), [light, sensor]));
    let home: &'static Home = HOME.set(Alone(home));
    spawner.spawn(serve(home, stack).expect("it is started once"));
    for tenths in (200..300).cycle() {
        Timer::after_secs(60).await;
        let Some(measured) = Value::new(tenths) else { continue };
        let told = home.with_node(|node| node.change(TEMPERATURE_SENSOR.code.instance(1), measured));
        assert!(told.is_ok(), "the node has the sensor");
    }
}

startup::entry!(start);

fn start() -> ! {
    embassy_board::run(|spawner, controller| spawner.spawn(program(spawner, controller).expect("it is started once")))
}
