//! `grpc.reflection`: what the services are, for tools that have no definition of them; as v1 and v1alpha.

use server_runtime::Error;
use tonic_reflection::pb;
use tonic_reflection::server::Builder;

use crate::routes::Routes;

/// The services themselves.
const NAMES: [&str; 2] = ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// Definitions of what the harness adds.
const OWN: [&[u8]; 3] =
    [tonic_health::pb::FILE_DESCRIPTOR_SET, pb::v1::FILE_DESCRIPTOR_SET, pb::v1alpha::FILE_DESCRIPTOR_SET];

/// Adds both services for the given encoded `FileDescriptorSet`s; none if there are none.
pub(crate) fn add(routes: Routes, descriptors: &[&'static [u8]]) -> Result<Routes, Error> {
    if descriptors.is_empty() {
        return Ok(routes);
    }
    let builder = || {
        let builder = Builder::configure().include_reflection_service(false);
        let builder = routes.names().chain(NAMES).fold(builder, Builder::with_service_name);
        descriptors.iter().copied().chain(OWN).fold(builder, Builder::register_encoded_file_descriptor_set)
    };
    let wrong = |error: tonic_reflection::server::Error| Error::Flags(format!("reflection: {error}"));
    let (v1, v1alpha) = (builder().build_v1().map_err(wrong)?, builder().build_v1alpha().map_err(wrong)?);
    Ok(routes.add_service(v1).add_service(v1alpha))
}
