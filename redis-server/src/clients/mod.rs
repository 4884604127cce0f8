//! Clients: their sessions, subscriptions, tracked keys and identities.

pub mod acl;
pub mod client;
pub mod notifications;
pub mod output_limit;
pub mod pubsub;
pub mod tracking;
