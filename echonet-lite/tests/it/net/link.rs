//! Two machines and a cable: network namespaces joined by virtual Ethernet. IPv6, several interfaces, broadcast, and
//! addresses that come late, which loopback cannot show.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use echonet_lite::controller::{Event, NodeAddr};
use echonet_lite::net::{Builder, Endpoint, Interface, Reach, blocking};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{DISCOVERY, PATIENCE, get_level, level_is, light, node};

/// Two namespaces, `a` and `b`, that end with the test.
struct Machines {
    a: String,
    b: String,
}

impl Machines {
    /// None, with the reason printed, where namespaces cannot be made; a failure if the peers are required.
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let [a, b] = ["a", "b"].map(|side| format!("echonet-{}-{number}{side}", std::process::id()));
        let machines = Self { a, b };
        for name in [&machines.a, &machines.b] {
            if let Err(reason) = ip(&["netns", "add", name]) {
                test_peers::skip(&format!("there are no network namespaces: {reason}"));
                return None;
            }
            ip(&["-n", name, "link", "set", "lo", "up"]).unwrap();
        }
        Some(machines)
    }

    /// Lays a cable between an interface of each, both of this name, without addresses and not yet up.
    fn cable(&self, name: &str) {
        let Self { a, b } = self;
        ip(&["link", "add", name, "netns", a, "type", "veth", "peer", "name", name, "netns", b]).unwrap();
        // Only the addresses that a test gives.
        for machine in [a, b] {
            ip(&["-n", machine, "link", "set", name, "addrgenmode", "none"]).unwrap();
        }
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in [&self.a, &self.b] {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn up(machine: &str, interface: &str, addresses: &[&str]) {
    ip(&["-n", machine, "link", "set", interface, "up"]).unwrap();
    for address in addresses {
        let mut command = vec!["-n", machine, "address", "add", address, "dev", interface];
        // Addresses are unique here without asking around.
        command.extend(if address.contains(':') { &["nodad"][..] } else { &["broadcast", "+"] });
        ip(&command).unwrap();
    }
}

fn ip(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("ip {}: {said}", arguments.join(" ")))
    }
}

/// Moves the calling thread onto a machine.
fn enter(machine: &str) {
    let namespace = File::open(format!("/run/netns/{machine}")).unwrap();
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
}

/// Runs on a machine, in a thread of its own.
fn on<R: Send>(machine: &str, work: impl FnOnce() -> R + Send) -> R {
    let work = || {
        enter(machine);
        work()
    };
    thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// A blocking device that runs on a machine until it is dropped.
struct Device {
    stopper: blocking::Stopper,
    thread: Option<thread::JoinHandle<()>>,
}

impl Device {
    fn start(machine: &str, level: u8) -> Self {
        Self::start_as(machine, level, |builder| builder)
    }

    fn start_as(machine: &str, level: u8, choose: impl FnOnce(Builder) -> Builder + Send + 'static) -> Self {
        let (sender, receiver) = std::sync::mpsc::channel();
        let machine = machine.to_owned();
        let thread = thread::spawn(move || {
            enter(&machine);
            let mut endpoint = choose(Endpoint::builder()).serve(node(1, level)).bind_blocking().unwrap();
            sender.send(endpoint.stopper()).unwrap();
            endpoint.run().unwrap();
        });
        Self { stopper: receiver.recv().expect("the device starts"), thread: Some(thread) }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().map(thread::JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))), "the device failed");
    }
}

/// Waits until a node tells its instances, as it does at its start and when its address changes.
fn announced(controller: &mut blocking::Endpoint) -> NodeAddr {
    announced_within(PATIENCE, controller).expect("something is announced")
}

fn announced_within(patience: Duration, controller: &mut blocking::Endpoint) -> Option<NodeAddr> {
    let end = Instant::now() + patience;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        if let Some(Event::Notification(news)) = controller.next_event(Some(left)).unwrap()
            && news.get(0xD5).is_some()
        {
            return Some(news.node);
        }
    }
    None
}

