//! Redis over HTTP, against the embedded server and genuine ones.
