//! The other end: our node and our controller, each in a process of its own, because a namespace is a process' own.
//!
//! They are tests that this binary starts by itself, in the namespace, with [`ROLE`] set.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;
use std::{env, io};

use echonet_lite::controller::{Answer, Failure, NodeAddr};
use echonet_lite::net::{Endpoint, Error};
use echonet_lite::node::{Config, Identity, Node, Object, PropertyAccess, Refused, put};
use echonet_lite::wire::{Eoj, PropertySet};

use super::Peer;
use super::scene::{Scene, Side};

/// The variable that makes the tests below do something.
const ROLE: &str = "ECHONET_LITE_PEER_ROLE";

/// The variable that has our controller repeat a write to which nobody answered.
const REPEATS_WRITES: &str = "ECHONET_LITE_PEER_REPEATS_WRITES";

const CONDITIONER: Eoj = Eoj::new(0x01, 0x30, 1);

/// The access of our air conditioner: maps in both forms, with properties from 0x80 to 0xFF.
pub(super) const ACCESS: PropertyAccess = PropertyAccess::new(
    &[
        0x80, 0x81, 0x82, 0x83, 0x88, 0x8A, 0x93, 0xA0, 0xA1, 0xA3, 0xA4, 0xB0, 0xB3, 0xBA, 0xBB, 0xBE, 0xC0, 0xC1,
        0xCC, 0xCF, 0xD0, 0xE3, 0xF1, 0xFF,
    ],
    &[0x80, 0x81, 0x93, 0xA0, 0xA1, 0xA3, 0xA4, 0xB0, 0xB3, 0xC0, 0xC1, 0xCC, 0xCF, 0xD0, 0xE3, 0xF0, 0xF1, 0xFF],
    &[0x80, 0x81, 0x88, 0xB0],
);

/// This binary in the role `role` on our side of a scene.
pub(super) fn command(scene: &Scene, role: &str) -> std::process::Command {
    let binary = env::current_exe().unwrap();
    let mut command = scene.command(Side::Ours, binary.to_str().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", &format!("peers::ours::{role}")]).env(ROLE, role);
    command
}

/// Our controller on our side of a scene. It repeats writes to a peer that drops requests, as a program does that knows
/// such a device: by itself it sends each write once.
pub(super) fn controller_for(scene: &Scene, peer: &Peer) -> std::process::Command {
    let mut command = command(scene, "controller");
    if peer.drops_requests {
        command.env(REPEATS_WRITES, "1");
    }
    command
}

/// The lines that our side printed, without those of the test runner.
pub(super) fn own_lines(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once("| ").map(|(_, said)| said)).collect()
}

pub(super) fn listed(codes: PropertySet) -> String {
    codes.iter().map(|code| format!("{code:02x}")).collect::<Vec<_>>().join(" ")
}

fn in_role(role: &str, work: impl Future<Output = ()>) {
    if env::var_os(ROLE).is_none_or(|wanted| wanted != role) {
        return;
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

#[test]
#[ignore = "one side of a test in this folder, which starts it"]
fn device() {
    in_role("device", async {
        let node = Node::new(Config::new(Identity::new([0, 0, 0x77], 1)), [Conditioner::new()]);
        let _endpoint = Endpoint::builder().validate(false).serve(node).bind().await.unwrap();
        println!("\n| ready: device");
        tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new()).unwrap()).await.unwrap();
    });
}

#[test]
#[ignore = "one side of a test in this folder, which starts it"]
fn controller() {
    in_role("controller", async {
        let endpoint = Endpoint::builder().bind().await.unwrap();
        let mut notifications = endpoint.notifications();
        let heard = tokio::spawn(async move {
            loop {
                let notification = notifications.next().await.unwrap();
                if notification.eoj == CONDITIONER && notification.get(0xB0) == Some(&[0x43]) {
                    break;
                }
            }
        });
        control(&endpoint).await;
        let heard = tokio::time::timeout(Duration::from_secs(3), heard).await;
        println!("| notified: {}", heard.is_ok_and(|task| task.is_ok()));
    });
}

/// Finds the peer and prints what can be learned of it.
async fn control(endpoint: &Endpoint) {
    let address: NodeAddr = Side::Peers.address().parse().unwrap();
    let nodes = endpoint.discover(Duration::from_secs(2)).await.unwrap();
    let node = nodes.iter().find(|node| node.addr == address).unwrap_or_else(|| panic!("it is not among {nodes:?}"));
    let objects: Vec<_> = node.objects.iter().map(|object| object.eoj.to_string()).collect();
    println!("\n| found {}", objects.join(" "));
    let get = async |epc| endpoint.get(address, CONDITIONER, &[epc]).await.unwrap();
    let tries = if env::var_os(REPEATS_WRITES).is_some() { 5 } else { 1 };
    let set = async |epc, value| {
        for _ in 1..tries {
            match endpoint.set(address, CONDITIONER, &[(epc, &[value])]).await {
                Err(Error::Failed(Failure::TimedOut { .. })) => {}
                answered => return answered.unwrap(),
            }
        }
        endpoint.set(address, CONDITIONER, &[(epc, &[value])]).await.unwrap()
    };
    for epc in [0x9D, 0x9E, 0x9F] {
        let answer = get(epc).await;
        println!("| map {epc:02x}: {}", listed(PropertySet::decode_map_lenient(answer.get(epc).unwrap())));
    }
    println!("| get b0: {}", outcome(&get(0xB0).await));
    println!("| set b0: {}", outcome(&set(0xB0, 0x43).await));
    println!("| get b0: {}", outcome(&get(0xB0).await));
    println!("| get c0: {}", outcome(&get(0xC0).await));
    println!("| get ef: {}", outcome(&get(0xEF).await));
    println!("| set bb: {}", outcome(&set(0xBB, 0x20).await));
}

fn outcome(answer: &Answer) -> String {
    let outcome = answer.outcomes().next().unwrap();
    let value: String = outcome.value.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{:?} [{value}]", outcome.status)
}

/// An air conditioner that believes what it is told.
struct Conditioner(BTreeMap<u8, Vec<u8>>);

impl Conditioner {
    fn new() -> Self {
        let mut values: BTreeMap<_, _> = ACCESS.get.union(ACCESS.set).iter().map(|epc| (epc, vec![0x41])).collect();
        values.extend([(0x80, vec![0x30]), (0x82, vec![0, 0, b'R', 0]), (0x8A, vec![0, 0, 0x77]), (0xB0, vec![0x42])]);
        values.insert(0x83, Identity::new([0, 0, 0x77], 1).number().to_vec());
        Self(values)
    }
}

impl Object for Conditioner {
    fn eoj(&self) -> Eoj {
        CONDITIONER
    }

    fn access(&self) -> &PropertyAccess {
        &ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        put(edt, self.0.get(&epc).ok_or(Refused::NoProperty)?)
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        let value = self.0.get_mut(&epc).ok_or(Refused::NoProperty)?;
        if value.len() != edt.len() {
            return Err(Refused::Length);
        }
        value.copy_from_slice(edt);
        Ok(())
    }
}
