//! Messages in JSON, by the definitions of their types.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use prost_reflect::prost_types::method_options::IdempotencyLevel;
use prost_reflect::{DescriptorError, DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor};
use tonic::Status;

use super::body::PACKED;
use super::coding::Coding;

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Proto,
    Json,
}

impl Codec {
    /// By its name, as content types and queries have it.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "proto" => Some(Self::Proto),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// The definitions of the services.
#[derive(Clone, Debug)]
pub(crate) struct Definitions(DescriptorPool);

/// The definition of a method.
pub(super) struct Method {
    pub(super) is_stream: bool,
    /// Whether a call has any number of messages, and not exactly one.
    pub(super) takes_many: bool,
    /// Whether it changes nothing, as its definition says: such a call may come by GET.
    pub(super) is_safe: bool,
    pub(super) types: Types,
}

/// The types of a method's messages.
#[derive(Clone)]
pub(super) struct Types(Arc<(MessageDescriptor, MessageDescriptor)>);

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
        let options = method.method_descriptor_proto().options.as_ref();
        Some(Method {
            is_stream: method.is_client_streaming() || method.is_server_streaming(),
            takes_many: method.is_client_streaming(),
            is_safe: options.is_some_and(|options| options.idempotency_level() == IdempotencyLevel::NoSideEffects),
            types: Types(Arc::new((method.input(), method.output()))),
        })
    }
}

impl Types {
    /// How requests are translated that are compressed, where they are, like this; of so many bytes at most.
    pub(super) fn request(&self, coding: Option<Coding>, most: usize) -> Json {
        Json { of: self.0.0.clone(), coding, most }
    }

    /// How answers are translated.
    pub(super) fn answer(&self) -> Json {
        // Answers are not bounded here: they are what the service has made.
        Json { of: self.0.1.clone(), coding: None, most: usize::MAX }
    }
}

/// Translates messages of one type between JSON and protocol buffers.
#[derive(Clone)]
pub(super) struct Json {
    of: MessageDescriptor,
    /// How messages are compressed whose envelope says that they are.
    coding: Option<Coding>,
    most: usize,
}

impl Json {
    /// The same for messages that are compressed like this.
    pub(super) fn coded(self, coding: Option<Coding>) -> Self {
        Self { coding, ..self }
    }

    /// A request's message as services read it, never compressed.
    ///
    /// # Errors
    /// When it is none.
    pub(super) fn request(&self, flags: u8, bytes: Bytes) -> Result<Bytes, Status> {
        let bytes = self.unpacked(flags, bytes)?;
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        // As protocol buffers themselves: a field that is not known here is one of a newer definition.
        let options = DeserializeOptions::new().deny_unknown_fields(false);
        let message = DynamicMessage::deserialize_with_options(self.of.clone(), &mut reader, &options)
            .and_then(|message| reader.end().map(|()| message))
            .map_err(|error| Status::invalid_argument(format!("the message is no {}: {error}", self.of.full_name())))?;
        Ok(message.encode_to_vec().into())
    }

    /// An answer's message as its client reads it, compressed if it was.
    ///
    /// # Errors
    /// When the service has sent another one.
    pub(super) fn answer(&self, flags: u8, bytes: Bytes) -> Result<Bytes, Status> {
        let bytes = self.unpacked(flags, bytes)?;
        let message = DynamicMessage::decode(self.of.clone(), bytes)
            .map_err(|error| Status::internal(format!("the answer is no {}: {error}", self.of.full_name())))?;
        let json = serde_json::to_vec(&message).map_err(|error| Status::internal(error.to_string()))?;
        match self.coding.filter(|_| flags == PACKED) {
            Some(coding) => coding.pack(&json),
            None => Ok(json.into()),
        }
    }

    fn unpacked(&self, flags: u8, bytes: Bytes) -> Result<Bytes, Status> {
        match (flags, self.coding) {
            (0, _) => Ok(bytes),
            (PACKED, Some(coding)) => coding.unpack(&bytes, self.most),
            (PACKED, None) => Err(Status::internal("a message is compressed, and no header says how")),
            (flags, _) => Err(Status::internal(format!("an envelope's flags are {flags}; expected 0 or 1"))),
        }
    }
}
