//! Protocols as bytes: what is sent for a request, and what an answer's bytes mean. No sockets, no clock.
//!
//! A [`Protocol`] is shared by all threads of a run and does not change; what one connection must remember (the requests in
//! flight, a parser's state) is its [`Protocol::Connection`].

pub mod echonet;
mod exchange;
mod fifo;
mod flows;
pub mod grpc;
pub mod h2;
#[cfg(feature = "http3")]
mod h3;
mod http1;
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod operations;
mod protocol;
mod redis;
mod routes;
mod websocket;

pub use exchange::HttpExchange;
pub use flows::{FlowUser, Flows};
pub(crate) use http1::head::unfolded;
pub use http1::{Http1, Http1Connection, HttpRequest};
pub use http2::{Http2, Http2Connection};
#[cfg(feature = "http3")]
pub use http3::{Http3, Http3Connection};
use protocol::shown;
pub use protocol::{Broken, Protocol, Received};
pub use redis::{
    ClusterConnection, Login, PubSub, PubSubConnection, PubSubSettings, Redis, RedisCluster, RedisCommand,
    RedisConnection,
};
pub(crate) use redis::{Map, SlotRange, Value, append_request, of_shards, of_slots};
pub use routes::{Drawn, Routes};
pub use websocket::{WebSocket, WebSocketConnection};