#[test]
fn ipv6_link_local_with_scopes() {
    let Some(machines) = Machines::new() else { return };
    machines.cable("eth0");
    up(&machines.a, "eth0", &["fe80::a/64"]);
    up(&machines.b, "eth0", &["fe80::b/64"]);
    let _device = Device::start(&machines.a, 66);
    on(&machines.b, || {
        let scope = Interface::list().unwrap().iter().find(|known| known.name == "eth0").unwrap().index;
        let there = NodeAddr::new("fe80::a".parse().unwrap(), scope);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let controller = Endpoint::builder().ipv4(false).bind().await.unwrap();
            let found = controller.discover(DISCOVERY).await.unwrap();
            assert_eq!(found.iter().map(|node| node.addr).collect::<Vec<_>>(), [there]);
            let answer = controller.get(there, light(1), &[0xB0]).await.unwrap();
            assert_eq!((answer.node, answer.get(0xB0)), (there, Some(&[66][..])));
            let mut news = controller.notifications();
            assert!(controller.set(there, light(1), &[(0xB0, &[67])]).await.unwrap().is_ok());
            let told = tokio::time::timeout(PATIENCE, news.next()).await.unwrap().unwrap();
            assert_eq!((told.node, told.get(0xB0)), (there, Some(&[67][..])));
        });
    });
}

#[test]
fn ipv6_bound_to_one_address() {
    let Some(machines) = Machines::new() else { return };
    machines.cable("eth0");
    up(&machines.a, "eth0", &["fe80::a/64"]);
    up(&machines.b, "eth0", &["fe80::b/64"]);
    let _device = Device::start(&machines.a, 68);
    on(&machines.b, || {
        let address: IpAddr = "fe80::b".parse().unwrap();
        let mut controller = blocking::Endpoint::builder().address(address).bind_blocking().unwrap();
        let found = controller.discover(DISCOVERY).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(controller.get(found[0].addr, light(1), &[0xB0]).unwrap().get(0xB0), Some(&[68][..]));
    });
}

#[test]
fn several_interfaces_and_the_address_that_was_asked() {
    let Some(machines) = Machines::new() else { return };
    for (name, net) in [("eth0", 1), ("eth1", 2)] {
        machines.cable(name);
        // Two addresses in one network: the answer has to come from the one that was asked.
        up(&machines.a, name, &[&format!("10.77.{net}.1/24"), &format!("10.77.{net}.11/24")]);
        up(&machines.b, name, &[&format!("10.77.{net}.2/24")]);
    }
    let _device = Device::start(&machines.a, 12);
    on(&machines.b, || {
        let asked = |from: &str, to: &str| {
            let socket = UdpSocket::bind((from, 3610)).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.set_broadcast(true).unwrap();
            socket.send_to(&get_level(5, 1), (to, 3610)).unwrap();
            let mut answer = [0; 64];
            let (length, from) = socket.recv_from(&mut answer).unwrap();
            assert_eq!(answer[..length], level_is(5, 1, 12), "asked {to}");
            from
        };
        for (from, to) in [
            ("10.77.1.2", "10.77.1.1"),
            ("10.77.1.2", "10.77.1.11"),
            ("10.77.2.2", "10.77.2.1"),
            ("10.77.2.2", "10.77.2.11"),
        ] {
            assert_eq!(asked(from, to), SocketAddr::new(to.parse().unwrap(), 3610));
        }
        // Broadcast is heard as multicast is.
        assert_eq!(asked("10.77.2.2", "10.77.2.255").ip(), Ipv4Addr::new(10, 77, 2, 1));
        // Of one interface only.
        for (interface, there) in [("eth0", [10, 77, 1, 1]), ("eth1", [10, 77, 2, 1])] {
            let builder = blocking::Endpoint::builder().interface(interface);
            let mut controller = builder.bind_blocking().unwrap();
            let found = controller.discover(DISCOVERY).unwrap();
            let found: Vec<_> = found.iter().map(|node| node.addr).collect();
            assert_eq!(found, [NodeAddr::from(Ipv4Addr::from(there))], "{interface}");
        }
    });
}

