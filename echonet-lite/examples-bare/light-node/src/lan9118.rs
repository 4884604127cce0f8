//! The board's Ethernet controller (SMSC LAN9118), without DMA.

use crate::board::{Interrupt, Registers};

/// Bytes of an Ethernet frame without its check sum.
pub(crate) const FRAME: usize = 1514;

/// The controller and a buffer for each direction, in words as its FIFOs want them.
pub(crate) struct Lan9118 {
    registers: Registers,
    interrupt: Interrupt,
    received: [u8; FRAME],
    sent: [u8; FRAME],
}

const RX_DATA: usize = 0x00;
const TX_DATA: usize = 0x20;
const RX_STATUS: usize = 0x40;
const IRQ_CONFIG: usize = 0x54;
/// On, push-pull, active high.
const IRQ_ON: u32 = 1 << 8 | 1 << 4 | 1 << 0;
const INT_STATUS: usize = 0x58;
const INT_ENABLE: usize = 0x5C;
/// More frames wait than `FIFO_INT` says, which is none after reset.
const RX_WAITING: u32 = 1 << 3;
const TX_CONFIG: usize = 0x70;
const TX_ON: u32 = 1 << 1;
const RX_INFO: usize = 0x7C;
const TX_INFO: usize = 0x80;
const MAC_COMMAND: usize = 0xA4;
const MAC_BUSY: u32 = 1 << 31;
const MAC_DATA: usize = 0xA8;
const MAC_CONTROL: u32 = 1;
/// Sends, receives, and passes every multicast: the hash filter would let others through anyway.
const MAC_ON: u32 = 1 << 19 | 1 << 3 | 1 << 2;
const MAC_ADDRESS_HIGH: u32 = 2;
const MAC_ADDRESS_LOW: u32 = 3;
/// Both on the first and only buffer of a frame.
const TX_WHOLE_FRAME: u32 = 1 << 13 | 1 << 12;
const RX_ERROR: u32 = 1 << 15;
/// The check sum, which the controller appends to a received frame.
const CHECK_SUM: usize = 4;
/// In the interrupt controller.
const NUMBER: u32 = 13;

impl Lan9118 {
    pub(crate) fn start(address: [u8; 6]) -> Self {
        // SAFETY: the controller's place on the AN386 board.
        let registers = unsafe { Registers::at(0x4020_0000) };
        let [a, b, c, d, e, f] = address;
        let device = Self { registers, interrupt: Interrupt::enable(NUMBER), received: [0; FRAME], sent: [0; FRAME] };
        device.write_mac(MAC_ADDRESS_LOW, u32::from_le_bytes([a, b, c, d]));
        device.write_mac(MAC_ADDRESS_HIGH, u32::from_le_bytes([e, f, 0, 0]));
        device.registers.write(TX_CONFIG, TX_ON);
        device.registers.write(IRQ_CONFIG, IRQ_ON);
        device.registers.write(INT_ENABLE, RX_WAITING);
        device.write_mac(MAC_CONTROL, MAC_ON);
        device
    }

    fn write_mac(&self, register: u32, value: u32) {
        self.registers.write(MAC_DATA, value);
        self.registers.write(MAC_COMMAND, MAC_BUSY | register);
        while self.registers.read(MAC_COMMAND) & MAC_BUSY != 0 {}
    }

    /// Moves the next good frame into the buffer; its length.
    fn next_frame(&mut self) -> Option<usize> {
        // First the interrupt, then the look: a frame that comes in between raises it anew.
        self.registers.write(INT_STATUS, RX_WAITING);
        self.interrupt.clear();
        while self.registers.read(RX_INFO) >> 16 & 0xFF != 0 {
            let status = self.registers.read(RX_STATUS);
            let length = (status >> 16 & 0x3FFF) as usize;
            let mut words = self.received.chunks_mut(4);
            for _ in 0..length.div_ceil(4) {
                let word = self.registers.read(RX_DATA).to_le_bytes();
                if let Some(place) = words.next() {
                    place.copy_from_slice(&word[..place.len()]);
                }
            }
            let length = length.saturating_sub(CHECK_SUM);
            if status & RX_ERROR == 0 && length <= FRAME {
                return Some(length);
            }
        }
        None
    }

    fn can_send(&self) -> bool {
        // The two command words come on top.
        (self.registers.read(TX_INFO) & 0xFFFF) as usize >= FRAME.next_multiple_of(4) + 8
    }

    /// The next good frame, and room for one to answer it with.
    pub(crate) fn receive(&mut self) -> Option<(&mut [u8], Room<'_>)> {
        // A frame that arrives may want an answer.
        if !self.can_send() {
            return None;
        }
        let length = self.next_frame()?;
        let room = Room { registers: &self.registers, buffer: &mut self.sent };
        Some((self.received.get_mut(..length)?, room))
    }

    /// Room for one frame, if there is any.
    pub(crate) fn room(&mut self) -> Option<Room<'_>> {
        self.can_send().then_some(Room { registers: &self.registers, buffer: &mut self.sent })
    }
}

/// Room for one frame.
pub(crate) struct Room<'a> {
    registers: &'a Registers,
    buffer: &'a mut [u8; FRAME],
}

impl Room<'_> {
    /// Has a frame of this length written, and sends it.
    pub(crate) fn send<R>(self, length: usize, write: impl FnOnce(&mut [u8]) -> R) -> R {
        let frame = &mut self.buffer[..length];
        let result = write(frame);
        self.registers.write(TX_DATA, TX_WHOLE_FRAME | length as u32);
        self.registers.write(TX_DATA, length as u32);
        for bytes in frame.chunks(4) {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            self.registers.write(TX_DATA, u32::from_le_bytes(word));
        }
        result
    }
}
