//! The Ethernet controller as a device of smoltcp.

use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant;

use crate::lan9118::{FRAME, Lan9118, Room};

impl Device for Lan9118 {
    type RxToken<'a> = RxToken<'a>;
    type TxToken<'a> = TxToken<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(RxToken<'_>, TxToken<'_>)> {
        Lan9118::receive(self).map(|(frame, room)| (RxToken(frame), TxToken(room)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<TxToken<'_>> {
        self.room().map(TxToken)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME;
        capabilities
    }
}

/// A received frame.
pub(crate) struct RxToken<'a>(&'a [u8]);

impl phy::RxToken for RxToken<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

/// Room for one frame.
pub(crate) struct TxToken<'a>(Room<'a>);

impl phy::TxToken for TxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        self.0.send(length, write)
    }
}
