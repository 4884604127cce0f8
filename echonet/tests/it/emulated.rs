//! Emulated homes in the tests' own process, and children that end with a test.

use std::net::Ipv4Addr;
use std::process::Child;

use echonet_lite::class::{self, Class};
use echonet_lite::emulate::{Device, NodePlan, ObjectPlan};
use echonet_lite::net::Endpoint;
use echonet_lite::node::Object;
use echonet_lite::wire::Eoj;

/// A child process that ends with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A distribution board with so many circuits of one direction and of both, that has counted 210.0 kWh. No power flows.
pub fn board(serial: u64, simplex: u8, duplex: u8) -> NodePlan {
    let mut object = ObjectPlan::new(class::by_name("0287").unwrap(), 1);
    object.live = true;
    object.values = vec![
        (0xB1, vec![simplex]),
        (0xB8, vec![duplex]),
        (0xC0, 2100_u32.to_be_bytes().to_vec()),
        (0xC1, vec![0; 4]),
        (0xC2, vec![1]),
        (0xC6, vec![0; 4]),
    ];
    NodePlan::new(serial, [object])
}

/// Emulated nodes, each on an address of its own.
pub struct Home {
    runtime: tokio::runtime::Runtime,
    net: [u8; 3],
    port: u16,
    pub nodes: Vec<(Eoj, Endpoint<Device>)>,
}

impl Home {
    /// Nodes of these classes at a port, with so many objects each, below an address.
    pub fn new([a, b, c]: [u8; 3], port: u16, classes: &[&'static Class], objects: u8) -> Self {
        let plan = |(at, class): (usize, &&'static Class)| {
            NodePlan::new(at as u64 + 1, (1..=objects).map(|instance| ObjectPlan::new(class, instance)))
        };
        Self::of([a, b, c], port, classes.iter().enumerate().map(plan))
    }

    /// Nodes as they are planned.
    pub fn of(net: [u8; 3], port: u16, plans: impl IntoIterator<Item = NodePlan>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut home = Self { runtime, net, port, nodes: Vec::new() };
        for (at, plan) in plans.into_iter().enumerate() {
            home.serve(&plan, at as u8 + 1);
        }
        home
    }

    /// Adds a node at the address that ends so.
    pub fn serve(&mut self, plan: &NodePlan, host: u8) {
        let [a, b, c] = self.net;
        let builder =
            Endpoint::builder().serve(Device::new(plan)).address(Ipv4Addr::new(a, b, c, host)).port(self.port);
        let endpoint = self.runtime.block_on(builder.bind()).unwrap();
        self.nodes.push((plan.objects[0].eoj, endpoint));
    }

    /// Changes a property of a node's first object, as the device itself does.
    pub fn change(&self, at: usize, epc: u8, edt: &[u8]) {
        let (eoj, endpoint) = &self.nodes[at];
        endpoint.with_node(|device| device.change(*eoj, epc, edt)).unwrap();
    }

    /// The value of a property of a node's first object.
    pub fn value(&self, at: usize, epc: u8) -> Vec<u8> {
        let mut edt = [0; 255];
        let length = self.nodes[at].1.with_node(|device| device.objects()[0].get(epc, &mut edt)).unwrap();
        edt[..length].to_vec()
    }
}
