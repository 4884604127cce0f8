//! The way to the network.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;

use echonet_lite::controller::{Config, Interview};
use echonet_lite::net::{Builder, Endpoint};

use crate::commands::Options;
use crate::failure::Failure;

/// An endpoint as the options want it.
pub(crate) fn builder(options: &Options) -> Builder {
    builder_at(options, &options.address)
}

/// An endpoint as the options want it, but for its addresses.
pub(crate) fn builder_at(options: &Options, addresses: &[IpAddr]) -> Builder {
    let mut builder = Endpoint::builder().ipv4(!options.ipv6).ipv6(!options.ipv4).port(options.port);
    // An address that the machine does not have can be a typing error, so do not wait for it.
    builder = builder.prefer_tcp(options.tcp).wait(false);
    for name in &options.interface {
        builder = builder.interface(name);
    }
    #[cfg(feature = "serial")]
    if options.meter.is_some() {
        // The meter is at an address of the loopback interface.
        builder = match (options.interface.is_empty(), addresses.is_empty()) {
            (false, _) => builder.interface("lo"),
            (true, false) => builder.address(std::net::Ipv4Addr::LOCALHOST),
            (true, true) => builder,
        };
    }
    for &address in addresses {
        builder = builder.address(address);
    }
    builder
}

/// The settings of the requesting side.
pub(crate) fn settings(options: &Options, interview: Interview) -> Config {
    let mut config = Config::new(RandomState::new().hash_one(0));
    config.interview = interview;
    config.port = options.port;
    config
}

/// Opens an endpoint that only asks.
pub(crate) async fn open(options: &Options, interview: Interview) -> Result<Endpoint, Failure> {
    Ok(builder(options).controller(settings(options, interview)).bind().await?)
}

/// Opens an endpoint that only listens, beside a device on the same machine.
pub(crate) async fn listen(options: &Options) -> Result<Endpoint, Failure> {
    Ok(builder(options).listen_only().bind().await?)
}

/// Returns when the user presses Ctrl-C or a service manager wants the program to end.
pub(crate) async fn asked_to_end() -> io::Result<()> {
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        terminated = terminated() => terminated,
    }
}

/// Returns when a service manager wants the program to end.
#[cfg(unix)]
async fn terminated() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}

/// Windows has no such signal for programs of a console.
#[cfg(not(unix))]
async fn terminated() -> io::Result<()> {
    std::future::pending().await
}

/// Waits for so long; without a time, for ever.
pub(crate) async fn after(time: Option<std::time::Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
