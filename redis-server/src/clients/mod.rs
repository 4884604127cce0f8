//! Clients: their sessions, what they have subscribed to and read, and who they are.

pub mod acl;
pub mod client;
pub mod notifications;
pub mod output_limit;
pub mod pubsub;
pub mod tracking;
