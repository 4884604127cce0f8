//! The services that embassy needs of a board: the time, an executor, a driver of the network. Interrupts stay masked,
//! as in the other programs: a pending one ends the sleep, and the loop looks at everything.

use core::cell::RefCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Waker};

use critical_section::{CriticalSection, Mutex, RawRestoreState};
use embassy_executor::{Spawner, raw};
use embassy_net::driver::{self, Capabilities, Driver, HardwareAddress, LinkState};
use embassy_net::{Config, Ipv4Address, Ipv4Cidr, Runner, Stack, StackResources, StaticConfigV4};
use embassy_time_queue_utils::Queue;

use crate::board::{Clock, sleep};
use crate::lan9118::{FRAME, Lan9118, Room};
use crate::startup::Once;

const MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];
/// A real device would ask DHCP for it.
const ADDRESS: Ipv4Cidr = Ipv4Cidr::new(Ipv4Address::new(192, 0, 2, 1), 24);

/// Something that no other thread can reach, because there is none.
pub(crate) struct Alone<T>(pub(crate) T);

// SAFETY: the board has one core, and interrupts stay masked.
unsafe impl<T> Send for Alone<T> {}

impl<T> Deref for Alone<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Alone<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

struct Masked;
critical_section::set_impl!(Masked);

// SAFETY: interrupts are masked from reset on, and there is one core: nothing ever comes in between.
unsafe impl critical_section::Impl for Masked {
    unsafe fn acquire() -> RawRestoreState {}

    unsafe fn release(_: RawRestoreState) {}
}

/// The clock, and the wakers with their times.
struct Time {
    state: Mutex<RefCell<Option<Alone<Clock>>>>,
    queue: Mutex<RefCell<Queue>>,
}

embassy_time_driver::time_driver_impl!(static TIME: Time = Time {
    state: Mutex::new(RefCell::new(None)),
    queue: Mutex::new(RefCell::new(Queue::new())),
});

impl Time {
    fn start(&self, cs: CriticalSection<'_>) {
        self.state.borrow_ref_mut(cs).get_or_insert_with(|| Alone(Clock::start()));
    }

    /// Wakes those whose time has come.
    fn turn(&self) {
        let now = embassy_time_driver::Driver::now(self);
        critical_section::with(|cs| self.queue.borrow_ref_mut(cs).next_expiration(now));
    }
}

impl embassy_time_driver::Driver for Time {
    fn now(&self) -> u64 {
        critical_section::with(|cs| self.state.borrow_ref_mut(cs).as_mut().map_or(0, |clock| clock.now_us()))
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        // The clock's tick ends every sleep soon enough.
        critical_section::with(|cs| self.queue.borrow_ref_mut(cs).schedule_wake(at, waker));
    }
}

/// Whether a task has been woken.
static IS_WOKEN: AtomicBool = AtomicBool::new(true);
/// The waker of the task that waits for frames.
static NETWORK: Mutex<RefCell<Option<Waker>>> = Mutex::new(RefCell::new(None));
static EXECUTOR: Once<Alone<raw::Executor>> = Once::new();
static RESOURCES: Once<Alone<StackResources<1>>> = Once::new();

#[unsafe(export_name = "__pender")]
fn wake(_: *mut ()) {
    IS_WOKEN.store(true, Ordering::Relaxed);
}

/// Runs what `begin` starts.
pub(crate) fn run(begin: impl FnOnce(Spawner, Controller)) -> ! {
    critical_section::with(|cs| TIME.start(cs));
    let executor: &'static raw::Executor = &EXECUTOR.set(Alone(raw::Executor::new(core::ptr::null_mut()))).0;
    begin(executor.spawner(), Controller(Lan9118::start(MAC)));
    loop {
        TIME.turn();
        let network = critical_section::with(|cs| NETWORK.borrow_ref_mut(cs).take());
        network.into_iter().for_each(Waker::wake);
        IS_WOKEN.store(false, Ordering::Relaxed);
        // SAFETY: only this loop polls the executor, and `wake` does not.
        unsafe { executor.poll() };
        if !IS_WOKEN.load(Ordering::Relaxed) {
            sleep();
        }
    }
}

#[embassy_executor::task]
async fn move_frames(mut runner: Runner<'static, Controller>) -> ! {
    runner.run().await
}

/// Starts the network with the board's address.
pub(crate) fn start_network(spawner: Spawner, controller: Controller) -> Stack<'static> {
    let address = StaticConfigV4 { address: ADDRESS, gateway: None, dns_servers: Default::default() };
    let resources = &mut RESOURCES.set(Alone(StackResources::new())).0;
    let (stack, runner) = embassy_net::new(controller, Config::ipv4_static(address), resources, 1);
    spawner.spawn(move_frames(runner).expect("it is started once"));
    stack
}

/// The Ethernet controller as embassy-net sees it.
pub(crate) struct Controller(Lan9118);

impl Driver for Controller {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = ToSend<'a>;

    fn receive(&mut self, cx: &mut Context<'_>) -> Option<(Received<'_>, ToSend<'_>)> {
        critical_section::with(|cs| NETWORK.borrow_ref_mut(cs).replace(cx.waker().clone()));
        self.0.receive().map(|(frame, room)| (Received(frame), ToSend(room)))
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<ToSend<'_>> {
        critical_section::with(|cs| NETWORK.borrow_ref_mut(cs).replace(cx.waker().clone()));
        self.0.room().map(ToSend)
    }

    fn link_state(&mut self, _: &mut Context<'_>) -> LinkState {
        LinkState::Up
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = FRAME;
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(MAC)
    }
}

/// A received frame.
pub(crate) struct Received<'a>(&'a mut [u8]);

impl driver::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

/// Room for one frame.
pub(crate) struct ToSend<'a>(Room<'a>);

impl driver::TxToken for ToSend<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        self.0.send(length, write)
    }
}
