//! Sockets for nodes and controllers: tokio and blocking.
