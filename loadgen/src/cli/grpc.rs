//! `loadgen grpc`.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use prost_reflect::MethodDescriptor;
use serde_json::{Value, json};

use super::header::Header;
use super::load_args::LOAD;
use super::subjects::SubjectArgs;
use super::{Drive, Invalid, LoadArgs, Transport};
use crate::codec::grpc::{Compression, Grpc, GrpcCall};
use crate::load::Load;
use crate::number;
use crate::scenario::Scenario;
use crate::schema;

/// The port where the target names none: that of gRPC's own examples.
const PORT: u16 = 50_051;

/// The data that the greeter is sent where none is given.
const GREETING: &str = r#"{"name":"world"}"#;

/// Calls methods of a gRPC server.
#[derive(Args, Clone, Debug)]
pub struct GrpcArgs {
    #[command(flatten)]
    pub(super) load: LoadArgs,

    #[command(flatten)]
    pub(super) call: CallArgs,

    #[command(flatten)]
    pub(super) subjects: SubjectArgs,
}

/// Which method is called, and with what.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct CallArgs {
    /// The method: package.Service/Method. Streams in either direction are known from its definition
    #[arg(long, value_name = "METHOD", default_value = schema::GREETER, help_heading = CALL)]
    pub(super) call: String,

    /// A call of a mix, with its weight: `9:package.Service/Method {"name":"{key}"}`; without JSON the message is empty. Can be
    /// given several times
    #[arg(long, value_name = "WEIGHT:CALL", conflicts_with_all = ["call", "data", "data_file", "messages", "expect"], help_heading = CALL)]
    pub(super) mix: Vec<WeightedCall>,

    /// The definition, from a .proto file. Without a definition the server is asked by reflection, except for the greeter,
    /// which is built in. Can be given several times
    #[arg(long, value_name = "FILE", help_heading = CALL)]
    pub(super) proto: Vec<PathBuf>,

    /// Where imports of .proto files are looked for, besides the files' folders. Can be given several times
    #[arg(long, value_name = "FOLDER", requires = "proto", help_heading = CALL)]
    pub(super) import_path: Vec<PathBuf>,

    /// The definition, from a descriptor set (protoc --descriptor_set_out --include_imports)
    #[arg(long, value_name = "FILE", conflicts_with = "proto", help_heading = CALL)]
    pub(super) protoset: Option<PathBuf>,

    /// The definition from the server, also of the greeter
    #[arg(long, conflicts_with_all = ["proto", "protoset"], help_heading = CALL)]
    pub(super) reflect: bool,

    /// The message in JSON; places such as {key} and {value} are filled. An array is several messages: calls of a method
    /// that takes one take turns, a stream is sent all
    #[arg(long, value_name = "JSON", help_heading = CALL)]
    pub(super) data: Option<String>,

    /// The message in JSON, from a file
    #[arg(long, value_name = "FILE", conflicts_with = "data", help_heading = CALL)]
    pub(super) data_file: Option<PathBuf>,

    /// Messages of a call's stream [default: as many as are given]
    #[arg(long, value_name = "N", help_heading = CALL)]
    pub(super) messages: Option<usize>,

    /// With --verify, a right answer in JSON, with places; an array is all messages of a stream in turn. Without it
    /// answers to equal calls must be equal
    #[arg(long, value_name = "JSON", requires = "verify", help_heading = CALL)]
    pub(super) expect: Option<String>,

    /// Metadata sent with every call. Can be given several times
    #[arg(short = 'H', long = "metadata", value_name = "NAME: VALUE", help_heading = CALL)]
    pub(super) metadata: Vec<Header>,

    /// How long the server may take, as it is told (grpc-timeout)
    #[arg(long, value_name = "TIME", value_parser = number::duration, help_heading = CALL)]
    pub(super) deadline: Option<Duration>,

    /// Send messages in gzip, and offer it for answers
    #[arg(long, help_heading = CALL)]
    pub(super) gzip: bool,

    /// The server's name as it is told (:authority) [default: the target]
    #[arg(long, value_name = "NAME", help_heading = LOAD)]
    pub(super) authority: Option<String>,
}

/// Heading of the options that make the call.
const CALL: &str = "Call";

