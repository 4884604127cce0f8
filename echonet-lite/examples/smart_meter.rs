//! Reads a Route-B smart meter through a serial Wi-SUN module: power, currents and cumulative energy, once a minute.
//!
//! ```text
//! ROUTE_B_ID=00112233445566778899AABBCCDDEEFF ROUTE_B_PASSWORD=0123456789AB \
//!     cargo run -p echonet-lite --features serial --example smart_meter -- /dev/ttyUSB0 BP35A1
//! ```
//!
//! The credentials come from the environment, so that no list of processes shows them.

use std::env;
use std::error::Error;
use std::time::Duration;

use echonet_lite::controller::Answer;
use echonet_lite::meter::{self, Currents, FixedTime, METER, Scale, epc};
use echonet_lite::serial::{Client, Config, Credentials, Event, Module, SerialPort};

/// A scan through all durations and three attempts to join.
const JOIN_TIMEOUT: Duration = Duration::from_secs(300);
/// Every question costs air time, of which the law allows six minutes an hour.
const PAUSE: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(path), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("usage: smart_meter PORT BP35A1|BP35C0|RL7023|RL7023-DSS".into());
    };
    let module = Module::by_name(&name).ok_or("no such module: BP35A1, BP35C0, RL7023, RL7023-DSS")?;
    let secret = |name| env::var(name).map_err(|_| format!("{name} is not set in the environment"));
    let credentials = Credentials::new(&secret("ROUTE_B_ID")?, &secret("ROUTE_B_PASSWORD")?)?;

    let mut client = Client::new(SerialPort::open(path)?, Config::new(module, credentials));
    client.observe(show);
    client.join(JOIN_TIMEOUT)?;

    let factors = client.get(METER, &[epc::COEFFICIENT, epc::UNIT])?;
    let scale = Scale::decode(factors.get(epc::COEFFICIENT), value(&factors, epc::UNIT)?)?;
    loop {
        let readings = client.get(METER, &[epc::POWER, epc::CURRENTS, epc::FIXED_TIME])?;
        match meter::power(value(&readings, epc::POWER)?)? {
            Some(watts) => println!("power     {watts} W"),
            None => println!("power     no data"),
        }
        println!("currents  {}", Currents::decode(value(&readings, epc::CURRENTS)?)?);
        let fixed = FixedTime::decode(value(&readings, epc::FIXED_TIME)?)?;
        if let Some(count) = fixed.count {
            println!("energy    {} kWh at {}", scale.energy(count), fixed.at);
        }
        // The meter announces the energy at every half hour.
        while let Some(notification) = client.notification(PAUSE)? {
            for (epc, edt) in notification.properties() {
                println!("announced {} {epc:02X} {edt:02X?}", notification.eoj);
            }
        }
    }
}

fn value(answer: &Answer, epc: u8) -> Result<&[u8], String> {
    answer.get(epc).ok_or_else(|| format!("the meter does not tell property {epc:02X}"))
}

fn show(event: &Event<'_>) {
    match event {
        Event::Version(version) => eprintln!("module with firmware {version}"),
        Event::Scanning(duration) => eprintln!("scanning, duration {duration}"),
        Event::Found(pan) => eprintln!("found network {:04X} on channel {:02X}", pan.id, pan.channel),
        Event::Joining(_) => eprintln!("joining"),
        Event::Joined(meter) => eprintln!("joined, meter at {}", meter.ip()),
        Event::NotSent(cause) => eprintln!("not sent: {cause}"),
        Event::Limited => eprintln!("the allowed air time is used up, waiting"),
        Event::Unlimited => eprintln!("air time again"),
        Event::Lost(loss) => eprintln!("{loss}"),
        Event::Failed(failure) => eprintln!("{failure}"),
        Event::Received(_) | Event::Sent => {}
    }
}
