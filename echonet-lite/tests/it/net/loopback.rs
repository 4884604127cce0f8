//! Nodes and controllers on addresses of the loopback interface.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use echonet_lite::controller::{self, Event, NodeAddr, Request, RequestError};
use echonet_lite::net::{BindError, Endpoint, Error, blocking};
use echonet_lite::node::{CommonProperties, Config, Identity, Node, Object, PropertyAccess, Refused};
use echonet_lite::wire::Eoj;

use super::port::port_3610;
use super::{DISCOVERY, PATIENCE, get_level, level_is, light, node, plain};

const fn host(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 61, last)
}

/// Runs a test on a runtime of its own, and not for ever.
pub(super) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), test).await.expect("the test hangs") });
}

/// A socket beside others on its port.
fn shared(address: Ipv4Addr, port: u16) -> UdpSocket {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&SocketAddr::from((address, port)).into()).unwrap();
    socket.into()
}

#[test]
fn a_tool_on_another_address_asks_a_node_that_listens_everywhere() {
    let _port = port_3610();
    run(async {
        let _device = Endpoint::builder().serve(node(1, 7)).bind().await.unwrap();
        let answer = tokio::task::spawn_blocking(|| {
            let tool = shared(Ipv4Addr::new(127, 0, 0, 2), 3610);
            tool.set_read_timeout(Some(PATIENCE)).unwrap();
            tool.send_to(&get_level(1, 1), "127.0.0.1:3610").unwrap();
            let mut answer = [0; 64];
            let (length, from) = tool.recv_from(&mut answer).unwrap();
            (answer[..length].to_vec(), from)
        });
        let (answer, from) = answer.await.unwrap();
        assert_eq!(answer, level_is(1, 1, 7));
        assert_eq!(from, "127.0.0.1:3610".parse().unwrap(), "the address that was asked answers");
    });
}

#[test]
fn tokio_device_and_controller() {
    let _port = port_3610();
    run(async {
        let device = Endpoint::builder().address(host(1)).serve(node(1, 33)).bind().await.unwrap();
        let controller = Endpoint::builder().address(host(2)).bind().await.unwrap();
        let mut news = controller.notifications();

        let answer = controller.get(host(1), light(1), &[0xB0, 0x80]).await.unwrap();
        assert_eq!((answer.get(0xB0), answer.get(0x80)), (Some(&[33][..]), Some(&[0x30][..])));

        let answer = controller.set(host(1), light(1), &[(0xB0, &[50])]).await.unwrap();
        assert!(answer.is_ok(), "{answer}");
        let mut told = news.next().await.unwrap();
        while told.eoj != light(1) {
            // The node has announced itself.
            told = news.next().await.unwrap();
        }
        assert_eq!((told.node, told.get(0xB0)), (host(1).into(), Some(&[50][..])));

        let answer = controller.get(host(1), light(1), &[0xC0]).await.unwrap();
        assert!(answer.refused().contains(0xC0), "{answer}");

        device.with_node(|node| {
            node.objects_mut()[0].level = 51;
            node.notify(light(1), 0xB0).unwrap();
        });
        assert_eq!(news.next().await.unwrap().get(0xB0), Some(&[51][..]));
    });
}

#[test]
fn many_requests_at_once_and_dropped_ones() {
    run(async {
        let mut config = controller::Config::new(1);
        (config.window, config.port) = (32, 13_611);
        let device = || Endpoint::builder().port(13_611).address(host(3)).serve(node(1, 9)).bind();
        let device = device().await.unwrap();
        let controller = Endpoint::builder().port(13_611).address(host(4)).controller(config).bind().await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let controller = controller.clone();
            tasks.spawn(async move {
                for _ in 0..20 {
                    let answer = controller.get(host(3), light(1), &[0xB0]).await.unwrap();
                    assert_eq!(answer.get(0xB0), Some(&[9][..]));
                }
            });
        }
        tasks.join_all().await;

        drop(device);
        for _ in 0..5000 {
            // More than there may be at a time: each is given up with its future.
            let request = controller.get(host(5), light(1), &[0xB0]);
            assert!(tokio::time::timeout(Duration::ZERO, request).await.is_err());
        }
        let last = Request::get(light(1), &[0xB0]).timeout(Duration::from_millis(50));
        assert!(matches!(controller.request(host(5), &last).await, Err(Error::Failed(_))));
    });
}

