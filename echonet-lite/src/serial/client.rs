//! A meter for programs that wait.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddrV6;
use std::os::fd::AsFd;
use std::time::{self, Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::link::{Error, Link};
use super::{COMMAND_MAX, Config, Event, Pan};
use crate::controller::{Answer, Notification, Request, Write as PropertyWrite};
use crate::node::Instant;
use crate::wire::Eoj;

/// A seed that no other life of the program has.
pub(super) fn seed() -> u64 {
    RandomState::new().hash_one(0)
}

/// A smart meter behind a module on a port: anything with a descriptor that can be read and written, such as a
/// [`SerialPort`](super::SerialPort) or the TCP stream of a serial server.
///
/// ```no_run
/// use echonet_lite::meter::{self, METER};
/// use echonet_lite::serial::{Client, Config, Credentials, Module, SerialPort};
/// use std::time::Duration;
///
/// let credentials = Credentials::new("00112233445566778899AABBCCDDEEFF", "0123456789AB")?;
/// let port = SerialPort::open("/dev/ttyUSB0")?;
/// let mut client = Client::new(port, Config::new(Module::Bp35a1, credentials));
/// client.join(Duration::from_secs(180))?;
/// let answer = client.get(METER, &[meter::epc::POWER])?;
/// if let Some(edt) = answer.get(meter::epc::POWER) {
///     println!("{:?} W", meter::power(edt)?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Client<T> {
    port: T,
    link: Link,
    began: time::Instant,
}

impl<T: Read + Write + AsFd> Client<T> {
    /// A client that has not begun to speak with its module.
    pub fn new(port: T, config: Config) -> Self {
        Self { port, link: Link::new(config, seed()), began: time::Instant::now() }
    }

    /// Has everything that the module does told, for logs and progress.
    pub fn observe(&mut self, observer: impl FnMut(&Event<'_>) + Send + 'static) {
        self.link.observe(observer);
    }

    /// Joins the meter's network; returns at once if that was done.
    ///
    /// # Errors
    /// The last failure, if `timeout` passes or trying again would not help.
    pub fn join(&mut self, timeout: Duration) -> Result<SocketAddrV6, Error> {
        self.link.start(self.now());
        let deadline = self.now() + timeout;
        loop {
            if let Some(result) = self.link.joined() {
                return result.map_err(Error::Failed);
            }
            if self.now() >= deadline {
                return Err(self.link.late());
            }
            self.turn(Some(deadline))?;
        }
    }

    /// Reads properties of the meter.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn get(&mut self, eoj: Eoj, epcs: &[u8]) -> Result<Answer, Error> {
        self.request(&Request::get(eoj, epcs))
    }

    /// Writes properties of the meter and has it confirmed.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub fn set(&mut self, eoj: Eoj, writes: &[PropertyWrite<'_>]) -> Result<Answer, Error> {
        self.request(&Request::set(eoj, writes))
    }

    /// Makes a request and waits for the answer; where the session is lost meanwhile, until it is there again.
    ///
    /// # Errors
    /// [`join`](Self::join) has not succeeded yet, the meter did not answer, or the port failed.
    pub fn request(&mut self, request: &Request<'_>) -> Result<Answer, Error> {
        let pending = self.link.request(self.now(), request)?;
        loop {
            if let Some(answer) = self.link.answer(self.now(), &pending) {
                return answer;
            }
            self.turn(Some(pending.deadline()))?;
        }
    }

    /// The next notification that the meter sent by itself; waits for it until `timeout` has passed.
    ///
    /// # Errors
    /// The port failed.
    pub fn notification(&mut self, timeout: Duration) -> Result<Option<Notification>, Error> {
        let deadline = self.now() + timeout;
        loop {
            let notification = self.link.notification();
            if notification.is_some() || self.now() >= deadline {
                return Ok(notification);
            }
            self.turn(Some(deadline))?;
        }
    }

    /// The meter's network, worth keeping for [`Config::pan`]: the next start needs no scan then.
    pub const fn pan(&self) -> Option<Pan> {
        self.link.pan()
    }

    fn now(&self) -> Instant {
        Instant(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Writes what there is to write, waits for the module or a deadline, and reads.
    fn turn(&mut self, until: Option<Instant>) -> Result<(), Error> {
        let mut command = [0; COMMAND_MAX];
        while let Some(length) = self.link.poll_transmit(self.now(), &mut command) {
            self.write(&command[..length])?;
        }
        let due = [self.link.poll_timeout(), until].into_iter().flatten().min();
        let wait = due.map(|due| due.since(self.now()));
        if self.wait(PollFlags::IN, wait)? {
            let mut bytes = [0; 1024];
            match self.port.read(&mut bytes) {
                Ok(0) => return Err(Error::Port(ErrorKind::UnexpectedEof.into())),
                Ok(length) => self.link.receive(self.now(), &bytes[..length]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(Error::Port(error)),
            }
        }
        self.link.handle_timeout(self.now());
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            match self.port.write(bytes) {
                Ok(0) => return Err(Error::Port(ErrorKind::WriteZero.into())),
                Ok(length) => bytes = &bytes[length..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(PollFlags::OUT, None)?;
                }
                Err(error) => return Err(Error::Port(error)),
            }
        }
        Ok(())
    }

    fn wait(&self, what: PollFlags, timeout: Option<Duration>) -> Result<bool, Error> {
        let timeout =
            timeout.map(|timeout| Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 }));
        match poll(&mut [PollFd::new(&self.port, what)], timeout.as_ref()) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(Error::Port(error.into())),
        }
    }
}

impl<T> fmt::Debug for Client<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("link", &self.link).finish_non_exhaustive()
    }
}
