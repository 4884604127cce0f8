//! A serial port as the modules want it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::termios::{self, ControlModes, OptionalActions, QueueSelector};

/// The speed of every module as delivered, in baud; 8 data bits, no parity, 1 stop bit, no flow control.
pub const BAUD: u32 = 115_200;

/// An open serial port: raw, not blocking, ours alone.
#[derive(Debug)]
pub struct SerialPort {
    file: File,
}

impl SerialPort {
    /// Opens a port such as `/dev/ttyUSB0` at the speed of the modules, [`BAUD`].
    ///
    /// # Errors
    /// There is no such port, it is in use or not a terminal, or the user may not open it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open_at(path, BAUD)
    }

    /// Opens a port at another speed, in baud, for a module that was set to it.
    ///
    /// # Errors
    /// As [`open`](Self::open), or the port does not have the speed.
    pub fn open_at(path: impl AsRef<Path>, baud: u32) -> io::Result<Self> {
        // Not blocking, so that opening does not wait for a carrier that the modules never signal.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let port = rustix::fs::open(path.as_ref(), flags, Mode::empty())?;
        termios::ioctl_tiocexcl(&port)?;
        let mut settings = termios::tcgetattr(&port)?;
        settings.make_raw();
        settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
        settings.control_modes -= ControlModes::CRTSCTS | ControlModes::CSTOPB;
        settings.set_speed(baud)?;
        termios::tcsetattr(&port, OptionalActions::Now, &settings)?;
        termios::tcflush(&port, QueueSelector::IOFlush)?;
        Ok(Self { file: port.into() })
    }
}

impl Read for SerialPort {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Write for SerialPort {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for SerialPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for SerialPort {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}
