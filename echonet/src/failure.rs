//! Why the command did not do what it was asked to, and the exit codes for it.

use std::fmt;
use std::io;
use std::process::ExitCode;

use echonet_lite::net::{BindError, Error};

/// Anything that no other code is for, and the wrong use of options.
pub(crate) const OTHER: u8 = 1;
const INPUT: u8 = 2;
const NO_ANSWER: u8 = 3;
const REFUSED: u8 = 4;
const NETWORK: u8 = 5;
/// 128 and the number of SIGINT, as shells have it.
const INTERRUPTED: u8 = 130;

/// The text of `--help` about the exit codes.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  wrong usage, or a failure that no other code is for
  2  bad input: an unknown name, a value out of range, bytes that are no frame
  3  no answer in time, or nothing found
  4  the node refused (SNA)
  5  the network cannot be used: port 3610 is held, or there is no such address";

/// Why the command did not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input makes no sense.
    Input(String),
    /// No node answered.
    NoAnswer(String),
    /// A node answered that it does not.
    Refused(String),
    /// The sockets could not be opened.
    Network(String),
    /// Reading or writing failed.
    Io(io::Error),
    /// The user wanted it to end.
    Interrupted,
}

impl Failure {
    /// Tells the user, and the shell.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            // The reader of the output has closed it.
            Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
            Self::Interrupted => {}
            failure => eprintln!("error: {failure}"),
        }
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Self::Input(_) => INPUT,
            Self::NoAnswer(_) => NO_ANSWER,
            Self::Refused(_) => REFUSED,
            Self::Network(_) => NETWORK,
            Self::Io(_) => OTHER,
            Self::Interrupted => INTERRUPTED,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(text) | Self::NoAnswer(text) | Self::Refused(text) | Self::Network(text) => f.write_str(text),
            Self::Io(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        match error {
            BindError::NoInterface(_) => Self::Input(error.to_string()),
            _ => Self::Network(error.to_string()),
        }
    }
}

/// The failure of a request to a node that is named for the user.
pub(crate) fn of_request(error: Error, node: impl fmt::Display) -> Failure {
    match error {
        Error::Refused(error) => Failure::Input(error.to_string()),
        Error::Failed(failure) => Failure::NoAnswer(format!("{node}: {failure}")),
        Error::Io(error) => Failure::Io(error),
        error => Failure::Network(error.to_string()),
    }
}