#[test]
fn discovery_finds_two_nodes_on_two_addresses() {
    let _port = port_3610();
    run(async {
        let _first = Endpoint::builder().address(host(6)).serve(node(1, 1)).bind().await.unwrap();
        let _second = Endpoint::builder().address(host(7)).serve(node(2, 2)).bind().await.unwrap();
        let controller = Endpoint::builder().address(host(8)).bind().await.unwrap();
        let found = controller.discover(DISCOVERY).await.unwrap();
        let found: Vec<_> = found.iter().map(|node| (node.addr, node.objects[0].eoj)).collect();
        assert_eq!(found, [(host(6).into(), light(1)), (host(7).into(), light(2))]);
    });
}

#[test]
fn a_controller_shares_its_addresses_with_a_device() {
    let _port = port_3610();
    run(async {
        let device = Endpoint::builder().ipv6(false).serve(node(1, 77)).bind().await.unwrap();
        assert!(device.listens_tcp(), "no other program listens on port 3610");
        let controller = Endpoint::builder().ipv6(false).bind().await.unwrap();
        let found = controller.discover(DISCOVERY).await.unwrap();
        let found = found.iter().find(|node| node.objects.iter().any(|object| object.eoj == light(1)));
        let answer = controller.get(found.expect("the light is found").addr, light(1), &[0xB0]).await.unwrap();
        assert_eq!(answer.get(0xB0), Some(&[77][..]));
    });
}

#[test]
fn blocking_device_and_controller() {
    const PORT: u16 = 13_612;
    let mut device =
        blocking::Endpoint::builder().port(PORT).address(host(9)).serve(node(1, 44)).bind_blocking().unwrap();
    let stopper = device.stopper();
    let server = thread::spawn(move || device.run());

    let mut controller = blocking::Endpoint::builder().port(PORT).address(host(10)).bind_blocking().unwrap();
    let answer = controller.get(host(9), light(1), &[0xB0]).unwrap();
    assert_eq!(answer.get(0xB0), Some(&[44][..]));
    assert!(controller.set(host(9), light(1), &[(0x80, &[0x31])]).unwrap().is_ok());
    let news = loop {
        match controller.next_event(Some(PATIENCE)).unwrap().expect("the change is announced") {
            Event::Notification(news) if news.eoj == light(1) => break news,
            _ => {}
        }
    };
    assert_eq!(news.get(0x80), Some(&[0x31][..]));
    let found = controller.discover(DISCOVERY).unwrap();
    assert_eq!(found.iter().map(|node| node.addr).collect::<Vec<_>>(), [NodeAddr::from(host(9))]);

    stopper.stop();
    server.join().unwrap().unwrap();
}

#[test]
fn bursts_are_answered_in_full() {
    const PORT: u16 = 13_613;
    let mut device =
        blocking::Endpoint::builder().port(PORT).address(host(11)).serve(node(1, 5)).bind_blocking().unwrap();
    let tool = plain(host(12), PORT);
    // More than one batch, and not a multiple of it.
    for tid in 0..150 {
        tool.send_to(&get_level(tid, 1), (host(11), PORT)).unwrap();
    }
    // A frame that is none, in between, does no harm.
    tool.send_to(&[0x10, 0x81, 0, 0, 5, 0xFF, 1, 2, 0x90, 1, 0x6E, 1, 0x80, 0], (host(11), PORT)).unwrap();
    for _ in 0..4 {
        device.turn(Some(Duration::ZERO)).unwrap();
    }
    let mut answer = [0; 64];
    for tid in 0..150 {
        let (length, from) = tool.recv_from(&mut answer).unwrap();
        assert_eq!(answer[..length], level_is(tid, 1, 5));
        assert_eq!(from, SocketAddr::from((host(11), PORT)));
    }
}