/// A call of a mix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WeightedCall {
    weight: u32,
    method: String,
    data: Option<String>,
}

impl FromStr for WeightedCall {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected a weight and a method, as in `9:package.Service/Method {\"name\":\"{key}\"}`";
        let (weight, call) = text.split_once(':').ok_or(expected)?;
        let weight = weight.trim().parse().map_err(|_| expected)?;
        let (method, data) = match call.trim().split_once(char::is_whitespace) {
            Some((method, data)) => (method, Some(data.trim().to_owned())),
            None => (call.trim(), None),
        };
        Ok(Self { weight, method: method.to_owned(), data })
    }
}

impl Drive for GrpcArgs {
    fn load_args(&self) -> &LoadArgs {
        &self.load
    }

    fn scenario(&self) -> Result<Scenario, Invalid> {
        let scheme = self.load.target.scheme.as_deref();
        let is_https = matches!(scheme, Some("https" | "grpcs"));
        if !matches!(scheme, None | Some("http" | "https" | "grpc" | "grpcs")) {
            let expected = "http://, https://, grpc:// or grpcs://";
            return Err(Invalid::new("TARGET's scheme", scheme.unwrap_or_default(), expected));
        }
        let load = self.load.load(Transport { port: PORT, tls: is_https, alpn: &[b"h2"], ..Transport::default() })?;
        scenario(&self.load, load, &self.call, &self.subjects)
    }
}

/// The scenario of a call under a load.
pub(super) fn scenario(
    args: &LoadArgs,
    load: Load,
    call: &CallArgs,
    subjects: &SubjectArgs,
) -> Result<Scenario, Invalid> {
    let authority = call.authority.clone().unwrap_or_else(|| args.target.authority(PORT));
    let (mut calls, mut kinds, mut what) = (Vec::new(), Vec::new(), Vec::new());
    for (name, data, weight) in call.calls()? {
        let method = call.method(&name, &load, &authority)?;
        let kind = kind(&method);
        what.push(format!("{kind} {}", method.full_name()));
        kinds.push(kind);
        let data = data.unwrap_or_else(|| if is_greeting(&method) { GREETING } else { "{}" }.to_owned());
        calls.push((call.grpc_call(method, &data, &authority, load.endpoint.tls().is_some())?, weight));
    }
    let mut settings = call.settings();
    settings.push(("kind", json!(kinds.join(", "))));
    settings.extend(subjects.settings());
    let grpc = Grpc::new(&calls, subjects.subjects(args.seed)?, args.verify).map_err(Invalid::because)?;
    Ok(args.scenario(load, "grpc", &what.join(", "), settings, grpc))
}

/// In which directions a method streams, in words.
fn kind(method: &MethodDescriptor) -> &'static str {
    match (method.is_client_streaming(), method.is_server_streaming()) {
        (false, false) => "unary",
        (true, false) => "client streaming",
        (false, true) => "server streaming",
        (true, true) => "bidirectional streaming",
    }
}

fn is_greeting(method: &MethodDescriptor) -> bool {
    method.input().full_name() == "helloworld.HelloRequest"
}

impl CallArgs {
    /// The methods that are called, with their messages and weights.
    fn calls(&self) -> Result<Vec<(String, Option<String>, u32)>, Invalid> {
        if !self.mix.is_empty() {
            let mix = self.mix.iter().cloned();
            return Ok(mix.map(|WeightedCall { weight, method, data }| (method, data, weight)).collect());
        }
        Ok(vec![(self.call.clone(), self.data()?, 1)])
    }

    /// A call of a method, as the options have it.
    fn grpc_call(&self, method: MethodDescriptor, data: &str, authority: &str, tls: bool) -> Result<GrpcCall, Invalid> {
        let option = if self.mix.is_empty() { "--data" } else { "--mix" };
        Ok(GrpcCall {
            data: elements(option, data)?,
            method,
            authority: authority.to_owned(),
            tls,
            messages: self.messages,
            expected: self.expect.as_deref().map(|text| elements("--expect", text)).transpose()?.unwrap_or_default(),
            metadata: self.metadata.iter().map(|field| (field.name.clone(), field.value.clone())).collect(),
            deadline: self.deadline,
            compression: if self.gzip { Compression::Gzip } else { Compression::None },
        })
    }

