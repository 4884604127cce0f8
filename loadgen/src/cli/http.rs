//! `loadgen http`, over HTTP/1.1, HTTP/2 and HTTP/3.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use serde_json::json;

use super::header::{self, Header};
use super::load_args::LOAD;
use super::subjects::SubjectArgs;
use super::{Carrier, Drive, Invalid, LoadArgs, ReplayArgs, Transport};
use crate::codec::{Http1, Http2, HttpRequest};
use crate::load::Load;
use crate::scenario::Scenario;
use crate::workload::{self, Template};

/// Sends requests to an HTTP server.
#[derive(Args, Clone, Debug)]
pub struct HttpArgs {
    #[command(flatten)]
    load: LoadArgs,

    /// The method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "METHOD", conflicts_with = "replay", help_heading = REQUEST)]
    method: Option<String>,

    /// A header. Can be given several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = REQUEST)]
    headers: Vec<Header>,

    /// The body. Places such as {key} and {value} are filled in path, headers and body
    #[arg(long, value_name = "TEXT", conflicts_with = "replay", help_heading = REQUEST)]
    body: Option<String>,

    /// The body, from a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["body", "replay"], help_heading = REQUEST)]
    body_file: Option<PathBuf>,

    /// Another path of a mix, with its weight: `9:/json`. Can be given several times, and replaces the target's path
    #[arg(long, value_name = "WEIGHT:PATH", conflicts_with = "replay", help_heading = LOAD)]
    mix: Vec<WeightedPath>,

    /// With --verify, the body of a right answer, with places as in the path; without it every body must equal the first
    #[arg(long, value_name = "TEXT", requires = "verify", conflicts_with = "replay", help_heading = REQUEST)]
    expect: Option<String>,

    /// HTTP/2: --streams requests at once on a connection. Without TLS by prior knowledge, with TLS by ALPN
    #[arg(long, conflicts_with_all = ["no_keep_alive", "replay"], help_heading = LOAD)]
    http2: bool,

    /// HTTP/3: --streams requests at once on a connection of QUIC, always with TLS
    #[arg(long, conflicts_with_all = ["http2", "replay"], help_heading = LOAD)]
    http3: bool,

    /// A new connection for every request
    #[arg(long, help_heading = LOAD)]
    no_keep_alive: bool,

    #[command(flatten)]
    replay: ReplayArgs,

    #[command(flatten)]
    subjects: SubjectArgs,
}

/// Heading of the options that make the request.
const REQUEST: &str = "Request";

/// `--mix`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct WeightedPath {
    weight: u32,
    path: String,
}

impl FromStr for WeightedPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected a weight and a path, as in `9:/json`";
        let (weight, path) = text.split_once(':').ok_or(expected)?;
        Ok(Self { weight: weight.trim().parse().map_err(|_| expected)?, path: path.to_owned() })
    }
}

impl Drive for HttpArgs {
    fn load_args(&self) -> &LoadArgs {
        &self.load
    }

