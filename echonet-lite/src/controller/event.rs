//! The events of a controller.

use std::string::String;

use super::{Answer, Failure, NodeAddr, Notification, RequestId};

/// News from a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A request to one object has ended.
    Done {
        /// Which one.
        id: RequestId,
        /// The answer, or why there is none.
        result: Result<Answer, Failure>,
    },
    /// An answer to a request to several: all nodes, or all instances of a class. There may be more.
    Gathered {
        /// The request.
        id: RequestId,
        /// The answer of one object.
        answer: Answer,
    },
    /// A request to several has ended: its time is over.
    GatheringEnded {
        /// The request.
        id: RequestId,
        /// How many objects have answered.
        answers: u32,
    },
    /// A node told its news. One that comes twice is delivered once.
    Notification(Notification),
    /// A node that was not known.
    NodeFound(NodeAddr),
    /// A known node announced itself: it started, or its address changed. The controller forgets the facts about it
    /// that can have changed.
    NodeAnnounced(NodeAddr),
    /// The objects of a node are not those that were known.
    NodeChanged(NodeAddr),
    /// The facts about a node that [`Config::interview`](super::Config::interview) asks for are known.
    NodeReady(NodeAddr),
    /// By its identification number and its objects, the node found at `addr` is the node that is known at `node`: one
    /// node with addresses of both families. Messages from `addr` count as messages from `node` from now on. A message
    /// that comes from both counts once.
    NodeJoined {
        /// The node.
        node: NodeAddr,
        /// A further address of it.
        addr: NodeAddr,
    },
    /// A node that was heard before does not answer any more, at any of its addresses.
    NodeLost(NodeAddr),
    /// A node that was lost is heard again.
    NodeReturned(NodeAddr),
    /// At the address of a known node there is another one: it tells another identity ([`NodeId`](super::NodeId)). The
    /// controller forgets the node that was known at this address; [`Self::NodeReady`] follows when the new one is
    /// known.
    NodeReplaced(NodeAddr),
    /// By its identification number a node seems to be at another address now. Nothing is diverted: there are makers who
    /// give all their devices the same number. The node at the old address is asked again who it is.
    NodeMoved {
        /// Where it was.
        from: NodeAddr,
        /// Where it is.
        to: NodeAddr,
    },
    /// An object that this program serves panicked. The request that called it gets no answer, and the node goes on.
    ObjectPanicked {
        /// The message of the panic.
        message: String,
    },
    /// So many messages came from nodes for which there is no place, and were dropped: see
    /// [`Config::max_nodes`](super::Config::max_nodes).
    CrowdedOut(u64),
    /// So many events were not taken in time, and were dropped.
    Missed(u64),
}
