//! The name of a gRPC method and the types of its messages: from .proto files, a descriptor set, the server itself by reflection, or built
//! in.

mod name;
mod reflection;

use std::fs;
use std::path::{Path, PathBuf};

use prost_reflect::{DescriptorPool, MethodDescriptor};
use protox::Compiler;
use protox::file::{File, FileResolver, GoogleFileResolver};

pub use name::{GREETER, split_name};
pub use reflection::reflected;

/// The service that gRPC's own examples have.
const GREETER_PROTO: &str = r#"
syntax = "proto3";
package helloworld;
service Greeter { rpc SayHello(HelloRequest) returns (HelloReply); }
message HelloRequest { string name = 1; }
message HelloReply { string message = 1; }
"#;

/// The built-in description: the greeter.
///
/// # Panics
/// Never: its text is a constant.
#[must_use]
pub fn built_in() -> DescriptorPool {
    let mut compiler = Compiler::with_file_resolver(Greeter);
    compiler.include_imports(true).open_file("helloworld.proto").expect("the greeter's definition is right");
    compiler.descriptor_pool()
}

struct Greeter;

impl FileResolver for Greeter {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name {
            "helloworld.proto" => File::from_source(name, GREETER_PROTO),
            _ => GoogleFileResolver::new().open_file(name),
        }
    }
}

/// Compiles .proto files. Imports are looked for in `import_paths`, and beside the files.
///
/// # Errors
/// When a file is not there or not right; the text says where.
pub fn from_proto(files: &[PathBuf], import_paths: &[PathBuf]) -> Result<DescriptorPool, String> {
    let mut folders = import_paths.to_vec();
    for file in files {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_owned());
        }
    }
    let wrong = |error: protox::Error| format!("the .proto files: {error}");
    let mut compiler = Compiler::new(&folders).map_err(wrong)?;
    compiler.include_imports(true).open_files(files).map_err(wrong)?;
    Ok(compiler.descriptor_pool())
}

/// Reads a descriptor set, as `protoc --descriptor_set_out --include_imports` writes it.
///
/// # Errors
/// When the file cannot be read, or is no such set.
pub fn from_descriptor_set(file: &Path) -> Result<DescriptorPool, String> {
    let name = file.display();
    let bytes = fs::read(file).map_err(|error| format!("{name}: {error}"))?;
    DescriptorPool::decode(&bytes[..]).map_err(|error| format!("{name} is no descriptor set: {error}"))
}

/// Finds a method by its name.
///
/// # Errors
/// When it is not there; the text says what is.
pub fn method(pool: &DescriptorPool, name: &str) -> Result<MethodDescriptor, String> {
    let (service, method) = split_name(name)?;
    let Some(found) = pool.get_service_by_name(service) else {
        let known: Vec<_> = pool.services().map(|service| service.full_name().to_owned()).collect();
        return Err(format!("there is no service {service}, but {}", listed(&known)));
    };
    let methods = || found.methods().map(|method| method.name().to_owned()).collect::<Vec<_>>();
    let position = found.methods().find(|candidate| candidate.name() == method);
    position.ok_or_else(|| format!("{service} has no method {method}, but {}", listed(&methods())))
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none at all".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_found_by_their_names() {
        #[track_caller]
        fn check(name: &str, expected: Result<&str, &str>) {
            let found = method(&built_in(), name).map(|method| method.full_name().to_owned());
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
        check(GREETER, Ok("helloworld.Greeter.SayHello"));
        check("helloworld.Greeter.SayHello", Ok("helloworld.Greeter.SayHello"));
        check("/helloworld.Greeter/SayHello", Ok("helloworld.Greeter.SayHello"));
        check("a.B/C", Err("there is no service a.B, but helloworld.Greeter"));
        check("helloworld.Greeter/X", Err("helloworld.Greeter has no method X, but SayHello"));
        check("SayHello", Err("the method is `SayHello`, expected one such as helloworld.Greeter/SayHello"));
    }
}
