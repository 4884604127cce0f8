//! `connectrpc.conformance.v1.ConformanceService`: answers as its requests define them, with what it has seen of each.

use std::pin::Pin;
use std::time::Duration;

use grpc_server::{ConnectGet, Routes};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use prost::Message;
use prost_types::Any;
use tokio::sync::mpsc::{self, Sender};
use tokio::time::sleep;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::CompressionEncoding::{Gzip, Zstd};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use self::pb::conformance_payload::{ConnectGetInfo, RequestInfo};
use self::pb::conformance_service_server::{ConformanceService, ConformanceServiceServer};
use self::pb::unary_response_definition::Response as Defined;
use self::pb::{
    BidiStreamRequest, BidiStreamResponse, ClientStreamRequest, ClientStreamResponse, ConformancePayload, Error,
    Header, IdempotentUnaryRequest, IdempotentUnaryResponse, ServerStreamRequest, ServerStreamResponse,
    StreamResponseDefinition, UnaryRequest, UnaryResponse, UnaryResponseDefinition, UnimplementedRequest,
    UnimplementedResponse,
};
use super::super::trailers::{Trailers, WithTrailers};

#[allow(missing_docs, unreachable_pub, unnameable_types, clippy::all, reason = "made by a program")]
#[allow(clippy::allow_attributes_without_reason, clippy::too_many_lines, reason = "made by a program")]
pub(super) mod pb {
    tonic::include_proto!("connectrpc.conformance.v1");
}

/// Answers that wait for a slow client.
const WAITING: usize = 4;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The service, whose requests may have so many bytes.
pub(super) fn routes(limit: Option<usize>) -> Routes {
    let mut service = ConformanceServiceServer::new(Conformance);
    for coding in [Gzip, Zstd] {
        service = service.accept_compressed(coding).send_compressed(coding);
    }
    if let Some(limit) = limit {
        service = service.max_decoding_message_size(limit);
    }
    Routes::new().add_service(WithTrailers(service))
}

struct Conformance;

#[tonic::async_trait]
impl ConformanceService for Conformance {
    async fn unary(&self, request: Request<UnaryRequest>) -> Result<Response<UnaryResponse>, Status> {
        let (metadata, extensions, request) = request.into_parts();
        let seen = info(&metadata, &extensions, vec![any("UnaryRequest", &request)]);
        let answer = answer(request.response_definition, seen).await?;
        Ok(answer.map(|payload| UnaryResponse { payload: Some(payload) }))
    }

    async fn idempotent_unary(
        &self,
        request: Request<IdempotentUnaryRequest>,
    ) -> Result<Response<IdempotentUnaryResponse>, Status> {
        let (metadata, extensions, request) = request.into_parts();
        let seen = info(&metadata, &extensions, vec![any("IdempotentUnaryRequest", &request)]);
        let answer = answer(request.response_definition, seen).await?;
        Ok(answer.map(|payload| IdempotentUnaryResponse { payload: Some(payload) }))
    }

    async fn client_stream(
        &self,
        request: Request<Streaming<ClientStreamRequest>>,
    ) -> Result<Response<ClientStreamResponse>, Status> {
        let (metadata, extensions, mut requests) = request.into_parts();
        let (mut definition, mut seen) = (None, Vec::new());
        while let Some(request) = requests.message().await? {
            seen.push(any("ClientStreamRequest", &request));
            if seen.len() == 1 {
                definition = request.response_definition;
            }
        }
        let answer = answer(definition, info(&metadata, &extensions, seen)).await?;
        Ok(answer.map(|payload| ClientStreamResponse { payload: Some(payload) }))
    }

    type ServerStreamStream = Answers<ServerStreamResponse>;

    async fn server_stream(
        &self,
        request: Request<ServerStreamRequest>,
    ) -> Result<Response<Self::ServerStreamStream>, Status> {
        let (metadata, extensions, request) = request.into_parts();
        let seen = info(&metadata, &extensions, vec![any("ServerStreamRequest", &request)]);
        let mut talk = Talk::new(request.response_definition, seen);
        let (answers, response) = talk.response(|payload| ServerStreamResponse { payload: Some(payload) });
        tokio::spawn(async move {
            let ended = talk.say_all(&answers).await;
            answers.end(ended).await;
        });
        Ok(response)
    }

