//! The device path allocates nothing: counted by the allocator itself.
#![allow(unsafe_code, reason = "an allocator is an unsafe trait")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::net::SocketAddr;
use core::time::Duration;
use std::alloc::System;

use echonet_lite::node::{
    Arrival, CommonProperties, Config, Destination, Handled, Identity, Instant, Node, Object, Outbox, PropertyAccess,
    Refused,
};
use echonet_lite::wire::{Eoj, Frame, MessageLength, PropertySet, message_length};

/// The system's allocator with a counter.
struct Counting;

thread_local! {
    /// Of this thread alone: the test harness has one of its own, which allocates when it likes.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract; counting has no effect
// on memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Fails while a thread ends, which is not what is counted.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises about `layout` are those that `System` wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` with this layout, since `alloc` above gave it.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Light(Eoj, CommonProperties);

impl Object for Light {
    fn eoj(&self) -> Eoj {
        self.0
    }

    fn access(&self) -> &PropertyAccess {
        &CommonProperties::ACCESS
    }

    fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
        self.1.get(epc, edt)
    }

    fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
        self.1.set(epc, edt)
    }
}

/// One request of every kind, good and bad.
const DATAGRAMS: &[&[u8]] = &[
    b"\x10\x81\0\x01\x05\xff\x01\x02\x90\x01\x62\x01\x80\0",
    b"\x10\x81\0\x01\x05\xff\x01\x02\x90\0\x62\x03\x80\0\xf7\0\x9f\0",
    b"\x10\x81\0\x01\x05\xff\x01\x0e\xf0\x01\x62\x03\xd6\0\xd7\0\x83\0",
    b"\x10\x81\0\x01\x05\xff\x01\x02\x90\x01\x61\x01\x80\x01\x31",
    b"\x10\x81\0\x01\x05\xff\x01\x02\x90\x01\x61\x02\x80\x01\x30\xb0\x01\x31",
    b"\x10\x81\0\x01\x05\xff\x01\x02\x90\x01\x60\x01\x88\x01\x31",
    b"\x10\x81\0\x01\x05\xff\x01\x02\x90\x01\x63\x01\x80\0",
    b"\x10\x81\0\x01\x05\xff\x01\x02\x90\x01\x6e\x01\x80\x01\x31\x01\x80\0",
    b"\x10\x81\0\x01\x02\x88\x01\x02\x90\x01\x74\x01\xea\0",
    b"\x10\x81\0\x01\x05\xff\x01\x02\x90\x01\x6e\x01\x80\0",
    b"\x10\x82\0\x01\xca\xfe",
    b"\x10\x81\0\x01\x05\xff\x01\x02\x88\x01\x62\x01\x80\0",
];

#[test]
fn the_device_path_allocates_nothing() {
    let maker = [0, 0, 0x77];
    let before = ALLOCATIONS.get();
    let lights = [1, 2, 3].map(|instance| Light(Eoj::new(2, 0x90, instance), CommonProperties::new(maker)));
    let mut node = Node::new(Config::new(Identity::new(maker, 1)), lights);
    let from = SocketAddr::from(([192, 0, 2, 1], 3610));
    let (mut now, mut buffer, mut sent) = (Instant::ZERO, [0; 1472], 0_u64);
    for round in 0..1000 {
        for datagram in DATAGRAMS {
            let arrival = if round % 2 == 0 { Arrival::Unicast } else { Arrival::Multicast };
            let mut out = Outbox::new(&mut buffer, |_, _: &[u8]| sent += 1);
            let handled = node.handle(now, from, arrival, datagram, &mut out);
            assert!(handled != Handled::NotForUs || datagram[8] == 0x88);
            while let Some((to, length)) = node.poll_transmit(now, &mut buffer) {
                assert!(length >= 14 && (to == Destination::Multicast || to == Destination::Unicast(from)));
                sent += 1;
            }
            assert!(matches!(message_length(datagram), MessageLength::Complete(_)) == Frame::parse(datagram).is_ok());
        }
        let eoj = Eoj::new(2, 0x90, 1);
        node.notify(eoj, 0x80).expect("room");
        if round % 100 == 0 {
            node.notify_confirmed(from, Eoj::CONTROLLER, eoj, 0x80).expect("room");
        }
        let map = PropertySet::decode_map(b"\x02\x80\x81").expect("a map");
        assert_eq!(map.len(), 2);
        now += Duration::from_secs(1);
    }
    let after = ALLOCATIONS.get();
    assert!(sent > 10_000, "{sent}");
    assert_eq!(after - before, 0, "allocations");
}
