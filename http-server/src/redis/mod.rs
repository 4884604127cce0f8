//! Redis over HTTP.

use axum::Router;
use server_runtime::metrics::Registry;

/// Flags of the Redis routes.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Redis")]
pub struct RedisArgs {}

/// All routes that need a Redis. They are merged with [`routes::router`](crate::routes::router); handlers run on their
/// worker's thread, so what belongs to a worker may be kept in a thread-local, and `tokio::task::spawn_local` works there.
///
/// # Errors
/// When the flags name something that cannot be had.
pub fn routes(_args: &RedisArgs, _metrics: &Registry) -> anyhow::Result<Router> {
    Ok(Router::new())
}
