//! The parts of the MPS2+ AN386 board that the light uses: its first serial line and the core's timer.

use core::arch::asm;

/// Ticks per second of the core and its peripherals.
const CLOCK_HZ: u32 = 25_000_000;
const TICKS_PER_US: u32 = CLOCK_HZ / 1_000_000;

/// A block of 32-bit registers.
pub(crate) struct Registers {
    base: usize,
}

impl Registers {
    /// # Safety
    /// `base` is the address of a block of device registers, and every offset given to the methods is one of it.
    pub(crate) const unsafe fn at(base: usize) -> Self {
        Self { base }
    }

    pub(crate) fn read(&self, offset: usize) -> u32 {
        // SAFETY: a register by the promise given to `at`; no Rust object lies there.
        unsafe { ((self.base + offset) as *const u32).read_volatile() }
    }

    pub(crate) fn write(&self, offset: usize, value: u32) {
        // SAFETY: as in `read`.
        unsafe { ((self.base + offset) as *mut u32).write_volatile(value) }
    }
}

/// Sleeps until an interrupt is pending: a byte of the serial line or a tick of the clock.
pub(crate) fn sleep() {
    // SAFETY: waits; touches neither memory nor registers.
    unsafe { asm!("wfi", options(nomem, nostack, preserves_flags)) }
}

/// Microseconds since start: a free-running timer of the board counts (CMSDK timer 0), and SysTick (ARMv7-M B3.3) ends
/// `sleep` so often that a node is never late by more than its period.
pub(crate) struct Clock {
    counter: Registers,
    control: Registers,
    /// The counter, which counts down, at the last whole microsecond that `micros` holds.
    last: u32,
    micros: u64,
}

impl Clock {
    const COUNTER_CONTROL: usize = 0x0;
    const COUNTER_VALUE: usize = 0x4;
    const COUNTER_RELOAD: usize = 0x8;
    const SYSTICK: usize = 0x10;
    const SYSTICK_RELOAD: usize = 0x14;
    /// Enabled, interrupt wanted, driven by the core's clock.
    const SYSTICK_START: u32 = 0b111;
    const PERIOD: u32 = CLOCK_HZ / 1_000;
    /// Takes the pending interrupt back: it only had to end `sleep`.
    const ICSR: usize = 0xD04;
    const CLEAR_PENDING: u32 = 1 << 25;

    pub(crate) fn start() -> Self {
        // SAFETY: timer 0 of the board, and the system control space of every ARMv7-M core.
        let (counter, control) = unsafe { (Registers::at(0x4000_0000), Registers::at(0xE000_E000)) };
        counter.write(Self::COUNTER_RELOAD, u32::MAX);
        counter.write(Self::COUNTER_VALUE, u32::MAX);
        counter.write(Self::COUNTER_CONTROL, 1);
        control.write(Self::SYSTICK_RELOAD, Self::PERIOD - 1);
        control.write(Self::SYSTICK, Self::SYSTICK_START);
        Self { counter, control, last: u32::MAX, micros: 0 }
    }

    /// To be called at least once in the 171 s that the counter takes to come round.
    pub(crate) fn now_us(&mut self) -> u64 {
        self.control.write(Self::ICSR, Self::CLEAR_PENDING);
        // In 32 bits: the division of 64 is a large function on this core.
        let micros = self.last.wrapping_sub(self.counter.read(Self::COUNTER_VALUE)) / TICKS_PER_US;
        self.last = self.last.wrapping_sub(micros * TICKS_PER_US);
        self.micros += u64::from(micros);
        self.micros
    }
}

/// One of the first 32 lines of the interrupt controller (ARMv7-M B3.4). It only has to end `sleep`.
pub(crate) struct Interrupt {
    controller: Registers,
    line: u32,
}

impl Interrupt {
    const ENABLE: usize = 0x000;
    const UNPEND: usize = 0x180;

    pub(crate) fn enable(number: u32) -> Self {
        // SAFETY: the interrupt controller of every ARMv7-M core.
        let controller = unsafe { Registers::at(0xE000_E100) };
        controller.write(Self::ENABLE, 1 << number);
        Self { controller, line: 1 << number }
    }

    pub(crate) fn clear(&self) {
        self.controller.write(Self::UNPEND, self.line);
    }
}

/// The board's first serial line (CMSDK UART), 8N1.
pub(crate) struct Uart {
    uart: Registers,
    interrupt: Interrupt,
}

impl Uart {
    const DATA: usize = 0x0;
    const STATE: usize = 0x4;
    const TRANSMIT_FULL: u32 = 1 << 0;
    const RECEIVE_FULL: u32 = 1 << 1;
    const CONTROL: usize = 0x8;
    /// Both directions on, interrupt when a byte has arrived.
    const START: u32 = 0b1011;
    const CLEAR: usize = 0xC;
    const DIVIDER: usize = 0x10;
    const BAUD: u32 = 115_200;
    /// The line's receiver in the interrupt controller.
    const RECEIVER: u32 = 0;

    pub(crate) fn start() -> Self {
        // SAFETY: UART 0 of the board.
        let uart = unsafe { Registers::at(0x4000_4000) };
        uart.write(Self::DIVIDER, CLOCK_HZ / Self::BAUD);
        uart.write(Self::CONTROL, Self::START);
        Self { uart, interrupt: Interrupt::enable(Self::RECEIVER) }
    }

    /// A byte that has arrived.
    pub(crate) fn receive(&mut self) -> Option<u8> {
        if self.uart.read(Self::STATE) & Self::RECEIVE_FULL == 0 {
            return None;
        }
        // First the interrupt, then the byte: one that comes in between raises it anew.
        self.uart.write(Self::CLEAR, Self::RECEIVE_FULL);
        self.interrupt.clear();
        Some(self.uart.read(Self::DATA) as u8)
    }

    /// Whether the byte could be taken; if not, later.
    pub(crate) fn send(&mut self, byte: u8) -> bool {
        let room = self.uart.read(Self::STATE) & Self::TRANSMIT_FULL == 0;
        if room {
            self.uart.write(Self::DATA, byte.into());
        }
        room
    }
}
