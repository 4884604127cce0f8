//! Groups, bulks and histories: entries that clients have made, by names that the server gives.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::Value as Json;

use super::problem::Problem;
use super::value::excerpt;

/// Most that there may be of one kind.
pub(super) const MOST: usize = 64;

/// All of one kind, in the order in which they were made.
#[derive(Debug)]
pub(super) struct Stored<T> {
    kind: &'static str,
    made: u64,
    all: BTreeMap<u64, T>,
}

impl<T> Stored<T> {
    pub(super) fn new(kind: &'static str) -> Self {
        Self { kind, made: 0, all: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Keeps one more; its id.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn add(&mut self, value: T) -> Result<String, Problem> {
        if self.all.len() >= MOST {
            let full = format!("there are {MOST} of the kind {}, the most that are kept: delete one", self.kind);
            return Err(Problem::reference(StatusCode::CONFLICT, full));
        }
        self.made += 1;
        self.all.insert(self.made, value);
        Ok(self.id(self.made))
    }

    /// # Errors
    /// There is none of this id.
    pub(super) fn get(&self, id: &str) -> Result<&T, Problem> {
        self.number(id).and_then(|number| self.all.get(&number)).ok_or_else(|| self.unknown(id))
    }

    /// # Errors
    /// There is none of this id.
    pub(super) fn get_mut(&mut self, id: &str) -> Result<&mut T, Problem> {
        let unknown = self.unknown(id);
        self.number(id).and_then(|number| self.all.get_mut(&number)).ok_or(unknown)
    }

    /// # Errors
    /// There is none of this id.
    pub(super) fn remove(&mut self, id: &str) -> Result<T, Problem> {
        self.number(id).and_then(|number| self.all.remove(&number)).ok_or_else(|| self.unknown(id))
    }

    /// All with their ids.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (String, &T)> {
        self.all.iter().map(|(number, value)| (self.id(*number), value))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.values_mut()
    }

    fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.kind)
    }

    fn number(&self, id: &str) -> Option<u64> {
        let number = id.strip_prefix(self.kind)?.strip_prefix('-')?;
        // No second spelling of the same number.
        number.parse().ok().filter(|parsed: &u64| parsed.to_string() == number)
    }

    fn unknown(&self, id: &str) -> Problem {
        Problem::unknown(format!("there is no {} {id:.100}", self.kind))
    }
}

/// A field of a body that has to be a text.
///
/// # Errors
/// It is none, or not there.
pub(super) fn text<'a>(body: &'a Json, name: &str) -> Result<&'a str, Problem> {
    body[name]
        .as_str()
        .ok_or_else(|| Problem::mistyped(format!("{name}: a text is wanted, not {}", excerpt(&body[name]))))
}

/// Names that a client gives, in any languages: short texts.
///
/// # Errors
/// They are something else.
pub(super) fn names(body: &Json) -> Result<Json, Problem> {
    const LONGEST: usize = 200;
    const LANGUAGES: usize = 8;
    let names = match &body["descriptions"] {
        Json::Null => return Ok(serde_json::json!({})),
        names => names,
    };
    let is_short = |text: &Json| text.as_str().is_some_and(|text| text.len() <= LONGEST);
    let are_names = names.as_object().is_some_and(|map| {
        map.len() <= LANGUAGES && map.iter().all(|(language, text)| language.len() <= LANGUAGES && is_short(text))
    });
    if are_names {
        return Ok(names.clone());
    }
    Err(Problem::mistyped(
        "descriptions: an object of languages and texts of up to 200 bytes is wanted, {\"en\": \"evening\"}",
    ))
}

/// Refuses fields that mean nothing, so that a misspelt one is an error and not without effect.
///
/// # Errors
/// The body is no object, or has a field that is not among the known.
pub(super) fn known_fields(body: &Json, known: &[&str]) -> Result<(), Problem> {
    let Some(map) = body.as_object() else {
        return Err(Problem::mistyped(format!("an object is wanted, not {}", excerpt(body))));
    };
    match map.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            Err(Problem::mistyped(format!("{name:.60}: there is no such field; there are {}", known.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_never_given_twice_and_there_is_an_end() {
        let mut stored = Stored::new("group");
        assert_eq!(stored.add('a').unwrap(), "group-1");
        assert_eq!(stored.remove("group-1").unwrap(), 'a');
        assert_eq!(stored.add('b').unwrap(), "group-2");
        for id in ["group-1", "group-02", "group-+2", "2", "bulk-2", "group-", ""] {
            assert!(stored.get(id).is_err(), "{id}");
        }
        (1..MOST).for_each(|_| drop(stored.add('c').unwrap()));
        assert_eq!(stored.add('d').unwrap_err().status, StatusCode::CONFLICT);
        assert_eq!(stored.len(), MOST);
    }
}