#[test]
fn answers_of_one_turn_arrive_whole_and_in_order() {
    const PORT: u16 = 13_616;
    /// The level, which is there, or a property that is not, whose answer is shorter.
    fn exchange(tid: u8, is_there: bool) -> (Vec<u8>, Vec<u8>) {
        let (mut request, mut answer) = (get_level(tid, 1).to_vec(), level_is(tid, 1, 5).to_vec());
        if !is_there {
            request[12] = 0xC0;
            answer.truncate(14);
            (answer[10], answer[12], answer[13]) = (0x52, 0xC0, 0);
        }
        (request, answer)
    }
    let mut device =
        blocking::Endpoint::builder().port(PORT).address(host(16)).serve(node(1, 5)).bind_blocking().unwrap();
    device.turn(Some(Duration::ZERO)).unwrap();
    let tools = [17, 18, 19].map(|last| plain(host(last), PORT));
    // Runs of each tool's requests, by tool and by whether the properties are there; in all less than a batch.
    let runs: [(usize, &[bool]); 8] = [
        (0, &[true; 10]),
        (1, &[true; 2]),
        (1, &[false, false, true, true, true]),
        (2, &[true, true, false]),
        (2, &[false; 9]),
        (0, &[false, true, false, true]),
        (2, &[true]),
        (1, &[true; 20]),
    ];
    let mut expected = [const { Vec::new() }; 3];
    let mut tid = 0;
    for (tool, run) in runs {
        for &is_there in run {
            tid += 1;
            let (request, answer) = exchange(tid, is_there);
            tools[tool].send_to(&request, (host(16), PORT)).unwrap();
            expected[tool].push(answer);
        }
    }
    device.turn(Some(Duration::ZERO)).unwrap();
    for (tool, expected) in tools.iter().zip(expected) {
        for answer in expected {
            let mut bytes = [0; 64];
            let (length, from) = tool.recv_from(&mut bytes).unwrap();
            assert_eq!(bytes[..length], answer);
            assert_eq!(from, SocketAddr::from((host(16), PORT)));
        }
    }
}

#[test]
fn a_listen_only_endpoint_steals_no_requests() {
    const PORT: u16 = 13_614;
    run(async {
        let builder = || Endpoint::builder().port(PORT).ipv6(false);
        let device = builder().serve(node(1, 7)).bind().await.unwrap();
        let listener = builder().listen_only().bind().await.unwrap();
        let mut news = listener.notifications();
        let tool = shared(Ipv4Addr::new(127, 0, 0, 2), PORT);
        tool.set_nonblocking(true).unwrap();
        let tool = tokio::net::UdpSocket::from_std(tool).unwrap();
        tool.send_to(&get_level(1, 1), ("127.0.0.1", PORT)).await.unwrap();
        let mut answer = [0; 64];
        let received = tool.recv_from(&mut answer);
        let (length, _) = tokio::time::timeout(PATIENCE, received).await.expect("the device is not deaf").unwrap();
        assert_eq!(answer[..length], level_is(1, 1, 7));
        device.with_node(|node| node.notify(light(1), 0xB0).unwrap());
        let mut next = async || tokio::time::timeout(PATIENCE, news.next()).await.unwrap().unwrap();
        let mut told = next().await;
        while told.eoj != light(1) {
            // The node has announced itself.
            told = next().await;
        }
        assert_eq!(told.get(0xB0), Some(&[7][..]));
        let refused = listener.get(host(1), light(1), &[0x80]).await;
        assert!(matches!(refused, Err(Error::Refused(RequestError::ListensOnly))), "{refused:?}");
    });
}

