//! How much is on its way to a client at one time: as Cubic has it, until the connection ends.
//!
//! quinn-proto 0.11.19 delays CONNECTION_CLOSE while the congestion window is full and other data waits. It then also ignores the
//! acknowledgements that would make room. So a slow or hostile client would never learn why the connection is closed
//! (<https://github.com/quinn-rs/quinn/issues/2785>). That frame is not subject to the window (RFC 9002 sections 2 and 7), so there is none
//! once a connection ends.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};
use quinn_proto::RttEstimator;

/// Makes what bounds a connection.
#[derive(Default)]
pub(super) struct Factory(Arc<CubicConfig>);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let cubic = Arc::clone(&self.0).build(now, current_mtu);
        Box::new(Bounded { cubic, is_lifted: Arc::default() })
    }
}

/// Takes the bound from a connection that is closed next.
pub(super) fn lift(conn: &quinn::Connection) {
    // The state is a copy, which has the mark in common with the connection's own.
    if let Ok(bounded) = conn.congestion_state().into_any().downcast::<Bounded>() {
        bounded.is_lifted.store(true, Relaxed);
    }
}

struct Bounded {
    cubic: Box<dyn Controller>,
    is_lifted: Arc<AtomicBool>,
}

impl Controller for Bounded {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.cubic.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.cubic.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.cubic.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.cubic.on_congestion_event(now, sent, is_persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.cubic.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        // quinn does not pace a window beyond 32 bits.
        if self.is_lifted.load(Relaxed) { u64::MAX } else { self.cubic.window() }
    }

    fn metrics(&self) -> ControllerMetrics {
        self.cubic.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { cubic: self.cubic.clone_box(), is_lifted: Arc::clone(&self.is_lifted) })
    }

    fn initial_window(&self) -> u64 {
        self.cubic.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
