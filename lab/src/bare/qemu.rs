//! The board in qemu, with one of its lines and its monitor on sockets of this process.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

const PROGRAM: &str = "qemu-system-arm";
/// Longest that anything may take on a busy machine; an answer takes milliseconds.
const LIMIT: Duration = Duration::from_secs(20);
/// The board's RAM in the linker script.
const RAM: (u64, usize) = (0x2000_0000, 32 * 1024);

/// The end of the line.
pub(super) enum Line {
    /// The first serial line: bytes.
    Serial,
    /// The Ethernet controller: frames, each behind its length in four bytes.
    Ethernet,
}

/// A running board; dropping it ends it.
pub(super) struct Board {
    child: Child,
    pub(super) line: TcpStream,
    monitor: TcpStream,
}

/// Whether there is a qemu for Arm.
///
/// # Errors
/// The missing program.
pub(super) fn find() -> Result<(), String> {
    let answer = Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let there = answer.is_ok_and(|status| status.success());
    there.then_some(()).ok_or_else(|| format!("{PROGRAM} is not installed"))
}

impl Board {
    /// Starts the image.
    ///
    /// # Errors
    /// When qemu ends or does not connect.
    pub(super) fn start(image: &Path, line: &Line) -> Result<Self> {
        let (for_line, for_monitor) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let address = for_line.local_addr()?;
        let line = match line {
            Line::Serial => {
                ["-serial", &format!("tcp:{address}"), "-nic", "user,restrict=on,model=lan9118"].map(String::from)
            }
            Line::Ethernet => {
                ["-serial", "null", "-nic", &format!("socket,model=lan9118,connect={address}")].map(String::from)
            }
        };
        let mut child = Command::new(PROGRAM)
            .args(["-machine", "mps2-an386", "-nodefaults", "-display", "none"])
            .args(["-monitor", &format!("tcp:{}", for_monitor.local_addr()?)])
            .args(line)
            .arg("-kernel")
            .arg(image)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {PROGRAM}"))?;
        let connect = |child: &mut Child| anyhow::Ok((accept(&for_line, child)?, accept(&for_monitor, child)?));
        match connect(&mut child) {
            Ok((line, monitor)) => Ok(Self { child, line, monitor }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// The board's RAM at this moment.
    ///
    /// # Errors
    /// When the monitor does not answer.
    pub(super) fn ram(&mut self) -> Result<Vec<u8>> {
        let file = Temporary(std::env::temp_dir().join(format!("light-{}.ram", self.child.id())));
        let (start, length) = RAM;
        self.until_prompt()?;
        writeln!(self.monitor, "pmemsave {start:#x} {length} \"{}\"", file.0.display())?;
        self.until_prompt()?;
        let bytes = std::fs::read(&file.0)?;
        ensure!(bytes.len() == length, "the monitor saved {} bytes", bytes.len());
        Ok(bytes)
    }

    fn until_prompt(&mut self) -> Result<()> {
        let mut seen = Vec::new();
        while !seen.ends_with(b"(qemu) ") {
            let mut byte = [0];
            self.monitor.read_exact(&mut byte).context("the monitor is silent")?;
            seen.extend(byte);
        }
        Ok(())
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // It never ends by itself; a failure means that it did.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file that is removed in the end.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The connection of the child, as long as it lives.
fn accept(listener: &TcpListener, child: &mut Child) -> Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(LIMIT))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if let Some(status) = child.try_wait()? {
                    bail!("{PROGRAM} ended at once ({status})");
                }
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
    bail!("{PROGRAM} does not connect")
}
