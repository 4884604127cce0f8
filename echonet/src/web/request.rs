//! The parts of a request: its body of JSON, and the wanted part of a list.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde_json::{Map, Value as Json};

use super::problem::Problem;

/// The longest body: a bulk of all requests.
pub(super) const BODY: usize = 64 * 1024;
/// How long a body may take to come.
const PATIENCE: Duration = Duration::from_secs(10);
/// Entries of a list if nothing else is said, and the most.
const USUAL: usize = 100;
pub(super) const MOST: usize = 1000;

/// A body of JSON.
pub(super) struct Document(pub(super) Json);

impl<S: Sync> FromRequest<S> for Document {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let bytes = read(request.into_body()).await?;
        let wrong = |error: serde_json::Error| Problem::mistyped(format!("the body is no JSON: {error}"));
        serde_json::from_slice(&bytes).map(Self).map_err(wrong)
    }
}

/// A body of JSON, or none at all, which is `null`.
pub(super) struct OptionalDocument(pub(super) Json);

impl<S: Sync> FromRequest<S> for OptionalDocument {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let bytes = read(request.into_body()).await?;
        if bytes.is_empty() {
            return Ok(Self(Json::Null));
        }
        let wrong = |error: serde_json::Error| Problem::mistyped(format!("the body is no JSON: {error}"));
        serde_json::from_slice(&bytes).map(Self).map_err(wrong)
    }
}

async fn read(body: Body) -> Result<Bytes, Problem> {
    let read = tokio::time::timeout(PATIENCE, axum::body::to_bytes(body, BODY)).await;
    let slow =
        |_| Problem::malformed(StatusCode::REQUEST_TIMEOUT, format!("the body did not come within {PATIENCE:?}"));
    // A client that broke off gets this answer in vain.
    let long = |_| Problem::malformed(StatusCode::PAYLOAD_TOO_LARGE, format!("a body has at most {BODY} bytes"));
    read.map_err(slow)?.map_err(long)
}

/// The pairs behind the `?`, in their order.
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Pairs {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let pairs = Query::from_request_parts(parts, state).await;
        pairs.map(|Query(pairs)| Self(pairs)).map_err(|error| Problem::mistyped(error.body_text()))
    }
}

/// Which part of a list is wanted: how many entries to leave out, and how many to give.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page(pub(super) usize, pub(super) usize);

impl<S: Send + Sync> FromRequestParts<S> for Page {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Pairs(pairs) = Pairs::from_request_parts(parts, state).await?;
        let (mut offset, mut limit) = (0, USUAL);
        for (name, value) in &pairs {
            let (place, range) = match &name[..] {
                "offset" => (&mut offset, 0..=usize::MAX),
                "limit" => (&mut limit, 1..=MOST),
                other => {
                    let wrong = format!("{other:.60}: there is no such parameter; there are offset, limit");
                    return Err(Problem::mistyped(wrong));
                }
            };
            let number =
                value.parse().map_err(|_| Problem::mistyped(format!("{name}: a number is wanted, not {value:.60}")))?;
            if !range.contains(&number) {
                return Err(Problem::range(format!(
                    "{name}: {} to {} is possible, not {number}",
                    range.start(),
                    range.end()
                )));
            }
            *place = number;
        }
        Ok(Self(offset, limit))
    }
}

/// A part of a list under a name, and whether there is more.
pub(super) fn page(name: &str, all: impl ExactSizeIterator<Item = Json>, offset: usize, limit: usize) -> Json {
    let has_more = offset.saturating_add(limit) < all.len();
    let mut page = Map::new();
    page.insert(name.to_owned(), all.skip(offset).take(limit).collect());
    page.insert("hasMore".to_owned(), has_more.into());
    page.insert("limit".to_owned(), limit.into());
    page.insert("offset".to_owned(), offset.into());
    page.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_of_lists() {
        let check = |offset, limit, expected: Json, has_more: bool| {
            let found = page("x", (0..5).map(Json::from), offset, limit);
            assert_eq!(found, json!({ "x": expected, "hasMore": has_more, "limit": limit, "offset": offset }));
        };
        check(0, 100, json!([0, 1, 2, 3, 4]), false);
        check(0, 5, json!([0, 1, 2, 3, 4]), false);
        check(1, 3, json!([1, 2, 3]), true);
        check(5, 1, json!([]), false);
        check(usize::MAX, 1, json!([]), false);
    }
}
