//! `grpc.testing.TestService` and the load reports that its clients look at.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grpc_server::Routes;
use prost::Message as _;
use tokio::sync::mpsc::{self, Sender};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};
use tonic::{Code, Request, Response, Status, Streaming};

use super::super::trailers::{Trailers, WithTrailers};
use orca::open_rca_service_server::{OpenRcaService, OpenRcaServiceServer};
use orca::{OrcaLoadReport, OrcaLoadReportRequest};
use testing::test_service_server::{TestService, TestServiceServer};
use testing::{
    EchoStatus, Empty, Payload, SimpleRequest, SimpleResponse, StreamingInputCallRequest, StreamingInputCallResponse,
    StreamingOutputCallRequest, StreamingOutputCallResponse, TestOrcaReport,
};

#[allow(missing_docs, unreachable_pub, clippy::all, reason = "made by a program")]
#[allow(clippy::allow_attributes_without_reason, clippy::too_many_lines, reason = "made by a program")]
mod testing {
    tonic::include_proto!("grpc.testing");
}

#[allow(missing_docs, unreachable_pub, clippy::all, reason = "made by a program")]
#[allow(clippy::allow_attributes_without_reason, clippy::too_many_lines, reason = "made by a program")]
mod orca {
    tonic::include_proto!("xds.service.orca.v3");
}

/// Metadata that is sent back, before the answer and behind it.
const ECHO_INITIAL: &str = "x-grpc-test-echo-initial";
const ECHO_TRAILING: &str = "x-grpc-test-echo-trailing-bin";

/// The trailer in which a server says what a call cost it.
const LOAD: &str = "endpoint-load-metrics-bin";

/// Answers that wait for a slow client.
const WAITING: usize = 4;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Both services; a report that one is given is what the other one says.
pub(super) fn routes() -> Routes {
    let load = Load::default();
    let interop = TestServiceServer::new(Interop { load: load.clone() });
    Routes::new().add_service(WithTrailers(interop)).add_service(OpenRcaServiceServer::new(Orca { load }))
}

/// The last report out of band.
#[derive(Clone, Default)]
struct Load(Arc<Mutex<OrcaLoadReport>>);

