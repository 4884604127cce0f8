//! Names of methods.

/// The method that is called where none is named.
pub const GREETER: &str = "helloworld.Greeter/SayHello";

/// Takes a method's name apart: `package.Service/Method`, `package.Service.Method`, with or without a `/` before it.
///
/// # Errors
/// When it has no service or no method.
pub fn split_name(name: &str) -> Result<(&str, &str), String> {
    let name = name.strip_prefix('/').unwrap_or(name);
    let split = name.rsplit_once('/').or_else(|| name.rsplit_once('.'));
    split
        .filter(|(service, method)| !service.is_empty() && !method.is_empty())
        .ok_or_else(|| format!("the method is `{name}`, expected one such as {GREETER}"))
}
