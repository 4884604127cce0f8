//! The options of a Redis connection's first words.

use clap::Args;

use super::{Invalid, Target};
use crate::codec::Login;

/// Heading of these options.
pub(super) const LOGIN: &str = "Login";

/// The first commands of a Redis connection.
#[derive(Args, Clone, Debug)]
pub struct LoginArgs {
    /// Speak RESP3
    #[arg(short = '3', long, help_heading = LOGIN)]
    pub resp3: bool,

    /// The user, where it is not `default`
    #[arg(long, value_name = "NAME", requires = "password", help_heading = LOGIN)]
    pub user: Option<String>,

    /// The password
    #[arg(short = 'a', long, value_name = "PASSWORD", env = "REDISCLI_AUTH", hide_env_values = true, help_heading = LOGIN)]
    pub password: Option<String>,

    /// The database
    #[arg(long, value_name = "N", help_heading = LOGIN)]
    pub database: Option<u32>,
}

impl LoginArgs {
    /// The login of the options, or else of the target's URL.
    pub(super) fn login(&self, target: &Target) -> Result<Login, Invalid> {
        let (url_user, url_password) = match &target.login {
            Some((user, password)) if password.is_empty() => (None, Some(user.clone())),
            Some((user, password)) => (Some(user.clone()).filter(|user| !user.is_empty()), Some(password.clone())),
            None => (None, None),
        };
        let path = target.path.trim_start_matches('/');
        let url_database = match path {
            "" => 0,
            number => number.parse().map_err(|_| Invalid::new("TARGET's database", number, "a number"))?,
        };
        Ok(Login {
            resp3: self.resp3,
            user: self.user.clone().or(url_user),
            password: self.password.clone().or(url_password),
            database: self.database.unwrap_or(url_database),
            ..Login::default()
        })
    }
}

/// Whether a target is spoken to in TLS by its scheme.
pub(super) fn is_tls(target: &Target) -> Result<bool, Invalid> {
    match target.scheme.as_deref() {
        None | Some("redis") => Ok(false),
        Some("rediss") => Ok(true),
        Some(scheme) => Err(Invalid::new("TARGET's scheme", scheme, "redis:// or rediss://")),
    }
}
