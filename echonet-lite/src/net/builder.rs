//! What an endpoint is made of.

use core::net::IpAddr;
use std::hash::{BuildHasher, RandomState};
use std::string::String;
use std::vec::Vec;

use super::engine::{Device, Engine};
use super::error::BindError;
use super::io::Io;
use super::socket::Plan;
use super::tcp::Listen;
use crate::controller::{self, Controller, Interview};
use crate::wire::PORT;

/// Collects the choices for an endpoint. Without any it uses every interface that is up, IPv4 and IPv6, port 3610.
#[derive(Debug, Clone)]
#[must_use = "nothing happens before `bind` or `bind_blocking`"]
pub struct Builder<D = ()> {
    plan: Plan,
    listen: Listen,
    prefer_tcp: bool,
    controller: Option<controller::Config>,
    device: D,
}

impl Builder {
    /// The usual choices.
    pub(super) fn new() -> Self {
        let plan =
            Plan { port: PORT, v4: true, v6: true, interfaces: Vec::new(), addresses: Vec::new(), members: None };
        Self { plan, listen: Listen::default(), prefer_tcp: false, controller: None, device: () }
    }

    /// Serves the objects of a [`Node`](crate::node::Node), beside what the program asks of others.
    pub fn serve<D: Device>(self, node: D) -> Builder<D> {
        let Self { plan, listen, prefer_tcp, controller, device: () } = self;
        Builder { plan, listen, prefer_tcp, controller, device: node }
    }
}

impl<D: Device> Builder<D> {
    /// Uses this interface (`eth0`), and no others than those named so.
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.plan.interfaces.push(name.into());
        self
    }

    /// Listens on this address of the machine, and no others than those given so. Several nodes can live on one
    /// machine, each on its own address: on loopback any of 127.0.0.0/8.
    pub fn address(mut self, address: impl Into<IpAddr>) -> Self {
        self.plan.addresses.push(address.into());
        self
    }

    /// Shares each address with `members − 1` other processes of the same user that say the same. Requests go to the
    /// process whose place in order of start is the instance of the addressed object, counted from 1 and around: with
    /// two members instances 1, 3, 5 … belong to the first. Instance 1 includes the node profile.
    pub fn share_address(mut self, members: u32) -> Self {
        self.plan.members = Some(members.max(1));
        self
    }

    /// Lives on another port than 3610, and sends there. For tests: no other node will ever be found.
    pub fn port(mut self, port: u16) -> Self {
        self.plan.port = port;
        self
    }

    /// Whether to use IPv4.
    pub fn ipv4(mut self, wanted: bool) -> Self {
        self.plan.v4 = wanted;
        self
    }

    /// Whether to use IPv6.
    pub fn ipv6(mut self, wanted: bool) -> Self {
        self.plan.v6 = wanted;
        self
    }

    /// Whether to listen for TCP connections; if the port is free, unless chosen.
    pub fn listen_tcp(mut self, listen: Listen) -> Self {
        self.listen = listen;
        self
    }

    /// Sends requests by TCP to nodes that accept connections; to others by UDP, as to all if this is not chosen.
    pub fn prefer_tcp(mut self, preferred: bool) -> Self {
        self.prefer_tcp = preferred;
        self
    }

    /// Chooses the settings of the requesting side. Unless chosen, a program that serves a node interviews nobody by
    /// itself, and one that only asks interviews every node that it hears of.
    pub fn controller(mut self, config: controller::Config) -> Self {
        self.controller = Some(config);
        self
    }

    /// Opens the sockets.
    pub(super) fn open(self) -> Result<(Engine<D>, Io), BindError> {
        let io = Io::open(self.plan, self.listen, self.prefer_tcp)?;
        let config = self.controller.unwrap_or_else(|| {
            let mut config = controller::Config::new(RandomState::new().hash_one(0));
            if D::PRESENT {
                config.interview = Interview::Nothing;
            }
            config
        });
        let mut device = self.device;
        device.begin_tids(RandomState::new().hash_one(1) as u16);
        Ok((Engine::new(device, Controller::new(config)), io))
    }
}
