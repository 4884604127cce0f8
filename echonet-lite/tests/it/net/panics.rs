//! Objects that panic, and objects that call the endpoint that serves them.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use echonet_lite::controller::{Event, Request};
use echonet_lite::net::{Endpoint, Error, blocking};
use echonet_lite::node::{CommonProperties, Config, Identity, Node, Object, PropertyAccess, Refused, put};
use echonet_lite::wire::Eoj;

use super::loopback::run;
use super::{PATIENCE, light};

const MAKER: [u8; 3] = [0, 0, 0x77];
/// Reading or writing it panics.
const CURSED: u8 = 0xF0;
/// Reading it calls the endpoint.
const CALLING: u8 = 0xF1;

type Served = Endpoint<Node<[Troubled; 1]>>;

/// A light that panics, or calls the endpoint that serves it.
struct Troubled {
    common: CommonProperties,
    endpoint: Arc<OnceLock<Served>>,
}

impl Object for Troubled {
    fn eoj(&self) -> Eoj {
        light(1)
    }

    fn access(&self) -> &PropertyAccess {
        const ACCESS: PropertyAccess =
            CommonProperties::ACCESS.union(PropertyAccess::new(&[CURSED, CALLING], &[CURSED], &[CURSED]));
        &ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        match epc {
            CURSED => panic!("the lamp has burst"),
            CALLING => {
                let endpoint = self.endpoint.get().expect("it is set before anybody asks");
                let asked = futures(endpoint.get(light_host(), light(1), &[0x80]));
                assert!(matches!(asked, Err(Error::Reentered)), "{asked:?}");
                endpoint.with_node(|node| node.objects().len());
                put(edt, &[0])
            }
            _ => self.common.get(epc, edt),
        }
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        assert!(epc != CURSED, "the lamp has burst");
        self.common.set(epc, edt)
    }
}

/// Polls a future that is ready at once.
fn futures<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

const fn light_host() -> std::net::Ipv4Addr {
    std::net::Ipv4Addr::new(127, 0, 66, 1)
}

fn troubled() -> (Node<[Troubled; 1]>, Arc<OnceLock<Served>>) {
    let endpoint = Arc::new(OnceLock::new());
    let object = Troubled { common: CommonProperties::new(MAKER), endpoint: Arc::clone(&endpoint) };
    (Node::new(Config::new(Identity::new(MAKER, 66)), [object]), endpoint)
}

/// One try, and not for long: an object that panics does not answer.
fn hasty<'a>(epcs: &'a [u8]) -> Request<'a> {
    Request::get(light(1), epcs).tries(1).timeout(Duration::from_millis(300))
}

#[test]
fn a_panic_ends_the_answer_and_not_the_node() {
    const PORT: u16 = 13_640;
    run(async {
        let (node, place) = troubled();
        let builder = Endpoint::builder().port(PORT).address(light_host()).validate(false);
        let device = builder.serve(node).bind().await.unwrap();
        let mut events = device.events();
        let _ = place.set(device.clone());
        let controller = Endpoint::builder().port(PORT).address([127, 0, 66, 2]).bind().await.unwrap();
        let answers = async || controller.get(light_host(), light(1), &[0x80]).await.unwrap().is_ok();
        assert!(answers().await);
        for request in [hasty(&[CURSED]), hasty(&[CALLING])] {
            let silence = controller.request(light_host(), &request).await;
            assert!(matches!(silence, Err(Error::Failed(_))), "{silence:?}");
            assert!(answers().await, "the node goes on");
        }
        // The notification of a value that cannot be read.
        device.with_node(|node| node.notify(light(1), CURSED).unwrap());
        assert!(answers().await, "the node goes on");
        let mut said = Vec::new();
        while said.len() < 3 {
            if let Event::ObjectPanicked { message } = events.next().await.unwrap() {
                said.push(message);
            }
        }
        assert!(said[0].contains("burst") && said[1].contains("from within an object"), "{said:?}");
        assert!(said[2].contains("burst"), "{said:?}");
    });
}

#[test]
fn a_panic_does_not_end_a_blocking_node() {
    const PORT: u16 = 13_641;
    let builder = blocking::Endpoint::builder().port(PORT).address([127, 0, 66, 3]).validate(false);
    let mut device = builder.serve(troubled().0).bind_blocking().unwrap();
    let stopper = device.stopper();
    let server = thread::spawn(move || device.run());
    let mut controller = blocking::Endpoint::builder().port(PORT).address([127, 0, 66, 4]).bind_blocking().unwrap();
    let host = std::net::Ipv4Addr::new(127, 0, 66, 3);
    assert!(controller.request(host, &hasty(&[CURSED])).is_err());
    assert!(controller.get(host, light(1), &[0x80]).unwrap().is_ok());
    stopper.stop();
    server.join().unwrap().unwrap();
}

#[test]
fn requests_end_when_the_runtime_of_their_endpoint_does() {
    const PORT: u16 = 13_642;
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (theirs, ours) = (runtime(), runtime());
    let open = async { Endpoint::builder().port(PORT).address([127, 0, 66, 5]).bind().await.unwrap() };
    let endpoint = theirs.block_on(open);
    let asking = endpoint.clone();
    let host = std::net::Ipv4Addr::new(127, 0, 66, 6);
    let waiting = ours.spawn(async move { asking.request(host, &Request::get(light(1), &[0x80]).tries(9)).await });
    while endpoint.nodes().is_empty() {
        thread::yield_now();
    }
    theirs.shutdown_background();
    let ended = ours.block_on(async { tokio::time::timeout(PATIENCE, waiting).await }).expect("it ends");
    assert!(matches!(ended.unwrap(), Err(Error::Closed)));
    let refused = ours.block_on(endpoint.get(host, light(1), &[0x80]));
    assert!(matches!(refused, Err(Error::Closed)), "{refused:?}");
}
