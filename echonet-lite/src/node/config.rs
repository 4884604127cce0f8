//! The settings of a node.

use core::time::Duration;

/// The maker of the node, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Identity {
    /// Manufacturer code that the ECHONET Consortium gives (0x8A).
    pub maker: [u8; 3],
    /// The number that tells this node from all others of the maker: the last 13 bytes of its identification number
    /// (0x83).
    pub unique: [u8; 13],
}

impl Identity {
    /// From the maker's code and a serial number, or a MAC address in a number.
    pub const fn new(maker: [u8; 3], serial: u64) -> Self {
        let (serial, mut unique) = (serial.to_be_bytes(), [0; 13]);
        let mut i = 0;
        while i < serial.len() {
            unique[5 + i] = serial[i];
            i += 1;
        }
        Self { maker, unique }
    }

    /// The identification number, property 0x83 of the node profile: FE, maker, 13 bytes.
    pub const fn number(&self) -> [u8; 17] {
        let mut number = [0; 17];
        number[0] = 0xFE;
        let mut i = 0;
        while i < 16 {
            number[1 + i] = if i < 3 { self.maker[i] } else { self.unique[i - 3] };
            i += 1;
        }
        number
    }
}

/// Where answers go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum AnswerPort {
    /// To port 3610 of the sender, as the specification has it (Part II, 1.3).
    #[default]
    Standard,
    /// To the port that the request came from: for tools, tests and peers behind a translation of addresses.
    Source,
}

/// The treatment of SetGet by a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SetGet {
    /// Writes, then reads.
    #[default]
    Supported,
    /// Answers SetGet_SNA with two empty lists.
    Refused,
}

/// The announcement of more instances than the 84 that one value can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ManyInstances {
    /// Announces the first 84.
    #[default]
    First84,
    /// Announces all, in as many properties 0xD5 of one message as they need and fit.
    RepeatedD5,
}

/// Whether the node can receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Profile {
    /// 0EF001: sends and receives.
    #[default]
    General,
    /// 0EF002: only announces and notifies; nothing is ever answered.
    SendOnly,
}

/// The settings of a node. Begin with [`Config::new`] and change what should differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The maker of the node, and its number there.
    pub identity: Identity,
    /// Seed of the random delays; any number, different on each node.
    pub seed: u64,
    /// Transaction identifier before the first of the node's own messages. Another in each life, if there is anything
    /// to draw it from: with the same ones, peers take the first messages of a new life for copies of those of the last
    /// one. `net` draws it.
    pub first_tid: u16,
    /// Whether the node can receive.
    pub profile: Profile,
    /// Where answers go.
    pub answer_port: AnswerPort,
    /// The treatment of SetGet.
    pub set_get: SetGet,
    /// The announcement of more than 84 instances.
    pub many_instances: ManyInstances,
    /// Most that an answer to a multicast request waits; the delay is random. Zero answers at once.
    pub multicast_delay: Duration,
    /// How long an INFC waits for its answer before it is sent again.
    pub infc_timeout: Duration,
    /// How often an INFC is sent at most, 0 as 1.
    pub infc_attempts: u8,
}

impl Config {
    /// A general node by the specification: answers to port 3610, SetGet, up to 500 ms before answering multicast, INFC
    /// three times 5 s apart.
    pub const fn new(identity: Identity) -> Self {
        let [.., a, b, c, d, e, f, g, h] = identity.unique;
        Self {
            identity,
            seed: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            first_tid: 0,
            profile: Profile::General,
            answer_port: AnswerPort::Standard,
            set_get: SetGet::Supported,
            many_instances: ManyInstances::First84,
            multicast_delay: Duration::from_millis(500),
            infc_timeout: Duration::from_secs(5),
            infc_attempts: 3,
        }
    }
}
