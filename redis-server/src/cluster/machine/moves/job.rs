//! The moves of a node, each at some stage.

use std::sync::Arc;

use crate::cluster::moves::{MoveInfo, parse_ranges};
use crate::cluster::{Millis, NodeId, SlotSet};

/// The largest drift between the clocks of two nodes while a permission is valid.
pub(in crate::cluster::machine) const SLACK: Millis = 1000;

/// How far a move is. States have Valkey's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cluster::machine) enum Stage {
    // Of the source.
    Connecting,
    Establishing,
    Snapshotting,
    Streaming,
    WaitingToPause,
    /// Until then.
    Paused(Millis),
    /// The slots are let go, with this epoch. Behind `lapsed` the target is asked, if it says nothing.
    Granted {
        epoch: u64,
        lapsed: Millis,
        is_asked: bool,
        /// When it has answered that it has them not, in an epoch in which it may have had them.
        denied: Option<Millis>,
    },
    // Of the target.
    WaitingForAck,
    ReceivingSnapshot,
    WaitingForPaused,
    /// Permission is of use until then.
    FailoverRequested(Millis),
    /// The imported keys are deleted once the connection is closed.
    Stopping,
    CleaningUp,
    /// Of the target's replicas, and of a node that starts with the target's data.
    OnPrimary,
    // It is over.
    Succeeded,
    Cancelled,
    Failed,
}

impl Stage {
    pub(in crate::cluster::machine) fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Establishing => "reading-establish-response",
            Self::Snapshotting => "snapshotting",
            Self::Streaming => "replicating",
            Self::WaitingToPause => "waiting-to-pause",
            Self::Paused(_) => "failover-paused",
            Self::Granted { .. } => "failover-granted",
            Self::WaitingForAck => "waiting-for-ack",
            Self::ReceivingSnapshot => "receiving-snapshot",
            Self::WaitingForPaused => "waiting-for-paused",
            Self::FailoverRequested(_) => "failover-requested",
            Self::Stopping | Self::CleaningUp => "cleaning-up",
            Self::OnPrimary => "occurring-on-primary",
            Self::Succeeded => "success",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    pub(in crate::cluster::machine) fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Cancelled | Self::Failed)
    }

    /// Whether the slots may still change hands by it.
    pub(in crate::cluster::machine) fn is_under_way(self) -> bool {
        !self.is_over() && !matches!(self, Self::Stopping | Self::CleaningUp)
    }

    /// Whether this node and another one do it.
    pub(in crate::cluster::machine) fn is_own(self) -> bool {
        self.is_under_way() && self != Self::OnPrimary
    }

    /// Whether there is something to be said on its connection.
    pub(in crate::cluster::machine) fn acknowledges(self) -> bool {
        self.is_own() && !matches!(self, Self::Connecting | Self::Establishing | Self::WaitingForAck)
    }
}

/// A move, from this node's side.
#[derive(Clone, Debug)]
pub(in crate::cluster::machine) struct Job {
    pub(in crate::cluster::machine) name: NodeId,
    pub(in crate::cluster::machine) is_import: bool,
    pub(in crate::cluster::machine) slots: Arc<SlotSet>,
    /// From whom to whom; none if this node only knows of it.
    pub(in crate::cluster::machine) nodes: Option<(NodeId, NodeId)>,
    pub(in crate::cluster::machine) stage: Stage,
    pub(in crate::cluster::machine) created: Millis,
    pub(in crate::cluster::machine) updated: Millis,
    /// When the other one was heard, and when it was told something.
    pub(in crate::cluster::machine) acknowledged: Millis,
    pub(in crate::cluster::machine) told: Millis,
    pub(in crate::cluster::machine) message: String,
}

impl Job {
    pub(in crate::cluster::machine) fn new(
        name: NodeId,
        is_import: bool,
        slots: SlotSet,
        nodes: Option<(NodeId, NodeId)>,
        now: Millis,
    ) -> Self {
        let stage = match (is_import, nodes) {
            (false, _) => Stage::Connecting,
            (true, Some(_)) => Stage::WaitingForAck,
            (true, None) => Stage::OnPrimary,
        };
        Self {
            name,
            is_import,
            slots: Arc::new(slots),
            nodes,
            stage,
            created: now,
            updated: now,
            acknowledged: now,
            told: now,
            message: String::new(),
        }
    }

    pub(in crate::cluster::machine) fn info(&self) -> MoveInfo {
        MoveInfo {
            name: self.name,
            is_import: self.is_import,
            slots: Arc::clone(&self.slots),
            nodes: self.nodes,
            created: self.created,
            updated: self.updated,
            acknowledged: self.acknowledged,
            state: self.stage.name(),
            message: self.message.clone(),
        }
    }
}

/// All moves that are under way, and the last ones that are over; the oldest first.
#[derive(Clone, Debug, Default)]
pub(in crate::cluster::machine) struct Moves(pub(super) Vec<Job>);

impl Moves {
    pub(in crate::cluster::machine) fn find(&self, name: NodeId) -> Option<usize> {
        self.0.iter().position(|job| job.name == name)
    }

    pub(in crate::cluster::machine) fn places(&self, is: impl Fn(&Job) -> bool) -> Vec<usize> {
        (0..self.0.len()).filter(|at| is(&self.0[*at])).collect()
    }

    /// Whether slots are let go of which it is not known yet who has them: the epoch of what is left must not rise meanwhile,
    /// or the target's claim would be older.
    pub(in crate::cluster::machine) fn are_letting_go(&self) -> bool {
        self.0.iter().any(|job| matches!(job.stage, Stage::Granted { .. }))
    }

    /// Slots to which nobody writes, and until when clients are held that want to.
    pub(in crate::cluster::machine) fn held(&self) -> (SlotSet, Millis) {
        let (mut slots, mut until) = (SlotSet::EMPTY, 0);
        for job in &self.0 {
            let end = match job.stage {
                Stage::Paused(end) => end,
                Stage::Granted { lapsed, .. } => lapsed,
                _ => continue,
            };
            until = until.max(end);
            job.slots.iter().for_each(|slot| _ = slots.add(slot));
        }
        (slots, until)
    }
}

/// A move whose slots are let go: `name,target,epoch,first-last,…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cluster::machine) struct LetGo {
    pub(in crate::cluster::machine) name: NodeId,
    pub(in crate::cluster::machine) target: NodeId,
    pub(in crate::cluster::machine) epoch: u64,
    pub(in crate::cluster::machine) slots: SlotSet,
}

impl LetGo {
    pub(in crate::cluster::machine) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(',');
        let mut id = || NodeId::parse(words.next()?.as_bytes());
        let (name, target) = (id()?, id()?);
        let epoch = words.next()?.parse().ok()?;
        Some(Self { name, target, epoch, slots: parse_ranges(words)? })
    }
}
