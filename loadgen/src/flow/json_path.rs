//! JSONPath: the subset of RFC 9535 that names places, without filters and functions.
//!
//! A body is walked once, without a tree: parts that the path does not name are skipped, and what it names is borrowed.

use std::borrow::Cow;
use std::fmt;

use rand::Rng;
use rand::rngs::SmallRng;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The path to a value: `$.items[0].id`, `$['a b']`, `$.items[*].id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Index(usize),
    /// Every element of an array, every value of an object.
    Each,
}

/// Which one of several values is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Pick {
    /// The first one.
    #[default]
    First,
    /// The last one.
    Last,
    /// Each with the same probability.
    Random,
}

/// The steps that a path may have, in the words of error texts.
const EXPECTED: &str = "a path such as $.items[0].id, made of .name, ['name'], [0] and [*]";

impl JsonPath {
    /// Reads a path.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut rest = text.strip_prefix('$').ok_or(EXPECTED)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let step;
            (step, rest) = Step::parse(rest).ok_or(EXPECTED)?;
            steps.push(step);
        }
        Ok(Self { steps })
    }

    /// The text of the value that the path names in a body: of a string without its quotes, of everything else its JSON. Nothing if
    /// there is none, if it is null, or if the body is not JSON.
    pub(super) fn find<'a>(&self, body: &'a [u8], pick: Pick, rng: &mut SmallRng) -> Option<Cow<'a, str>> {
        let mut found = Found { value: None, count: 0, pick, rng };
        let mut json = serde_json::Deserializer::from_slice(body);
        Seek { steps: &self.steps, found: &mut found }.deserialize(&mut json).ok()?;
        let text = found.value?.get();
        match text.as_bytes().first()? {
            b'"' => serde_json::from_str::<&str>(text)
                .map(Cow::Borrowed)
                .or_else(|_| serde_json::from_str(text).map(Cow::Owned))
                .ok(),
            _ => Some(Cow::Borrowed(text)),
        }
    }
}

impl Step {
    /// The first step of a path's rest, and what follows it.
    fn parse(text: &str) -> Option<(Self, &str)> {
        if let Some(rest) = text.strip_prefix('.') {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, rest) = rest.split_at(end);
            return match name {
                "" => None,
                "*" => Some((Self::Each, rest)),
                name => Some((Self::Name(name.to_owned()), rest)),
            };
        }
        let rest = text.strip_prefix('[')?;
        for quote in ['\'', '"'] {
            if let Some(quoted) = rest.strip_prefix(quote) {
                let (name, rest) = quoted.split_once(quote)?;
                return Some((Self::Name(name.to_owned()), rest.strip_prefix(']')?));
            }
        }
        let (inside, rest) = rest.split_once(']')?;
        let step = if inside == "*" { Self::Each } else { Self::Index(inside.parse().ok()?) };
        Some((step, rest))
    }
}

/// The values found so far.
struct Found<'a, 'r> {
    value: Option<&'a RawValue>,
    count: u32,
    pick: Pick,
    rng: &'r mut SmallRng,
}

impl<'a> Found<'a, '_> {
    fn offer(&mut self, value: &'a RawValue) {
        if value.get() == "null" {
            return;
        }
        self.count += 1;
        let replaces = match self.pick {
            Pick::First => false,
            Pick::Last => true,
            // Reservoir sampling: the n-th value replaces the one before with probability 1/n.
            Pick::Random => self.rng.random_range(0..self.count) == 0,
        };
        if self.count == 1 || replaces {
            self.value = Some(value);
        }
    }
}

/// Walks a value along the rest of a path.
struct Seek<'s, 'f, 'a, 'r> {
    steps: &'s [Step],
    found: &'f mut Found<'a, 'r>,
}

impl<'a> DeserializeSeed<'a> for Seek<'_, '_, 'a, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<(), D::Error> {
        if self.steps.is_empty() {
            let value = <&RawValue as serde::Deserialize>::deserialize(json)?;
            self.found.offer(value);
            return Ok(());
        }
        json.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Seek<'_, '_, 'a, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        let (step, steps) = self.steps.split_first().expect("a path without steps is found already");
        while let Some(is_named) = map.next_key_seed(KeyOf(step))? {
            if is_named {
                map.next_value_seed(Seek { steps, found: &mut *self.found })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut seq: S) -> Result<(), S::Error> {
        let (step, steps) = self.steps.split_first().expect("a path without steps is found already");
        for place in 0.. {
            let is_named = match step {
                Step::Name(_) => false,
                Step::Index(index) => *index == place,
                Step::Each => true,
            };
            let more = if is_named {
                seq.next_element_seed(Seek { steps, found: &mut *self.found })?.is_some()
            } else {
                seq.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Reads a key; true if the step names it.
struct KeyOf<'s>(&'s Step);

impl<'a> DeserializeSeed<'a> for KeyOf<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'a>>(self, json: D) -> Result<bool, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyOf<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(match self.0 {
            Step::Name(name) => name == key,
            Step::Index(_) => false,
            Step::Each => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::SeedableRng;

    use super::*;

    const BODY: &str = r#"{"token": "a\"b", "n": -1.50, "none": null, "deep": {"a b": {"x.y": true}},
        "items": [{"id": 1, "tags": ["p", "q"]}, {"id": 2, "tags": []}, {"id": 3}]}"#;

    fn find(path: &str, pick: Pick, seed: u64) -> Option<String> {
        let path = JsonPath::parse(path).unwrap();
        path.find(BODY.as_bytes(), pick, &mut SmallRng::seed_from_u64(seed)).map(Cow::into_owned)
    }

    #[test]
    fn paths_find_values() {
        #[track_caller]
        fn check(path: &str, pick: Pick, expected: Option<&str>) {
            assert_eq!(find(path, pick, 1).as_deref(), expected, "{path}");
        }
        check("$.token", Pick::First, Some("a\"b"));
        check("$.n", Pick::First, Some("-1.50"));
        check("$.none", Pick::First, None);
        check("$.absent", Pick::First, None);
        check("$.token.x", Pick::First, None);
        check("$['deep']['a b'][\"x.y\"]", Pick::First, Some("true"));
        check("$.deep['a b']", Pick::First, Some(r#"{"x.y": true}"#));
        check("$.items[1].id", Pick::First, Some("2"));
        check("$.items[7].id", Pick::First, None);
        check("$.items.id", Pick::First, None);
        check("$.deep[0]", Pick::First, None);
        check("$.items[*].id", Pick::First, Some("1"));
        check("$.items[*].id", Pick::Last, Some("3"));
        check("$.items[*].tags[*]", Pick::Last, Some("q"));
        check("$.deep.*.*", Pick::First, Some("true"));
        let all: BTreeSet<_> = (0..50).filter_map(|seed| find("$.items[*].id", Pick::Random, seed)).collect();
        assert_eq!(all.into_iter().collect::<Vec<_>>(), ["1", "2", "3"]);
        let mut rng = SmallRng::seed_from_u64(1);
        let whole = JsonPath::parse("$").unwrap();
        assert_eq!(whole.find(b"12", Pick::First, &mut rng).as_deref(), Some("12"));
        assert_eq!(whole.find(b"no JSON", Pick::First, &mut rng), None);
        assert_eq!(JsonPath::parse("$.a").unwrap().find(b"{\"a\": 1", Pick::First, &mut rng), None);
    }

    #[test]
    fn malformed_paths_are_refused() {
        for text in
            ["", "a", "a.b", "$a", "$.", "$..a", "$[", "$[]", "$[-1]", "$['a'", "$['a]", "$[?(@.a)]", "$.a[1:2]"]
        {
            assert_eq!(JsonPath::parse(text), Err(EXPECTED), "{text}");
        }
    }
}