    fn scenario(&self) -> Result<Scenario, Invalid> {
        let scheme = self.load.target.scheme.as_deref();
        let is_https = scheme == Some("https") || self.http3;
        if self.http3 && scheme == Some("http") {
            return Err(Invalid::new("TARGET's scheme", "http", "https://, because HTTP/3 has no form without TLS"));
        }
        if !matches!(scheme, None | Some("http" | "https")) {
            return Err(Invalid::new("TARGET's scheme", scheme.unwrap_or_default(), "http:// or https://"));
        }
        let port = if is_https { 443 } else { 80 };
        let load = self.load.load(self.transport(port, is_https))?;
        if let Some(text) = self.replay.read()? {
            return self.replayed(load, &text, port);
        }
        let body = self.body()?;
        let method = self.method.clone().unwrap_or_else(|| if body.is_some() { "POST" } else { "GET" }.to_owned());
        let requests = self.requests(&method, body.as_deref(), port)?;
        let names: Vec<_> = requests.iter().map(|(request, _)| request.name().to_owned()).collect();
        let mut what = names.join(", ");
        what.push_str(if self.no_keep_alive { ", a connection per request" } else { "" });
        if let Some(version) = self.version() {
            what.push_str(", HTTP/");
            what.push_str(version);
        }
        let weights: Vec<_> = requests.iter().map(|(request, weight)| format!("{weight}:{}", request.name())).collect();
        let mut settings = vec![
            ("version", json!(self.version().unwrap_or("1.1"))),
            ("requests", json!(weights)),
            ("keep_alive", json!(!self.no_keep_alive)),
            ("body_bytes", json!(body.as_ref().map_or(0, Vec::len))),
        ];
        settings.extend(self.subjects.settings());
        let (subjects, verify) = (self.subjects.subjects(self.load.seed)?, self.load.verify);
        if self.http3 {
            let http = http3(requests, subjects, &load, !self.no_keep_alive, verify)?;
            return Ok(self.load.scenario(load, "http", &what, settings, http));
        }
        if self.http2 {
            let tls = load.endpoint.tls().is_some();
            let http = Http2::new(requests, subjects, tls, verify).map_err(Invalid::because)?;
            return Ok(self.load.scenario(load, "http", &what, settings, http));
        }
        let http = Http1::new(requests, subjects, self.no_keep_alive, verify).map_err(Invalid::because)?;
        Ok(self.load.scenario(load, "http", &what, settings, http))
    }
}

/// Requests over HTTP/3.
#[cfg(feature = "http3")]
fn http3(
    requests: Vec<(HttpRequest, u32)>,
    subjects: workload::Subjects,
    load: &Load,
    keep_alive: bool,
    verify: bool,
) -> Result<crate::codec::Http3, Invalid> {
    let endpoints: Vec<_> = load.endpoints().filter_map(|endpoint| endpoint.tls().cloned()).collect();
    crate::codec::Http3::new(requests, subjects, &endpoints, crate::clock::Clock::new(), keep_alive, verify)
        .map_err(Invalid::because)
}

#[cfg(not(feature = "http3"))]
fn http3(_: Vec<(HttpRequest, u32)>, _: workload::Subjects, _: &Load, _: bool, _: bool) -> Result<Http1, Invalid> {
    Err(Invalid::because("--http3 is not in this build: it needs the feature http3".to_owned()))
}

