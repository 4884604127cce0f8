//! Why a node's sockets could not be opened.

use core::fmt;
use core::net::SocketAddr;
use std::io;
use std::string::String;
use std::vec::Vec;

use crate::controller::{Failure, PropertyError, RequestError};
use crate::node::Fault;

/// Why an endpoint could not be opened.
#[derive(Debug)]
pub enum BindError {
    /// Another program holds the port and does not share it.
    PortHeld {
        /// The address that was asked for.
        address: SocketAddr,
        /// `udp` or `tcp`.
        protocol: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// No interface of that name is up.
    NoInterface(String),
    /// No interface that is up has this address.
    NoAddress(core::net::IpAddr),
    /// Both families were refused, or none was asked for.
    NoFamily,
    /// The node has faults; [`Builder::validate`](super::Builder::validate) says whether that matters.
    Faulty(Vec<Fault>),
    /// A call failed.
    Io {
        /// The attempted action.
        doing: &'static str,
        /// To which address.
        address: Option<SocketAddr>,
        /// The kernel's error.
        source: io::Error,
    },
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PortHeld { address, protocol, .. } => {
                let (port, flag) = (address.port(), if *protocol == "udp" { 'u' } else { 't' });
                write!(
                    f,
                    "{protocol} port {port} on {} is held by another program that does not share it; \
                     find it by: ss -{flag}lpn 'sport = :{port}'",
                    address.ip()
                )
            }
            Self::NoInterface(name) => write!(f, "no interface named {name} is up; list them by: ip -brief address"),
            Self::NoAddress(address) => {
                write!(f, "no interface that is up has the address {address}; list them by: ip -brief address")
            }
            Self::NoFamily => f.write_str("neither IPv4 nor IPv6 was asked for or can be used on this machine"),
            Self::Faulty(faults) => {
                f.write_str("the node would not pass a certification (`validate(false)` serves it all the same):")?;
                faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
            }
            Self::Io { doing, address: Some(address), source } => write!(f, "{doing} {address}: {source}"),
            Self::Io { doing, address: None, source } => write!(f, "{doing}: {source}"),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::PortHeld { source, .. } | Self::Io { source, .. } => Some(source),
            Self::NoInterface(_) | Self::NoAddress(_) | Self::NoFamily | Self::Faulty(_) => None,
        }
    }
}

impl From<BindError> for io::Error {
    fn from(error: BindError) -> Self {
        let kind = match &error {
            BindError::PortHeld { .. } => io::ErrorKind::AddrInUse,
            BindError::NoInterface(_) => io::ErrorKind::NotFound,
            BindError::NoAddress(_) => io::ErrorKind::AddrNotAvailable,
            BindError::NoFamily => io::ErrorKind::Unsupported,
            BindError::Faulty(_) => io::ErrorKind::InvalidInput,
            BindError::Io { source, .. } => source.kind(),
        };
        Self::new(kind, error)
    }
}

/// Why a request came to nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// It was never sent.
    Refused(RequestError),
    /// It was sent.
    Failed(Failure),
    /// The object gave no value of the type that was asked for, or did not take it.
    Property(PropertyError),
    /// The endpoint has ended, or the runtime that it ran on.
    Closed,
    /// An object called the endpoint that serves it, which waits for that object: it would have waited for ever.
    Reentered,
    /// The system would not let us wait.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
            Self::Property(error) => error.fmt(f),
            Self::Closed => f.write_str("the endpoint has ended"),
            Self::Reentered => f.write_str("an object called the endpoint that serves it"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused(error) => Some(error),
            Self::Failed(failure) => Some(failure),
            Self::Io(error) => Some(error),
            Self::Property(error) => Some(error),
            Self::Closed | Self::Reentered => None,
        }
    }
}

impl From<PropertyError> for Error {
    fn from(error: PropertyError) -> Self {
        Self::Property(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
