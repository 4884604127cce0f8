//! `loadgen websocket`.

use clap::Args;
use serde_json::json;

use super::header::Header;
use super::subjects::SubjectArgs;
use super::{Drive, Invalid, LoadArgs, Transport};
use crate::codec::WebSocket;
use crate::scenario::Scenario;
use crate::workload::Template;

/// Sends messages to a WebSocket server that echoes them.
#[derive(Args, Clone, Debug)]
pub struct WebSocketArgs {
    #[command(flatten)]
    load: LoadArgs,

    /// The message, with places such as {key} and {value}; with --verify every byte of its echo must be the same, without it their number
    #[arg(long, value_name = "TEXT", default_value = "{value}", help_heading = REQUEST)]
    message: String,

    /// Send binary messages, not text
    #[arg(long, help_heading = REQUEST)]
    binary: bool,

    /// A header of the handshake. Can be given several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = REQUEST)]
    headers: Vec<Header>,

    #[command(flatten)]
    subjects: SubjectArgs,
}

/// Heading of the options that make the messages.
const REQUEST: &str = "Message";

impl Drive for WebSocketArgs {
    fn load_args(&self) -> &LoadArgs {
        &self.load
    }

    fn scenario(&self) -> Result<Scenario, Invalid> {
        let target = &self.load.target;
        let scheme = target.scheme.as_deref();
        let is_tls = matches!(scheme, Some("wss" | "https"));
        if !matches!(scheme, None | Some("ws" | "wss" | "http" | "https")) {
            return Err(Invalid::new("TARGET's scheme", scheme.unwrap_or_default(), "ws:// or wss://"));
        }
        let port = if is_tls { 443 } else { 80 };
        let load = self.load.load(Transport { port, tls: is_tls, alpn: &[b"http/1.1"], ..Transport::default() })?;
        let path = match target.path.as_str() {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.to_owned(),
        };
        let mut headers: Vec<_> = self.headers.iter().map(|field| (field.name.clone(), field.value.clone())).collect();
        if let Some(value) = target.basic_authorization()
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        {
            headers.push(("Authorization".to_owned(), value));
        }
        let websocket = WebSocket::new(
            &target.authority(port),
            &path,
            &headers,
            Template::new(&self.message),
            self.binary,
            self.subjects.subjects(self.load.seed)?,
            self.load.verify,
        );
        let kind = if self.binary { "binary" } else { "text" };
        let mut settings = vec![("path", json!(path)), ("message", json!(self.message)), ("kind", json!(kind))];
        settings.extend(self.subjects.settings());
        let what = format!("{kind} {} to {path}, echoed", self.message);
        Ok(self.load.scenario(load, "websocket", &what, settings, websocket.map_err(Invalid::because)?))
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::assert_scenario;

    #[test]
    fn command_lines_become_scenarios() {
        #[track_caller]
        fn check(words: &[&str], expected: Result<&str, &str>) {
            assert_scenario(&[&["websocket", "-t1", "-c1"], words].concat(), expected);
        }
        let common = "websocket 127.0.0.1:80, 1 connection, 1 thread, closed loop, 10s";
        check(&["ws://127.0.0.1"], Ok(&format!("{common}: text {{value}} to /, echoed")));
        check(&["127.0.0.1/a?b", "--binary", "--message", "x"], Ok(&format!("{common}: binary x to /a?b, echoed")));
        check(&["redis://127.0.0.1"], Err("TARGET's scheme is `redis`, expected ws:// or wss://"));
        check(
            &["127.0.0.1", "--verify", "--message", "{random}"],
            Err("with --verify a message can hold {key} and {value}, but nothing random"),
        );
    }
}
