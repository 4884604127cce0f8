//! The events of the driver.

use core::fmt;
use core::net::SocketAddrV6;
use core::time::Duration;

use super::Pan;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The module answers, and this is its firmware.
    Version(Version),
    /// A scan of this duration began.
    Scanning(u8),
    /// A scan found this network; worth keeping for [`Config::pan`](super::Config::pan).
    Found(Pan),
    /// Authentication with the meter of this network began.
    Joining(Pan),
    /// The session stands: datagrams can be sent to this address.
    Joined(SocketAddrV6),
    /// A datagram came from the meter.
    Received(Datagram<'a>),
    /// The datagram given to [`Skstack::send`](super::Skstack::send) went out.
    Sent,
    /// The datagram did not go out.
    NotSent(Cause),
    /// The module used up the air time that the law allows and does not send for now.
    Limited,
    /// The module may send again.
    Unlimited,
    /// The session ended; the driver joins again by itself.
    Lost(Loss),
    /// A step failed for good; see [`Failure::retry_in`] for what the driver does.
    Failed(Failure),
}

/// A datagram from the meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The sender.
    pub from: SocketAddrV6,
    /// Whether it was sent to a group.
    pub multicast: bool,
    /// The payload.
    pub payload: &'a [u8],
}

/// The version of a module's firmware, as it says it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Version {
    text: [u8; 16],
    length: u8,
}

impl Version {
    pub(crate) fn new(text: &str) -> Self {
        let mut version = Self { text: [0; 16], length: 0 };
        for (slot, byte) in version.text.iter_mut().zip(text.bytes().filter(u8::is_ascii_graphic)) {
            *slot = byte;
            version.length += 1;
        }
        version
    }

    /// The text, such as `1.2.10`.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.text[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its lifetime passed (event 29).
    Expired,
    /// The meter ended it (events 26, 27, 28).
    Closed,
    /// Its renewal failed (event 24).
    NotRenewed,
    /// Nothing sent arrives any more.
    Unreachable,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the session's lifetime passed",
            Self::Closed => "the meter ended the session",
            Self::NotRenewed => "the meter did not renew the session",
            Self::Unreachable => "nothing sent reaches the meter any more",
        })
    }
}

/// The steps from a silent module to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing begun, or a pause before the next attempt.
    Idle,
    /// `SKRESET`.
    Reset,
    /// `SKSREG SFE 0`: no echoes.
    EchoOff,
    /// `SKVER`.
    Version,
    /// `ROPT`: how payloads come.
    ReadMode,
    /// `WOPT`.
    WriteMode,
    /// `SKSETPWD`.
    Password,
    /// `SKSETRBID`.
    Id,
    /// `SKSCAN`, up to event 22.
    Scan,
    /// `SKLL64`: MAC address to IPv6 address.
    Address,
    /// `SKSREG S2`.
    Channel,
    /// `SKSREG S3`.
    PanId,
    /// `SKJOIN`, up to event 25.
    Join,
    /// The session stands.
    Session,
}

impl Step {
    /// The action of the step, to follow "could not" and "while trying to".
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Idle => "wait",
            Self::Reset => "reset the module",
            Self::EchoOff => "switch the module's echo off",
            Self::Version => "ask the module for its version",
            Self::ReadMode => "ask the module for its payload form",
            Self::WriteMode => "set the module's payload form",
            Self::Password => "set the Route-B password",
            Self::Id => "set the Route-B id",
            Self::Scan => "find the meter",
            Self::Address => "turn the meter's MAC address into an IPv6 address",
            Self::Channel => "set the channel",
            Self::PanId => "set the network number",
            Self::Join => "join the meter's network",
            Self::Session => "send to the meter",
        }
    }
}

/// A step that failed, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub step: Step,
    /// Why.
    pub cause: Cause,
    /// When the driver tries again; `None`: never, as it would fail again.
    pub retry_in: Option<Duration>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}: {}", self.step.describe(), self.cause)
    }
}

impl core::error::Error for Failure {}

/// Why something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The module did not answer.
    Silent,
    /// The module refused the command.
    Refused(FailCode),
    /// No scan found a meter that knows this id.
    NoMeter,
    /// The meter did not accept the id and password, or did not answer (event 24).
    NotAdmitted,
    /// The module could not transmit (event 21 with 01): no acknowledgement, or the air was busy.
    NotTransmitted,
    /// The session ended before.
    SessionLost,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent => f.write_str("the module does not answer (check port, speed and power)"),
            Self::Refused(code) => write!(f, "the module refused: {code}"),
            Self::NoMeter => f.write_str("no meter for this Route-B id is in reach"),
            Self::NotAdmitted => {
                f.write_str("the meter did not admit us (check Route-B id and password, and the reception)")
            }
            Self::NotTransmitted => f.write_str("the radio could not transmit"),
            Self::SessionLost => f.write_str("the session ended"),
        }
    }
}

impl core::error::Error for Cause {}

/// The number in `FAIL ERxx`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FailCode(u8);

impl FailCode {
    /// ER04: this firmware does not have the command.
    pub const UNSUPPORTED: Self = Self(4);
    /// ER05: too few or too many arguments.
    pub const ARGUMENT_COUNT: Self = Self(5);
    /// ER06: an argument's form or range.
    pub const ARGUMENT: Self = Self(6);
    /// ER09: noise on the serial line.
    pub const INPUT: Self = Self(9);
    /// ER10: understood, but not possible now.
    pub const EXECUTION: Self = Self(10);

    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.strip_prefix("ER")?.parse().ok().map(Self)
    }

    /// The number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Whether the same command would fail again.
    pub(crate) const fn is_final(self) -> bool {
        matches!(self, Self::UNSUPPORTED | Self::ARGUMENT_COUNT | Self::ARGUMENT)
    }
}

impl fmt::Display for FailCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Self::UNSUPPORTED => "the firmware does not have this command",
            Self::ARGUMENT_COUNT => "wrong number of arguments (is it another type of module?)",
            Self::ARGUMENT => "an argument's form or range is wrong",
            Self::INPUT => "noise on the serial line",
            Self::EXECUTION => "the command could not be carried out",
            Self(_) => "reserved error",
        };
        write!(f, "ER{:02}, {text}", self.0)
    }
}

impl fmt::Debug for FailCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ER{:02}", self.0)
    }
}
