//! The command-line flags that servers share.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::error::Error;
use crate::logging::{LogFormat, LogOptions, LogOutput};
use crate::options::{ClientAuth, Listen, Options, TlsOptions, parse_address};

const LISTEN_HELP: &str = "Where to accept connections; may be given several times\n\n\
    ADDRESS:PORT     plain TCP; [::] is every address, 0.0.0.0 every IPv4 address\n\
    PORT             the same as [::]:PORT\n\
    tls:ADDRESS:PORT the same as --tls-listen ADDRESS:PORT\n\
    unix:PATH        a Unix socket; unix:PATH?mode=660 also sets the permissions of its file\n    \
    fd:3             a socket that systemd has bound, its first; tls:fd:3 encrypts";

/// The shared flags, for `#[command(flatten)]` in a server's own.
///
/// ```
/// use clap::Parser;
/// use server_runtime::{Listen, RuntimeArgs};
///
/// #[derive(Parser)]
/// struct Flags {
///     #[command(flatten)]
///     runtime: RuntimeArgs,
/// }
///
/// let flags = Flags::parse_from(["server", "--listen", "127.0.0.1:8080", "--workers", "2"]);
/// let options = flags.runtime.options("[::]:80".parse().unwrap()).unwrap();
/// assert_eq!(options.listen, ["127.0.0.1:8080".parse::<Listen>().unwrap()]);
/// ```
#[derive(Args, Clone, Debug)]
pub struct RuntimeArgs {
    /// Where to accept connections; may be given several times.
    #[arg(long, value_name = "PLACE", long_help = LISTEN_HELP, help_heading = "Network")]
    pub listen: Vec<Listen>,

    /// Threads that serve connections; 0 is one per core.
    #[arg(long, value_name = "COUNT", default_value_t = 0, help_heading = "Network")]
    pub workers: usize,

    /// Keep each of these threads on a core of its own, if there are as many as cores [default: the server's choice].
    #[arg(long, value_name = "BOOL", help_heading = "Network")]
    pub pin_workers: Option<bool>,

    /// Connections that may be open at one time; further ones are refused.
    #[arg(long, value_name = "COUNT", default_value_t = Options::default().max_connections, help_heading = "Network")]
    pub max_connections: usize,

    /// Seconds that a shutdown waits for open connections before it cuts them.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds, help_heading = "Network")]
    pub drain_timeout: Duration,

    /// Where to serve figures for Prometheus, at the path /metrics. Not for the open internet.
    #[arg(long, value_name = "ADDRESS", value_parser = address, help_heading = "Network")]
    pub metrics_listen: Option<SocketAddr>,

    /// Where to accept TLS connections; may be given several times.
    #[arg(long, value_name = "ADDRESS", value_parser = address, requires = "tls_cert", help_heading = "TLS")]
    pub tls_listen: Vec<SocketAddr>,

    /// The server's certificate and its chain, a PEM file; read again when it changes, and on SIGHUP. Given several times, a client
    /// gets the first that is for the host that it asks for, or the first of all.
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "TLS")]
    pub tls_cert: Vec<PathBuf>,

    /// The certificate's private key, a PEM file; as many as certificates, in the same order.
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "TLS")]
    pub tls_key: Vec<PathBuf>,

    /// Authorities of client certificates, a PEM file; with it, every client must show a certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "TLS")]
    pub tls_client_ca: Option<PathBuf>,

    /// A certificate of a client is checked when shown, and not demanded.
    #[arg(long, requires = "tls_client_ca", help_heading = "TLS")]
    pub tls_client_optional: bool,

    /// The log level: error, warn, info, debug, trace, off; or by module, as info,server_runtime=debug.
    #[arg(long, value_name = "LEVEL", default_value = "info", help_heading = "Log")]
    pub log_level: String,

    /// The form of the log's lines.
    #[arg(long, value_name = "FORMAT", default_value_t = LogFormat::Text, value_enum, help_heading = "Log")]
    pub log_format: LogFormat,

    /// The file that the log is appended to, instead of the standard error output.
    #[arg(long, value_name = "FILE", help_heading = "Log")]
    pub log_file: Option<PathBuf>,
}

