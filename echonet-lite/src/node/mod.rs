//! The device side of a node, without sockets and clocks.
