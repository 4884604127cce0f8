//! `grpc.reflection`: the definitions of the services, for tools that have none; as v1 and v1alpha.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto};
use server_runtime::Error;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};
use tonic_reflection::pb::{self, v1, v1alpha};

use self::v1::server_reflection_request::MessageRequest;
use self::v1::server_reflection_response::MessageResponse;
use crate::health;
use crate::routes::Routes;

/// The services themselves.
const NAMES: [&str; 2] = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// Definitions of what the harness adds.
const OWN: [&[u8]; 3] = [health::pb::DESCRIPTORS, pb::v1::FILE_DESCRIPTOR_SET, pb::v1alpha::FILE_DESCRIPTOR_SET];

/// Adds both services for the given encoded `FileDescriptorSet`s; none if there are none.
pub(crate) fn add(routes: Routes, descriptors: &[&'static [u8]]) -> Result<Routes, Error> {
    if descriptors.is_empty() {
        return Ok(routes);
    }
    let mut index = Index { services: routes.names().chain(NAMES).map(str::to_owned).collect(), ..Index::default() };
    for set in descriptors.iter().copied().chain(OWN) {
        index.add(set).map_err(|error| Error::Flags(format!("reflection: {error}")))?;
    }
    let reflection = Reflection(Arc::new(index));
    let routes = routes.add_service(v1::server_reflection_server::ServerReflectionServer::new(reflection.clone()));
    Ok(routes.add_service(v1alpha::server_reflection_server::ServerReflectionServer::new(reflection)))
}

/// An encoded `FileDescriptorSet` whose files are left as they are: fields that this program does not know stay.
#[derive(Clone, PartialEq, prost::Message)]
struct Set {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    files: Vec<Bytes>,
}

/// Files by what they define.
#[derive(Debug, Default)]
struct Index {
    services: Vec<String>,
    files: HashMap<String, Bytes>,
    symbols: HashMap<String, Bytes>,
    /// By the full name of the message that is extended, and the number.
    extensions: BTreeMap<(String, i32), Bytes>,
}

impl Index {
    /// Adds the files of an encoded set. Of two files of one name the first counts.
    fn add(&mut self, set: &'static [u8]) -> Result<(), prost::DecodeError> {
        for bytes in Set::decode(set)?.files {
            let file = FileDescriptorProto::decode(bytes.clone())?;
            if !self.files.contains_key(file.name()) {
                self.files.insert(file.name().to_owned(), bytes.clone());
                self.add_file(&file, &bytes);
            }
        }
        Ok(())
    }

    fn add_file(&mut self, file: &FileDescriptorProto, bytes: &Bytes) {
        let package = file.package();
        file.message_type.iter().for_each(|message| self.add_message(package, message, bytes));
        file.enum_type.iter().for_each(|kind| self.add_enum(package, kind, bytes));
        file.extension.iter().for_each(|field| self.add_extension(package, field, bytes));
        for service in &file.service {
            let name = self.add_symbol(package, service.name(), bytes);
            for method in &service.method {
                self.add_symbol(&name, method.name(), bytes);
            }
        }
    }

    fn add_message(&mut self, scope: &str, message: &DescriptorProto, bytes: &Bytes) {
        let name = self.add_symbol(scope, message.name(), bytes);
        message.nested_type.iter().for_each(|nested| self.add_message(&name, nested, bytes));
        message.enum_type.iter().for_each(|kind| self.add_enum(&name, kind, bytes));
        message.extension.iter().for_each(|field| self.add_extension(&name, field, bytes));
        for part in
            message.field.iter().map(|field| field.name()).chain(message.oneof_decl.iter().map(|one| one.name()))
        {
            self.add_symbol(&name, part, bytes);
        }
    }

    /// Values of an enum stand beside it, and older tools look for them in it.
    fn add_enum(&mut self, scope: &str, kind: &EnumDescriptorProto, bytes: &Bytes) {
        let name = self.add_symbol(scope, kind.name(), bytes);
        for value in &kind.value {
            self.add_symbol(scope, value.name(), bytes);
            self.add_symbol(&name, value.name(), bytes);
        }
    }

    fn add_extension(&mut self, scope: &str, field: &FieldDescriptorProto, bytes: &Bytes) {
        self.add_symbol(scope, field.name(), bytes);
        let extended = field.extendee().trim_start_matches('.').to_owned();
        self.extensions.insert((extended, field.number()), bytes.clone());
    }

    fn add_symbol(&mut self, scope: &str, name: &str, bytes: &Bytes) -> String {
        let name = if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") };
        self.symbols.insert(name.clone(), bytes.clone());
        name
    }

    fn find(&self, asked: &MessageRequest) -> Result<MessageResponse, Status> {
        let file = |found: Option<&Bytes>, what: &str| {
            let bytes = found.ok_or_else(|| Status::not_found(format!("there is no {what}")))?;
            let file_descriptor_proto = vec![bytes.to_vec()];
            Ok(MessageResponse::FileDescriptorResponse(v1::FileDescriptorResponse { file_descriptor_proto }))
        };
        match asked {
            MessageRequest::FileByFilename(name) => file(self.files.get(name), &format!("file {name:?}")),
            MessageRequest::FileContainingSymbol(name) => file(self.symbols.get(name), &format!("symbol {name:?}")),
            MessageRequest::FileContainingExtension(asked) => {
                let key = (asked.containing_type.clone(), asked.extension_number);
                file(self.extensions.get(&key), &format!("extension {} of {:?}", key.1, key.0))
            }
            MessageRequest::AllExtensionNumbersOfType(name) => {
                file(self.symbols.get(name), &format!("type {name:?}"))?;
                let all = self.extensions.keys().filter(|(extended, _)| extended == name);
                Ok(MessageResponse::AllExtensionNumbersResponse(v1::ExtensionNumberResponse {
                    base_type_name: name.clone(),
                    extension_number: all.map(|(_, number)| *number).collect(),
                }))
            }
            MessageRequest::ListServices(_) => {
                let service = self.services.iter().map(|name| v1::ServiceResponse { name: name.clone() }).collect();
                Ok(MessageResponse::ListServicesResponse(v1::ListServiceResponse { service }))
            }
        }
    }

    /// The answer to one question. A definition that is not found has an answer, too: the next question may be asked on
    /// the same stream.
    fn answer(&self, request: v1::ServerReflectionRequest) -> v1::ServerReflectionResponse {
        let nothing = || Err(Status::invalid_argument("the request asks for nothing"));
        let found = request.message_request.as_ref().map_or_else(nothing, |asked| self.find(asked));
        let message = found.unwrap_or_else(|status| {
            MessageResponse::ErrorResponse(v1::ErrorResponse {
                error_code: status.code().into(),
                error_message: status.message().to_owned(),
            })
        });
        v1::ServerReflectionResponse {
            valid_host: request.host.clone(),
            original_request: Some(request),
            message_response: Some(message),
        }
    }
}

/// Both versions of the service.
#[derive(Clone, Debug)]
struct Reflection(Arc<Index>);

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl v1::server_reflection_server::ServerReflection for Reflection {
    type ServerReflectionInfoStream = Answers<v1::ServerReflectionResponse>;

    async fn server_reflection_info(
        &self,
        request: Request<Streaming<v1::ServerReflectionRequest>>,
    ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
        let index = Arc::clone(&self.0);
        let answers = request.into_inner().map(move |asked| asked.map(|asked| index.answer(asked)));
        Ok(Response::new(Box::pin(answers)))
    }
}

#[tonic::async_trait]
impl v1alpha::server_reflection_server::ServerReflection for Reflection {
    type ServerReflectionInfoStream = Answers<v1alpha::ServerReflectionResponse>;

    async fn server_reflection_info(
        &self,
        request: Request<Streaming<v1alpha::ServerReflectionRequest>>,
    ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
        let index = Arc::clone(&self.0);
        let answers = request.into_inner().map(move |asked| {
            let answer = index.answer(same(&asked?)?);
            same(&answer)
        });
        Ok(Response::new(Box::pin(answers)))
    }
}

/// A message in the other version, which is written the same.
fn same<T: prost::Message + Default>(message: &impl prost::Message) -> Result<T, Status> {
    T::decode(&message.encode_to_vec()[..]).map_err(|error| Status::internal(format!("reflection: {error}")))
}
