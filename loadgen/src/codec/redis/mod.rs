//! Redis: RESP2 and RESP3 (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).

mod cluster;
mod command;
mod login;
mod pubsub;
mod reply;
mod slot;
mod standalone;
mod topology;
mod value;

pub(crate) use cluster::Map;
pub use cluster::{ClusterConnection, RedisCluster};
pub use command::RedisCommand;
pub(crate) use command::append_request;
pub use login::Login;
pub use pubsub::{PubSub, PubSubConnection, PubSubSettings};
pub use standalone::{Redis, RedisConnection};
pub(crate) use topology::{SlotRange, of_shards, of_slots};
pub(crate) use value::Value;
