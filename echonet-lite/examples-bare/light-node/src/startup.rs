//! From reset to the program: the vector table, the first instructions, the program's state, and the end by a panic.

use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicBool, Ordering};

// The core loads the stack pointer and the entry from the first two words; then follow the 14 system exceptions. The
// program polls with interrupts masked, so every one of them would be a fault: the board stops there.
global_asm!(".section .vectors, \"a\"", ".word stack_start", ".word reset", ".rept 14", ".word stop", ".endr",);

// No Rust runs before its statics are in place. The floating-point unit is off after reset (CPACR, ARMv7-M B3.2.20) and
// the target's calling convention uses it. PRIMASK stays set: a pending interrupt wakes `wfi` and runs no handler.
global_asm!(
    ".section .text.reset, \"ax\"",
    ".global reset",
    ".type reset, %function",
    ".thumb_func",
    "reset:",
    "    cpsid i",
    "    ldr r0, =0xE000ED88",
    "    ldr r1, [r0]",
    "    orr r1, r1, #(0xF << 20)",
    "    str r1, [r0]",
    "    dsb",
    "    isb",
    "    ldr r0, =data_start",
    "    ldr r1, =data_end",
    "    ldr r2, =data_load",
    "1:  cmp r0, r1",
    "    bhs 2f",
    "    ldr r3, [r2], #4",
    "    str r3, [r0], #4",
    "    b 1b",
    "2:  ldr r0, =bss_start",
    "    ldr r1, =bss_end",
    "    movs r2, #0",
    "3:  cmp r0, r1",
    "    bhs 4f",
    "    str r2, [r0], #4",
    "    b 3b",
    "4:  bl program",
    ".type stop, %function",
    ".thumb_func",
    "stop:",
    "    b stop",
    ".size reset, . - reset",
);

/// Makes a function what runs after reset.
macro_rules! entry {
    ($program:path) => {
        // The first instructions look for this name; nothing else has it.
        #[unsafe(export_name = "program")]
        extern "C" fn entry() -> ! {
            $program()
        }
    };
}
pub(crate) use entry;

/// A static that gets its value at run time, once. The program's memory then shows in the size of its statics instead
/// of hiding on the stack.
pub(crate) struct Once<T> {
    taken: AtomicBool,
    place: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: `taken` lets only one caller in, and that caller alone gets the reference.
unsafe impl<T: Send> Sync for Once<T> {}

impl<T> Once<T> {
    pub(crate) const fn new() -> Self {
        Self { taken: AtomicBool::new(false), place: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Keeps the value. A second call panics.
    pub(crate) fn set(&'static self, value: T) -> &'static mut T {
        assert!(!self.taken.swap(true, Ordering::Relaxed));
        // SAFETY: no call came before this one and none after it gets here, so that no other reference exists.
        unsafe { (*self.place.get()).write(value) }
    }
}

/// A panic stops the board. It says nothing: the text would cost more flash than the node.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
