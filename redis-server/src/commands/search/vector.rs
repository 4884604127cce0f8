//! `VECTOR algorithm count attribute value …` in a schema.

use query_engine::vector::{Algorithm, ElementType, Metric, VectorOptions};

use super::words::{Words, bad};
use crate::command::Result;
use crate::protocol::error::Error;

/// The subject of errors.
const WHAT: &str = "vector similarity";

/// Reads the algorithm and its attributes.
pub(super) fn parse(words: &mut Words<'_>) -> Result<VectorOptions> {
    let (name, mut algorithm) = match () {
        () if words.take("FLAT") => ("FLAT", Algorithm::FLAT),
        () if words.take("HNSW") => ("HNSW", Algorithm::HNSW),
        () => {
            let why = format!("expected FLAT or HNSW, found `{}`", words.shown());
            return Err(bad(&format!("{WHAT} algorithm"), &why));
        }
    };
    let mut attributes = words.list(&format!("{WHAT} number of parameters"))?;
    if attributes.left() % 2 != 0 {
        let why = "Expected an even number of arguments: attributes and their values";
        return Err(bad(&format!("{WHAT} number of parameters"), why));
    }
    let (mut element, mut dimensions, mut metric) = (None, None, None);
    while !attributes.is_empty() {
        match () {
            () if attributes.take("TYPE") => element = Some(named(&mut attributes, "TYPE", ElementType::parse)?),
            () if attributes.take("DISTANCE_METRIC") => {
                metric = Some(named(&mut attributes, "DISTANCE_METRIC", Metric::parse)?);
            }
            () if attributes.take("DIM") => dimensions = Some(number(&mut attributes, name, "DIM")?),
            // Memory grows with the vectors.
            () if attributes.take("INITIAL_CAP") => _ = number::<usize>(&mut attributes, name, "INITIAL_CAP")?,
            () => of_algorithm(&mut attributes, name, &mut algorithm)?,
        }
    }
    let missing = |attribute: &str| {
        Error::Message(format!(
            "Missing mandatory parameter: cannot create {name} index without specifying {attribute} argument"
        ))
    };
    Ok(VectorOptions::new(
        element.ok_or_else(|| missing("TYPE"))?,
        dimensions.ok_or_else(|| missing("DIM"))?,
        metric.ok_or_else(|| missing("DISTANCE_METRIC"))?,
        algorithm,
    ))
}

/// An attribute that not every algorithm has.
fn of_algorithm(attributes: &mut Words<'_>, name: &str, algorithm: &mut Algorithm) -> Result {
    match algorithm {
        Algorithm::Flat { block_size } if attributes.take("BLOCK_SIZE") => {
            *block_size = number(attributes, name, "BLOCK_SIZE")?;
        }
        Algorithm::Hnsw { m, .. } if attributes.take("M") => *m = number(attributes, name, "M")?,
        Algorithm::Hnsw { ef_construction, .. } if attributes.take("EF_CONSTRUCTION") => {
            *ef_construction = number(attributes, name, "EF_CONSTRUCTION")?;
        }
        Algorithm::Hnsw { ef_runtime, .. } if attributes.take("EF_RUNTIME") => {
            *ef_runtime = number(attributes, name, "EF_RUNTIME")?;
        }
        Algorithm::Hnsw { epsilon, .. } if attributes.take("EPSILON") => {
            *epsilon = number(attributes, name, "EPSILON")?;
        }
        _ => return Err(bad(&format!("algorithm {name}"), &format!("Unknown attribute `{}`", attributes.shown()))),
    }
    Ok(())
}

fn number<N: std::str::FromStr>(attributes: &mut Words<'_>, name: &str, attribute: &str) -> Result<N> {
    attributes.number(&format!("{WHAT} {name} index {attribute}"))
}

fn named<T>(attributes: &mut Words<'_>, attribute: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    let found = attributes.shown();
    let value = parse(attributes.text(attribute)?);
    value.ok_or_else(|| bad(&format!("{WHAT} {attribute}"), &format!("Unknown value `{found}`")))
}
