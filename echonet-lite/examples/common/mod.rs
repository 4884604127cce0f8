//! The parts that the examples share: where to listen, and how to end.

use std::net::IpAddr;

use clap::Args;
use echonet_lite::net::{Builder, Device, Interface};

/// Where to listen. Without any of these: on every interface, by IPv4 and IPv6, beside other programs on the same port.
#[derive(Args, Debug)]
pub(crate) struct Where {
    /// Use this interface only; can be given several times
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
    /// Listen on this address of the machine only; can be given several times
    #[arg(long, value_name = "IP")]
    address: Vec<IpAddr>,
    /// Speak IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Speak IPv6 only
    #[arg(short = '6', long)]
    ipv6: bool,
}

impl Where {
    /// Applies the choices.
    pub(crate) fn apply<D: Device>(self, mut builder: Builder<D>) -> Builder<D> {
        for name in self.interface {
            builder = builder.interface(name);
        }
        for address in self.address {
            builder = builder.address(address);
        }
        builder.ipv4(!self.ipv6).ipv6(!self.ipv4)
    }
}

/// Says on which interfaces the program listens.
#[allow(dead_code, reason = "not every example does")]
pub(crate) fn tell_where(interfaces: &[Interface]) {
    for interface in interfaces {
        println!("listening on {interface}");
    }
}

/// Returns when the user presses Ctrl-C or a service manager wants the program to end.
#[allow(dead_code, reason = "not every example does")]
pub(crate) async fn asked_to_end() -> std::io::Result<()> {
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        terminated = terminated() => terminated,
    }
}

/// Returns when a service manager wants the program to end.
#[cfg(unix)]
#[allow(dead_code, reason = "not every example does")]
async fn terminated() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}

/// Windows has no such signal for programs of a console.
#[cfg(not(unix))]
#[allow(dead_code, reason = "not every example does")]
async fn terminated() -> std::io::Result<()> {
    std::future::pending().await
}