impl HttpArgs {
    fn transport(&self, port: u16, tls: bool) -> Transport<'static> {
        let (alpn, carrier): (&[&[u8]], _) = match self.version() {
            None => (&[b"http/1.1"], Carrier::Stream),
            Some("2") => (&[b"h2"], Carrier::Stream),
            Some(_) => (&[b"h3"], Carrier::Quic),
        };
        Transport { port, tls, alpn, carrier }
    }

    /// The version of HTTP, if it is not 1.1.
    fn version(&self) -> Option<&'static str> {
        match (self.http2, self.http3) {
            (true, _) => Some("2"),
            (_, true) => Some("3"),
            (false, false) => None,
        }
    }

    /// The scenario of requests that were recorded.
    fn replayed(&self, load: Load, text: &[u8], port: u16) -> Result<Scenario, Invalid> {
        let recording = workload::logged(text);
        let load = self.replay.load(&self.load, load, &recording)?;
        let what = self.replay.describe(&recording);
        let headers = header::with_needed(&self.headers, &self.load.target, port);
        let request = |(method, path): &workload::Line| {
            let plain = HttpRequest::new(method, path).map(HttpRequest::literal);
            headers.iter().fold(plain, |request, header| request?.header(&header.name, &header.value))
        };
        let requests: Result<Vec<_>, _> = recording.requests.iter().map(request).collect();
        let (requests, subjects) = (requests.map_err(Invalid::because)?, self.subjects.subjects(self.load.seed)?);
        let http = Http1::in_turn(requests, recording.order, subjects, self.no_keep_alive, self.load.verify);
        let http = http.map_err(Invalid::because)?;
        let settings = [("version", json!("1.1")), ("keep_alive", json!(!self.no_keep_alive))];
        let settings = settings.into_iter().chain(self.replay.settings());
        Ok(self.load.scenario(load, "http", &what, settings, http))
    }

    /// The requests of the mix, with their weights.
    fn requests(&self, method: &str, body: Option<&[u8]>, port: u16) -> Result<Vec<(HttpRequest, u32)>, Invalid> {
        let mut requests = Vec::new();
        for WeightedPath { weight, path } in self.paths() {
            if let Some(place) = Template::unknown_place(&path) {
                let expected = "{key}, {value}, {random} or {sequence}; %7B and %7D stand for braces";
                return Err(Invalid::new("the path's place", place, expected));
            }
            let mut request = HttpRequest::new(method, &path).map_err(Invalid::because)?;
            for Header { name, value } in header::with_needed(&self.headers, &self.load.target, port) {
                request = request.header(&name, &value).map_err(Invalid::because)?;
            }
            if let Some(body) = body {
                request = request.body(Template::new(body));
            }
            if let Some(expected) = &self.expect {
                request = request.expecting(Template::new(expected));
            }
            requests.push((request, weight));
        }
        Ok(requests)
    }

    fn paths(&self) -> Vec<WeightedPath> {
        if !self.mix.is_empty() {
            return self.mix.clone();
        }
        let path = match self.load.target.path.as_str() {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path => path.split('#').next().unwrap_or("/").to_owned(),
        };
        vec![WeightedPath { weight: 1, path }]
    }

    fn body(&self) -> Result<Option<Vec<u8>>, Invalid> {
        match (&self.body, &self.body_file) {
            (Some(text), _) => Ok(Some(text.clone().into_bytes())),
            (None, Some(path)) => fs::read(path).map(Some).map_err(|error| {
                Invalid::new("--body-file", path.display(), format_args!("a file that can be read ({error})"))
            }),
            (None, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::assert_scenario;

    #[test]
    fn command_lines_become_scenarios() {
        #[track_caller]
        fn check(words: &[&str], expected: Result<&str, &str>) {
            assert_scenario(&[&["http", "-t1", "-c1"], words].concat(), expected);
        }
        let common = "http 127.0.0.1:80, 1 connection, 1 thread, closed loop, 10s";
        check(&["127.0.0.1"], Ok(&format!("{common}: GET /")));
        check(&["http://127.0.0.1/a?b#c"], Ok(&format!("{common}: GET /a?b")));
        check(&["127.0.0.1", "--mix", "9:/a", "--mix", "1:/b"], Ok(&format!("{common}: GET /a, GET /b")));
        check(&["127.0.0.1", "--body", "x"], Ok(&format!("{common}: POST /")));
        check(
            &["127.0.0.1/x", "-X", "PUT", "--no-keep-alive"],
            Ok(&format!("{common}: PUT /x, a connection per request")),
        );
        check(
            &["127.0.0.1/users/{id}"],
            Err(
                "the path's place is `{id}`, expected {key}, {value}, {random} or {sequence}; %7B and %7D stand for braces",
            ),
        );
        check(&["127.0.0.1/{key}?{value}{}"], Ok(&format!("{common}: GET /{{key}}?{{value}}{{}}")));
        let quic = "http 127.0.0.1:443, 1 connection, 1 thread, closed loop, 10s, TLS";
        check(&["127.0.0.1", "--http3"], Ok(&format!("{quic}: GET /, HTTP/3")));
        check(
            &["https://127.0.0.1", "--http3", "--no-keep-alive"],
            Ok(&format!("{quic}: GET /, a connection per request, HTTP/3")),
        );
        check(
            &["http://127.0.0.1", "--http3"],
            Err("TARGET's scheme is `http`, expected https://, because HTTP/3 has no form without TLS"),
        );
        check(&["127.0.0.1", "--http2"], Ok(&format!("{common}: GET /, HTTP/2")));
        check(&["redis://127.0.0.1"], Err("TARGET's scheme is `redis`, expected http:// or https://"));
        check(&["127.0.0.1", "-X", "G T"], Err("the method is `G T`, expected a word such as GET"));
        check(&["127.0.0.1", "-H", "a b: c"], Err("the header's name is `a b`, expected a word"));
    }
}