    type BidiStreamStream = Answers<BidiStreamResponse>;

    async fn bidi_stream(
        &self,
        request: Request<Streaming<BidiStreamRequest>>,
    ) -> Result<Response<Self::BidiStreamStream>, Status> {
        let (metadata, extensions, mut requests) = request.into_parts();
        let first = requests.message().await?;
        let seen = first.iter().map(|first| any("BidiStreamRequest", first)).collect();
        let first = first.unwrap_or_default();
        let talk = Talk::new(first.response_definition, info(&metadata, &extensions, seen));
        let (answers, response) = talk.response(|payload| BidiStreamResponse { payload: Some(payload) });
        let is_full_duplex = first.full_duplex;
        tokio::spawn(async move {
            let ended = converse(talk, is_full_duplex, requests, &answers).await;
            answers.end(ended).await;
        });
        Ok(response)
    }

    async fn unimplemented(&self, _: Request<UnimplementedRequest>) -> Result<Response<UnimplementedResponse>, Status> {
        Err(Status::unimplemented("as it should be"))
    }
}

/// One answer, or an error.
async fn answer(
    definition: Option<UnaryResponseDefinition>,
    seen: RequestInfo,
) -> Result<Response<ConformancePayload>, Status> {
    let definition = definition.unwrap_or_default();
    sleep(Duration::from_millis(definition.response_delay_ms.into())).await;
    let data = match definition.response {
        Some(Defined::Error(error)) => {
            // The head of such an answer is all of it.
            let mut head = fields(&definition.response_headers);
            head.extend(fields(&definition.response_trailers));
            return Err(status(error, Some(seen), head));
        }
        Some(Defined::ResponseData(data)) => data,
        None => Vec::new(),
    };
    let mut response = Response::new(ConformancePayload { data, request_info: Some(seen) });
    *response.metadata_mut() = MetadataMap::from_headers(fields(&definition.response_headers));
    response.extensions_mut().insert(Trailers(fields(&definition.response_trailers)));
    Ok(response)
}

/// All requests, and the answers.
async fn converse<T>(
    mut talk: Talk,
    is_full_duplex: bool,
    mut requests: Streaming<BidiStreamRequest>,
    answers: &Outlet<T>,
) -> Result<(), Status> {
    loop {
        if is_full_duplex && !talk.say(answers).await? {
            break;
        }
        let Some(request) = requests.message().await? else { break };
        talk.seen.requests.push(any("BidiStreamRequest", &request));
    }
    talk.say_all(answers).await
}

/// Answers of a stream.
struct Talk {
    head: Vec<Header>,
    tail: Vec<Header>,
    data: std::vec::IntoIter<Vec<u8>>,
    delay: Duration,
    error: Option<Error>,
    /// The request's properties, for the next answer.
    seen: RequestInfo,
    has_begun: bool,
}

impl Talk {
    fn new(definition: Option<StreamResponseDefinition>, seen: RequestInfo) -> Self {
        let definition = definition.unwrap_or_default();
        Self {
            head: definition.response_headers,
            tail: definition.response_trailers,
            data: definition.response_data.into_iter(),
            delay: Duration::from_millis(definition.response_delay_ms.into()),
            error: definition.error,
            seen,
            has_begun: false,
        }
    }

