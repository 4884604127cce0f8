//! The light on a machine whose network is up: `light-idf ADDRESS`. Tests name a port, too: `light-idf ADDRESS:PORT`.

use std::net::SocketAddrV4;
use std::process::ExitCode;

use echonet_lite::wire::PORT;
use light_idf::serve;

/// The number of this device among those of its maker.
const SERIAL: u64 = 0x0002_9002;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1).unwrap_or_default();
    let own = argument.parse::<SocketAddrV4>();
    let Ok(own) = own.or_else(|_| argument.parse().map(|address| SocketAddrV4::new(address, PORT))) else {
        eprintln!("light-idf ADDRESS: an IPv4 address of this machine, not `{argument}`");
        return ExitCode::from(2);
    };
    // A random number differs after each start, so that no controller takes a message for a copy of an earlier one.
    let Err(error) = serve(own, SERIAL, std::process::id() as u16);
    eprintln!("light-idf: {own}: {error}");
    ExitCode::FAILURE
}