impl Load {
    fn set(&self, report: TestOrcaReport) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = report.into();
    }

    fn last(&self) -> OrcaLoadReport {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl From<TestOrcaReport> for OrcaLoadReport {
    fn from(report: TestOrcaReport) -> Self {
        Self {
            cpu_utilization: report.cpu_utilization,
            mem_utilization: report.memory_utilization,
            request_cost: report.request_cost,
            utilization: report.utilization,
        }
    }
}

struct Interop {
    load: Load,
}

#[tonic::async_trait]
impl TestService for Interop {
    async fn empty_call(&self, _request: Request<Empty>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }

    async fn unary_call(&self, request: Request<SimpleRequest>) -> Result<Response<SimpleResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        asked_for(request.response_status)?;
        let server_id = if request.fill_server_id { "the only one".to_owned() } else { String::new() };
        let mut response = Response::new(SimpleResponse { payload: Some(payload(request.response_size)?), server_id });
        echo_initial(&metadata, response.metadata_mut());
        let mut trailers = echo_trailing(&metadata);
        if let Some(report) = request.orca_per_query_report {
            let report = OrcaLoadReport::from(report).encode_to_vec();
            trailers.insert_bin(LOAD, BinaryMetadataValue::from_bytes(&report));
        }
        response.extensions_mut().insert(Trailers(trailers.into_headers()));
        Ok(response)
    }

    type StreamingOutputCallStream = Answers<StreamingOutputCallResponse>;

    async fn streaming_output_call(
        &self,
        request: Request<StreamingOutputCallRequest>,
    ) -> Result<Response<Self::StreamingOutputCallStream>, Status> {
        let request = request.into_inner();
        let (answers, stream) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            if let Err(status) = output(request, &answers).await {
                // The client has left if the error cannot be sent.
                let _ = answers.send(Err(status)).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn streaming_input_call(
        &self,
        request: Request<Streaming<StreamingInputCallRequest>>,
    ) -> Result<Response<StreamingInputCallResponse>, Status> {
        let (mut stream, mut size) = (request.into_inner(), 0);
        while let Some(request) = stream.message().await? {
            size += request.payload.map_or(0, |payload| payload.body.len());
        }
        let size = i32::try_from(size).map_err(|_| Status::out_of_range("the sum has no place in the answer"))?;
        Ok(Response::new(StreamingInputCallResponse { aggregated_payload_size: size }))
    }

    type FullDuplexCallStream = Answers<StreamingOutputCallResponse>;

    async fn full_duplex_call(
        &self,
        request: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<Response<Self::FullDuplexCallStream>, Status> {
        let (metadata, _, requests) = request.into_parts();
        let (answers, stream) = mpsc::channel(WAITING);
        let load = self.load.clone();
        tokio::spawn(async move {
            if let Err(status) = duplex(requests, &answers, &load).await {
                // The client has left if the error cannot be sent.
                let _ = answers.send(Err(status)).await;
            }
        });
        let mut response: Response<Self::FullDuplexCallStream> = Response::new(Box::pin(ReceiverStream::new(stream)));
        echo_initial(&metadata, response.metadata_mut());
        response.extensions_mut().insert(Trailers(echo_trailing(&metadata).into_headers()));
        Ok(response)
    }
}

struct Orca {
    load: Load,
}

#[tonic::async_trait]
impl OpenRcaService for Orca {
    type StreamCoreMetricsStream = Answers<OrcaLoadReport>;

    async fn stream_core_metrics(
        &self,
        request: Request<OrcaLoadReportRequest>,
    ) -> Result<Response<Self::StreamCoreMetricsStream>, Status> {
        let interval = request.into_inner().report_interval.map_or(Duration::from_secs(1), |interval| {
            Duration::new(interval.seconds.unsigned_abs(), interval.nanos.unsigned_abs())
        });
        let mut ticks = tokio::time::interval(interval.max(Duration::from_millis(100)));
        let load = self.load.clone();
        let (answers, stream) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = ticks.tick() => if answers.send(Ok(load.last())).await.is_err() { return },
                    () = answers.closed() => return,
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

/// Every request of a stream in turn, until one of them asks for an end.
async fn duplex(
    mut requests: Streaming<StreamingOutputCallRequest>,
    answers: &Sender<Result<StreamingOutputCallResponse, Status>>,
    load: &Load,
) -> Result<(), Status> {
    while let Some(mut request) = requests.message().await? {
        if let Some(report) = request.orca_oob_report.take() {
            load.set(report);
        }
        output(request, answers).await?;
    }
    Ok(())
}

/// The payloads that a request asks for.
async fn output(
    request: StreamingOutputCallRequest,
    answers: &Sender<Result<StreamingOutputCallResponse, Status>>,
) -> Result<(), Status> {
    asked_for(request.response_status)?;
    for wanted in request.response_parameters {
        tokio::time::sleep(Duration::from_micros(wanted.interval_us.max(0).unsigned_abs().into())).await;
        let response = StreamingOutputCallResponse { payload: Some(payload(wanted.size)?) };
        answers.send(Ok(response)).await.map_err(|_| Status::cancelled("the client has left"))?;
    }
    Ok(())
}

fn payload(size: i32) -> Result<Payload, Status> {
    let size = usize::try_from(size).map_err(|_| Status::invalid_argument("a size is not negative"))?;
    Ok(Payload { body: vec![0; size] })
}

/// The end that a request asks for.
fn asked_for(status: Option<EchoStatus>) -> Result<(), Status> {
    match status {
        Some(status) if status.code != 0 => Err(Status::new(Code::from_i32(status.code), status.message)),
        Some(_) | None => Ok(()),
    }
}

fn echo_initial(from: &MetadataMap, to: &mut MetadataMap) {
    if let Some(value) = from.get(ECHO_INITIAL) {
        to.insert(ECHO_INITIAL, value.clone());
    }
}

fn echo_trailing(from: &MetadataMap) -> MetadataMap {
    let mut trailers = MetadataMap::new();
    if let Some(value) = from.get_bin(ECHO_TRAILING) {
        trailers.insert_bin(ECHO_TRAILING, value.clone());
    }
    trailers
}
