//! How far the interview of a node is.

use crate::wire::Eoj;

/// How far the interview of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not begun, ended, or broken off.
    Idle,
    /// In the line for its next step.
    Waiting(Step),
    /// Asked.
    Asked,
}

/// The next request to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The identity of the node, and its list of instances.
    Profile,
    /// The serial number of a node that has no identification number.
    Serial,
    /// An announcement of its instances, which can name more than a list that is read.
    MoreInstances,
    /// The property maps of an object.
    Maps(Eoj),
}