impl RuntimeArgs {
    /// The options that the flags stand for; `default` is where the server listens if no flag says so.
    ///
    /// # Errors
    /// When flags do not fit together.
    pub fn options(&self, default: Listen) -> Result<Options, Error> {
        let mut listen = self.listen.clone();
        listen.extend(self.tls_listen.iter().copied().map(Listen::Tls));
        if listen.is_empty() {
            listen.push(default);
        }
        if let Some(place) = listen.iter().find(|place| place.is_tls() && self.tls_cert.is_empty()) {
            return Err(Error::Flags(format!("{place} needs a certificate: give --tls-cert and --tls-key")));
        }
        if self.tls_cert.len() != self.tls_key.len() {
            return Err(Error::Flags("each --tls-cert needs its --tls-key, in the same order".to_owned()));
        }
        Ok(Options {
            listen,
            workers: self.workers,
            pin_workers: self.pin_workers.unwrap_or_default(),
            max_connections: self.max_connections,
            drain: self.drain_timeout,
            tls: self.tls(),
            metrics_listen: self.metrics_listen,
            ..Options::default()
        })
    }

    /// The settings of the log, for [`init_logging`](crate::init_logging).
    pub fn log_options(&self) -> LogOptions {
        let output = self.log_file.clone().map_or(LogOutput::Stderr, LogOutput::File);
        LogOptions { level: self.log_level.clone(), format: self.log_format, output }
    }

    fn tls(&self) -> Option<TlsOptions> {
        let client_auth = match (&self.tls_client_ca, self.tls_client_optional) {
            (None, _) => ClientAuth::None,
            (Some(_), true) => ClientAuth::Optional,
            (Some(_), false) => ClientAuth::Required,
        };
        let mut pairs = self.tls_cert.iter().cloned().zip(self.tls_key.iter().cloned());
        let (cert, key) = pairs.next()?;
        let others = pairs.collect();
        Some(TlsOptions { others, client_ca: self.tls_client_ca.clone(), client_auth, ..TlsOptions::new(cert, key) })
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    parse_address(text).ok_or_else(|| "expected ADDRESS:PORT, [IPV6]:PORT or PORT".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        runtime: RuntimeArgs,
    }

    #[test]
    fn flags_become_options() {
        Flags::command().debug_assert();
        fn check(flags: &str, shown: Result<&str, &str>) {
            let words = std::iter::once("server").chain(flags.split_whitespace());
            let options = Flags::try_parse_from(words).map_err(|error| error.to_string()).and_then(|flags| {
                flags.runtime.options(Listen::Tcp(([127, 0, 0, 1], 80).into())).map_err(|error| error.to_string())
            });
            match (options, shown) {
                (Ok(options), Ok(shown)) => {
                    let listen: Vec<_> = options.listen.iter().map(ToString::to_string).collect();
                    let auth = options.tls.map(|tls| tls.client_auth);
                    let all = format!("{} {} {:?} {auth:?}", listen.join(","), options.workers, options.drain);
                    assert_eq!(all, shown, "{flags}");
                }
                (Err(error), Err(part)) => assert!(error.contains(part), "{flags}: {error}"),
                (options, _) => panic!("{flags}: {options:?}"),
            }
        }
        check("", Ok("127.0.0.1:80 0 10s None"));
        check("--listen 81 --listen unix:/s --workers 3 --drain-timeout 0.5", Ok("[::]:81,unix:/s 3 500ms None"));
        check("--pin-workers true --listen 1", Ok("[::]:1 0 10s None"));
        check("--pin-workers 1", Err("'--pin-workers <BOOL>'"));
        check("--tls-listen 443 --tls-cert c --tls-key k", Ok("tls:[::]:443 0 10s Some(None)"));
        check("--listen tls:443 --tls-cert c --tls-key k --tls-client-ca a", Ok("tls:[::]:443 0 10s Some(Required)"));
        check(
            "--listen 1 --tls-cert c --tls-key k --tls-client-ca a --tls-client-optional",
            Ok("[::]:1 0 10s Some(Optional)"),
        );
        check("--listen tls:443", Err("tls:[::]:443 needs a certificate: give --tls-cert and --tls-key"));
        check("--listen tls:fd:3", Err("tls:fd:3 needs a certificate: give --tls-cert and --tls-key"));
        check("--tls-listen 443", Err("--tls-cert"));
        check("--tls-cert c", Err("--tls-key"));
        check("--tls-cert c --tls-key k --tls-cert d --listen 1", Err("each --tls-cert needs its --tls-key"));
        check("--tls-cert c --tls-key k --tls-cert d --tls-key l --listen 1", Ok("[::]:1 0 10s Some(None)"));
        check("--listen nowhere", Err("\"nowhere\" is no place to listen: expected ADDRESS:PORT"));
        check("--drain-timeout -1", Err("unexpected argument"));
        check("--drain-timeout=-1", Err("negative"));
    }
}
