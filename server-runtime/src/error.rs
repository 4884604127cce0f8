//! Why a server did not start.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a server did not start, or a new certificate was not taken. The text says what to do about it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No place to listen was given.
    NowhereToListen,
    /// A TLS place was given without a certificate.
    TlsWithoutCertificate,
    /// The place cannot be listened on.
    Listen {
        /// The place, as [`Listen`](crate::Listen) shows it.
        place: String,
        /// The system's error.
        source: io::Error,
    },
    /// The Unix socket's path holds something that is not a dead socket.
    UnixPathTaken {
        /// The path.
        path: PathBuf,
        /// Whether a server answers there; otherwise it is no socket.
        in_use: bool,
    },
    /// A certificate or key file cannot be used.
    TlsFile {
        /// The file.
        path: PathBuf,
        /// The fault in it.
        reason: String,
    },
    /// The certificate files do not fit together.
    Tls(String),
    /// A thread or its runtime could not be made, or ended before it was ready.
    Thread {
        /// The thread's name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The log cannot be set up.
    Log(String),
    /// Flags that do not fit together.
    Flags(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NowhereToListen => f.write_str("nowhere to listen: give at least one address or Unix socket"),
            Self::TlsWithoutCertificate => {
                f.write_str("a TLS address needs a certificate and its key: give both files, or listen without tls:")
            }
            Self::Listen { place, source } => {
                write!(f, "cannot listen on {place}: {source}")?;
                f.write_str(match source.kind() {
                    io::ErrorKind::AddrInUse => {
                        "; stop the program that uses it, or choose another port (0 picks a free one)"
                    }
                    io::ErrorKind::AddrNotAvailable => {
                        "; choose an address of this machine, or 0.0.0.0 or [::] for all"
                    }
                    io::ErrorKind::PermissionDenied => "; choose a port from 1024 up, or a place you may write to",
                    io::ErrorKind::NotFound => "; create the folder first",
                    _ => "",
                })
            }
            Self::UnixPathTaken { path, in_use: true } => {
                write!(
                    f,
                    "cannot listen on {}: another server answers there; stop it or choose another path",
                    path.display()
                )
            }
            Self::UnixPathTaken { path, in_use: false } => {
                write!(f, "cannot listen on {}: the file exists and is no socket; choose another path", path.display())
            }
            Self::TlsFile { path, reason } => write!(f, "TLS file {}: {reason}", path.display()),
            Self::Tls(reason) => write!(f, "TLS: {reason}"),
            Self::Thread { name, source } => write!(f, "cannot run the thread {name}: {source}"),
            Self::Log(reason) => write!(f, "log: {reason}"),
            Self::Flags(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { source, .. } | Self::Thread { source, .. } => Some(source),
            Self::NowhereToListen
            | Self::TlsWithoutCertificate
            | Self::UnixPathTaken { .. }
            | Self::TlsFile { .. }
            | Self::Tls(_)
            | Self::Log(_)
            | Self::Flags(_) => None,
        }
    }
}