    /// Finds a method's definition.
    fn method(&self, name: &str, load: &Load, authority: &str) -> Result<MethodDescriptor, Invalid> {
        let pool = if !self.proto.is_empty() {
            schema::from_proto(&self.proto, &self.import_path)
        } else if let Some(file) = &self.protoset {
            schema::from_descriptor_set(file)
        } else {
            let built_in = schema::method(&schema::built_in(), name);
            match built_in {
                Ok(method) if !self.reflect => return Ok(method),
                _ => schema::reflected(&load.endpoint, authority, name, load.timeout),
            }
        };
        pool.and_then(|pool| schema::method(&pool, name)).map_err(Invalid::because)
    }

    /// The messages in JSON, if they are given.
    fn data(&self) -> Result<Option<String>, Invalid> {
        match (&self.data, &self.data_file) {
            (Some(text), _) => Ok(Some(text.clone())),
            (None, Some(path)) => fs::read_to_string(path).map(Some).map_err(|error| {
                Invalid::new("--data-file", path.display(), format_args!("a text file that can be read ({error})"))
            }),
            (None, None) => Ok(None),
        }
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let call = |WeightedCall { weight, method, data }: &WeightedCall| {
            format!("{weight}:{method} {}", data.as_deref().unwrap_or("{}"))
        };
        let mix: Vec<_> = self.mix.iter().map(call).collect();
        let metadata: Vec<_> = self.metadata.iter().map(|field| format!("{}: {}", field.name, field.value)).collect();
        vec![
            ("call", json!(self.call)),
            ("data", json!(self.data)),
            ("data_file", json!(self.data_file)),
            ("mix", json!(mix)),
            ("messages", json!(self.messages)),
            ("metadata", json!(metadata)),
            ("deadline", json!(self.deadline.map(number::duration_text))),
            ("gzip", json!(self.gzip)),
        ]
    }
}

/// The elements of a JSON array, or the text itself. A text that is no JSON because of its places is one message.
fn elements(option: &str, text: &str) -> Result<Vec<String>, Invalid> {
    let elements = match serde_json::from_str::<Vec<Box<serde_json::value::RawValue>>>(text) {
        Ok(elements) => elements.iter().map(|element| element.get().to_owned()).collect(),
        Err(_) => vec![text.to_owned()],
    };
    if elements.is_empty() { Err(Invalid::new(option, text, "at least one message")) } else { Ok(elements) }
}

#[cfg(test)]
mod tests {
    use crate::cli::assert_scenario;

    #[test]
    fn command_lines_become_scenarios() {
        #[track_caller]
        fn check(words: &[&str], expected: Result<&str, &str>) {
            assert_scenario(&[&["grpc", "127.0.0.1", "-t1", "-c1"], words].concat(), expected);
        }
        let common = "grpc 127.0.0.1:50051, 1 connection, 1 thread, closed loop, 10s";
        let greeter = format!("{common}: unary helloworld.Greeter.SayHello");
        check(&[], Ok(&greeter));
        check(&["--data", r#"{"name":"{key}"}"#], Ok(&greeter));
        check(&["--data", r#"[{"name":"a"},{}]"#, "-H", "x-a: b", "--gzip"], Ok(&greeter));
        let twice = format!("{greeter}, unary helloworld.Greeter.SayHello");
        check(
            &["--mix", "9:helloworld.Greeter/SayHello {\"name\":\"{key}\"}", "--mix", "1:helloworld.Greeter/SayHello"],
            Ok(&twice),
        );
        check(&["--data", "[]"], Err("--data is `[]`, expected at least one message"));
        check(
            &["--data", r#"{"nam":"a"}"#],
            Err("the data is no helloworld.HelloRequest in JSON: unrecognized field name 'nam' at line 1 column 6"),
        );
        check(&["--messages", "2"], Err("helloworld.Greeter.SayHello takes one message, not a stream of them"));
        check(
            &["-H", "te: x"],
            Err("the metadata's name is `te`, expected letters, digits and -_. and none of gRPC's own"),
        );
    }
}