    /// The response whose messages go into the outlet.
    fn response<T: Send + 'static>(&self, wrap: fn(ConformancePayload) -> T) -> (Outlet<T>, Response<Answers<T>>) {
        let (sender, stream) = mpsc::channel(WAITING);
        let mut response: Response<Answers<T>> = Response::new(Box::pin(ReceiverStream::new(stream)));
        *response.metadata_mut() = MetadataMap::from_headers(fields(&self.head));
        response.extensions_mut().insert(Trailers(fields(&self.tail)));
        (Outlet { sender, wrap }, response)
    }

    /// The next answer; whether there was one.
    async fn say<T>(&mut self, answers: &Outlet<T>) -> Result<bool, Status> {
        let Some(data) = self.data.next() else { return Ok(false) };
        sleep(self.delay).await;
        let seen = std::mem::take(&mut self.seen);
        self.has_begun = true;
        let is_new = seen != RequestInfo::default();
        answers.send(ConformancePayload { data, request_info: is_new.then_some(seen) }).await?;
        Ok(true)
    }

    /// The answers that are left, and the error.
    async fn say_all<T>(&mut self, answers: &Outlet<T>) -> Result<(), Status> {
        while self.say(answers).await? {}
        let Some(error) = self.error.take() else { return Ok(()) };
        let seen = (!self.has_begun).then(|| std::mem::take(&mut self.seen));
        Err(status(error, seen, HeaderMap::new()))
    }
}

/// Where the messages of a stream go.
struct Outlet<T> {
    sender: Sender<Result<T, Status>>,
    wrap: fn(ConformancePayload) -> T,
}

impl<T> Outlet<T> {
    async fn send(&self, payload: ConformancePayload) -> Result<(), Status> {
        self.sender.send(Ok((self.wrap)(payload))).await.map_err(|_| Status::cancelled("nobody takes the answers"))
    }

    async fn end(&self, ended: Result<(), Status>) {
        if let Err(status) = ended {
            // The receiver may be gone; then the error is dropped.
            let _ = self.sender.send(Err(status)).await;
        }
    }
}

fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/connectrpc.conformance.v1.{name}"), value: message.encode_to_vec() }
}

/// The properties of a request that a server has seen.
fn info(metadata: &MetadataMap, extensions: &Extensions, requests: Vec<Any>) -> RequestInfo {
    let headers = metadata.clone().into_headers();
    let values = |name: &HeaderName| {
        headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let request_headers =
        headers.keys().map(|name| Header { name: name.as_str().to_owned(), value: values(name) }).collect();
    let timeout_ms = metadata.get("grpc-timeout").map(|text| millis(text.to_str().unwrap()));
    let connect_get_info =
        extensions.get::<ConnectGet>().map(|get| ConnectGetInfo { query_params: query(get.query()) });
    RequestInfo { request_headers, timeout_ms, requests, connect_get_info }
}

/// Of a time-out as gRPC writes it.
fn millis(text: &str) -> i64 {
    let (digits, unit) = text.split_at(text.len() - 1);
    let count: i64 = digits.parse().unwrap();
    match unit {
        "n" => count / 1_000_000,
        "u" => count / 1000,
        "m" => count,
        "S" => count * 1000,
        "M" => count * 60_000,
        unit => panic!("{unit} is no unit that these clients use"),
    }
}

/// Names and values of a query, as far as these have nothing to decode: others are left out.
fn query(text: &str) -> Vec<Header> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    let plain = pairs.filter(|(_, value)| !value.contains(['%', '+']));
    plain.map(|(name, value)| Header { name: name.to_owned(), value: vec![value.to_owned()] }).collect()
}

fn fields(headers: &[Header]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for header in headers {
        let name: HeaderName = header.name.parse().unwrap();
        for value in &header.value {
            fields.append(&name, HeaderValue::from_str(value).unwrap());
        }
    }
    fields
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
struct Detailed {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// An error as it is defined, and behind its details what was seen.
fn status(error: Error, seen: Option<RequestInfo>, metadata: HeaderMap) -> Status {
    let mut details = error.details;
    details.extend(seen.map(|seen| any("ConformancePayload.RequestInfo", &seen)));
    let message = error.message.unwrap_or_default();
    let detailed = Detailed { code: error.code, message: message.clone(), details }.encode_to_vec();
    let metadata = MetadataMap::from_headers(metadata);
    Status::with_details_and_metadata(error.code.into(), message, detailed.into(), metadata)
}