#[test]
fn answers_are_bounded() {
    const PORT: u16 = 13_617;
    let lights = (1..=127).map(|instance| super::Light::new(instance, 50)).collect::<Vec<_>>();
    let node = Node::new(Config::new(Identity::new([0, 0, 0x77], 17)), lights);
    let mut device = blocking::Endpoint::builder().port(PORT).address(host(20)).serve(node).bind_blocking().unwrap();
    let tool = plain(host(21), PORT);
    tool.set_nonblocking(true).unwrap();
    let mut answered = |deoj: [u8; 3], epcs: &[u8]| {
        let mut request = [&[0x10, 0x81, 0, 1, 5, 0xFF, 1][..], &deoj, &[0x62, epcs.len() as u8]].concat();
        request.extend(epcs.iter().flat_map(|epc| [*epc, 0]));
        tool.send_to(&request, (host(20), PORT)).unwrap();
        for _ in 0..8 {
            device.turn(Some(Duration::ZERO)).unwrap();
        }
        let mut lengths = Vec::new();
        let mut answer = vec![0; 65_536];
        while let Ok(length) = tool.recv(&mut answer) {
            lengths.push(length);
        }
        lengths
    };
    let most = |lengths: &[usize]| *lengths.iter().max().unwrap();
    for (deoj, epc) in [([2, 0x90, 1], 0x9F), ([0x0E, 0xF0, 1], 0xD6)] {
        let lengths = answered(deoj, &[epc; 255]);
        assert!(lengths.len() == 1 && most(&lengths) <= 1452, "{lengths:?}");
    }
    let lengths = answered([2, 0x90, 0], &[0x9F; 255]);
    assert_eq!(lengths.len(), 127, "every object says that it is there");
    assert!(lengths.iter().sum::<usize>() < 25_000, "{}", lengths.iter().sum::<usize>());
    // Requests as controllers make them are answered in full.
    let lengths = answered([2, 0x90, 0], &[0x80, 0xB0, 0x9F]);
    assert_eq!((lengths.len(), most(&lengths)), (127, *lengths.iter().min().unwrap()));
}

#[test]
fn each_life_of_a_node_begins_with_other_identifiers() {
    const PORT: u16 = 13_618;
    let group = shared(Ipv4Addr::new(224, 0, 23, 0), PORT);
    group.join_multicast_v4(&Ipv4Addr::new(224, 0, 23, 0), &Ipv4Addr::LOCALHOST).unwrap();
    group.set_read_timeout(Some(PATIENCE)).unwrap();
    let tids: std::collections::HashSet<_> = (0..4)
        .map(|_| {
            let builder = blocking::Endpoint::builder().port(PORT).address(host(22));
            let mut device = builder.serve(node(1, 22)).bind_blocking().unwrap();
            device.turn(Some(Duration::ZERO)).unwrap();
            let mut announcement = [0; 64];
            group.recv(&mut announcement).unwrap();
            [announcement[2], announcement[3]]
        })
        .collect();
    assert!(tids.len() >= 3, "{tids:?}");
}

#[test]
fn a_held_port_is_named_with_the_way_to_its_holder() {
    const PORT: u16 = 13_615;
    let _holder = plain(host(15), PORT);
    let error = Endpoint::builder().port(PORT).address(host(15)).bind_blocking().unwrap_err();
    assert!(matches!(error, BindError::PortHeld { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("13615") && text.contains("ss -ulpn 'sport = :13615'"), "{text}");
    let wildcard = Endpoint::builder().port(PORT).bind_blocking().unwrap_err();
    assert!(matches!(wildcard, BindError::PortHeld { .. }), "{wildcard:?}");
}

#[test]
fn bind_errors_name_the_missing_interface_or_address() {
    let error = Endpoint::builder().wait(false).interface("nowhere0").bind_blocking().unwrap_err();
    assert!(error.to_string().contains("nowhere0"), "{error}");
    let address: IpAddr = "192.0.2.254".parse().unwrap();
    let error = Endpoint::builder().wait(false).address(address).bind_blocking().unwrap_err();
    assert!(error.to_string().contains("192.0.2.254"), "{error}");
    let error = Endpoint::builder().ipv4(false).ipv6(false).bind_blocking().unwrap_err();
    assert!(matches!(error, BindError::NoFamily), "{error:?}");
}

/// A light without the mode that its class requires.
struct Incomplete(CommonProperties);

impl Object for Incomplete {
    fn eoj(&self) -> Eoj {
        light(1)
    }

    fn access(&self) -> &PropertyAccess {
        &CommonProperties::ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        self.0.get(epc, edt)
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        self.0.set(epc, edt)
    }
}

#[test]
fn a_node_with_faults_is_named() {
    let builder = || {
        let maker = [0, 0, 0x77];
        let node = Node::new(Config::new(Identity::new(maker, 1)), [Incomplete(CommonProperties::new(maker))]);
        Endpoint::builder().port(13_619).address(host(23)).serve(node)
    };
    // Tests are built for debugging.
    let error = builder().bind_blocking().unwrap_err();
    assert!(error.to_string().contains("029001 B6: the class requires it to be read"), "{error}");
    builder().validate(false).bind_blocking().unwrap();
}
