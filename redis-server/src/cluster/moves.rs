//! Slots that move as a whole from one node to another, as in Valkey 9: the messages between both nodes, and the requests to and reports
//! from the code that owns the data.

use std::fmt;
use std::sync::Arc;

use super::{Millis, NodeId, SlotSet, parse_slot};
use crate::protocol::{encode_command, number};

/// Milliseconds from the request to take slots over until the permission is of no use any more. After that, and what clocks may
/// differ in running, what the target says of its slots is final.
pub const LEASE: Millis = 5000;

/// The messages between the two nodes of a move: `CLUSTER SYNCSLOTS` and these words. The epochs are ours; Valkey passes by what stands
/// behind its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// Either is alive.
    Ack,
    /// The source has sent all that the slots had.
    SnapshotEnd,
    /// The target has that, and asks the source to let nobody write.
    RequestPause,
    /// Writes are paused, and everything was sent.
    Paused,
    /// The target has all of that, and asks for the slots. It has seen this epoch.
    RequestFailover {
        /// The highest that it has seen.
        epoch: Option<u64>,
    },
    /// The slots are the target's, since this epoch.
    FailoverGranted {
        /// A new one, higher than either has seen.
        epoch: Option<u64>,
    },
}

impl Word {
    /// Parses the words behind `CLUSTER SYNCSLOTS`.
    pub fn parse<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let name = words.next()?.to_ascii_lowercase();
        let is_epoch = words.next().is_some_and(|word| word.eq_ignore_ascii_case(b"epoch"));
        let number = words.next().filter(|_| is_epoch).and_then(number::parse_i64);
        let epoch = number.and_then(|number| u64::try_from(number).ok());
        match name.as_slice() {
            b"ack" => Some(Self::Ack),
            b"snapshot-eof" => Some(Self::SnapshotEnd),
            b"request-pause" => Some(Self::RequestPause),
            b"paused" => Some(Self::Paused),
            b"request-failover" => Some(Self::RequestFailover { epoch }),
            b"failover-granted" => Some(Self::FailoverGranted { epoch }),
            _ => None,
        }
    }

    /// The command that says it.
    pub fn encode(self) -> Vec<u8> {
        let words = self.words();
        let words: Vec<&str> = ["CLUSTER", "SYNCSLOTS"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let mut bytes = Vec::new();
        encode_command(&mut bytes, words.iter().map(|word| word.as_bytes()));
        bytes
    }

    /// The same as words.
    fn words(self) -> Vec<String> {
        let (name, epoch) = match self {
            Self::Ack => ("ACK", None),
            Self::SnapshotEnd => ("SNAPSHOT-EOF", None),
            Self::RequestPause => ("REQUEST-PAUSE", None),
            Self::Paused => ("PAUSED", None),
            Self::RequestFailover { epoch } => ("REQUEST-FAILOVER", epoch),
            Self::FailoverGranted { epoch } => ("FAILOVER-GRANTED", epoch),
        };
        let epoch = epoch.into_iter().flat_map(|epoch| ["EPOCH".to_owned(), epoch.to_string()]);
        std::iter::once(name.to_owned()).chain(epoch).collect()
    }
}

/// Where the target of a move is, and what it is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// This node.
    pub source: NodeId,
    /// The target's address.
    pub ip: String,
    /// Its port without TLS; 0 if there is none.
    pub port: u16,
    /// Its port with TLS; 0 if there is none.
    pub tls_port: u16,
    /// The slots to move.
    pub slots: Arc<SlotSet>,
}

/// A request for the connection or the data of a move.
#[derive(Clone, Debug)]
pub enum Order {
    /// Source: connect to the target, and ask whether it takes the slots.
    Connect(Departure),
    /// Source: send what the slots have, and what is changed in them from then on.
    Send,
    /// Source: clients cannot write to the slots any more. When no write is under way either and all was sent, say
    /// [`Word::Paused`].
    Drain,
    /// Say this.
    Say(Word),
    /// End the connection.
    End,
    /// Target: arriving keys stay invisible.
    Hide(Arc<SlotSet>),
    /// Target, when nothing comes any more: all that has come is to go.
    Drop(Arc<SlotSet>),
    /// Target: nothing is hidden any more; replicas and the append-only file are told so.
    Settle(Settled),
}

