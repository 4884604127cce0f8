//! WebSockets (RFC 6455) for applications, with the calls of `axum::extract::ws`: a router changes one `use` line.
//!
//! ```
//! use axum::{Router, routing::any};
//! use serve::websocket::{WebSocket, WebSocketUpgrade};
//!
//! async fn echo(mut socket: WebSocket) {
//!     while let Some(Ok(message)) = socket.recv().await {
//!         if socket.send(message).await.is_err() {
//!             break;
//!         }
//!     }
//! }
//!
//! let router: Router = Router::new().route("/ws", any(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(echo) }));
//! ```

pub mod codec;

pub use axum::extract::ws::{CloseCode, CloseFrame, Message, Utf8Bytes, close_code};
pub use codec::deflate::Compression;

pub use crate::engine::websocket::{Rejection, WebSocket, WebSocketUpgrade};
