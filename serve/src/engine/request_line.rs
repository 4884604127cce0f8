//! A request's line, for the log when its answer fails.

use std::any::Any;
use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::rc::Rc;

use http::{Method, Request, Uri, Version};

use super::guard::OfClient;
use super::upload::BodyError;

/// Method, target and version of a request. All that may have to log it share one.
pub struct RequestLine {
    method: Method,
    uri: Uri,
    version: Version,
    attached: RefCell<Option<Box<dyn Any>>>,
}

impl fmt::Debug for RequestLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.method, self.uri, self.version)
    }
}

impl RequestLine {
    pub(super) fn of<B>(request: &Request<B>) -> Rc<Self> {
        let (method, uri, version) = (request.method().clone(), request.uri().clone(), request.version());
        Rc::new(Self { method, uri, version, attached: RefCell::default() })
    }

    /// Keeps a value of the application until the request's answer has been sent, or is wanted no more.
    pub fn attach(&self, value: impl Any) {
        self.attached.replace(Some(Box::new(value)));
    }

    /// The path, escaped, so that it is one word of one line.
    pub(super) fn path(&self) -> String {
        self.uri.path().escape_default().to_string()
    }

    /// The body of the answer has failed, or is not as long as its head says. The client sees that something is missing, and only the
    /// log can say why. A body that is made of the request's fails with it: that is the client's doing, and no warning.
    pub(crate) fn body_failed(&self, error: &(dyn Error + 'static)) {
        let (method, path, protocol) = (self.method.as_str(), self.path(), format!("{:?}", self.version));
        if is_of_client(error) {
            tracing::debug!(method, path, protocol, "a response's body failed: {error}");
        } else {
            tracing::warn!(method, path, protocol, "a response's body failed: {error}");
        }
    }
}

/// Whether a body has failed because the request's has.
fn is_of_client(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<BodyError>() || error.is::<OfClient>() {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_request_are_its_clients() {
        let other = || axum::Error::new(std::io::Error::other("a disk"));
        assert!(!is_of_client(&other()));
        assert!(is_of_client(&axum::Error::new(BodyError::Gone)));
        assert!(is_of_client(&axum::Error::new(axum::Error::new(OfClient(other().into())))));
    }
}
