//! Asking the server what its methods look like
//! (<https://github.com/grpc/grpc/blob/master/doc/server-reflection.md>).

use std::time::{Duration, Instant};

use prost_reflect::DescriptorPool;
use prost_reflect::prost::Message as _;
use prost_reflect::prost_types::FileDescriptorProto;

use super::name::split_name;
use crate::blocking::{Stream, connect, explained};
use crate::codec::grpc::{Exchange, status_text};
use crate::codec::h2::hpack::{Block, Field};
use crate::codec::h2::{Connection, Head, Judge, Request};
use crate::load::Endpoint;
use crate::record::Tally;

/// The services that answer, the newer one first; what they say is the same.
const SERVICES: [&str; 2] = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// gRPC's status of a method that is not there.
const UNIMPLEMENTED: u16 = 12;

/// The most that is read of a description.
const MAX_ANSWER: usize = 16 << 20;

/// The most files that are asked for.
const MAX_FILES: usize = 4096;

/// Asks the server for a method's service and everything that it mentions.
///
/// # Errors
/// When the server cannot be reached, has no reflection, or does not know the service.
pub fn reflected(
    endpoint: &Endpoint,
    authority: &str,
    method: &str,
    timeout: Duration,
) -> Result<DescriptorPool, String> {
    let (service, _) = split_name(method)?;
    let mut unimplemented = String::new();
    for reflection in SERVICES {
        let mut client = Client::connect(endpoint, authority, reflection, timeout)?;
        match client.describe(service) {
            Err(Problem::Unimplemented(text)) => unimplemented = text,
            Err(Problem::Other(text)) => return Err(format!("server reflection: {text}")),
            Ok(pool) => return Ok(pool),
        }
    }
    Err(format!("the server has no reflection ({unimplemented}): its .proto or descriptor set is needed"))
}

