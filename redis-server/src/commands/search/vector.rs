//! `VECTOR algorithm count attribute value …` in a schema.

use query_engine::vector::{Algorithm, ElementType, Metric, VectorOptions};

use super::words::{Words, bad};
use crate::command::Result;
use crate::protocol::error::Error;

/// The subject of errors.
const WHAT: &str = "vector similarity";

/// Forms in which SVS-VAMANA keeps vectors (COMPRESSION).
const COMPRESSIONS: [&str; 6] = ["LVQ4", "LVQ8", "LVQ4x4", "LVQ4x8", "LeanVec4x8", "LeanVec8x8"];

/// The compression that a schema asks SVS-VAMANA for. Vectors are kept whole, so the request is checked and has no effect.
#[derive(Default)]
struct Compression {
    form: Option<&'static str>,
    /// TRAINING_THRESHOLD was given.
    is_trained: bool,
    /// Elements of the reduced vector (REDUCE).
    reduced: Option<usize>,
}

/// Reads the algorithm and its attributes.
pub(super) fn parse(words: &mut Words<'_>) -> Result<VectorOptions> {
    let (name, mut algorithm) = match () {
        () if words.take("FLAT") => ("FLAT", Algorithm::FLAT),
        () if words.take("HNSW") => ("HNSW", Algorithm::HNSW),
        () if words.take("SVS-VAMANA") => ("SVS-VAMANA", Algorithm::VAMANA),
        () => {
            let why = format!("expected FLAT, HNSW or SVS-VAMANA, found `{}`", words.shown());
            return Err(bad(&format!("{WHAT} algorithm"), &why));
        }
    };
    let mut attributes = words.list(&format!("{WHAT} number of parameters"))?;
    if attributes.left() % 2 != 0 {
        let why = "Expected an even number of arguments: attributes and their values";
        return Err(bad(&format!("{WHAT} number of parameters"), why));
    }
    let (mut element, mut dimensions, mut metric) = (None, None, None);
    let mut compression = Compression::default();
    while !attributes.is_empty() {
        match () {
            () if attributes.take("TYPE") => element = Some(named(&mut attributes, "TYPE", ElementType::parse)?),
            () if attributes.take("DISTANCE_METRIC") => {
                metric = Some(named(&mut attributes, "DISTANCE_METRIC", Metric::parse)?);
            }
            () if attributes.take("DIM") => dimensions = Some(number(&mut attributes, name, "DIM")?),
            // Memory grows with the vectors.
            () if attributes.take("INITIAL_CAP") => _ = number::<usize>(&mut attributes, name, "INITIAL_CAP")?,
            () if compression.read(&mut attributes, name, algorithm)? => {}
            () => of_algorithm(&mut attributes, name, &mut algorithm)?,
        }
    }
    let missing = |attribute: &str| {
        Error::Message(format!(
            "Missing mandatory parameter: cannot create {name} index without specifying {attribute} argument"
        ))
    };
    let element = element.ok_or_else(|| missing("TYPE"))?;
    let dimensions = dimensions.ok_or_else(|| missing("DIM"))?;
    let metric = metric.ok_or_else(|| missing("DISTANCE_METRIC"))?;
    compression.check(dimensions)?;
    Ok(VectorOptions::new(element, dimensions, metric, algorithm))
}

impl Compression {
    /// Reads an attribute if it is one of compression; `false` if it is another.
    fn read(&mut self, attributes: &mut Words<'_>, name: &str, algorithm: Algorithm) -> Result<bool> {
        match algorithm {
            Algorithm::Vamana { .. } if attributes.take("COMPRESSION") => {
                let parse = |word: &str| COMPRESSIONS.into_iter().find(|form| form.eq_ignore_ascii_case(word));
                self.form = Some(named(attributes, "COMPRESSION", parse)?);
            }
            Algorithm::Vamana { .. } if attributes.take("TRAINING_THRESHOLD") => {
                number::<usize>(attributes, name, "TRAINING_THRESHOLD")?;
                self.is_trained = true;
            }
            Algorithm::Vamana { .. } if attributes.take("REDUCE") => {
                self.reduced = Some(number(attributes, name, "REDUCE")?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks that the attributes fit each other and the vectors.
    fn check(&self, dimensions: usize) -> Result {
        if self.is_trained && self.form.is_none() {
            return Err(bad(&format!("{WHAT} TRAINING_THRESHOLD"), "Only an index with COMPRESSION is trained"));
        }
        let Some(reduced) = self.reduced else { return Ok(()) };
        if !self.form.is_some_and(|form| form.starts_with("LeanVec")) {
            return Err(bad(&format!("{WHAT} REDUCE"), "Only COMPRESSION LeanVec4x8 and LeanVec8x8 reduce vectors"));
        }
        if !(1..dimensions).contains(&reduced) {
            let why = format!("Invalid value {reduced}: expected 1 to less than DIM, which is {dimensions}");
            return Err(bad(&format!("{WHAT} REDUCE"), &why));
        }
        Ok(())
    }
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
        Algorithm::Vamana { degree, .. } if attributes.take("GRAPH_MAX_DEGREE") => {
            *degree = number(attributes, name, "GRAPH_MAX_DEGREE")?;
        }
        Algorithm::Vamana { construction_window, .. } if attributes.take("CONSTRUCTION_WINDOW_SIZE") => {
            *construction_window = number(attributes, name, "CONSTRUCTION_WINDOW_SIZE")?;
        }
        Algorithm::Vamana { search_window, .. } if attributes.take("SEARCH_WINDOW_SIZE") => {
            *search_window = number(attributes, name, "SEARCH_WINDOW_SIZE")?;
        }
        Algorithm::Vamana { epsilon, .. } if attributes.take("EPSILON") => {
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
