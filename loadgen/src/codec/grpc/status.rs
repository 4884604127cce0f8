//! gRPC's statuses by name.

/// The names, in the order of their codes.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// A status in words: `NOT_FOUND: no such greeter`.
pub(crate) fn status_text(code: u16, message: Option<&str>) -> String {
    let name = NAMES.get(usize::from(code)).map_or_else(|| format!("status {code}"), |name| (*name).to_owned());
    match message {
        Some(message) if !message.is_empty() => format!("{name}: {message}"),
        _ => name,
    }
}
