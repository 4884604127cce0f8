//! What a controller has to say.

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
    /// A known node announced itself: it started, or its address changed. What was remembered of it that can have
    /// changed is forgotten.
    NodeAnnounced(NodeAddr),
    /// The objects of a node are not those that were known.
    NodeChanged(NodeAddr),
    /// What [`Config::interview`](super::Config::interview) asks for is known about a node.
    NodeReady(NodeAddr),
    /// By its identification number a node seems to be at another address now. Nothing is diverted: there are makers who
    /// give all their devices the same number.
    NodeMoved {
        /// Where it was.
        from: NodeAddr,
        /// Where it is.
        to: NodeAddr,
    },
    /// Events that nobody took in time were dropped.
    Missed(u64),
}
