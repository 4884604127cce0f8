//! Libraries that search in their own process: what an answer takes without a server.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::corpus::{self, Document, KINDS, VARIANTS, Vectors, blob};
use super::drive::Sample;
use super::ingest::{Data, Figures};
use super::record::{self, Asked, Loaded, Recall};
use crate::programs;

/// A line of the peer's output.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Line {
    /// Microseconds of CPU time of an answer.
    Asked { library: String, question: String, cpu: f64, recall: Option<f64>, ef: Option<usize> },
    /// Microseconds of CPU time, and bytes, of a document.
    Loaded { library: String, cpu: f64, bytes: f64 },
}

/// Hands data and questions to the libraries by files, and keeps what they say.
pub(super) fn measure(keep: bool, data: &Data, count: usize, folder: &Path, commit: Option<&String>) -> Result<()> {
    let peer = programs::peer("search-floors")?;
    match data.dimensions {
        None => write_documents(folder, count)?,
        Some(dimensions) => write_vectors(folder, &Vectors::new(count, dimensions), count)?,
    }
    let dimensions = data.dimensions.unwrap_or_default().to_string();
    let output = Command::new(&peer).arg(folder).arg(&dimensions).output().context("search-floors")?;
    ensure!(output.status.success(), "search-floors: {}", String::from_utf8_lossy(&output.stderr));
    for line in String::from_utf8(output.stdout)?.lines() {
        match serde_json::from_str(line).with_context(|| format!("search-floors: {line}"))? {
            Line::Asked { library, question, cpu, recall, ef } => {
                let sample = Sample { cpu, rate: 0.0, p50: 0.0, p99: 0.0 };
                let row = Asked {
                    data: data.name.to_owned(),
                    question,
                    clients: 0,
                    server: library,
                    samples: vec![sample],
                    recall: recall.zip(ef).map(|(share, ef)| Recall { ef, share }),
                    commit: commit.cloned(),
                    machine: None,
                };
                println!("{row}");
                if keep {
                    record::keep_asked(&row)?;
                }
            }
            Line::Loaded { library, cpu, bytes } => {
                let figures = Figures { cpu, rate: 0.0, used: bytes, resident: bytes, index: bytes };
                let row = Loaded { data: data.name.to_owned(), server: library, figures, commit: commit.cloned() };
                println!("{row}");
                if keep {
                    record::keep_loaded(&row)?;
                }
            }
        }
    }
    Ok(())
}

fn write_documents(folder: &Path, count: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(folder.join("documents.tsv"))?);
    for number in 0..count {
        let Document { body, tag, price } = Document::of(number);
        writeln!(file, "{body}\t{tag}\t{price}")?;
    }
    file.flush()?;
    let mut file = BufWriter::new(File::create(folder.join("questions.tsv"))?);
    for kind in &KINDS {
        for query in (0..VARIANTS).filter_map(|number| kind.plain(number)) {
            writeln!(file, "{}\t{query}", kind.name)?;
        }
    }
    Ok(file.flush()?)
}

fn write_vectors(folder: &Path, vectors: &Vectors, count: usize) -> Result<()> {
    let write = |name: &str, numbers: &mut dyn Iterator<Item = Vec<u8>>| -> Result<()> {
        let mut file = BufWriter::new(File::create(folder.join(name))?);
        for bytes in numbers {
            file.write_all(&bytes)?;
        }
        Ok(file.flush()?)
    };
    write("vectors.f32", &mut (0..count).map(|number| blob(&vectors.of(number))))?;
    write("asked.f32", &mut (0..VARIANTS).map(|number| blob(&vectors.asked(number))))?;
    let exact = corpus::exact(vectors, count, false);
    let numbers = |found: Vec<usize>| found.into_iter().flat_map(|number| (number as u64).to_le_bytes()).collect();
    write("exact.u64", &mut exact.into_iter().map(numbers))
}
