//! The requesting side of a node, without sockets and clocks.