/// Why an answer is of no use.
enum Problem {
    Unimplemented(String),
    Other(String),
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

/// The question.
#[derive(Clone, Copy)]
enum Question<'a> {
    File(&'a str),
    Symbol(&'a str),
}

/// One connection to a server, for one question at a time.
struct Client {
    stream: Box<dyn Stream>,
    connection: Connection<Answer>,
    block: Block,
    unread: Vec<u8>,
    deadline: Instant,
}

/// The answer.
#[derive(Default)]
struct Answer {
    exchange: Exchange,
    messages: Vec<Vec<u8>>,
    size: usize,
}

/// Collects answers, one at a time: the only stream's answer stays where it is until the next question.
struct Collect {
    done: std::cell::RefCell<Option<Answer>>,
}

impl Judge for Collect {
    type Exchange = Answer;

    fn head(&self, answer: &mut Answer, head: &Head) {
        answer.exchange.head(head);
    }

    fn data(&self, answer: &mut Answer, data: &[u8]) {
        answer.size += data.len();
        // Too long a message is cut off, and then no message.
        if answer.size <= MAX_ANSWER {
            let messages = &mut answer.messages;
            answer.exchange.look(data, |_, message| messages.push(message.to_vec()));
        }
    }

    fn trailers(&self, answer: &mut Answer, trailers: &Head) {
        answer.exchange.trailers(trailers);
    }

    fn complete(&self, answer: &mut Answer, _intended: u64, _tally: &mut Tally) {
        self.done.replace(Some(std::mem::take(answer)));
    }
}

impl Client {
    fn connect(endpoint: &Endpoint, authority: &str, reflection: &str, timeout: Duration) -> Result<Self, String> {
        let stream = connect(endpoint, timeout).map_err(|error| format!("server reflection: {error}"))?;
        let is_tls = matches!(endpoint, Endpoint::Tcp(_, Some(_)) | Endpoint::Unix(_, Some(_)));
        let fields = [
            Field::shared(":method", "POST"),
            Field::shared(":scheme", if is_tls { "https" } else { "http" }),
            Field::shared(":path", format!("/{reflection}/ServerReflectionInfo")),
            Field::shared(":authority", authority),
            Field::shared("content-type", "application/grpc"),
            Field::shared("te", "trailers"),
        ];
        let deadline = Instant::now() + timeout;
        Ok(Self { stream, connection: Connection::new(), block: Block::new(&fields), unread: Vec::new(), deadline })
    }

    /// The service's file and all that it imports.
    fn describe(&mut self, service: &str) -> Result<DescriptorPool, Problem> {
        let mut files = self.ask(Question::Symbol(service))?;
        let mut asked = 0;
        // Servers send a file alone or with its imports.
        while let Some(missing) = missing_import(&files) {
            asked += 1;
            if asked > MAX_FILES {
                return Err(Problem::Other(format!("more than {MAX_FILES} files")));
            }
            let more = self.ask(Question::File(&missing))?;
            if !more.iter().any(|file| file.name() == missing) {
                return Err(Problem::Other(format!("the server does not send {missing}")));
            }
            for file in more {
                if !files.iter().any(|known| known.name() == file.name()) {
                    files.push(file);
                }
            }
        }
        let mut pool = DescriptorPool::new();
        pool.add_file_descriptor_protos(files).map_err(|error| format!("what the server sent: {error}"))?;
        Ok(pool)
    }

    fn ask(&mut self, question: Question<'_>) -> Result<Vec<FileDescriptorProto>, Problem> {
        let answer = self.call(&request(question))?;
        match answer.exchange.grpc_status {
            Some(0) => (),
            Some(code) => {
                let text = status_text(code, answer.exchange.text.as_deref());
                return Err(if code == UNIMPLEMENTED { Problem::Unimplemented(text) } else { Problem::Other(text) });
            }
            None if answer.exchange.status == 404 => return Err(Problem::Unimplemented("HTTP status 404".to_owned())),
            None => return Err(Problem::Other(format!("no gRPC answer, HTTP status {}", answer.exchange.status))),
        }
        let message = answer.messages.first().ok_or_else(|| "an answer without content".to_owned())?;
        let response = Response::decode(&message[..]).map_err(|error| format!("an answer that is none: {error}"))?;
        if let Some(error) = response.error {
            return Err(Problem::Other(status_text(error.code.clamp(0, 999) as u16, Some(&error.message))));
        }
        let files = response.files.unwrap_or_default().files;
        let decoded: Result<Vec<_>, _> = files.iter().map(|file| FileDescriptorProto::decode(&file[..])).collect();
        Ok(decoded.map_err(|error| format!("a file that is none: {error}"))?)
    }

    /// Sends one message as a whole stream, and waits for the whole answer.
    fn call(&mut self, message: &[u8]) -> Result<Answer, String> {
        let mut body = vec![0];
        body.extend_from_slice(&(message.len() as u32).to_be_bytes());
        body.extend_from_slice(message);
        let judge = Collect { done: std::cell::RefCell::new(None) };
        let mut tally = Tally::new(1);
        let mut asked = false;
        loop {
            let mut out = Vec::new();
            self.connection.control(&mut out);
            if !asked && self.connection.room() > 0 {
                let request = Request { block: &self.block, path: &[], fields: &[], body: &body };
                self.connection.begin(&request, 0, &mut out, |answer| *answer = Answer::default());
                asked = true;
            }
            self.stream.write_all(&out).and_then(|()| self.stream.flush()).map_err(|error| explained(&error))?;
            if let Some(answer) = judge.done.take() {
                return Ok(answer);
            }
            if asked && self.connection.in_flight() == 0 {
                return Err("the server reset the question".to_owned());
            }
            self.read(&judge, &mut tally)?;
        }
    }

    fn read(&mut self, judge: &Collect, tally: &mut Tally) -> Result<(), String> {
        // A server that keeps sending without ever answering is not waited for.
        if Instant::now() > self.deadline {
            return Err("no answer in time".to_owned());
        }
        let mut buffer = [0; 16 << 10];
        let length = self.stream.receive(&mut buffer).map_err(|error| explained(&error))?;
        if length == 0 {
            return Err("the server closed the connection".to_owned());
        }
        self.unread.extend_from_slice(&buffer[..length]);
        let received = self.connection.receive(judge, &self.unread, tally).map_err(|broken| broken.example)?;
        self.unread.drain(..received.consumed);
        Ok(())
    }
}

/// A file that another one imports and that is not there.
fn missing_import(files: &[FileDescriptorProto]) -> Option<String> {
    let mut imports = files.iter().flat_map(|file| &file.dependency);
    imports.find(|import| !files.iter().any(|file| file.name() == import.as_str())).cloned()
}

/// A ServerReflectionRequest in bytes: `file_by_filename` is field 3, `file_containing_symbol` field 4.
fn request(question: Question<'_>) -> Vec<u8> {
    let (field, text) = match question {
        Question::File(name) => (3_u8, name),
        Question::Symbol(name) => (4, name),
    };
    let mut message = vec![field << 3 | 2];
    let mut length = text.len();
    while length >= 128 {
        message.push(length as u8 | 128);
        length >>= 7;
    }
    message.push(length as u8);
    message.extend_from_slice(text.as_bytes());
    message
}

/// The part of a ServerReflectionResponse that is looked at.
#[derive(Clone, PartialEq, prost_reflect::prost::Message)]
#[prost(prost_path = "prost_reflect::prost")]
struct Response {
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "7")]
    error: Option<ErrorResponse>,
}

#[derive(Clone, PartialEq, prost_reflect::prost::Message)]
#[prost(prost_path = "prost_reflect::prost")]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost_reflect::prost::Message)]
#[prost(prost_path = "prost_reflect::prost")]
struct ErrorResponse {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}
