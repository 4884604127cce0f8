//! Requests of a node to the code that owns sockets, files and data.

use std::sync::Arc;

use bytes::Bytes;

use super::moves::Order;
use super::{NodeId, Routing, SlotSet};

/// Milliseconds of Unix time, by a clock that never runs back.
pub type Millis = u64;

/// A connection to another node's bus port, or from one to ours. Numbers are not used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u64);

/// Something that is to be done. Actions must run in order: a packet must not leave before a file that an earlier action saves is written.
#[derive(Clone, Debug)]
pub enum Action {
    /// Connect to a bus port; then say that the link is open, or closed.
    Connect {
        /// Its name from now on.
        link: Link,
        /// An address, never a host's name.
        ip: String,
        /// The bus port.
        port: u16,
    },
    /// Send bytes, in order. If they cannot be sent, the link is closed.
    Send {
        /// To whom.
        link: Link,
        /// A whole packet.
        bytes: Bytes,
    },
    /// Close a link, of which nothing more is to be said.
    Close {
        /// Which one.
        link: Link,
    },
    /// Replace the file of the cluster's state.
    Save {
        /// All of it.
        text: String,
        /// Whether it must be on disk, not only written, before what comes next is done.
        sync: bool,
    },
    /// Follow a primary, instead of whom was followed or none.
    Follow {
        /// Its address.
        ip: String,
        /// Its port without TLS; 0 if there is none.
        port: u16,
        /// Its port with TLS; 0 if there is none.
        tls_port: u16,
    },
    /// Be a primary: follow nobody any more, and keep the data.
    Promote,
    /// Delete all data (`CLUSTER RESET` of a replica).
    DeleteAll,
    /// Let no client write until then: a replica is about to take over.
    PauseWrites {
        /// Names this pause.
        number: u64,
        /// When it ends of its own accord.
        until: Millis,
    },
    /// Let clients write again.
    ResumeWrites,
    /// From now on this is who serves what.
    Route(Arc<Routing>),
    /// Slots have gone to others.
    SlotsLost {
        /// Which ones.
        slots: Box<SlotSet>,
        /// Whether their keys must go; otherwise all data is replaced by a primary's, or there is none.
        delete_keys: bool,
    },
    /// Give a message to subscribers here.
    Publish {
        /// The channel.
        channel: Bytes,
        /// The message.
        message: Bytes,
        /// Whether it is for subscribers of shard channels.
        is_sharded: bool,
    },
    /// Something for slots that move as a whole.
    Move {
        /// The move's name.
        name: NodeId,
        /// The request.
        order: Order,
    },
    /// A line for the log.
    Log(Level, String),
}

/// How much a line in the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For those who look for a fault in the cluster.
    Debug,
    /// Ordinary, and often.
    Verbose,
    /// Interesting to operators.
    Notice,
    /// Needs an operator's attention.
    Warning,
}

/// Facts that only the owner of the data knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The replication offset: that of the last change, or of the data received from the primary.
    pub offset: u64,
    /// How the primary is heard.
    pub primary_link: PrimaryLink,
    /// Whether a data set is being loaded.
    pub is_loading: bool,
    /// Whether the data is another server's still, or again.
    pub follows: bool,
}

/// How a replica hears its primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrimaryLink {
    /// It has not been heard since the start, or there is none.
    #[default]
    Never,
    /// The stream comes.
    Up {
        /// When something came last.
        heard_at: Millis,
    },
    /// The stream has been lost.
    Down {
        /// When.
        since: Millis,
    },
}
