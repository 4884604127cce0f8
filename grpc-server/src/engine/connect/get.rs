//! Calls by GET: the message, and its metadata that headers hold otherwise, stand in the query (Connect,
//! "Unary-Get-Request").

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Method, Request};
use percent_encoding::percent_decode;
use tonic::Status;
use tonic::body::Body;

use super::body::first;
use super::codec::Codec;
use super::{CONNECT_VERSION, Form};
use crate::engine::inbound::Inbound;

/// With padding and without: clients write both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A call by the Connect protocol that came by GET, among the extensions of its request.
///
/// Its method changes nothing, as its definition says, so its answer may be kept: a handler that finds this can say for how long,
/// by `cache-control` in its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectGet {
    query: Box<str>,
}

impl ConnectGet {
    /// The part of the request's target behind the question mark.
    pub fn query(&self) -> &str {
        &self.query
    }
}

/// The parameters of a query.
#[derive(Default)]
struct Query<'q> {
    version: Option<Cow<'q, [u8]>>,
    encoding: Option<Cow<'q, [u8]>>,
    compression: Option<Cow<'q, [u8]>>,
    base64: Option<Cow<'q, [u8]>>,
    message: Option<Cow<'q, [u8]>>,
}

impl<'q> Query<'q> {
    fn of(text: &'q str) -> Self {
        let mut query = Self::default();
        for (name, value) in text.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, ""))) {
            let place = match name {
                "connect" => &mut query.version,
                "encoding" => &mut query.encoding,
                "compression" => &mut query.compression,
                "base64" => &mut query.base64,
                "message" => &mut query.message,
                // Others may have a meaning for a proxy on the way.
                _ => continue,
            };
            *place = Some(decoded(value));
        }
        query
    }
}

/// As forms are written: `+` is a space.
fn decoded(value: &str) -> Cow<'_, [u8]> {
    if value.contains('+') {
        return Cow::Owned(percent_decode(value.replace('+', " ").as_bytes()).collect());
    }
    percent_decode(value.as_bytes()).into()
}

/// How the message of a GET is written; none if that is not known here.
pub(super) fn form<B>(request: &Request<B>) -> Option<Form> {
    let encoding = Query::of(request.uri().query()?).encoding?;
    Some(Form { codec: Codec::of(std::str::from_utf8(&encoding).ok()?)?, is_stream: false })
}

/// The same call as POST has it.
///
/// # Errors
/// When the query has no message, or something is wrong with it.
pub(super) fn unfolded(request: Request<Inbound>, form: Form) -> Result<Request<Inbound>, Status> {
    let (mut head, _) = request.into_parts();
    let text: Box<str> = head.uri.query().unwrap_or_default().into();
    let query = Query::of(&text);
    let header = |name: &str, value: Cow<'_, [u8]>| {
        HeaderValue::from_bytes(&value).map_err(|_| Status::invalid_argument(format!("{name} in the query is no name")))
    };
    let message = query.message.ok_or_else(|| Status::invalid_argument("the query has no message"))?;
    let message = match query.base64.as_deref() {
        Some(b"1") => BASE64
            .decode(&message)
            .map_err(|error| Status::invalid_argument(format!("message in the query is no base64: {error}")))?,
        _ => message.into_owned(),
    };
    head.headers.remove(CONTENT_ENCODING);
    if let Some(coding) = query.compression {
        head.headers.insert(CONTENT_ENCODING, header("compression", coding)?);
    }
    if let Some(version) = query.version {
        // `v1` here is `1` in the header.
        let number = version.strip_prefix(b"v").unwrap_or(b"").to_vec();
        head.headers.insert(CONNECT_VERSION, header("connect", number.into())?);
    }
    head.headers.insert(CONTENT_TYPE, form.media_type());
    head.method = Method::POST;
    head.extensions.insert(ConnectGet { query: text });
    Ok(Request::from_parts(head, Inbound::from(Body::new(first(Bytes::from(message))))))
}

#[cfg(test)]
mod tests {
    use http::Uri;
    use tonic::Code;

    use super::*;

    fn get(query: &str) -> Request<Inbound> {
        let uri: Uri = format!("http://test/a.B/C?{query}").parse().unwrap();
        Request::get(uri).body(Inbound::from(Body::empty())).unwrap()
    }

    #[test]
    fn forms() {
        let of = |query| form(&get(query)).map(|form| form.codec);
        assert_eq!(of("encoding=json&message={}"), Some(Codec::Json));
        assert_eq!(of("message=&encoding=proto"), Some(Codec::Proto));
        for query in ["", "message={}", "encoding=xml", "encoding=%ff", "Encoding=json"] {
            assert_eq!(of(query), None, "{query}");
        }
    }

    #[tokio::test]
    async fn queries() {
        use http_body_util::BodyExt as _;
        async fn check(query: &str, expected: Result<&[u8], Code>) {
            let form = Form { codec: Codec::Json, is_stream: false };
            let found = match unfolded(get(query), form) {
                Ok(request) => {
                    assert_eq!(request.method(), Method::POST);
                    assert_eq!(request.extensions().get::<ConnectGet>().map(ConnectGet::query), Some(query));
                    Ok(request.into_body().collect().await.unwrap().to_bytes())
                }
                Err(status) => Err(status.code()),
            };
            assert_eq!(found.as_deref().map_err(|code| *code), expected, "{query}");
        }
        check("message=%7B%22a%22:+1%7D", Ok(br#"{"a": 1}"#)).await;
        check("message=%2B", Ok(b"+")).await;
        check("message=", Ok(b"")).await;
        check("message=_-8&base64=1", Ok(&[0xff, 0xef])).await;
        check("message=_-8%3D&base64=1", Ok(&[0xff, 0xef])).await;
        check("message=_-8&base64=0", Ok(b"_-8")).await;
        check("message=%&base64=1", Err(Code::InvalidArgument)).await;
        check("encoding=json", Err(Code::InvalidArgument)).await;
        check("message={}&compression=%0a", Err(Code::InvalidArgument)).await;
    }
}
