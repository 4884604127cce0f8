//! The settings of an endpoint.

use core::net::IpAddr;
use std::hash::{BuildHasher, RandomState};
use std::string::String;
use std::vec::Vec;

use super::bounds::{Bounds, Reach};
use super::engine::{Device, Engine};
use super::error::BindError;
use super::io::Io;
use super::report::report;
use super::socket::Plan;
use super::tcp::Listen;
use crate::controller::{self, Controller, Interview};
use crate::wire::PORT;

/// Collects the choices for an endpoint. Without any it uses every interface that is up, IPv4 and IPv6, port 3610.
#[derive(Debug, Clone)]
#[must_use = "nothing happens before `bind` or `bind_blocking`"]
pub struct Builder<D = ()> {
    plan: Plan,
    bounds: Bounds,
    listen: Listen,
    prefer_tcp: bool,
    validates: bool,
    controller: Option<controller::Config>,
    device: D,
}

impl Builder {
    /// The usual choices.
    pub(super) fn new() -> Self {
        let plan = Plan {
            port: PORT,
            v4: true,
            v6: true,
            interfaces: Vec::new(),
            addresses: Vec::new(),
            waits: true,
            listens_only: false,
        };
        let bounds = Bounds::default();
        let validates = cfg!(debug_assertions);
        Self { plan, bounds, listen: Listen::default(), prefer_tcp: false, validates, controller: None, device: () }
    }

    /// Serves the objects of a [`Node`](crate::node::Node), beside what the program asks of others.
    pub fn serve<D: Device>(self, node: D) -> Builder<D> {
        let Self { plan, bounds, listen, prefer_tcp, validates, controller, device: () } = self;
        Builder { plan, bounds, listen, prefer_tcp, validates, controller, device: node }
    }
}

impl<D: Device> Builder<D> {
    /// Uses this interface (`eth0`), and no others than those named so; see [`wait`](Self::wait).
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.plan.interfaces.push(name.into());
        self
    }

    /// Listens on this address of the machine, and no others than those given so. Several nodes can live on one
    /// machine, each on its own address: on loopback any of 127.0.0.0/8. See [`wait`](Self::wait).
    ///
    /// A node is all that listens on an address: processes that share one get what is meant for each other. Give each its own
    /// (`ip address add 192.168.1.51/24 dev eth0`), or let one process serve the objects of all.
    pub fn address(mut self, address: impl Into<IpAddr>) -> Self {
        self.plan.addresses.push(address.into());
        self
    }

    /// Whether to wait for interfaces and addresses that were named and are not there yet, as at boot: the node is heard,
    /// and announces itself, as soon as they are. That is so unless chosen otherwise; then a missing one is an error.
    pub fn wait(mut self, wanted: bool) -> Self {
        self.plan.waits = wanted;
        self
    }

    /// Only hears what is sent to all: notifications and announcements. Requests end with
    /// [`RequestError::ListensOnly`](controller::RequestError::ListensOnly). Other programs of this machine keep what is sent
    /// to them alone, which the kernel otherwise gives to the program that came last.
    pub fn listen_only(mut self) -> Self {
        self.plan.listens_only = true;
        self.listen = Listen::Off;
        self
    }

    /// The hosts whose requests are answered: those in networks of this machine, unless chosen.
    pub fn reach(mut self, reach: Reach) -> Self {
        self.bounds.reach = reach;
        self
    }

    /// The most bytes of an answer by UDP; 1,452 unless chosen, which fits into an Ethernet frame by IPv6. Properties
    /// that do not fit are refused (SNA), so that the client asks for them in parts, or by TCP, where an answer is as
    /// long as it has to be.
    pub fn answer_limit(mut self, bytes: usize) -> Self {
        self.bounds.answer = bytes;
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

    /// Whether to listen for TCP connections; unless chosen, a program that serves a node does if the port is free.
    pub fn listen_tcp(mut self, listen: Listen) -> Self {
        self.listen = listen;
        self
    }

    /// Sends requests by TCP to nodes that accept connections; to others by UDP, as to all if this is not chosen.
    pub fn prefer_tcp(mut self, preferred: bool) -> Self {
        self.prefer_tcp = preferred;
        self
    }

    /// Chooses the settings of the requesting side. Unless chosen, a program that serves a node interviews no node by
    /// itself, and one that only asks interviews every node that it hears of.
    pub fn controller(mut self, config: controller::Config) -> Self {
        self.controller = Some(config);
        self
    }

    /// Whether a node that [`Node::validate`](crate::node::Node::validate) finds fault with is an error instead of being
    /// served. So it is in a program that is built for debugging, and not otherwise, unless chosen.
    pub fn validate(mut self, wanted: bool) -> Self {
        self.validates = wanted;
        self
    }

    /// Opens the sockets.
    pub(super) fn open(self) -> Result<(Engine<D>, Io), BindError> {
        if self.validates {
            let mut faults = Vec::new();
            self.device.validate(&mut |fault| faults.push(fault));
            if !faults.is_empty() {
                return Err(BindError::Faulty(faults));
            }
        }
        let listens_only = self.plan.listens_only;
        let listen = if self.listen == Listen::IfFree && !D::PRESENT { Listen::Off } else { self.listen };
        let io = Io::open(self.plan, self.bounds, listen, self.prefer_tcp)?;
        for interface in io.departing.sockets.interfaces() {
            report!(info, "listening on {interface}");
        }
        let mut config = self.controller.unwrap_or_else(|| {
            let mut config = controller::Config::new(RandomState::new().hash_one(0));
            if D::PRESENT {
                config.interview = Interview::Nothing;
            }
            config
        });
        config.listens_only |= listens_only;
        let mut device = self.device;
        device.begin_tids(RandomState::new().hash_one(1) as u16);
        Ok((Engine::new(device, Controller::new(config)), io))
    }
}
