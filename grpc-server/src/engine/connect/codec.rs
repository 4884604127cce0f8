//! Messages in JSON, by the definitions of their types.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DescriptorError, DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor};
use tonic::Status;

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Proto,
    Json,
}

/// Whose messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Answer,
}

/// What is known of the services.
#[derive(Clone, Debug)]
pub(crate) struct Definitions(DescriptorPool);

/// What is known of a method.
pub(super) struct Method {
    pub(super) is_stream: bool,
    pub(super) types: Types,
}

/// The types of a method's messages.
#[derive(Clone, Default)]
pub(super) struct Types(Option<Arc<(MessageDescriptor, MessageDescriptor)>>);

impl Definitions {
    /// # Errors
    /// When a set is none, or lacks what it needs.
    pub(super) fn of(sets: &[&'static [u8]]) -> Result<Self, DescriptorError> {
        let mut pool = DescriptorPool::new();
        for set in sets {
            pool.decode_file_descriptor_set(*set)?;
        }
        Ok(Self(pool))
    }

    /// The method of a path such as `/helloworld.Greeter/SayHello`.
    pub(super) fn method(&self, path: &str) -> Option<Method> {
        let (service, name) = path.strip_prefix('/')?.split_once('/')?;
        let method = self.0.get_service_by_name(service)?.methods().find(|method| method.name() == name)?;
        Some(Method {
            is_stream: method.is_client_streaming() || method.is_server_streaming(),
            types: Types(Some(Arc::new((method.input(), method.output())))),
        })
    }
}

impl Types {
    /// How messages of this kind are translated.
    pub(super) fn of(&self, codec: Codec, kind: Kind) -> Messages {
        let types = self.0.as_ref().filter(|_| codec == Codec::Json);
        Messages(types.map(|types| if kind == Kind::Request { types.0.clone() } else { types.1.clone() }))
    }
}

/// Translates messages of one type, or leaves them as they are.
#[derive(Clone)]
pub(super) struct Messages(Option<MessageDescriptor>);

impl Messages {
    /// Whether messages stay as they are.
    pub(super) fn are_plain(&self) -> bool {
        self.0.is_none()
    }

    /// A request's message as services read it.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn request(&self, bytes: Bytes) -> Result<Bytes, Status> {
        let Some(of) = &self.0 else { return Ok(bytes) };
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        // As protocol buffers themselves: a field that is not known here is one of a newer definition.
        let options = DeserializeOptions::new().deny_unknown_fields(false);
        let message = DynamicMessage::deserialize_with_options(of.clone(), &mut reader, &options)
            .and_then(|message| reader.end().map(|()| message))
            .map_err(|error| Status::invalid_argument(format!("the message is no {}: {error}", of.full_name())))?;
        Ok(message.encode_to_vec().into())
    }

    /// An answer's message as its client reads it.
    ///
    /// # Errors
    /// When the service has sent another one.
    pub(super) fn answer(&self, bytes: Bytes) -> Result<Bytes, Status> {
        let Some(of) = &self.0 else { return Ok(bytes) };
        let message = DynamicMessage::decode(of.clone(), bytes)
            .map_err(|error| Status::internal(format!("the answer is no {}: {error}", of.full_name())))?;
        let json = serde_json::to_vec(&message).map_err(|error| Status::internal(error.to_string()))?;
        Ok(json.into())
    }
}