#[test]
fn two_nodes_of_one_machine_each_on_its_address() {
    let Some(machines) = Machines::new() else { return };
    machines.cable("eth0");
    up(&machines.a, "eth0", &["10.77.3.1/24", "10.77.3.11/24"]);
    up(&machines.b, "eth0", &["10.77.3.2/24"]);
    let addresses = [Ipv4Addr::new(10, 77, 3, 1), Ipv4Addr::new(10, 77, 3, 11)];
    let mut devices: Vec<_> = on(&machines.a, || {
        let open = |address| Endpoint::builder().address(address).serve(node(1, 1)).bind_blocking().unwrap();
        addresses.map(open).into_iter().collect()
    });
    let stoppers: Vec<_> = devices.iter().map(blocking::Endpoint::stopper).collect();
    thread::scope(|scope| {
        let machine = &machines.a;
        let serve = |device: &mut blocking::Endpoint<_>| {
            // Interfaces may be listed as this thread sees them.
            enter(machine);
            device.run().unwrap();
        };
        let threads: Vec<_> = devices.iter_mut().map(|device| scope.spawn(move || serve(device))).collect();
        on(&machines.b, || {
            let mut config = echonet_lite::controller::Config::new(1);
            // Both lights have the same number; two nodes they are all the same.
            config.interview = echonet_lite::controller::Interview::Nothing;
            let mut controller = blocking::Endpoint::builder().controller(config).bind_blocking().unwrap();
            let found = controller.discover(DISCOVERY).unwrap();
            assert_eq!(found.iter().map(|node| node.addr.ip()).collect::<Vec<_>>(), addresses.map(IpAddr::from));
            // Broadcast reaches nodes that are bound to an address, too.
            let socket = UdpSocket::bind(("10.77.3.2", 13_640)).unwrap();
            socket.set_broadcast(true).unwrap();
            let set = [0x10, 0x81, 0, 1, 5, 0xFF, 1, 2, 0x90, 1, 0x60, 1, 0xB0, 1, 99];
            for target in ["10.77.3.255", "255.255.255.255"] {
                socket.send_to(&set, (target, 3610)).unwrap();
            }
            for address in addresses {
                let answer = controller.get(address, light(1), &[0xB0]).unwrap();
                assert_eq!(answer.get(0xB0), Some(&[99][..]));
            }
        });
        stoppers.iter().for_each(blocking::Stopper::stop);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn an_address_that_comes_late_is_joined_and_announced() {
    let Some(machines) = Machines::new() else { return };
    let device = Device::start(&machines.a, 13);
    // Neither interface nor address were there when the device started.
    machines.cable("eth0");
    up(&machines.b, "eth0", &["10.77.4.2/24", "fe80::b/64"]);
    on(&machines.b, || {
        let mut controller = blocking::Endpoint::builder().bind_blocking().unwrap();
        let v4 = NodeAddr::from(Ipv4Addr::new(10, 77, 4, 1));
        up(&machines.a, "eth0", &["10.77.4.1/24"]);
        assert_eq!(announced(&mut controller), v4);
        let found = controller.discover(DISCOVERY).unwrap();
        assert_eq!(found.iter().map(|node| node.addr).collect::<Vec<_>>(), [v4]);

        // Pulled and laid again, it is another interface, with another index.
        ip(&["-n", &machines.a, "link", "delete", "eth0"]).unwrap();
        machines.cable("eth0");
        up(&machines.b, "eth0", &["10.77.4.2/24", "fe80::b/64"]);
        up(&machines.a, "eth0", &["fe80::a/64"]);
        let again = announced(&mut controller);
        assert_eq!(again.ip(), "fe80::a".parse::<IpAddr>().unwrap());
        let answer = controller.get(again, light(1), &[0xB0]).unwrap();
        assert_eq!(answer.get(0xB0), Some(&[13][..]));
    });
    drop(device);
}

/// An asker on machine `b` whose address is in no network of machine `a`, which knows the way to it nevertheless.
fn stranger(machines: &Machines) -> &'static str {
    machines.cable("eth0");
    up(&machines.a, "eth0", &["10.77.5.1/24"]);
    up(&machines.b, "eth0", &["10.77.5.2/24", "198.51.100.2/32"]);
    ip(&["-n", &machines.a, "route", "add", "198.51.100.0/24", "via", "10.77.5.2"]).unwrap();
    "198.51.100.2"
}

#[test]
fn off_link_senders_get_no_or_short_answers() {
    for reach in [Reach::Near, Reach::Everywhere] {
        let Some(machines) = Machines::new() else { return };
        let stranger = stranger(&machines);
        let _device = Device::start_as(&machines.a, 30, move |builder| builder.reach(reach));
        on(&machines.b, || {
            let socket = |address| {
                let socket = UdpSocket::bind((address, 3610)).unwrap();
                socket.set_read_timeout(Some(PATIENCE)).unwrap();
                socket
            };
            let (far, near) = (socket(stranger), socket("10.77.5.2"));
            let mut all = vec![0x10, 0x81, 0, 7, 5, 0xFF, 1, 0x0E, 0xF0, 1, 0x62, 20];
            all.extend([0x83, 0].repeat(20));
            far.send_to(&all, "10.77.5.1:3610").unwrap();
            far.send_to(&get_level(8, 1), "10.77.5.1:3610").unwrap();
            // The answer to this request comes behind all other answers.
            near.send_to(&get_level(9, 1), "10.77.5.1:3610").unwrap();
            let mut answer = [0; 2048];
            let length = near.recv(&mut answer).unwrap();
            assert_eq!(answer[..length], level_is(9, 1, 30));
            far.set_nonblocking(true).unwrap();
            let answers: Vec<_> = std::iter::from_fn(|| far.recv(&mut answer).ok()).collect();
            match reach {
                Reach::Near => assert_eq!(answers, [0; 0]),
                _ => assert!(answers.len() == 2 && answers[0] <= 2 * all.len() && answers[1] == 15, "{answers:?}"),
            }
        });
    }
}

#[test]
fn an_ipv6_address_is_announced_when_it_can_be_used() {
    let Some(machines) = Machines::new() else { return };
    machines.cable("eth0");
    up(&machines.a, "eth0", &[]);
    up(&machines.b, "eth0", &["fe80::b/64"]);
    let _device = Device::start(&machines.a, 14);
    on(&machines.b, || {
        let mut controller = blocking::Endpoint::builder().ipv4(false).bind_blocking().unwrap();
        // The network is asked for a second or two whether another host has it.
        ip(&["-n", &machines.a, "address", "add", "fe80::a/64", "dev", "eth0"]).unwrap();
        // Until then it is not listed.
        on(&machines.a, || {
            let end = Instant::now() + PATIENCE;
            let (address, scope) = loop {
                assert!(Instant::now() < end, "the address is listed");
                let eth0 = Interface::list().unwrap().into_iter().find(|known| known.name == "eth0");
                let listed = eth0.and_then(|known| known.addresses.first().map(|address| (*address, known.index)));
                if let Some((IpAddr::V6(address), scope)) = listed {
                    break (address, scope);
                }
                thread::sleep(Duration::from_millis(10));
            };
            std::net::UdpSocket::bind(std::net::SocketAddrV6::new(address, 0, 0, scope)).unwrap();
        });
        assert_eq!(announced(&mut controller).ip(), "fe80::a".parse::<IpAddr>().unwrap());
    });
}

#[test]
#[cfg_attr(echonet_portable, ignore = "a cable that is unplugged for a moment is not noticed there")]
fn a_node_announces_itself_when_the_cable_is_plugged_in_again() {
    let Some(machines) = Machines::new() else { return };
    machines.cable("eth0");
    up(&machines.a, "eth0", &["10.77.6.1/24"]);
    up(&machines.b, "eth0", &["10.77.6.2/24"]);
    let _device = Device::start(&machines.a, 15);
    on(&machines.b, || {
        let mut controller = blocking::Endpoint::builder().ipv6(false).bind_blocking().unwrap();
        controller.get(Ipv4Addr::new(10, 77, 6, 1), light(1), &[0xB0]).unwrap();
        while controller.next_event(Some(Duration::ZERO)).unwrap().is_some() {}
        let mut plug = || {
            ip(&["-n", &machines.b, "link", "set", "eth0", "down"]).unwrap();
            // The kernel takes its time to tell that a cable is unplugged.
            let end = Instant::now() + PATIENCE;
            while !ip(&["-n", &machines.a, "link", "show", "eth0"]).unwrap().contains("NO-CARRIER") {
                assert!(Instant::now() < end, "the cable is still plugged in");
                thread::yield_now();
            }
            ip(&["-n", &machines.b, "link", "set", "eth0", "up"]).unwrap();
            announced_within(PATIENCE / 4, &mut controller)
        };
        // Announcements are lost while the other end is not quite up yet, as on any network.
        let node = plug().or_else(&mut plug).or_else(&mut plug).expect("the node announces itself");
        assert_eq!(node.ip(), Ipv4Addr::new(10, 77, 6, 1));
    });
}

#[test]
fn an_address_is_waited_for_and_followed_to_another_interface() {
    let Some(machines) = Machines::new() else { return };
    for (number, address) in ["10.77.7.1", "fe80::a"].into_iter().enumerate() {
        let address: IpAddr = address.parse().unwrap();
        // There is no interface yet.
        let tokio_device = |machine: &str| {
            let machine = machine.to_owned();
            thread::spawn(move || {
                enter(&machine);
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let builder = Endpoint::builder().address(address).serve(node(1, 16));
                    let device = builder.bind().await.unwrap();
                    while device.with_node(|node| node.objects()[0].level) != 99 {
                        tokio::task::yield_now().await;
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                });
            })
        };
        let mut devices = (None, None);
        if number == 0 {
            devices.0 = Some(Device::start_as(&machines.a, 16, move |builder| builder.address(address)));
        } else {
            devices.1 = Some(tokio_device(&machines.a));
        }
        let net = if address.is_ipv4() { "10.77.7.1/24" } else { "fe80::a/64" };
        for life in 0..3 {
            machines.cable("eth0");
            up(&machines.b, "eth0", &["10.77.7.2/24", "fe80::b/64"]);
            on(&machines.b, || {
                let mut controller = blocking::Endpoint::builder().bind_blocking().unwrap();
                up(&machines.a, "eth0", &[net]);
                assert_eq!(announced(&mut controller).ip(), address, "{life}");
                // The node hears multicasts, and unicasts to it.
                let found = controller.discover(DISCOVERY).unwrap();
                assert_eq!(found.iter().map(|node| node.addr.ip()).collect::<Vec<_>>(), [address], "{life}");
                let answer = controller.get(found[0].addr, light(1), &[0xB0]).unwrap();
                assert_eq!(answer.get(0xB0), Some(&[16][..]), "{life}");
                if life == 2 {
                    assert!(controller.set(found[0].addr, light(1), &[(0xB0, &[99])]).unwrap().is_ok());
                }
            });
            ip(&["-n", &machines.a, "link", "delete", "eth0"]).unwrap();
        }
        drop(devices.0);
        devices.1.into_iter().for_each(|device| device.join().unwrap());
    }
}

#[test]
fn on_loopback_alone_notifications_have_an_address() {
    let Some(machines) = Machines::new() else { return };
    on(&machines.a, || {
        let mut listener = blocking::Endpoint::builder().listen_only().bind_blocking().unwrap();
        let mut device = blocking::Endpoint::builder().serve(node(1, 1)).bind_blocking().unwrap();
        device.turn(Some(Duration::ZERO)).unwrap();
        assert_eq!(announced(&mut listener), NodeAddr::from(Ipv4Addr::LOCALHOST));
    });
}
