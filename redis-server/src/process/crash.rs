//! Crash reports: the log's entry on a process that a signal ends (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT).
//!
//! The handler runs on the thread that has crashed, which may hold any lock, so that it calls only what signal-safety(7)
//! allows. It writes the signal, the thread and the stack. A thread that has waited for this since the start then adds the state
//! of the server; where that needs a lock that will not come free, the process ends without it after [`PATIENCE_MS`].
#![allow(unsafe_code, reason = "signal handlers are C's")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::IntoRawFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicI32};

use crate::threads::{self, OnPanic};

/// How long the process waits for the state of the server, in milliseconds.
const PATIENCE_MS: c_int = 3000;
/// Most frames of a stack that are shown.
const FRAMES: usize = 128;
/// Longest line that the handler writes.
const LINE: usize = 256;

const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
];

const BEGIN: &str = "\n\n=== REDIS BUG REPORT START: Cut & paste starting from here ===\n";
const END: &str = "\n=== REDIS BUG REPORT END. Make sure to include from START to END. ===\n\n";

/// Whether there are reports (`crash-log-enabled`).
static IS_ENABLED: AtomicBool = AtomicBool::new(true);
/// Where reports go, a file that is never closed.
static LOG: AtomicI32 = AtomicI32::new(-1);
/// Where the handler asks for the state, and where it is told that this is written.
static ASK: AtomicI32 = AtomicI32::new(-1);
static WRITTEN: AtomicI32 = AtomicI32::new(-1);
/// The thread that has crashed first, by its number; 0: none has.
static CRASHED: AtomicI32 = AtomicI32::new(0);

thread_local! {
    /// The client that this thread serves, or has served last. A constant without a destructor: a handler may read it.
    static CLIENT: Cell<u64> = const { Cell::new(0) };
}

/// This thread serves a client from now on; 0: none.
#[inline]
pub fn serving(client: u64) {
    CLIENT.set(client);
}

/// Has a crash leave a report in this file, or on standard output: `state` appends what the server knows of itself and of the client
/// that the crashed thread has served. Once per process.
///
/// # Errors
/// There is no thread or no pipe, or the file cannot be opened.
pub fn install(log: Option<&Path>, state: impl Fn(u64, &mut Vec<u8>) + Send + 'static) -> io::Result<()> {
    let log = match log {
        None => libc::STDOUT_FILENO,
        Some(path) => File::options().append(true).create(true).open(path)?.into_raw_fd(),
    };
    let (asked, ask) = io::pipe()?;
    let (written, tell) = io::pipe()?;
    threads::spawn("crash-report", OnPanic::Report, move || write_states(asked, tell, log, &state))?;
    LOG.store(log, SeqCst);
    ASK.store(ask.into_raw_fd(), SeqCst);
    WRITTEN.store(written.into_raw_fd(), SeqCst);
    // The first call loads libraries, which no handler may.
    stack(-1);
    for (signal, _) in SIGNALS {
        // SAFETY: all zeros are a valid `sigaction`, and the handler keeps to what a handler may do.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as libc::sighandler_t;
            // On the thread's second stack, which std has made: the first may be used up.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            if libc::sigaction(signal, &raw const action, ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

/// Has crashes leave reports from now on, or none.
pub fn enable(on: bool) {
    IS_ENABLED.store(on, SeqCst);
}

/// Waits for a crash, and writes the state of the server.
fn write_states(mut asked: PipeReader, mut tell: PipeWriter, log: c_int, state: &dyn Fn(u64, &mut Vec<u8>)) {
    let mut client = [0; 8];
    // The other end is closed by nobody.
    while asked.read_exact(&mut client).is_ok() {
        let mut text = Vec::new();
        let rendered = catch_unwind(AssertUnwindSafe(|| {
            threads::panic_point();
            state(u64::from_ne_bytes(client), &mut text);
        }));
        if rendered.is_err() {
            text.extend_from_slice(b"\n(what is missing here has panicked)\n");
        }
        write(log, &text);
        // The process ends in any case.
        let _ = tell.write_all(b"!");
    }
}

extern "C" fn handle(signal: c_int, info: *const libc::siginfo_t, _context: *const c_void) {
    // SAFETY: these calls are safe in a handler; `info` is the kernel's.
    let (thread, code, address) = unsafe { (libc::gettid(), (*info).si_code, (*info).si_addr()) };
    match CRASHED.compare_exchange(0, thread, SeqCst, SeqCst) {
        Ok(_) if IS_ENABLED.load(SeqCst) => report(signal, code, address),
        Ok(_) => {}
        // The report itself has crashed.
        Err(first) if first == thread => {}
        // Another thread writes its report, and ends the process.
        Err(_) => loop {
            // SAFETY: it waits for a signal.
            unsafe { libc::pause() };
        },
    }
    // SAFETY: the default action ends the process, with a core where the system wants one, once the handler has returned.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

fn report(signal: c_int, code: c_int, address: *const c_void) {
    let log = LOG.load(SeqCst);
    let name = SIGNALS.iter().find(|(known, _)| *known == signal).map_or("?", |(_, name)| name);
    let client = CLIENT.get();
    write(log, BEGIN.as_bytes());
    let version = env!("CARGO_PKG_VERSION");
    line(log, format_args!("redis-server {version} crashed by signal: {signal} ({name}), si_code: {code}\n"));
    if signal != libc::SIGABRT {
        line(log, format_args!("Accessing address: {address:p}\n"));
    }
    let mut thread = [0_u8; 16];
    // SAFETY: the call writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, thread.as_mut_ptr()) };
    let thread = thread.split(|byte| *byte == 0).next().unwrap_or_default();
    line(log, format_args!("Thread: {}, client id: {client}\n", std::str::from_utf8(thread).unwrap_or("?")));
    line(log, format_args!("\n------ STACK TRACE ------\n"));
    stack(log);
    let mut ready = libc::pollfd { fd: WRITTEN.load(SeqCst), events: libc::POLLIN, revents: 0 };
    write(ASK.load(SeqCst), &client.to_ne_bytes());
    // SAFETY: one descriptor, which lives as long as the call.
    if unsafe { libc::poll(&raw mut ready, 1, PATIENCE_MS) } != 1 {
        line(log, format_args!("\n(the state of the server could not be had within {PATIENCE_MS} ms)\n"));
    }
    write(log, END.as_bytes());
}

/// Writes the stack of the calling thread; -1: nowhere.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn stack(log: c_int) {
    let mut frames = [ptr::null_mut::<c_void>(); FRAMES];
    // SAFETY: both calls keep to the frames that there is room for. Once libgcc is loaded they allocate nothing.
    unsafe {
        let count = libc::backtrace(frames.as_mut_ptr(), FRAMES as c_int);
        if log >= 0 {
            libc::backtrace_symbols_fd(frames.as_ptr(), count, log);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn stack(log: c_int) {
    if log >= 0 {
        line(log, format_args!("(this system has no call for it)\n"));
    }
}

/// Writes a line, cut off where it is too long.
fn line(log: c_int, text: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; LINE], len: 0 };
    // Text that does not fit is cut off.
    let _ = line.write_fmt(text);
    write(log, &line.bytes[..line.len]);
}

/// Text without memory of its own.
struct Line {
    bytes: [u8; LINE],
    len: usize,
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let taken = text.len().min(LINE - self.len);
        self.bytes[self.len..self.len + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.len += taken;
        Ok(())
    }
}

fn write(file: c_int, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the bytes are there for the time of the call.
        let written = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
        let Ok(written @ 1..) = usize::try_from(written) else { return };
        bytes = &bytes[written..];
    }
}