/// How an import has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The slots that were moving.
    pub slots: Arc<SlotSet>,
    /// Whether it has arrived.
    pub is_success: bool,
    /// Why not, or nothing.
    pub message: String,
    /// Whether replicas and the append-only file must learn of it. A replica does not pass on what its primary sent.
    pub is_told: bool,
}

/// A report on a move from the code that owns its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Source: the connection is there.
    Connected,
    /// Source: the target takes the slots.
    Established,
    /// Source: all that the slots had is sent, and [`Word::SnapshotEnd`] behind it.
    Sent,
    /// The other one says this.
    Said(Word),
    /// The other one sends something.
    Alive,
    /// Source: of what is to be sent, so many bytes are left, and so many wait in all.
    Behind {
        /// Bytes that the last round of sending had.
        round: u64,
        /// Bytes of the stream that wait.
        waiting: u64,
    },
    /// It cannot go on.
    Failed(String),
    /// The connection has ended, or there has never been one.
    Ended,
    /// Target: nothing is left of what has come.
    Dropped,
}

/// A move, as operators see it (`CLUSTER GETSLOTMIGRATIONS`). Times are in milliseconds of Unix time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveInfo {
    /// Its name.
    pub name: NodeId,
    /// Whether the slots come here.
    pub is_import: bool,
    /// The slots to move.
    pub slots: Arc<SlotSet>,
    /// From whom to whom, where this node takes part.
    pub nodes: Option<(NodeId, NodeId)>,
    /// When it began.
    pub created: Millis,
    /// When its state has changed.
    pub updated: Millis,
    /// When the other one was heard.
    pub acknowledged: Millis,
    /// How far it is.
    pub state: &'static str,
    /// Why it has ended, or nothing.
    pub message: String,
}

/// Slots as Valkey writes them: `0-99 200-200`.
pub struct Ranges<'a>(pub &'a SlotSet);

impl fmt::Display for Ranges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.0.ranges().iter().enumerate() {
            let space = if at > 0 { " " } else { "" };
            write!(f, "{space}{}-{}", range.start(), range.end())?;
        }
        Ok(())
    }
}

/// Slots of ranges with two ends each, as [`Ranges`] writes them.
pub fn parse_ranges<'a>(words: impl Iterator<Item = &'a str>) -> Option<SlotSet> {
    let mut slots = SlotSet::EMPTY;
    for word in words {
        let (first, last) = word.split_once('-')?;
        let slot = |word: &str| parse_slot(word.as_bytes()).ok();
        let (first, last) = (slot(first)?, slot(last)?);
        if first > last {
            return None;
        }
        slots.add_range(first, last);
    }
    Some(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood_as_they_are_said() {
        let all = [
            Word::Ack,
            Word::SnapshotEnd,
            Word::RequestPause,
            Word::Paused,
            Word::RequestFailover { epoch: None },
            Word::RequestFailover { epoch: Some(7) },
            Word::FailoverGranted { epoch: None },
            Word::FailoverGranted { epoch: Some(i64::MAX as u64) },
        ];
        for word in all {
            let words = word.words();
            assert_eq!(Word::parse(words.iter().map(|word| word.as_bytes())), Some(word), "{words:?}");
        }
        let parse = |text: &str| Word::parse(text.split(' ').map(str::as_bytes));
        assert_eq!(parse("failover-granted epoch -1"), Some(Word::FailoverGranted { epoch: None }));
        assert_eq!(parse("failover-granted term 5"), Some(Word::FailoverGranted { epoch: None }));
        assert_eq!((parse("finish"), parse("")), (None, None));
    }

    #[test]
    fn ranges_have_two_ends() {
        let slots: SlotSet = [0, 1, 2, 9].into_iter().collect();
        assert_eq!(Ranges(&slots).to_string(), "0-2 9-9");
    }
}
